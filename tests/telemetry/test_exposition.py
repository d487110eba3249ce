"""The text formats: the reference parser agrees, every type has its place, and what cannot be used is named."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from metrics_play import steps, store_of
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, Summary, generate_latest
from prometheus_client import Enum as StateSet
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from inferometer.telemetry.metrics import exposition
from inferometer.telemetry.metrics.exposition import (
    LARGEST,
    LONGEST_REMEMBERED,
    MOST_REMEMBERED,
    NOT_FINITE,
    Cell,
    Layout,
    Unusable,
    number,
    parse,
)

NAMES = st.from_regex(r"[a-z_:][a-z0-9_:]{0,8}", fullmatch=True).filter(
    lambda name: not name.endswith(("_created", "_uptime", "_total")) and "_uptime_" not in name
)
LABELS = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).filter(lambda name: name != "le"),
    st.text(st.characters(blacklist_categories=("Cs", "Cc")) | st.sampled_from('\\"\n,}{='), max_size=8),
    max_size=3,
)
VALUES = st.floats() | st.integers(-(10**12), 10**12).map(float)


def quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def line(name: str, labels: dict[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{quoted(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value!r}\n"


@given(name=NAMES, rows=st.lists(st.tuples(LABELS, VALUES), min_size=1, max_size=5))
def test_samples_are_read_as_the_reference_parser_reads_them(
    name: str, rows: list[tuple[dict[str, str], float]]
) -> None:
    """Names, labels with every escape, values; the last of a repeated label set; what is not finite is marked."""
    body = f"# TYPE {name} gauge\n" + "".join(line(name, labels, value) for labels, value in rows)
    layout = parse(body)
    ours = {cell: value for cell, value in zip(layout.cells, layout.values, strict=True) if cell}
    theirs = {}
    for family in text_string_to_metric_families(body):
        for sample in family.samples:
            theirs[Cell(sample.name, tuple(sorted(sample.labels.items())), "value")] = sample.value
    assert ours == {cell: value if math.isfinite(value) else NOT_FINITE for cell, value in theirs.items()}


def registry() -> CollectorRegistry:
    """One of each kind."""
    made = CollectorRegistry()
    Gauge("depth", "Queue depth", registry=made).set(3)
    Counter("done", "Done", ["who"], registry=made).labels("x").inc(5)
    Histogram("latency_seconds", "Latency", buckets=(0.1, 1), registry=made).observe(0.5)
    Summary("size", "Size", registry=made).observe(2)
    Info("build", "Build", registry=made).info({"version": "1"})
    StateSet("state", "State", states=["up", "down"], registry=made).state("down")
    return made


@pytest.mark.parametrize("kind", ["classic", "openmetrics"])
def test_every_type_has_its_place_and_costs_no_other(kind: str) -> None:
    """Both formats of one registry give the same cells."""
    if kind == "classic":
        body, content_type = generate_latest(registry()).decode(), "text/plain; version=0.0.4"
    else:
        written: bytes = openmetrics.generate_latest(registry())  # type: ignore[no-untyped-call] # theirs
        body, content_type = written.decode(), openmetrics.CONTENT_TYPE_LATEST
    layout = parse(body, content_type)
    cells = {cell: value for cell, value in zip(layout.cells, layout.values, strict=True) if cell}
    assert cells == {
        Cell("depth", (), "value"): 3,
        Cell("done", (("who", "x"),), "value"): 5,
        Cell("latency_seconds", (), "0.1"): 0,
        Cell("latency_seconds", (), "1.0"): 1,
        Cell("latency_seconds", (), "+Inf"): 1,
        Cell("latency_seconds", (), "count"): 1,
        Cell("latency_seconds", (), "sum"): 0.5,
        Cell("build_info", (("version", "1"),), "value"): 1,
        Cell("state", (("state", "up"),), "value"): 0,
        Cell("state", (("state", "down"),), "value"): 1,
    }
    kinds = {name: family.kind for name, family in layout.families.items()}
    assert kinds == {
        "depth": "gauge",
        "done": "counter",
        "latency_seconds": "histogram",
        "build_info": "gauge",
        "state": "gauge",
    }
    assert ("summary", "size") in layout.notes
    assert layout.families["done"].exposed == "done_total"


@pytest.mark.parametrize("content_type", [None, "text/plain; version=0.0.4", "text/plain"])
def test_openmetrics_is_known_by_its_last_line_whatever_it_is_sent_as(content_type: str | None) -> None:
    """A counter's samples end in _total there, and its TYPE line does not; without that line it is a gauge, with a note."""
    body = '# TYPE c counter\nc_total 5 # {id="a # b"} 1 2\nc_created 1\n'
    assert parse(body + "# EOF\n", content_type).families["c"].kind == "counter"
    classic = parse(body, content_type)
    assert classic.families["c_total"].kind == "unknown"
    assert ("counter_as_gauge", "c_total") in classic.notes


def test_a_line_that_is_no_sample_costs_that_line() -> None:
    """It is counted with its words; the others are read, as long as most lines are samples."""
    layout = parse("a 1\nthis is no sample\nb 2\n")
    assert [cell.family for cell in layout.cells if cell] == ["a", "b"]
    assert layout.skipped["bad_line"].count == 1
    assert "line 2" in layout.skipped["bad_line"].first
    with pytest.raises(Unusable, match="garbage at line 2"):
        parse("a 1\nthis is no sample\nnor is this\n")


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("# TYPE h histogram\nh {count:3,sum:1,schema:0}\nx 1\n", ("native_histogram", "h")),
        ('# TYPE h gaugehistogram\nh_bucket{le="1"} 3\nh_gcount 3\nx 1\n', ("gaugehistogram", "h")),
        ("# TYPE up_uptime gauge\nup_uptime 3\nx 1\n", ("uptime_or_created", "up_uptime")),
        ("# TYPE a gauge\na 3\n# TYPE a_total counter\na_total 4\nx 1\n", ("name_taken", "a")),
    ],
)
def test_what_is_passed_over_is_noted(body: str, note: tuple[str, str]) -> None:
    """And everything else of the body is there."""
    layout = parse(body)
    assert note in layout.notes
    assert layout.families["x"].kind == "unknown"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("", "empty"),
        (" \n\n", "empty"),
        ("<!doctype html><html></html>", "html"),
        ('{"error": "not found"}', "json"),
        ("[1, 2]", "json"),
        ("{}", "json"),
        ("# HELP a b\n", "no_samples"),
        ("a 1\nthis is\nno sample\nas such\nb 2\n", "garbage"),
        ('a{b="c} 1\n', "garbage"),
        ("a{b=c} 1\n", "garbage"),
        ("a 1_000\n", "garbage"),
        ("a 1 2 3\n", "garbage"),
        ("a\n", "garbage"),
        ("a 1\n" * (LARGEST // 4 + 1), "too_large"),
    ],
    ids=lambda value: value[:20],
)
def test_what_cannot_be_used_has_a_code(body: str, code: str) -> None:
    """And garbage its line."""
    with pytest.raises(Unusable) as caught:
        parse(body)
    assert caught.value.code == code
    if body.startswith("a 1\nthis"):
        assert "line 2" in str(caught.value)


@pytest.mark.parametrize("body", ["# TYPE a counter\na 1\n", "a 1\n", "\n# TYPE a gauge\na 1\n# EOF\n"])
def test_a_byte_order_mark_is_no_part_of_the_text(body: str) -> None:
    """The same layout with it and without; and what is refused without it is refused with it."""
    assert parse("\ufeff" + body) == parse(body)
    for code, other in (("html", "<html>"), ("json", '{"a": 1}'), ("empty", "")):
        with pytest.raises(Unusable) as caught:
            parse("\ufeff" + other)
        assert caught.value.code == code


def test_a_name_that_is_no_plain_word_stands_in_braces() -> None:
    """Which is not JSON."""
    assert parse('{"http.latency", "a.b"="c"} 3\n').cells[0] == Cell("http.latency", (("a.b", "c"),), "value")


@pytest.mark.parametrize(
    ("tail", "value"),
    [
        ("1", 1.0),
        ("1.5e3 1700", 1500.0),
        ("+Inf", NOT_FINITE),
        ("NaN", NOT_FINITE),
        ('2 # {a="b_c"} 1 2', 2.0),
    ],
)
def test_a_number_is_read_up_to_its_timestamp_or_exemplar(tail: str, value: float) -> None:
    """What comes after says nothing of the value."""
    assert number(tail) == value


def test_a_histogram_may_lose_a_number_and_not_the_others() -> None:
    """One that is not finite drops the histogram of its label set at that scrape; the other has both scrapes."""
    good = "# TYPE h histogram\n" + "".join(
        f'h_bucket{{k="{k}",le="+Inf"}} 1\nh_sum{{k="{k}"}} 1\nh_count{{k="{k}"}} 1\n' for k in "ab"
    )
    bad = good.replace('h_sum{k="a"} 1', 'h_sum{k="a"} NaN')
    (endpoint,) = store_of(good, bad).endpoints.values()
    assert {dict(one.labels)["k"]: len(one.times) for one in endpoint.series()} == {"a": 1, "b": 2}


@given(
    lines=st.lists(
        st.text(st.sampled_from('ab_{}="\\,# 01.e+\tinftypehlp'), max_size=40)
        | st.sampled_from(
            ["# TYPE a histogram", "# TYPE a counter", "# HELP a", 'a_bucket{le="1"} 1', "a_sum 1", "# EOF"]
        ),
        max_size=8,
    )
)
def test_whatever_the_text_it_is_read_or_refused(lines: list[str]) -> None:
    """By Unusable and nothing else; what is read has a cell, a prefix and a value for each line."""
    try:
        layout = parse("\n".join(lines))
    except Unusable:
        return
    assert len(layout.lines) == len(layout.prefixes) == len(layout.cells) == len(layout.values)


@pytest.mark.parametrize(
    "line",
    [
        "x" + " " * 200_000 + "=",
        " " * 200_000 + "{" * 200_000,
        'x{a="' + "\\" * 200_001,
        "x{" + " " * 200_000 + "a" + " " * 200_000 + "}1",
        "x 1 " + "{count:" * 50_000,
    ],
)
def test_a_long_line_that_is_no_sample_is_refused_at_once(line: str) -> None:
    """It is tried in one way only: in every way, this test would take days."""
    with pytest.raises(Unusable, match="garbage at line 1"):
        parse(line)


@given(
    tail=st.text(max_size=40),
    sent_as=st.sampled_from(["text/plain", "application/openmetrics-text"]),
)
def test_nothing_behind_the_end_of_openmetrics_is_read(tail: str, sent_as: str) -> None:
    """Law: whatever follows `# EOF`, samples, types or garbage, the cells and families are those of the body before it; each
    line that says something is counted."""
    body = "# TYPE a counter\na_total 1\n# TYPE b gauge\nb 2\n# EOF\n"
    alone = parse(body, sent_as)
    behind = parse(f"{body}{tail}\na_total 9\n# TYPE b counter\nc 3\n", sent_as)

    def cells(layout: Layout) -> dict[Cell, float]:
        return {cell: at for cell, at in zip(layout.cells, layout.values, strict=True) if cell}

    assert cells(behind) == cells(alone)
    assert behind.families == alone.families
    said = [line for line in tail.split("\n") if line.strip()]
    assert behind.skipped["after_eof"].count == len(said) + 3
    assert set(behind.skipped) == {"after_eof"}
    assert "after_eof" not in alone.skipped


def test_a_comment_of_the_classic_format_ends_nothing() -> None:
    """Law: only a line of its own that says `# EOF` is the end."""
    layout = parse("# EOF of the first part\na 1\n# HELP b # EOF\nb 2\n")
    assert len([cell for cell in layout.cells if cell]) == 2
    assert not layout.skipped


def test_families_that_take_each_others_names_cost_no_more_than_others() -> None:
    """Law: a body of twice the lines takes twice the steps, however many of its families share a name."""

    def body(count: int) -> str:
        return "".join(f"# TYPE x{n}_total counter\nx{n}_total 1\nx{n} 1\n" for n in range(count))

    once, twice = (steps(lambda count=count: parse(body(count))) for count in (200, 400))  # type: ignore[misc]
    assert twice <= 2.1 * once


def test_what_is_remembered_of_labels_is_bounded_in_characters() -> None:
    """Law: label blocks longer than the limit are read alike and not kept, so the memory is a product of two limits."""
    before = exposition._remembered.cache_info()
    assert before.maxsize is not None
    assert before.maxsize * LONGEST_REMEMBERED == MOST_REMEMBERED * LONGEST_REMEMBERED <= 8 << 20
    value = "x" * LONGEST_REMEMBERED
    layout = parse("".join(f'm{{a="{n}{value}"}} 1\n' for n in range(10)))
    assert [cell and cell.labels for cell in layout.cells[:10]] == [
        (("a", f"{n}{value}"),) for n in range(10)
    ]
    assert exposition._remembered.cache_info().misses == before.misses
