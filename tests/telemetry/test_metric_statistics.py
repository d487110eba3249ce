"""Statistics and timeslices by their definitions, on series drawn at random; and the queries of the schema document."""

from __future__ import annotations

import itertools
import json
import math
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from metrics_play import SECOND, START, URL, at, exported, scrapes_of, store_of, vector

from inferometer.telemetry.metrics.document import (
    Period,
    Wanted,
    endpoint_info,
    metrics,
    opening,
    warmup_metrics,
)
from inferometer.telemetry.metrics.estimators import ESTIMATORS
from inferometer.telemetry.metrics.four_phase import estimate as four_phase
from inferometer.telemetry.metrics.histogram_delta import PERCENTILES, Observed, bracket
from inferometer.telemetry.metrics.record import Scrape
from inferometer.telemetry.metrics.series import collect
from inferometer.telemetry.metrics.statistics import FEW_SLICES, SLICES_PER_SCRAPE

STEPS = st.lists(
    st.tuples(st.integers(1, 3 * SECOND), st.integers(0, 50)), min_size=3, max_size=40
)  # ns to the next scrape, and the increase until then


def plain(entry: object) -> dict[str, Any]:
    """As it stands in the document."""
    members: dict[str, Any] = msgspec.to_builtins(entry)
    return members


def of(
    name: str, texts: list[str], gaps: list[int], start_s: float, end_s: float, slice_s: float
) -> dict[str, Any]:
    """The one series' entry of scrapes with these gaps."""
    times = itertools.accumulate(gaps, initial=START)
    store = collect(Scrape(URL, time, text) for time, text in zip(times, texts, strict=False))
    period = Period(START + int(start_s * SECOND), START + int(end_s * SECOND))
    found = {one.name: one for one in metrics(store, Wanted(period, four_phase, int(slice_s * SECOND)))}
    return plain(found[name].series[0]) if name in found else {}


@given(steps=STEPS, slice_s=st.sampled_from([0.0, 0.5, 2.0]), start_s=st.sampled_from([0.0, 1.5]))
def test_the_slices_of_a_counter_add_up_to_its_total(
    steps: list[tuple[int, int]], slice_s: float, start_s: float
) -> None:
    """Without a reset, whatever the slices: the increase from the reference to the last scrape; and rates lie between."""
    values = list(itertools.accumulate((more for _, more in steps), initial=0))
    texts = [f"# TYPE c_total counter\nc_total {value}\n" for value in values]
    gaps = [gap for gap, _ in steps]
    found = of("c", texts, gaps, start_s, sum(gaps) / SECOND + 2, slice_s)
    if not found:
        return
    stats = found["stats"]
    if slice_s and "timeslices" in found:
        assert sum(one["total"] for one in found["timeslices"]) == pytest.approx(stats["total"])
        assert all(one["end_ns"] > one["start_ns"] for one in found["timeslices"])
        assert not [one for one in found["timeslices"][:-1] if "is_complete" in one]
    assert stats["rate_min"] <= stats["rate_avg"] * (1 + 1e-9)
    assert stats["rate_avg"] <= stats["rate_max"] * (1 + 1e-9)
    if not slice_s:
        assert stats["rate_avg"] == pytest.approx(stats["rate"])  # weighted by time
    assert "reset_detected" not in found


@pytest.mark.parametrize("last_s", [10, 1e9])
@pytest.mark.parametrize("far", ["the period's end", "the last scrape", "the warm-up's end"])
def test_slices_are_no_more_than_the_scrapes_give_reason_for(far: str, last_s: float) -> None:
    """Law: however long a record says that a period is, and wherever one of its scrapes is, slices are made in the number that
    goes with the scrapes, or none, which the summary says."""
    kinds = "# TYPE c counter\nc {0}\n# TYPE g gauge\ng {0}\n# TYPE h histogram\nh_sum {0}\nh_count {0}\n"
    times = [*(n / 10 for n in range(60)), *([last_s] if far == "the last scrape" else [])]
    store = collect(at(second, kinds.format(n)) for n, second in enumerate(times))
    period = Period(START, START + int(max(times[-1], last_s if far == "the period's end" else 0) * SECOND))
    warmup = Period(START - 5, START + int(last_s * SECOND)) if far == "the warm-up's end" else None
    wanted = Wanted(period, four_phase, SECOND, warmup)
    made = [plain(one.series[0]) for one in (*metrics(store, wanted), *warmup_metrics(store, wanted))]
    assert len(made) == (6 if warmup else 3)
    many = [len(one["timeslices"]) for one in made if "timeslices" in one]
    assert max(many, default=0) <= FEW_SLICES + SLICES_PER_SCRAPE * len(times)
    assert len(many) == (len(made) if last_s == 10 else 3 if warmup else 0)
    noted = {URL: {"too_many_timeslices": ["c", "g", "h"]}}
    assert plain(opening(store, wanted))["summary"].get("notes") == (None if last_s == 10 else noted)


def test_slices_that_are_not_wanted_are_not_missed() -> None:
    """Law: with slices of no length nothing is said of their number."""
    store = store_of("# TYPE g gauge\ng 1\n", "# TYPE g gauge\ng 2\n")
    wanted = Wanted(Period(START, START + 10**18), four_phase, 0)
    assert "notes" not in plain(opening(store, wanted))["summary"]


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_a_gauge_has_the_moments_and_percentiles_of_its_samples(values: list[float]) -> None:
    """NumPy's, with n - 1 in the standard deviation."""
    texts = [f"# TYPE g gauge\ng {value!r}\n" for value in values]
    stats = of("g", texts, [SECOND] * len(values), 0, 1000, 0)["stats"]
    assert [stats[f"p{one}"] for one in PERCENTILES] == pytest.approx(
        np.percentile(values, PERCENTILES).tolist()
    )
    assert stats["avg"] == pytest.approx(np.mean(values))
    assert stats["std"] == pytest.approx(np.std(values, ddof=1) if len(values) > 1 else 0.0)
    assert (stats["min"], stats["max"]) == (min(values), max(values))


@pytest.mark.parametrize("looks", [2, 3])
def test_a_slice_is_an_update_where_those_are_further_apart(looks: int, tmp_path: Path) -> None:
    """From the first interval between two updates on."""
    scrapes = [at(5 * n, f"# TYPE c counter\nc {10 * n}\n") for n in range(looks)]
    one = exported(scrapes, tmp_path, end=5 * (looks - 1))["metrics"]["c"]["series"][0]
    assert one["stats"]["rate_avg"] == one["stats"]["rate_min"] == 2
    assert one["timeslices"] == [
        {"start_ns": START + n * 5 * SECOND, "end_ns": START + (n + 1) * 5 * SECOND, "total": 10, "rate": 2}
        for n in range(looks - 1)
    ]


NUMBERS = st.sampled_from(
    [
        -1.7e308,
        -1e300,
        -1e30,
        -1e19,
        -1.0,
        0.0,
        1e-320,
        1.0,
        7.0,
        2.0**53,
        2.0**63,
        1.8446744073709552e19,
        1e30,
        1e300,
    ]
)


@pytest.mark.parametrize("name", ESTIMATORS)
@given(rows=st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=1, max_size=5))
@example(
    rows=[[-1.7e308, -1.7e308, -1.0, -1.0, -1e30, -1.0], [-1.7e308, -1.7e308, 2.0**53, -1.0, -1e19, 0.0]]
)
def test_whatever_the_numbers_no_statistic_is_without_one(name: str, rows: list[list[float]]) -> None:
    """Neither null nor a warning, and no count beyond those of a float: what is too large is no sample."""
    body = (
        "# TYPE c counter\n# TYPE h histogram\n"
        'g %r\nc %r\nh_bucket{le="1"} %r\nh_bucket{le="+Inf"} %r\nh_sum %r\nh_count %r\n'
    )
    store = collect(at(n, body % tuple(row)) for n, row in enumerate(rows))
    wanted = Wanted(Period(START, START + 10 * SECOND), ESTIMATORS[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = {one.name: plain(one.series[0]) for one in metrics(store, wanted)}
    stats = [number for one in found.values() for number in one["stats"].values()]
    for one in found.values():
        for cut in one.get("timeslices", []):
            stats += [number for name, number in cut.items() if name != "buckets"]
    assert np.isfinite(stats).all()
    gauges = [row[0] for row in rows if abs(row[0]) <= 1e30]
    assert ("g" in found) == bool(gauges)
    if gauges:
        assert (found["g"]["stats"]["min"], found["g"]["stats"]["max"]) == (min(gauges), max(gauges))
    for count in found.get("h", {}).get("buckets", {}).values():
        assert 0 <= count <= 2**54


def test_a_restart_clamps_and_is_flagged(tmp_path: Path) -> None:
    """Of a counter the difference from the reference, never below 0; of a histogram neither buckets nor estimates."""

    def body(count: int) -> str:
        return (
            f"# TYPE c_total counter\nc_total {count}\n# TYPE h histogram\n"
            f'h_bucket{{le="1"}} {count}\nh_bucket{{le="+Inf"}} {count}\nh_sum {count / 2}\nh_count {count}\n'
        )

    found = exported([at(at_s, body(count)) for at_s, count in enumerate([10, 40, 2, 25])], tmp_path, 1, 3)
    counter, histogram = (found["metrics"][name]["series"][0] for name in "ch")
    assert counter["stats"]["total"] == 15
    assert counter["reset_detected"]
    assert histogram["reset_detected"]
    assert histogram["stats"]["count"] == 15
    assert "buckets" not in histogram
    assert "p50_estimate" not in histogram["stats"]


def test_the_reference_is_the_last_scrape_before_the_period(tmp_path: Path) -> None:
    """What came before counts for nothing, and a period cut out of a record ends where it says."""
    scrapes = [at(second, f"# TYPE c_total counter\nc_total {second * second}\n") for second in range(60)]
    stats = exported(scrapes, tmp_path, 9.5, 20)["metrics"]["c"]["series"][0]["stats"]
    assert stats["total"] == 20 * 20 - 9 * 9
    assert stats["rate"] == stats["total"] / 11


LATE = '# TYPE c counter\nc{r="a"} 17\n' + (
    '# TYPE h histogram\nh_bucket{le="1"} 5\nh_bucket{le="+Inf"} 6\nh_sum 9\nh_count 6\n'
)


@pytest.mark.parametrize("start_s", [0.0, 0.5, 2.0])
def test_a_series_that_is_first_there_in_the_period_counts_from_zero(start_s: float, tmp_path: Path) -> None:
    """Its endpoint was scraped without it; rates are over the whole period all the same, and the entry is flagged."""
    up = "# TYPE up gauge\nup 1\n"
    scrapes = [at(second, up if second < 3 else up + LATE) for second in range(6)]
    found = exported(scrapes, tmp_path, start_s, 5, formats=("json", "parquet"))["metrics"]
    counter, histogram = found["c"]["series"][0], found["h"]["series"][0]
    reference = {0.0: 0, 0.5: 0, 2.0: 1}[start_s]
    assert counter["stats"]["total"] == 17
    assert counter["stats"]["rate"] == pytest.approx(17 / (5 - reference))
    assert sum(one["total"] for one in counter["timeslices"]) == 17
    assert (histogram["stats"]["count"], histogram["stats"]["sum"]) == (6, 9)
    assert histogram["buckets"] == {"1": 5, "+Inf": 6}
    assert counter["counted_from_zero"]
    assert histogram["counted_from_zero"]
    assert "counted_from_zero" not in found["up"]["series"][0]
    rows = pq.read_table(tmp_path / "server_metrics_export.parquet").to_pylist()
    assert [row["value"] for row in rows if row["metric_name"] == "c"] == [17, 17, 17]


def test_a_series_whose_line_may_have_been_lost_does_not_count_from_zero(tmp_path: Path) -> None:
    """Nor one of an endpoint that was never scraped without it, nor one that was there before the period."""
    up = "# TYPE up gauge\nup 1\n"
    for number, first in enumerate([up + "c{ 1\n", up + LATE]):
        scrapes = [at(0, first), at(1, up + LATE), at(2, up + LATE.replace("17", "20"))]
        (series,) = exported(scrapes, tmp_path / str(number))["metrics"]["c"]["series"]
        assert (series["stats"]["total"], series.get("counted_from_zero")) == (3, None)
    scrapes = [at(n, up + (LATE.replace("17", str(17 + n)) if n else "")) for n in range(4)]
    (series,) = exported(scrapes, tmp_path, 1.5)["metrics"]["c"]["series"]
    assert (series["stats"]["total"], series.get("counted_from_zero")) == (2, None)


def test_a_record_that_goes_on_a_little_after_the_period_counts_to_its_last_news(tmp_path: Path) -> None:
    """A server tells of a request after its end; scrapes that bring nothing new do not count."""
    values = [0, 5, 9, 11, 12, 12, 12]
    scrapes = [
        at(second, f"# TYPE c_total counter\nc_total {value}\n") for second, value in enumerate(values)
    ]
    stats = exported(scrapes, tmp_path, 0.5, 2)["metrics"]["c"]["series"][0]["stats"]
    assert (stats["total"], stats["rate"]) == (12, 3)


def test_the_collection_is_told(tmp_path: Path) -> None:
    """Fetches, updates and their intervals; times in UTC; the median from two intervals on."""
    bodies = ["x 1\n", "x 1\n", "x 2\n", "x 2\n"]
    found = exported([at(second, body, latency_ns=4_000_000) for second, body in enumerate(bodies)], tmp_path)
    summary = found["summary"]
    assert summary["start_time"] == "2025-06-15T15:06:40.000000Z"
    assert summary["end_time"] == "2025-06-15T15:06:43.000000Z"
    assert summary["endpoint_info"][URL] == {
        "total_fetches": 4,
        "first_fetch_ns": START,
        "last_fetch_ns": START + 3 * SECOND,
        "avg_fetch_latency_ms": 4.0,
        "unique_updates": 2,
        "first_update_ns": START,
        "last_update_ns": START + 2 * SECOND,
        "duration_seconds": 2.0,
        "avg_update_interval_ms": 2000.0,
    }
    (endpoint,) = store_of("x 1\n", "x 2\n", "x 3\n").endpoints.values()
    assert endpoint_info(endpoint).median_update_interval_ms == 1000.0


def test_the_members_of_the_document_are_those_of_the_schema(tmp_path: Path) -> None:
    """Every identifier is there, null where nothing is known; what does not apply is left out."""
    found = exported([at(second, "x 1\n") for second in range(3)], tmp_path, slice_s=0)
    assert list(found)[:4] == ["schema_version", "aiperf_version", "benchmark_id", "inferometer_version"]
    assert (found["schema_version"], found["aiperf_version"]) == ("1.0", None)
    (series,) = found["metrics"]["x"]["series"]
    assert list(series) == ["endpoint_url", "stats"]
    assert found["metrics"]["x"] == {"type": "gauge", "description": "", "series": [series]}


def test_the_queries_of_the_schema_document_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As they stand there, but for the names of metrics."""
    case = vector("warmup_exclusion")
    data = exported(scrapes_of(case), tmp_path, 4, 10)
    for name, metric in data["metrics"].items():
        for series in metric["series"]:
            stats = series.get("stats", {})
            p99 = stats.get("p99") or stats.get("p99_estimate")
            if p99 and p99 > 1.0 and metric.get("unit") == "seconds":
                print(f"{name}: p99={p99:.2f}s")
    assert capsys.readouterr().out == "h_seconds: p99=3.69s\n"
    total = sum(series.get("stats", {}).get("total", 0) for series in data["metrics"]["c"]["series"])
    assert total == 87.0
    max_throughput = max(
        (series.get("stats", {}).get("rate", 0), series["endpoint_url"])
        for series in data["metrics"]["c"]["series"]
    )
    assert max_throughput == (pytest.approx(87 / 8.5), URL)
    for series in data["metrics"]["g"]["series"]:
        if series.get("timeslices"):
            for ts in series["timeslices"]:
                duration_s = (ts["end_ns"] - ts["start_ns"]) / 1e9
                print(f"  {duration_s:.1f}s window: avg={ts['avg']:.2f}")
    assert capsys.readouterr().out.count("2.0s window") == 4
    assert data["metrics"]["h_seconds"]["series"][0]["stats"]["p99_estimate"] == pytest.approx(
        3.689410331657851
    )


BOUNDS = st.lists(st.floats(0.001, 1000), min_size=1, max_size=8, unique=True).map(sorted)


@pytest.mark.parametrize("name", ESTIMATORS)
@given(bounds=BOUNDS, draws=st.lists(st.floats(0, 2000), min_size=1, max_size=60), every=st.integers(1, 20))
def test_estimates_ascend_and_lie_in_the_buckets_that_hold_something(
    name: str, bounds: list[float], draws: list[float], every: int
) -> None:
    """Whatever was observed, and however often it was scraped."""
    edges = np.array([*bounds, np.inf])
    each = np.zeros((len(draws) + 1, len(edges)))
    each[np.arange(1, len(draws) + 1), np.searchsorted(edges, draws, "left")] = 1
    seen = [*range(0, len(draws), every), len(draws)]
    buckets = np.cumsum(np.cumsum(each, axis=0)[seen], axis=1)
    sums = np.concatenate([[0.0], np.cumsum(draws)])[seen]
    given_them = Observed(
        edges, buckets[-1], float(sums[-1]), float(len(draws)), buckets, sums, buckets[:, -1], len(seen)
    )
    found = ESTIMATORS[name](given_them)
    assert found is not None
    assert np.isfinite(found).all()
    assert (np.diff(found) >= -1e-9 * np.abs(found[1:])).all()
    low = max((bound for bound in bounds if bound < min(draws)), default=0.0)
    if name == "four-phase" and sums[-1] == 0:
        return  # a sum of 0 is taken to mean that everything was 0
    assert found[0] >= low * (1 - 1e-9)
    highest = min((bound for bound in bounds if bound >= max(draws)), default=np.inf)
    assert found[-1] <= highest * (1 + 1e-9)


@given(
    bounds=BOUNDS,
    draws=st.lists(st.floats(0, 2000), min_size=1, max_size=60),
    percent=st.sampled_from([1, 25, 50, 90, 99]),
)
def test_a_percentile_lies_between_the_bounds_of_its_bracket(
    bounds: list[float], draws: list[float], percent: int
) -> None:
    """Whatever was observed: those of the buckets that the percentile of the observations falls into, and no wider."""
    edges = np.array([*bounds, np.inf])
    cumulative = np.array([sum(draw <= edge for draw in draws) for edge in edges], dtype=np.float64)
    table = np.stack([np.zeros(len(edges)), cumulative])
    low, high = bracket(
        Observed(edges, cumulative, sum(draws), len(draws), table, np.zeros(2), table[:, -1], 2), percent
    )
    true = float(np.percentile(draws, percent))
    assert low <= true <= high
    assert {low, high} <= {0.0, *bounds, np.inf}
    ordered, rank = sorted(draws), (len(draws) - 1) * percent / 100
    assert not any(low < bound < ordered[math.floor(rank)] for bound in bounds)
    assert not any(ordered[math.ceil(rank)] <= bound < high for bound in bounds)


@given(value=st.sampled_from([0.5, 1.0, 2.0]), count=st.integers(8, 30))
def test_the_smooth_estimate_finds_what_is_always_the_same(value: float, count: int) -> None:
    """Also at a bound, where a mean says everything; and so does a document's count of one answer a request."""
    buckets = np.outer(np.arange(count + 1), np.array([0, float(value <= 1), 1, 1]))
    sums = value * np.arange(count + 1, dtype=np.float64)
    given_them = Observed(
        np.array([0.25, 1, 10, np.inf]),
        buckets[-1],
        float(sums[-1]),
        float(count),
        buckets,
        sums,
        buckets[:, -1],
        count + 1,
    )
    assert ESTIMATORS["smooth"](given_them) == pytest.approx(np.full(len(PERCENTILES), value))


def test_the_whole_document_is_json_that_others_read(tmp_path: Path) -> None:
    """Written in pieces, it is what the same data would be in one: with warm-up, labels, HELP with quotes and line feeds."""
    body = '# HELP x say \\"hi\\"\\nthere \\\\ é\n# TYPE x gauge\nx{q="a\\"b\\\\c\\nd"} 1\n'
    found = exported([at(second, body) for second in range(5)], tmp_path)
    text = (tmp_path / "server_metrics_export.json").read_text()
    assert json.loads(json.dumps(found)) == json.loads(text)
    assert found["metrics"]["x"]["series"][0]["labels"] == {"q": 'a"b\\c\nd'}
