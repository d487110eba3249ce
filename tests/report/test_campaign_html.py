"""report.html of a campaign: safe, whole, one file, the document in it, and pictures that are well-formed."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from typing import Any, Literal

import campaigns
import msgspec
import pytest
from html_page import LOADING, Page
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from inferometer.documents.campaign import Campaign, ReportedValue
from inferometer.documents.part import to_json
from inferometer.documents.results import Axis, Figure, Mark, Series
from inferometer.documents.statement import ComplianceStatement
from inferometer.procedures.registry import PROCEDURES
from inferometer.report import charts
from inferometer.report.campaign import contents, titles
from inferometer.report.campaign.html import render_html
from inferometer.report.campaign.markdown import render_markdown

HOSTILE = "</script><img src=x onerror=alert(1)>|`**_\x1b[31m\u202e"


def hostile(value: Any) -> Any:
    """Every free text of a document is vile."""
    free = ("name", "label", "title", "note", "message", "problem", "how", "evidence", "why", "text", "software", "model",
            "notes", "command", "url", "value", "run", "part", "objective", "at", "x")  # fmt: skip
    if isinstance(value, msgspec.Struct):
        changed = {
            key: HOSTILE if key in free and isinstance(part, str) else hostile(part)
            for key, part in msgspec.structs.asdict(value).items()
            if not (key == "label" and isinstance(value, ComplianceStatement))
        }
        return msgspec.structs.replace(value, **changed)
    if isinstance(value, tuple):
        return tuple(
            HOSTILE if isinstance(part, str) and part != "capacity" else hostile(part) for part in value
        )
    return value


class Svg(Page):
    """A page whose SVG may hold self-closed paths and texts."""


@pytest.mark.parametrize("name", campaigns.SAMPLES)
def test_the_page_loads_nothing_and_is_small(name: str) -> None:
    """No attribute or style makes a browser fetch; without data the page is far below 1.5 MB."""
    document = campaigns.SAMPLES[name]()
    html = render_html(document)
    for tag, attributes in Svg(html).tags:
        assert not LOADING & set(attributes), (tag, attributes)
        if tag == "a":
            assert (attributes["href"] or "").startswith("#")
    assert "url(" not in html
    assert len(html) - 3 * len(to_json(document)) < 300_000


def test_links_lead_somewhere() -> None:
    """Each to an id that is there once."""
    tags = Svg(render_html(campaigns.measured())).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for tag, a in tags if tag == "a"} <= set(ids)


def test_hostile_text_is_only_ever_text() -> None:
    """No element, no attribute, no script out of a document; in Markdown no table broken and no fence closed."""
    document = hostile(campaigns.measured())
    page = Svg(render_html(document))
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert len(page.scripts) == 2
    text = render_markdown(document)
    assert "<img" not in re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert text.count("```") % 2 == 0
    assert_tables(text)


def assert_tables(text: str) -> None:
    """Every row of a table has as many cells as its head, and all are as long."""
    tables = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    assert tables
    for table in tables:
        rows = table.strip().split("\n")
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {
            len(re.findall(r"(?<!\\)\|", rows[0]))
        }
        assert len({len(row) for row in rows}) == 1
        assert re.fullmatch(r"\|( -+:? \|)+", rows[1])


@pytest.mark.parametrize("name", campaigns.SAMPLES)
def test_both_have_the_six_sections_in_order(name: str) -> None:
    """Draft C.2, below the verdict; and every test, value, table and figure is in both."""
    document = campaigns.SAMPLES[name]()
    page, text = Svg(render_html(document)).text, render_markdown(document)
    assert_tables(text)
    assert re.findall(r"^## (\d)\. (.*)$", text, re.MULTILINE) == [
        (str(n), title) for n, title in enumerate(contents.SECTIONS, 1)
    ]
    places = [
        page.index(f"{n}. {title}", page.index("Minimum report"))
        for n, title in enumerate(contents.SECTIONS, 1)
    ]
    assert places == sorted(places)
    assert text.index(document.verdict.status) < text.index("## 1.")
    for test in document.tests:
        for title in (*(one.title for one in test.tables), *(one.title for one in test.figures)):
            assert title in page
            assert title in text
        for value in test.values:
            assert value.label in page


def with_gaps(document: Campaign) -> Campaign:
    """The same with the last cell of every row not measured."""
    tests = tuple(
        replace(
            test,
            tables=tuple(
                replace(table, rows=tuple((*row[:-1], None) for row in table.rows)) for table in test.tables
            ),
        )
        for test in document.tests
    )
    return replace(document, tests=tests)


def test_null_is_not_measured_and_never_blank() -> None:
    """In every table of every test as many cells say so as are null, and no cell is empty."""
    document = with_gaps(campaigns.measured())
    nulls = sum(
        cell is None for test in document.tests for table in test.tables for row in table.rows for cell in row
    )
    html = render_html(document)
    assert nulls > 3
    tables = re.findall(r"<h4>.*?</table>", html, re.DOTALL)
    assert sum(table.count(">not measured</t") for table in tables) == nulls
    assert not re.search(r"<t[dh][^>]*></t[dh]>", "".join(tables))


def test_a_partial_test_says_why() -> None:
    """Beside its verdict, in the overview and in its section."""
    for text in (Svg(render_html(campaigns.measured())).text, render_markdown(campaigns.measured())):
        assert "Ended early" in text or "ended early" in text
        assert "The server refused connections at 150 % of capacity." in text


def test_every_test_of_the_draft_has_its_words() -> None:
    """How it goes, with the draft's section; of the ten and of the cold start."""
    assert set(titles.WORDS) == set(PROCEDURES)
    for one in titles.WORDS.values():
        assert one.procedure
    for test in campaigns.measured().tests:
        assert titles.meanings(test), test.test


numbers = st.none() | st.floats(-1e9, 1e9) | st.floats(1e-6, 1e6) | st.integers(0, 10)


@st.composite
def figures(draw: st.DrawFn) -> Figure:
    kind: Literal["lines", "points", "bars", "cdf"] = draw(
        st.sampled_from(["lines", "points", "bars", "cdf"])
    )
    across: Any = st.sampled_from(["a", "b c", HOSTILE]) if kind == "bars" else numbers
    series = []
    for _ in range(draw(st.integers(0, 8))):
        points = draw(st.lists(st.tuples(across, numbers), max_size=12))
        across_, up = tuple(x for x, _ in points), tuple(y for _, y in points)
        series.append(Series(draw(st.sampled_from(["s", HOSTILE])), across_, up))
    marks = tuple(Mark(HOSTILE, draw(numbers), draw(numbers)) for _ in range(draw(st.integers(0, 3))))
    x, y = (Axis("a", HOSTILE, draw(st.booleans())) for _ in range(2))
    return Figure("f", "t", kind, x, y, tuple(series), marks)


@given(figures())
def test_any_figure_is_drawn_or_is_not(figure: Figure) -> None:
    """Well-formed SVG whose every place is inside the picture, whatever is null, zero, turned back or beyond its axis."""
    chart = charts.of_figure(figure)
    svg = charts.draw(chart)
    if svg is None:
        return
    root = ElementTree.fromstring(svg)
    assert {one.tag for one in root.iter()} <= {"svg", "path", "text"}
    for one in root.iter("path"):
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", one.get("d") or ""):
            assert -8 <= float(x) <= charts.WIDTH + 8
            assert -8 <= float(y) <= charts.HEIGHT + 8
    assert len(charts.legend(chart)) in (0, len(figure.series))


def test_a_line_that_turns_back_keeps_its_order() -> None:
    """Throughput falls beyond saturation: the last point lies left of the one before."""
    across = (100.0, 500.0, 1_000.0, 1_500.0, 1_900.0, 2_000.0, 1_700.0)
    line = Series("TTFT P99", across, tuple(float(n) for n in range(1, 8)))
    svg = charts.draw(charts.of_figure(Figure("f", "t", "lines", Axis("x"), Axis("y"), (line,)))) or ""
    path = re.search(r'class="line s0" d="([^"]+)"', svg)
    assert path
    xs = [float(x) for x in re.findall(r"[ML](-?[\d.]+) ", path[1])]
    assert len(xs) == 7
    assert xs[-1] < xs[-2] > xs[-3]


def test_a_gap_is_a_gap() -> None:
    """A null parts a line in two, and a bar of null says that it was not measured."""
    line = Series("a", (1.0, 2.0, 3.0, 4.0, 5.0), (1.0, 2.0, None, 2.0, 1.0))
    shown = Figure("f", "t", "lines", Axis("x"), Axis("y"), (line,))
    assert (charts.draw(charts.of_figure(shown)) or "").count('class="line s0"') == 2
    bars = Figure("f", "t", "bars", Axis("x"), Axis("y"), (Series("a", ("p", "q"), (1.0, None)),))
    assert (charts.draw(charts.of_figure(bars)) or "").count("not measured") == 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.booleans())
@example([5e-324], True)
@example([-1e-310, 1e-310], False)
@example([0.0, 3e-290], True)
def test_a_linear_axis_reaches_over_all_values(values: list[float], from_zero: bool) -> None:
    """In order, and each tick inside."""
    found = charts.linear(values, 0, 100, from_zero)
    assert all(-1e-6 <= found.at(value) <= 100 + 1e-6 for value in (*values, *found.ticks))
    assert list(found.ticks) == sorted(found.ticks)
    assert len(found.ticks) >= 2


@given(st.lists(st.floats(1e-6, 1e9), min_size=1))
@example([440000001.0])
def test_a_logarithmic_axis_keeps_ratios(values: list[float]) -> None:
    """Equal ratios are equal lengths."""
    found = charts.logarithmic(values, 0, 100)
    assert all(0 <= found.at(value) <= 100 for value in (*values, *found.ticks))
    low = min(values)
    assert len(found.ticks) >= 2
    assert math.isclose(
        found.at(low * 4) - found.at(low * 2), found.at(low * 2) - found.at(low), rel_tol=1e-6
    )


def test_tests_stand_in_the_order_of_the_draft() -> None:
    """5.10 comes last, in whatever order they were carried out."""
    document = campaigns.measured()
    assert [test.section for test in document.tests] == ["5.5", "5.1", "5.9"]
    last = replace(document.tests[0], section="5.10")
    text = render_markdown(replace(document, tests=(last, *document.tests[1:])))
    assert re.findall(r"^### 4\.\d+ .*\(draft (5\.\d+)\)$", text, re.MULTILINE) == ["5.1", "5.9", "5.10"]


def test_the_headline_is_what_the_test_is_about() -> None:
    """The knee before the capacity it is a share of, be it measured or not. The knee of another latency is not the test's, and
    a peak is a throughput, with its interval."""
    base = ReportedValue("capacity_rate", "Estimated capacity, 100 %", 20.0, "req/s", None, None, True)
    knee = replace(base, name="knee", label="Knee point", value=12.0)
    test = replace(campaigns.measured().tests[0], test="tradeoff", values=(base, knee))
    assert titles.headline(test) == knee
    unknown = replace(knee, value=None)
    assert titles.headline(replace(test, values=(base, unknown))) == unknown
    assert titles.headline(replace(test, values=(base,))) == base
    other = replace(knee, name="knee_tpot", label="Knee point of TPOT")
    peak_at = replace(knee, name="peak_rate", label="Peak throughput at")
    peak = replace(knee, name="peak_tok_s", label="Peak throughput", ci=(5.0, 20.0))
    assert titles.headline(replace(test, values=(replace(knee, value=None), other, peak_at, peak))) == peak
    assert titles.headline(replace(test, values=())) is None
