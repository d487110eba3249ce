"""Reports of a benchmark: what each must hold, in every medium, whatever an engine calls itself."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from xml.etree import ElementTree as Xml

import msgspec
import pytest
from benches import around, bench, engine, usual
from html_page import LOADING, Page
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from inferometer.documents.bench import AnswerCheck, Bench, EngineResult, Remark
from inferometer.documents.part import from_data, to_data
from inferometer.report.bench import charts, contents
from inferometer.report.bench.card import render_card
from inferometer.report.bench.console import render
from inferometer.report.bench.html import NO_CONTEXTS, render_html
from inferometer.report.bench.markdown import render_markdown
from inferometer.report.bench.names import shortened
from inferometer.report.card_drawing import HEIGHT, WIDTH
from inferometer.report.charts import draw
from inferometer.report.figures import THIN
from inferometer.studies.bench_answers import comparable

EVIL = '<script>alert(1)</script>&"|`# x'


def printed(document: Bench, width: int = 80) -> str:
    file = io.StringIO()
    render(document, Console(file=file, width=width))
    return file.getvalue()


def card_words(document: Bench) -> list[str]:
    return [
        one.text or "" for one in Xml.fromstring(render_card(document)).iter() if one.tag.endswith("text")
    ]


def everywhere(document: Bench) -> dict[str, str]:
    """The visible words of Markdown and HTML, without thin spaces and the escapes of Markdown."""
    texts = {"md": render_markdown(document).replace("\\", ""), "html": Page(render_html(document)).text}
    return {name: re.sub(rf"[{THIN}]", "", text) for name, text in texts.items()}


def test_every_report_holds_verdict_order_warnings_metadata_and_definitions() -> None:
    """With the word tie, the reason of each place, and the version of the definitions."""
    for text in everywhere(usual()).values():
        for words in (
            "INCONCLUSIVE", "ollama, lmstudio (tie)", "ollama and lmstudio tie: their intervals overlap",
            "lmstudio is ahead of llamacpp, in the median by", "Without a place: vllm", "FAILED", "connection refused",
                "thermal drift",
            "0.11.2", "Q4_K_M", "Planted M1", "3 GiB", "metrics version 0.4.0", "Over code, tool-call",
        ):  # fmt: skip
            assert words in text


def test_the_console_fits_eighty_columns() -> None:
    """A pipe has no more."""
    assert max(map(len, printed(usual()).splitlines())) <= 80


def test_the_page_needs_no_network_and_holds_the_document() -> None:
    """Nothing is loaded; the data are those of bench.json."""
    page = Page(render_html(usual()))
    assert not [name for tag, attributes in page.tags for name in attributes if name in LOADING]
    (data,) = (text for attributes, text in page.scripts if attributes.get("type") == "application/json")
    assert json.loads(data) == to_data(usual())


def test_the_card_is_an_image_with_figures_conditions_and_verdict() -> None:
    """1200 x 630, and well-formed; bars are over the prompts that the order is over."""
    root = Xml.fromstring(render_card(usual()))
    assert (root.get("width"), root.get("height")) == (str(WIDTH), str(HEIGHT))
    words = " ".join(card_words(usual()))
    for part in (
        "INCONCLUSIVE",
        "1. tie",
        "65.5",
        "llama3.2:3b Q4_K_M",
        "Planted M1",
        "0.4.0",
        "FAILED",
        "Over code",
    ):
        assert part in words


def test_a_card_stays_readable_with_many_engines_and_long_names() -> None:
    """Six are drawn, the others counted, and no text leaves the picture."""
    many = bench(
        *(engine(f"engine-with-a-long-name-{at}", {"code": around(60.0 + at, 50.0)}) for at in range(9))
    )
    assert any("3 more" in one for one in card_words(many))
    for one in Xml.fromstring(render_card(many)).iter():
        if one.tag.endswith("text"):
            at, size = float(one.get("x", "0")), float(one.get("font-size", "0"))
            if one.get("text-anchor") == "start":
                assert at + len(one.text or "") * size * 0.52 <= WIDTH
            assert 0 < float(one.get("y", "0")) <= HEIGHT - 8


def test_no_order_is_claimed_on_a_card_without_intervals() -> None:
    """One run has none."""
    once = bench(
        *(engine(name, {"code": [(speed, 50.0)]}) for name, speed in (("a", 60.0), ("b", 20.0))), runs=1
    )
    assert not [one for one in card_words(once) if one.startswith("1.")]
    assert "No order is claimed" in everywhere(once)["md"]


def test_an_invalid_engine_has_no_place_in_any_report() -> None:
    """Each says so and why; its figures stay, with INVALID beside them."""
    code = {"code": around(99.0, 9.0)}
    document = bench(
        engine("false", code, failing="INVALID"),
        engine("unsure", {"code": around(60.0, 50.0)}, failing="INCONCLUSIVE"),
        engine("sure", {"code": around(30.0, 50.0)}),
    )
    for text in (*everywhere(document).values(), " ".join(printed(document, 100).split())):
        assert "1. unsure (INCONCLUSIVE)" in text.replace("*", "")
        assert "false has no place: its result is INVALID (token_counts)" in text
        assert "the place of unsure is not certain" in text
        assert "Without a place: false" in text
    words = card_words(document)
    assert [one for one in words if one.startswith(("1.", "2.", "3."))] == ["1.", "2."]
    assert "INVALID" in words[words.index("false") :]


def of_many(label: str = "org-with-a-long-name/Meta-Llama-3.1-70B-Instruct-AWQ-INT4-2048ctx") -> Bench:
    """Ten engines with long names, six prompts each."""
    names = ("code", "tool-call", "reasoning", "long", "context-4k", "context-16k")
    return bench(
        *(
            engine(f"engine-{at}/{label}", {name: around(80.0 - 7 * at, 40.0 + 10 * at) for name in names})
            for at in range(10)
        )
    )


@pytest.mark.parametrize("width", [60, 80])
def test_the_console_keeps_to_its_width_and_loses_no_engine(width: int) -> None:
    """Ten engines with long names: each prompt of each has its figures, its verdict, and its whole name once."""
    text = printed(of_many(), width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("VALID") == 11
    whole = "".join(text.split())
    for one in of_many().engines:
        assert one.label in whole
        for prompt in one.prompts:
            speed, wait = prompt.tok_per_sec.median, prompt.ttft_client_ms.median
            assert f"{speed:g},{wait:g}" in whole.replace(".00,", ",")


def test_engines_of_one_picture_can_be_told_apart() -> None:
    """Six to a picture, for a seventh would have the colour of the first; each is in one."""
    parts = charts.parts(of_many())
    assert [len(part.engines) for part in parts] == [6, 4]
    assert sum((part.engines for part in parts), ()) == of_many().engines
    titles = [charts.speeds(part, contents.called(of_many())).title for part in parts]
    assert [title.partition(", engines ")[2] for title in titles] == ["1 to 6 of 10", "7 to 10 of 10"]


@given(
    st.lists(st.text(alphabet="ab/-", min_size=1, max_size=40), min_size=1, unique=True), st.integers(8, 40)
)
def test_shortened_names_fit_and_differ(labels: list[str], room: int) -> None:
    """Law: none is longer than its room, no two are alike, and what fits is whole unless another needs the change."""
    names = shortened(labels, room)
    assert all(len(name) <= room for name in names.values())
    assert len(set(names.values())) == len(labels)
    if all(len(label) <= room for label in labels):
        assert list(names.values()) == labels


def test_an_order_over_several_models_says_so() -> None:
    """With their names; an order of engines with one model says nothing of it."""
    code = {"code": around(60.0, 50.0)}
    several = bench(engine("a/x", code, model="x"), engine("a/y", code, model="y"))
    for text in (*everywhere(several).values(), " ".join(printed(several, 200).split())):
        assert "Models have different names (x, y)" in text
    one = bench(engine("a", code), engine("b", code))
    assert not any("different names" in text for text in (*everywhere(one).values(), printed(one)))


def test_answers_of_several_models_of_one_server_are_not_compared() -> None:
    """With those of the same model's name elsewhere, they are; where each server has one model, all are compared."""
    code = {"code": around(60.0, 50.0)}

    def at(url: str, model: str) -> EngineResult:
        return msgspec.structs.replace(engine(f"{url}/{model}", code, model=model), url=url)

    several = [at("a", "x"), at("a", "y"), at("b", "x"), at("b", "z")]
    assert [comparable(several, one) for one in range(4)] == [[0, 2], [1], [0, 2], [3]]
    assert comparable([at("a", "x"), at("b", "y")], 0) == [0, 1]


def test_answers_that_were_checked_are_in_every_report() -> None:
    """With what they are compared with, and faults; without --check-output there is no word of them."""
    check = AnswerCheck("code", 3, ("0" * 64,), None, None, None, 0, 0)
    other = AnswerCheck("code", 3, ("1" * 64,), "a", 1, 0.25, 1, 2)
    sides = [engine(name, {"code": around(60.0, 50.0)}) for name in ("a", "b")]
    plain = bench(*sides)
    document = bench(
        msgspec.structs.replace(sides[0], answers=(check,)),
        msgspec.structs.replace(sides[1], answers=(other,)),
    )
    for text in (*everywhere(document).values(), " ".join(printed(document, 130).split())):
        assert "25% in common, 1 cut short, 2 loops" in text.replace(" %", "%")
    assert {"1 cut short", "2 loops"} <= set(card_words(document))
    for text in (*everywhere(plain).values(), printed(plain, 130), " ".join(card_words(plain))):
        assert "nswers" not in text.replace("Overlapping", "")


@pytest.mark.parametrize("evil", [EVIL, "\x1b[31m\u202ered", "\ud800"])
def test_what_an_engine_calls_itself_is_no_markup(evil: str) -> None:
    """In HTML, SVG, Markdown and on a terminal."""
    document = bench(
        engine(evil, {"code": around(60.0, 50.0)}, model=evil), engine("b", {"code": around(30.0, 50.0)})
    )
    Page(render_html(document))
    Xml.fromstring(render_card(document).encode("utf-8", "replace"))
    for text in (render_html(document), render_card(document), render_markdown(document)):
        assert "<script>alert" not in text
    assert "\x1b" not in printed(document) + render_card(document) + render_markdown(document)


def planted(value: object, evil: str, name: str = "") -> object:
    """Data of a document, with text behind each of its strings that may be any."""
    fixed = ("schema", "status", "ended", "figure", "stability", "metrics_version", "memory_source")
    if isinstance(value, dict):
        return {key: planted(inner, evil, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [planted(one, evil, name) for one in value]
    free = isinstance(value, str) and name not in fixed and not name.endswith("_source")
    return f"{value}{evil}" if free else value


@pytest.mark.parametrize("evil", ["\x1b[31m", "\x9b1m", "\u202e", "\x00", "\x07"])
def test_no_text_of_a_document_is_a_control_character_of_a_report(evil: str) -> None:
    """Wherever it stands: prompts, reasons, codes and facts, labels, times. What the page holds as data is escaped."""
    checked = (AnswerCheck("code", 3, ("0" * 64,), "file", 1, 0.5, 0, 0),)
    before = usual()
    remarks = (Remark("ahead", {"first": "a", "why": "b"}), Remark("new_code", {"a": "b"}))
    sides = [
        msgspec.structs.replace(one, answers=checked, reasons=("streamed", "new"), remarks=remarks)
        for one in before.engines
    ]
    whole = msgspec.structs.replace(before, engines=tuple(sides), remarks=remarks)
    document = from_data(planted(to_data(whole), evil), Bench)
    made = (render_html(document), render_card(document), render_markdown(document), printed(document, 120))
    for text in made:
        odd = {one for one in text if unicodedata.category(one) in ("Cc", "Cf", "Cs")} - {"\n"}
        assert not odd


def test_speeds_are_drawn_with_their_intervals() -> None:
    """A bar and a stroke for each prompt of each engine that has one; the axis holds the stroke."""
    (part,) = charts.parts(usual())
    chart = charts.speeds(part, contents.called(usual()))
    svg = draw(chart)
    assert svg is not None
    prompts = sum(len(one.prompts) for one in usual().engines)
    assert len(re.findall('class="bar ', svg)) == len(re.findall('class="span"', svg)) == prompts
    for top in re.findall(r'class="span" d="M[\d.]+ [\d.]+V([\d.]+)', svg):
        assert float(top) > 0


def test_ttft_is_drawn_against_the_context_fills_alone() -> None:
    """In their order; without any, the page says so."""
    (part,) = charts.parts(usual())
    chart = charts.contexts(part, contents.called(usual()))
    assert [one.label for one in chart.series] == ["ollama", "lmstudio"]
    assert chart.series[0].x == (4000, 16000, 64000)
    assert NO_CONTEXTS in Page(render_html(bench(engine("a", {"code": around(60.0, 50.0)})))).text


def test_speed_over_the_runs_shows_drift() -> None:
    """A chart for each prompt, a point for each run; its axis begins with the first run, and has no ticks between runs."""
    (part,) = charts.parts(usual())
    (code, *_) = charts.over_runs(usual(), part, contents.called(usual()))
    (slow,) = (one for one in code.series if one.label == "llamacpp")
    assert (slow.x, slow.y) == ((1, 2, 3), (33.0, 31.0, 29.0))
    svg = draw(code)
    assert svg is not None
    assert re.findall(r'text-anchor="middle" class="">([\d.]+)<', svg) == ["1", "2", "3"]


def test_nothing_measured_is_still_a_report() -> None:
    """Every engine failed, and a person ended it."""
    document = bench(engine("a", {}), interrupted=True)
    for text in (*everywhere(document).values(), " ".join(card_words(document))):
        assert "INTERRUPTED" in text
        assert "FAILED" in text
    assert contents.orders(document) == []
