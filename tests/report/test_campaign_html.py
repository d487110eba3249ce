"""report.html of a campaign: safe, whole, one file, the document in it, and pictures that are well-formed."""

from __future__ import annotations

import copy
import json
import math
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import documents
import pytest
from html_page import LOADING, Page
from hypothesis import example, given
from hypothesis import strategies as st

from inferometer.documents.part import from_data
from inferometer.documents.results import Figure
from inferometer.errors import PlanError
from inferometer.report import charts
from inferometer.report.campaign import contents, titles
from inferometer.report.campaign.html import document_of, render_html
from inferometer.report.campaign.markdown import render_markdown

HOSTILE = "</script><img src=x onerror=alert(1)>|`**_\x1b[31m\u202e"


def hostile(value: Any) -> Any:
    """Every free text of a document is vile."""
    free = ("name", "label", "title", "note", "message", "problem", "how", "evidence", "why", "text", "software", "model",
            "notes", "command", "url", "value", "run", "part", "objective")  # fmt: skip
    if isinstance(value, dict):
        return {
            key: HOSTILE if key in free and isinstance(part, str) else hostile(part)
            for key, part in value.items()
        }
    return (
        [HOSTILE if isinstance(part, str) else hostile(part) for part in value]
        if isinstance(value, list)
        else value
    )


class Svg(Page):
    """A page whose SVG may hold self-closed paths and texts."""


@pytest.mark.parametrize("name", documents.SAMPLES)
def test_the_page_loads_nothing_and_is_small(name: str) -> None:
    """No attribute or style makes a browser fetch; without data the page is far below 1.5 MB."""
    document = documents.SAMPLES[name]()
    html = render_html(document)
    for tag, attributes in Svg(html).tags:
        assert not LOADING & set(attributes), (tag, attributes)
        if tag == "a":
            assert (attributes["href"] or "").startswith("#")
    assert "url(" not in html
    assert len(html) - 3 * len(json.dumps(document)) < 300_000


def test_links_lead_somewhere() -> None:
    """Each to an id that is there once."""
    tags = Svg(render_html(documents.campaign())).tags
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for tag, a in tags if tag == "a"} <= set(ids)


def test_hostile_text_is_only_ever_text() -> None:
    """No element, no attribute, no script out of a document; in Markdown no table broken and no fence closed."""
    document = hostile(documents.campaign())
    page = Svg(render_html(document))
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert len(page.scripts) == 2
    assert document_of(render_html(document)) == document
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


@pytest.mark.parametrize("name", documents.SAMPLES)
def test_both_have_the_six_sections_in_order(name: str) -> None:
    """Draft C.2, below the verdict; and every test, value, table and figure is in both."""
    document = documents.SAMPLES[name]()
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
    assert text.index(document["verdict"]["status"]) < text.index("## 1.")
    for test in document["tests"]:
        for one in (*test["tables"], *test["figures"]):
            assert one["title"] in page
            assert one["title"] in text
        for value in test["values"]:
            assert value["label"] in page


def test_null_is_not_measured_and_never_blank() -> None:
    """In every table of every test as many cells say so as are null, and no cell is empty."""
    document = documents.campaign()
    nulls = sum(
        cell is None
        for test in document["tests"]
        for table in test["tables"]
        for row in table["rows"]
        for cell in row
    )
    html = render_html(document)
    assert nulls > 3
    tables = re.findall(r"<h4>.*?</table>", html, re.DOTALL)
    assert sum(table.count(">not measured</t") for table in tables) == nulls
    assert not re.search(r"<t[dh][^>]*></t[dh]>", "".join(tables))


def test_a_partial_test_says_why() -> None:
    """Beside its verdict, in the overview and in its section."""
    for text in (Svg(render_html(documents.campaign())).text, render_markdown(documents.campaign())):
        assert "Ended early" in text or "ended early" in text
        assert "The server refused connections at 150 % of capacity." in text


def test_the_document_can_be_read_back() -> None:
    """As it was; a page without one is refused with what to do."""
    document = documents.campaign()
    assert document_of(render_html(document)) == document
    for page in ("<html></html>", '<script type="application/json" id="data">{"series":1}</script>'):
        with pytest.raises(PlanError, match=r"report\.html"):
            document_of(page)


def test_every_test_of_the_draft_has_its_words() -> None:
    """Title, objective and procedure with the draft's section; of the ten and of the cold start."""
    assert set(titles.WORDS) == {*documents.PARTS, "cold-start"}
    for one in titles.WORDS.values():
        assert one.title
        assert re.search(r"\(draft [45]\.", one.objective)
    for test in documents.campaign()["tests"]:
        assert titles.meanings(test), test["test"]


numbers = st.none() | st.floats(-1e9, 1e9) | st.floats(1e-6, 1e6) | st.integers(0, 10)


@st.composite
def figures(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["lines", "points", "bars", "cdf"]))
    across: Any = st.sampled_from(["a", "b c", HOSTILE]) if kind == "bars" else numbers
    series = []
    for _ in range(draw(st.integers(0, 8))):
        points = draw(st.lists(st.tuples(across, numbers), max_size=12))
        places = [float("nan") if x is None else x for x, _ in points]  # no place on the axis
        series.append((draw(st.sampled_from(["s", HOSTILE])), places, [y for _, y in points]))
    marks = [documents.mark(HOSTILE, draw(numbers), draw(numbers)) for _ in range(draw(st.integers(0, 3)))]
    x, y = (documents.axis("a", HOSTILE, draw(st.booleans())) for _ in range(2))
    return documents.figure("f", "t", kind, x, y, series, marks)


def chart(shown: dict[str, Any]) -> charts.Chart:
    """The chart of a figure in plain data."""
    return charts.of_figure(from_data(shown, Figure))


@given(figures())
def test_any_figure_is_drawn_or_is_not(shown: dict[str, Any]) -> None:
    """Well-formed SVG whose every place is inside the picture, whatever is null, zero, turned back or beyond its axis."""
    svg = charts.draw(chart(shown))
    if svg is None:
        return
    root = ElementTree.fromstring(svg)
    assert {one.tag for one in root.iter()} <= {"svg", "path", "text"}
    for one in root.iter("path"):
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", one.get("d") or ""):
            assert -8 <= float(x) <= charts.WIDTH + 8
            assert -8 <= float(y) <= charts.HEIGHT + 8
    assert len(charts.legend(chart(shown))) in (0, len(shown["series"]))


def test_a_line_that_turns_back_keeps_its_order() -> None:
    """Throughput falls beyond saturation: the last point lies left of the one before."""
    (shown,) = documents.tradeoff()["figures"]
    svg = charts.draw(chart(shown)) or ""
    path = re.search(r'class="line s0" d="([^"]+)"', svg)
    assert path
    xs = [float(x) for x in re.findall(r"[ML](-?[\d.]+) ", path[1])]
    assert len(xs) == 7
    assert xs[-1] < xs[-2] > xs[-3]


def test_a_gap_is_a_gap() -> None:
    """A null parts a line in two, and a bar of null says that it was not measured."""
    shown = documents.figure("f", "t", "lines", documents.axis("x"), documents.axis("y"),
                             [("a", [1, 2, 3, 4, 5], [1.0, 2.0, None, 2.0, 1.0])])  # fmt: skip
    assert (charts.draw(chart(shown)) or "").count('class="line s0"') == 2
    bars = documents.figure(
        "f", "t", "bars", documents.axis("x"), documents.axis("y"), [("a", ["p", "q"], [1.0, None])]
    )
    assert (charts.draw(chart(bars)) or "").count("not measured") == 1


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.booleans())
def test_a_linear_axis_reaches_over_all_values(values: list[float], from_zero: bool) -> None:
    """In order, and each tick inside."""
    found = charts.linear(values, 0, 100, from_zero)
    assert all(-1e-6 <= found.at(value) <= 100 + 1e-6 for value in (*values, *found.ticks))
    assert list(found.ticks) == sorted(found.ticks)
    assert len(found.ticks) >= 2


@given(st.lists(st.floats(1e-6, 1e9), min_size=1))
@example([440000001.0])
@example([1.9025001978616412e-219])
def test_a_logarithmic_axis_keeps_ratios(values: list[float]) -> None:
    """Equal ratios are equal lengths."""
    found = charts.logarithmic(values, 0, 100)
    assert all(0 <= found.at(value) <= 100 for value in (*values, *found.ticks))
    low = min(values)
    assert len(found.ticks) >= 2
    assert math.isclose(
        found.at(low * 4) - found.at(low * 2), found.at(low * 2) - found.at(low), rel_tol=1e-6
    )


def test_rendering_leaves_the_document_alone() -> None:
    """Data in, text out."""
    document = documents.campaign()
    before = copy.deepcopy(document)
    render_html(document)
    render_markdown(document)
    assert document == before


def test_tests_stand_in_the_order_of_the_draft() -> None:
    """5.10 comes last, in whatever order they were carried out."""
    document = documents.campaign()
    document["tests"].reverse()
    text = render_markdown(document)
    assert re.findall(r"^### 4\.\d+ .*\(draft (5\.\d+)\)$", text, re.MULTILINE) == [
        f"5.{n}" for n in range(1, 11)
    ]
    assert document_of(render_html(document)) == document


def test_the_headline_is_what_the_test_is_about() -> None:
    """The knee before the capacity it is a share of; the first value where no other is measured or preferred."""
    test = documents.one_test("tradeoff")
    base = documents.value("base", "Estimated capacity, 100 %", 20.0, "req/s")
    test["values"].insert(0, base)
    assert titles.headline(test) == test["values"][1]
    for value in test["values"][1:]:
        value["value"] = None
    assert titles.headline(test) == base
    assert titles.headline(test | {"values": []}) is None
