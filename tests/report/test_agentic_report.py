"""Reports of an agentic benchmark: what each must hold, in every medium, whatever an engine calls itself."""

from __future__ import annotations

import io
import json
import re
from xml.etree import ElementTree as Xml

import pytest
from agentics import agentic, engine, failed, usual
from html_page import LOADING, Page
from rich.console import Console

from inferometer.documents.agentic import Agentic
from inferometer.documents.part import to_data
from inferometer.report.agentic import charts, contents
from inferometer.report.agentic.card import render_card
from inferometer.report.agentic.console import render
from inferometer.report.agentic.html import render_html
from inferometer.report.agentic.markdown import render_markdown
from inferometer.report.bench.contents import called
from inferometer.report.card_drawing import HEIGHT, WIDTH
from inferometer.report.charts import draw
from inferometer.report.figures import THIN

EVIL = '<script>alert(1)</script>&"|`# x'
LONG = "org-with-a-long-name/Meta-Llama-3.1-70B-Instruct-AWQ-INT4-2048ctx"


def printed(document: Agentic, width: int = 80) -> str:
    file = io.StringIO()
    render(document, Console(file=file, width=width))
    return file.getvalue()


def card_words(document: Agentic) -> list[str]:
    return [
        one.text or "" for one in Xml.fromstring(render_card(document)).iter() if one.tag.endswith("text")
    ]


def everywhere(document: Agentic) -> dict[str, str]:
    """The visible words of console, Markdown and HTML, without thin spaces, line breaks and the escapes of Markdown."""
    texts = {
        "md": render_markdown(document).replace("\\", ""),
        "html": Page(render_html(document)).text,
        "console": printed(document, 400),
    }
    return {name: " ".join(re.sub(rf"[{THIN}]", "", text).split()) for name, text in texts.items()}


def test_every_report_holds_verdicts_their_source_gates_and_conditions() -> None:
    """With the interval over the repetitions, and the word of each gate that tripped."""
    for text in everywhere(usual()).values():
        for words in (
            "INCONCLUSIVE", "yes", "partial", "the engine's cached tokens", "as the engine does not report cached tokens",
            "at 95 % over 3 repetitions", "early_stop: 18 of 24 answers have fewer than half", "memory_pressure: swap grew by",
            "3 times with other text", "a1b2c3", "FAILED", "connection refused", "cold-prefix", "prefix-test-1",
        ):  # fmt: skip
            assert words in text


def test_the_page_begins_with_verdicts_and_needs_no_network() -> None:
    """Verdict, source and tripped gates come before the pictures; the data are those of agentic.json."""
    html = render_html(usual())
    page = Page(html)
    assert not [name for tag, attributes in page.tags for name in attributes if name in LOADING]
    (data,) = (text for attributes, text in page.scripts if attributes.get("type") == "application/json")
    assert json.loads(data) == to_data(usual())
    first = html[
        : html.index('<svg viewBox="0 0 560')
        if '<svg viewBox="0 0 560' in html
        else html.index("TTFT by phase")
    ]
    for words in ("Prefix cache reuse", "cached tokens", "WARNING"):
        assert words in first


def test_ttft_is_drawn_by_phase_with_its_interval_over_the_repetitions() -> None:
    """The long phases apart; a single repetition has no interval; who reports nothing as cached is not in that picture."""
    short, long, cached = charts.pictures(usual(), called(usual()))
    assert [len(one.series) for one in (short, long, cached)] == [3, 3, 2]
    assert short.series[0].x == (
        "cold",
        "warm",
        "prefix test-1",
        "prefix test-2",
        "prefix test-3",
        "cold prefix",
    )
    assert long.series[0].x == ("long context", "long prefix")
    assert all(span is not None for spans in short.spans for span in spans)
    assert [one.label for one in cached.series] == ["llamacpp", "vllm"]
    svg = draw(short)
    assert svg is not None
    assert len(re.findall('class="span"', svg)) == 18
    (once, *_) = charts.pictures(agentic(engine("a")), {"a": "a"})
    assert {span for spans in once.spans for span in spans} == {None}


def test_the_card_holds_verdicts_ttft_and_conditions() -> None:
    """And what speaks against a verdict."""
    root = Xml.fromstring(render_card(usual()))
    assert (root.get("width"), root.get("height")) == (str(WIDTH), str(HEIGHT))
    words = card_words(usual())
    for part in ("INCONCLUSIVE", "yes", "partial", "no", "98 %", "early_stop", "FAILED"):
        assert part in [re.sub(rf"[{THIN}]", " ", one) for one in words]
    assert "3 times with other text" in " ".join(words)


@pytest.mark.parametrize("width", [60, 80])
def test_ten_engines_with_long_names_fit(width: int) -> None:
    """On the screen, on the card, and six to a picture."""
    many = agentic(*(engine(f"engine-{at}/{LONG}") for at in range(10)))
    assert max(map(len, printed(many, width).splitlines())) <= width
    assert any("4 more" in one for one in card_words(many))
    assert [len(one.series) for one in charts.pictures(many, called(many))] == [6, 6, 6, 4, 4, 4]


@pytest.mark.parametrize("evil", [EVIL, "\x1b[31m\u202ered", "\ud800"])
def test_what_an_engine_calls_itself_is_no_markup(evil: str) -> None:
    """In HTML, SVG, Markdown and on a terminal."""
    document = agentic(engine(evil, model=evil), engine("b"))
    Page(render_html(document))
    Xml.fromstring(render_card(document).encode("utf-8", "replace"))
    for text in (render_html(document), render_card(document), render_markdown(document)):
        assert "<script>alert" not in text
    assert "\x1b" not in printed(document) + render_card(document) + render_markdown(document)


def test_nothing_measured_is_still_a_report() -> None:
    """Every engine failed, and a person ended it."""
    document = agentic(failed("a"), interrupted=True)
    for text in (render_markdown(document), Page(render_html(document)).text, " ".join(card_words(document))):
        assert "INTERRUPTED" in text
        assert "FAILED" in text
    assert charts.pictures(document, called(document)) == []
    assert contents.phase_rows(document) == []
