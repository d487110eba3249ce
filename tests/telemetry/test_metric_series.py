"""From scrapes to series: what is kept, what is dropped, and that the quick way and the whole way come to the same."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics_play import SECOND, START, URL, at, exported, scrapes_of, steps, store_of, vector

from inferometer.printable import printable
from inferometer.telemetry.metrics.exposition import LARGEST, parse
from inferometer.telemetry.metrics.record import Scrape
from inferometer.telemetry.metrics.series import CELLS_A_SERIES, MOST_BUCKETS, MOST_NOTES, Endpoint, collect
from inferometer.telemetry.metrics.table import (
    MOST_COLUMNS,
    OTHER_LABELS,
    STATISTICS,
    label_columns,
    own_columns,
)

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
    "garbage": at(2.5, "# TYPE depth gauge\ndepth 900\n@@@@\n@@@@\n"),
    "clock_backwards": at(2, "# TYPE depth gauge\ndepth 900\n"),
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


@pytest.mark.parametrize("repeating", [{0}, {1}, {0, 1, 2}])
def test_a_series_that_a_scrape_repeats_has_its_last_value_there(repeating: set[int], tmp_path: Path) -> None:
    """Whichever scrape repeats it; the other series keep all their scrapes, and the lines are counted."""
    bodies = [f"{'depth 1' if n in repeating else '# none'}\ndepth 2\nx {n}\n" for n in range(3)]
    found = exported([at(second, body) for second, body in enumerate(bodies)], tmp_path)
    assert found["metrics"]["depth"]["series"][0]["stats"]["min"] == 2
    assert found["metrics"]["x"]["series"][0]["stats"]["avg"] == 1
    assert found["summary"]["notes"][URL] == {"duplicate_series": ["depth"]}
    assert found["summary"]["skipped_lines"][URL]["duplicate_series"]["count"] == len(repeating)
    assert "dropped" not in found["summary"]


def histogram(count: int, le: str = "1", inf: str = "+Inf") -> str:
    """All observations in one bucket."""
    last = f'h_bucket{{le="{inf}"}} {count}\n' if inf else ""
    return f'# TYPE h histogram\nh_bucket{{le="{le}"}} {count}\n{last}h_sum {count / 2}\nh_count {count}\n'


def test_a_line_that_cannot_be_read_costs_one_sample_of_one_series(tmp_path: Path) -> None:
    """Not a scrape; and of a histogram the scrape, since a bucket without its line is not a bucket that fell to 0."""
    bodies = [f"# TYPE c counter\nc {n}\n{histogram(n)}" for n in range(5)]
    bodies[2] = bodies[2].replace('h_bucket{le="1"} 2', 'h_bucket{le="1" 2')
    found = exported([at(second, body) for second, body in enumerate(bodies)], tmp_path)
    assert found["metrics"]["c"]["series"][0]["stats"]["total"] == 4
    (series,) = found["metrics"]["h"]["series"]
    assert (series["stats"]["count"], series["buckets"]["1"]) == (4, 4)
    assert "reset_detected" not in series
    assert found["summary"]["skipped_lines"][URL]["bad_line"] == {
        "count": 1,
        "first": "garbage at line 4: 'h_bucket{le=\"1\" 2'",
    }
    assert found["summary"]["endpoint_info"][URL]["total_fetches"] == 5


@given(order=st.permutations(range(6)))
def test_scrapes_out_of_order_are_those_in_order(order: list[int]) -> None:
    """Whatever their order in the record, as long as no two are at one instant."""
    scrapes = [at(n, f"# TYPE c counter\nc {n * n}\ng {n % 3}\n") for n in range(6)]
    (sorted_, shuffled) = (collect(one).endpoints[URL] for one in (scrapes, [scrapes[n] for n in order]))
    for one, other in zip(sorted_.series(), shuffled.series(), strict=True):
        assert one.times.tolist() == other.times.tolist()
        assert one.values.tolist() == other.values.tolist()
    late = sum(n < max(order[:place], default=-1) for place, n in enumerate(order))
    assert (shuffled.reordered, shuffled.drops) == (late, {})


@pytest.mark.parametrize(
    ("bodies", "note"),
    [
        (["# TYPE x gauge\nx 1\n", "# TYPE x counter\nx 2\n"], ("type_changed", "x")),
        ([histogram(1), histogram(2, le="2")], ("buckets_changed", "h")),
        ([histogram(1, inf="")] * 2, ("histogram_without_inf", "h")),
    ],
)
def test_what_a_series_cannot_take_up_is_noted(bodies: list[str], note: tuple[str, str]) -> None:
    """Samples of another type, buckets that it did not begin with, and a histogram that lacks its last bucket."""
    assert note in store_of(*bodies).endpoints[URL].noted()


def test_a_bound_may_be_spelled_in_another_way(tmp_path: Path) -> None:
    """1 and 1.0 are one bucket."""
    bodies = [histogram(n, le="1" if n < 2 else "1.0") for n in range(1, 6)]
    found = exported([at(second, body) for second, body in enumerate(bodies)], tmp_path)
    (series,) = found["metrics"]["h"]["series"]
    assert series["buckets"] == {"1": 4, "+Inf": 4}
    assert series["stats"]["p99_estimate"] <= 1


def test_what_the_count_has_beyond_the_buckets_lies_above_them(tmp_path: Path) -> None:
    """Where a histogram has no bucket +Inf: no percentile of theirs is then at the last bound or below."""
    body = '# TYPE h histogram\nh_bucket{le="1"} %d\nh_sum %d\nh_count %d\n'
    bodies = [body % (n, 40 * n, 2 * n) for n in range(0, 20, 5)]
    found = exported([at(second, body) for second, body in enumerate(bodies)], tmp_path)
    (series,) = found["metrics"]["h"]["series"]
    assert series["buckets"] == {"1": 15}
    assert series["stats"]["p99_estimate"] > 1 > series["stats"]["p25_estimate"]


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


@pytest.mark.parametrize("behind", ["depth 9\n", "other 1\n", "}{\n"])
def test_what_stands_behind_the_end_of_a_scrape_is_in_no_series(behind: str, tmp_path: Path) -> None:
    """Law: the export is that of the same scrapes without it, but for the lines counted; also where it changes from scrape to
    scrape while the rest only changes its numbers."""
    bodies = [f"# TYPE depth gauge\ndepth {n}\n# EOF\n" for n in range(4)]
    tails = [behind, behind, "", behind.replace("1", "2")]
    without = exported([at(second, body) for second, body in enumerate(bodies)], tmp_path)
    found = exported(
        [at(second, body + tail) for second, (body, tail) in enumerate(zip(bodies, tails, strict=True))],
        tmp_path,
    )
    skipped = found["summary"].pop("skipped_lines")
    assert skipped[URL]["after_eof"]["count"] == 3
    assert found == without


@given(most=st.integers(1, 12), scrapes=st.integers(1, 6), each=st.integers(1, 6), kept=st.integers(0, 3))
def test_labels_that_are_new_in_each_scrape_are_kept_up_to_a_limit(
    most: int, scrapes: int, each: int, kept: int
) -> None:
    """Those seen first are kept whole, whatever comes later; every line of another is counted."""
    bodies = [
        "".join(f'a{{old="{one}"}} {second}\n' for one in range(kept))
        + "".join(f'a{{new="{second}-{one}"}} 1\n' for one in range(each))
        for second in range(scrapes)
    ]
    endpoint = Endpoint(URL, most)
    for second, body in enumerate(bodies):
        endpoint.take(at(second, body))
    lines = scrapes * (each + kept)
    found = list(endpoint.series())
    lost = endpoint.skipped.get("too_many_series")
    assert len(found) == min(most, kept + scrapes * each)
    assert sum(len(one.times) for one in found) + (0 if lost is None else lost.count) == lines
    assert all(len(one.times) == scrapes for one in found[: min(most, kept)])


def histogram_of(name: str, bounds: list[str]) -> str:
    rows = "".join(f'{name}_bucket{{le="{le}"}} 1\n' for le in bounds)
    return f"# TYPE {name} histogram\n{rows}{name}_sum 1\n{name}_count 1\n"


def test_buckets_that_are_new_in_a_scrape_cost_no_more_than_others() -> None:
    """Law: twice the buckets take twice the steps, though every one has to be held against those of the first scrape."""

    def read(count: int) -> None:
        endpoint = Endpoint(URL)
        for second in range(3):
            endpoint.take(at(second, histogram_of("h", [f"{n}.{second}1" for n in range(count)])))
        assert ("buckets_changed", "h") in endpoint.noted()

    once, twice = (steps(lambda count=count: read(count)) for count in (100, 200))  # type: ignore[misc]
    assert twice <= 2.1 * once


def test_buckets_are_kept_up_to_a_limit() -> None:
    """Law: those seen first are kept, each line of another is counted in each scrape, and sum and count stay."""
    endpoint = Endpoint(URL)
    for second in range(2):
        endpoint.take(at(second, histogram_of("h", [str(n) for n in range(MOST_BUCKETS + 7)])))
    (one,) = endpoint.series()
    assert one.les == tuple(str(n) for n in range(MOST_BUCKETS))
    assert endpoint.skipped["too_many_buckets"].count == 2 * 7
    assert one.counts.tolist() == one.sums.tolist() == [1, 1]


@given(most=st.integers(1, 4), scrapes=st.integers(1, 4), names=st.integers(1, 4), buckets=st.integers(1, 30))
def test_numbers_and_families_are_kept_up_to_a_limit(
    most: int, scrapes: int, names: int, buckets: int
) -> None:
    """Law: whatever is new in each scrape, an endpoint keeps no more families, and but for sum and count no more numbers."""
    endpoint = Endpoint(URL, most)
    for second in range(scrapes):
        bounds = [str(n) for n in range(buckets)]
        endpoint.take(at(second, "".join(histogram_of(f"h{second}_{n}", bounds) for n in range(names))))
    assert len(endpoint.families) <= most
    kept = [parts for _, _, parts in endpoint.groups()]
    assert sum(map(len, kept)) <= most * (CELLS_A_SERIES + 2)
    lines = scrapes * names * (buckets + 2)
    lost = sum(one.count for one in endpoint.skipped.values())
    assert sum(len(part.at) > 0 for parts in kept for part in parts.values()) + lost == lines


def test_names_and_labels_are_kept_up_to_a_number_of_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: the limit holds for the sum of all that is kept of names and labels."""
    monkeypatch.setattr("inferometer.telemetry.metrics.series.MOST_CHARACTERS", 1_000)
    endpoint = Endpoint(URL)
    for second in range(20):
        endpoint.take(at(second, f'a{{l="{second:0100}"}} 1\n'))
    kept = [labels for _, labels, _ in endpoint.groups()]
    assert 1 < len(kept) < 10
    assert sum(len(word) for labels in kept for label in labels for word in label) <= 1_000
    assert endpoint.skipped["too_many_series"].count == 20 - len(kept)


def test_notes_are_kept_up_to_a_limit() -> None:
    """Law: names that are passed over in each scrape make a limited number of notes, and one says that there are more."""
    endpoint = Endpoint(URL)
    for second in range(3):
        body = "".join(f"n{second}_{n}_created 1\n" for n in range(MOST_NOTES // 2 + 1))
        endpoint.take(at(second, "a 1\n" + body))
    notes = endpoint.noted()
    assert len(notes) == MOST_NOTES + 1
    assert "too_many_notes" in {code for code, _ in notes}


def test_a_cell_that_goes_and_comes_in_another_spelling_is_the_same() -> None:
    """Law: a bucket spelt otherwise in each scrape has a value in each, and none in a scrape without it."""
    bodies = [histogram_of("h", [le, "+Inf"]) for le in ("1", "1.0", "1.00")]
    store = store_of(*bodies, histogram_of("h", ["+Inf"]), bodies[1])
    (endpoint,) = store.endpoints.values()
    (one,) = endpoint.series()
    assert one.buckets[:, 0].tolist() == [1, 1, 1, 0, 1]


@pytest.mark.parametrize("series", [1, 64, 65, 200])
def test_tables_have_a_limited_number_of_label_columns(series: int, tmp_path: Path) -> None:
    """Law: with a label of its own for each series, a row has no more cells than with 64, and no label is lost."""
    bodies = ["".join(f'm{{l{n}="{n}"}} {second}\n' for n in range(series)) for second in range(2)]
    exported(
        [at(second, body) for second, body in enumerate(bodies)], tmp_path, formats=("json", "csv", "parquet")
    )
    text = (tmp_path / "server_metrics_export.csv").read_text()
    header, *rows = csv.reader(line for line in text.splitlines() if not line.startswith("#"))
    assert len(header) <= 5 + len(STATISTICS["unknown"]) + MOST_COLUMNS + 1
    found = []
    for row in rows:
        cells = dict(zip(header, row, strict=True))
        labels = json.loads(cells.pop(OTHER_LABELS, "") or "{}")
        found.append(labels | {name: value for name, value in cells.items() if name[0] == "l" and value})
    assert sorted(found, key=str) == sorted(({f"l{n}": str(n)} for n in range(series)), key=str)
    table = pq.read_table(tmp_path / "server_metrics_export.parquet")
    assert table.num_columns <= 11 + MOST_COLUMNS + 1
    lost = table["other_labels"].drop_null().to_pylist() if series > MOST_COLUMNS else []
    assert len({str(json.loads(one)) for one in lost}) == max(0, series - MOST_COLUMNS)


@given(rows=st.lists(st.lists(st.integers(0, 40), max_size=5, unique=True), max_size=12))
def test_labels_have_a_column_in_steps_of_their_number(rows: list[list[int]]) -> None:
    """Law: each label of the rows has exactly one column; the columns are chosen by how many series have them."""
    kept, whole = own_columns(f"l{n}" for row in rows for n in row)
    assert whole
    assert sorted(label_columns([{f"l{n}": "" for n in row} for row in rows])) == sorted(kept)


HOSTILE = "=cmd|'/c calc'!A1 \x1b]0;pwn\x07\x9b31m\u202e\U000e0041\x7f"


def test_no_text_of_a_server_steers_a_terminal_or_begins_a_formula(tmp_path: Path) -> None:
    """Law: names, values and descriptions of labels and metrics, in each text export; JSON loses nothing of them."""
    body = (
        f"# HELP plain @SUM(1) {HOSTILE}\n"
        f'plain{{a="{HOSTILE}",b="-1",c="\x1b=1",d="+Inf","=name{HOSTILE}"="x"}} 1\n'
        f'build_info{{"=key"="{HOSTILE}"}} 1\n'
    )
    found = exported([at(0, body), at(1, body)], tmp_path, formats=("json", "csv", "jsonl"))
    for kind in ("json", "csv", "jsonl"):
        text = (tmp_path / f"server_metrics_export.{kind}").read_text()
        assert all(character in "\r\n" or printable(character) for character in text)
    (one,) = found["metrics"]["plain"]["series"]
    assert one["labels"]["a"] == HOSTILE
    rows = csv.reader((tmp_path / "server_metrics_export.csv").read_text().splitlines())
    cells = [cell for row in rows for cell in row]
    begins = {cell for cell in cells if cell[:1] in ("=", "+", "-", "@")}
    assert begins == {"-1", "+Inf"}
    assert "'=1" in cells
