"""From scrapes to series: what is kept, what is dropped, and that the quick way and the whole way come to the same."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics_play import SECOND, START, URL, at, exported, scrapes_of, store_of, vector

from inferometer.telemetry.metrics.exposition import LARGEST, parse
from inferometer.telemetry.metrics.record import Scrape
from inferometer.telemetry.metrics.series import collect

NAMES = st.sampled_from(["a", "b", 'c{x="1"}', 'c{x="2"}'])
BODIES = st.lists(
    st.dictionaries(NAMES, st.sampled_from([0.0, 1.0, 2.5, math.inf]), min_size=1), min_size=1, max_size=8
)


@given(bodies=BODIES)
def test_series_hold_what_the_scrapes_said(bodies: list[dict[str, float]]) -> None:
    """Series that come, go, come back, change and stay; what is not finite is no sample."""
    texts = ["".join(f"{name} {value}\n" for name, value in one.items()) for one in bodies]
    (endpoint,) = store_of(*texts).endpoints.values()
    found = {}
    for one in endpoint.series():
        labels = "".join(f'{{{key}="{value}"}}' for key, value in one.labels)
        found[one.family.name + labels] = dict(
            zip(((one.times - START) // SECOND).tolist(), one.values.tolist(), strict=True)
        )
    expected: dict[str, dict[int, float]] = {}
    for second, body in enumerate(bodies):
        for name, value in body.items():
            if math.isfinite(value):
                expected.setdefault(name, {})[second] = value
    assert found == expected


def test_the_quick_way_and_the_whole_way_come_to_the_same() -> None:
    """Of a real server's scrapes: each body read by itself has the values that the series have at its time."""
    scrapes = scrapes_of(vector("server_llamacpp"))
    (endpoint,) = collect(scrapes).endpoints.values()
    values = {
        (one.family.name, time): value
        for one in endpoint.series()
        for time, value in zip(one.times.tolist(), one.values.tolist(), strict=True)
    }
    for scrape in scrapes:
        layout = parse(scrape.body or "")
        for cell, value in zip(layout.cells, layout.values, strict=True):
            if cell is not None:
                assert values[cell.family, scrape.timestamp_ns] == value


BAD = {
    "html": at(2.5, "<html>busy</html>"),
    "json": at(2.5, '{"detail": "not found"}'),
    "too_large": at(2.5, "a 1\n" * (LARGEST // 4 + 1)),
    "garbage": at(2.5, "# TYPE depth gauge\ndepth 900\n@@@@\n"),
    "duplicate_series": at(2.5, "# TYPE depth gauge\ndepth 900\ndepth 901\n"),
    "clock_backwards": at(0.5, "# TYPE depth gauge\ndepth 900\n"),
    "empty": at(2.5, ""),
    "no_samples": at(2.5, "# nothing\n"),
    "refused": Scrape(URL, START + 2, None, error="refused"),
}


@pytest.mark.parametrize("code", BAD)
def test_a_scrape_that_cannot_be_used_leaves_no_trace_but_its_code(code: str, tmp_path: Path) -> None:
    """The export is the one without it, and says how many were dropped and why."""
    good = [at(second, f"# TYPE depth gauge\ndepth {second}\n") for second in range(6)]
    without = exported(good, tmp_path)
    found = exported([*good[:3], BAD[code], *good[3:]], tmp_path)
    dropped = found["summary"].pop("dropped")
    assert found == without
    assert dropped[URL][code]["count"] == 1
    assert dropped[URL][code]["first"]


def test_a_server_that_always_repeats_a_series_is_taken_at_its_last_word(tmp_path: Path) -> None:
    """Since dropping all it says would help nobody; the repetition is noted."""
    found = exported([at(second, "depth 1\ndepth 2\n") for second in range(3)], tmp_path)
    assert found["metrics"]["depth"]["series"][0]["stats"]["max"] == 2
    assert found["summary"]["notes"][URL] == {"duplicate_series": ["depth"]}
    assert "dropped" not in found["summary"]


@pytest.mark.parametrize("lone", ["", "h 5\n"])
def test_a_sample_under_the_bare_name_of_a_histogram_costs_nothing_else(lone: str, tmp_path: Path) -> None:
    """Neither the histogram beside it, if there is one, nor any other metric; in every format."""
    rest = 'h_bucket{le="+Inf"} %d\nh_sum %d\nh_count %d\n'
    bodies = [
        f"# TYPE h histogram\n{lone}{rest % (n, n, n)}# TYPE k histogram\nk 5\ng {n}\n" for n in range(3)
    ]
    made = exported(
        [at(second, body) for second, body in enumerate(bodies)],
        tmp_path,
        formats=("json", "csv", "jsonl", "parquet"),
    )
    assert made["metrics"].keys() == {"g", "h"}
    assert made["metrics"]["h"]["series"][0]["stats"]["count"] == 2
    noted = ["h", "k"] if lone else ["k"]
    assert made["summary"]["notes"][URL] == {"histogram_without_part": noted}


def test_endpoints_under_one_name_stay_apart(tmp_path: Path) -> None:
    """Three endpoints with two label sets each are six series, by endpoint and labels."""
    body = '# TYPE depth gauge\ndepth{m="b"} 1\ndepth{m="a"} 2\n'
    urls = [f"http://h{number}/metrics" for number in (3, 1, 2)]
    found = exported([at(second, body, url) for second in range(2) for url in urls], tmp_path)
    series = found["metrics"]["depth"]["series"]
    assert [(one["endpoint_url"], one["labels"]["m"]) for one in series] == [
        (url, m) for url in sorted(urls) for m in "ab"
    ]
    assert found["summary"]["endpoints_configured"] == urls


def test_one_name_with_two_types_is_of_the_first_endpoints_type(tmp_path: Path) -> None:
    """The other's series are left out of the statistics with a note, and are in the samples under their own type."""
    bodies = {
        "http://a:1/metrics": "# TYPE x gauge\nx %d\ny %d\n",
        "http://b:1/metrics": '# TYPE x histogram\nx_bucket{le="+Inf"} %d\nx_sum 1\nx_count 1\n# TYPE y gauge\ny %d\n',
    }
    made = exported(
        [at(n, body % (n, n), url) for n in range(3) for url, body in bodies.items()],
        tmp_path,
        formats=("json", "csv", "jsonl", "parquet"),
    )
    assert made["metrics"]["x"]["type"] == "gauge"
    assert [one["endpoint_url"] for one in made["metrics"]["x"]["series"]] == ["http://a:1/metrics"]
    assert [one["endpoint_url"] for one in made["metrics"]["y"]["series"]] == list(bodies)
    assert made["summary"]["notes"] == {"http://b:1/metrics": {"other_type": ["x"]}}
    table = (tmp_path / "server_metrics_export.csv").read_text()
    assert "b:1,gauge,x" not in table
    rows = pq.read_table(tmp_path / "server_metrics_export.parquet").to_pylist()
    assert {(row["endpoint_url"][7], row["metric_type"]) for row in rows if row["metric_name"] == "x"} == {
        ("a", "gauge"),
        ("b", "histogram"),
    }


FIXED = [
    "endpoint_url", "metric_name", "metric_type", "unit", "description", "timestamp_ns",
    "value", "sum", "count", "bucket_le", "bucket_count",
]  # fmt: skip


@pytest.mark.parametrize("name", FIXED)
def test_a_label_named_like_a_column_fills_no_column(name: str, tmp_path: Path) -> None:
    """Parquet has what it has without that label; the other formats have the label."""
    plain = 'g{a="b"} 1\n# TYPE h histogram\nh_sum{a="b"} 2\nh_count{a="b"} 3\n'
    tables = []
    for number, body in enumerate([plain, plain.replace('a="b"', f'a="b",{name}="abc"')]):
        folder = tmp_path / str(number)
        made = exported([at(0, body)], folder, formats=("json", "csv", "jsonl", "parquet"))
        tables.append(pq.read_table(folder / "server_metrics_export.parquet"))
    assert made["metrics"]["g"]["series"][0]["labels"] == {"a": "b", name: "abc"}
    assert tables[0].column_names == ["endpoint_url", *FIXED[1:6], "a", *FIXED[6:]]
    assert tables[1].equals(tables[0])


def test_credentials_are_struck_out_of_every_export(tmp_path: Path) -> None:
    """In user part and query, from the moment a scrape is taken up."""
    url = "http://joe:hunter2@h:8000/metrics?api_key=hunter2&verbose=1"
    found = exported(
        [at(second, "x 1\n", url) for second in range(3)] + [at(4, "<html>", url)],
        tmp_path,
        formats=("json", "csv", "jsonl", "parquet"),
    )
    assert found["summary"]["endpoints_configured"] == [
        "http://<redacted>@h:8000/metrics?api_key=<redacted>&verbose=1"
    ]
    for path in tmp_path.iterdir():
        assert b"hunter2" not in path.read_bytes(), path
    assert json.dumps(found).count("<redacted>") > 2
