"""What is withheld is nowhere: not in the data, not in a rendering, not in the page's own copy of the data."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any, TypeVar

import campaigns
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from inferometer.documents.campaign import (
    Campaign,
    ProcedureDocument,
    ReportedTable,
    ReportedValue,
    StateSwitch,
)
from inferometer.documents.note import WITHHELD, WordedNote
from inferometer.documents.part import from_data, to_data, to_json
from inferometer.documents.results import Axis, Column, Figure, Mark, Series
from inferometer.plan.part import HARMLESS
from inferometer.plan.procedure_parameters import NAMES, Tests
from inferometer.report.campaign.console import render_campaign, render_test
from inferometer.report.campaign.html import render_html
from inferometer.report.campaign.markdown import render_markdown
from inferometer.report.campaign.minimum import render_minimum
from inferometer.report.campaign.redaction import redact
from inferometer.report.figures import THIN, figure

T = TypeVar("T")

CLOSED = {"schema", "status", "state", "kind", "ended_by", "redacted", "section", "boundary", "test", "code"}
"""Members with a vocabulary of their own, or numbers of the draft's sections: they hold no free value."""


def renderings(document: Campaign) -> str:
    """Everything that a reader can get hold of, as one text without the space between thousands."""
    screen = Console(width=200, file=StringIO())
    render_campaign(document, screen)
    for test in document.tests:
        render_test(test, screen)
    parts = [
        to_json(document),
        render_minimum(document),
        render_markdown(document),
        render_html(document),
        screen.file.getvalue(),  # type: ignore[attr-defined] # it is the StringIO above
    ]
    return "\n".join(parts).replace(THIN, "").replace("\u00a0", " ")


def spellings(number: int) -> set[str]:
    return {str(number), figure(number).replace(THIN, "")}


class Marks:
    """Numbers that occur nowhere else, seven digits ending in 3; and the member that each was put into."""

    def __init__(self) -> None:
        self.members: dict[int, str] = {}

    def next(self, member: str) -> int:
        """One more."""
        number = 8_600_003 + 20 * len(self.members)
        self.members[number] = member
        return number

    def surviving(self, text: str) -> set[str]:
        """The members whose mark stands in a text."""
        return {
            member for number, member in self.members.items() if any(one in text for one in spellings(number))
        }

    def planted(self, value: T, member: str = "") -> T:
        """The same shape with a mark in every number and every text."""
        return self._planted(value, member)  # type: ignore[no-any-return]  # the shape is the same

    def _planted(self, value: Any, member: str) -> Any:
        if isinstance(value, msgspec.Struct):
            changed = {
                name: self._planted(getattr(value, name), f"{member}.{name}".lstrip("."))
                for name in value.__struct_fields__
                if name not in CLOSED
                and not (name == "label" and hasattr(value, "findings"))
                and not (name in ("verdict", "status") and isinstance(getattr(value, name), str))
            }
            return replace(value, **changed)
        if isinstance(value, Mapping):
            return {key: self._planted(part, f"{member}.{key}" if member.endswith("parameters") else member)
                    for key, part in value.items()}  # fmt: skip
        if isinstance(value, tuple | list):
            return tuple(self._planted(part, member) for part in value)
        if isinstance(value, bool) or value is None:
            return value
        if member.endswith(("started", "ended")):
            return f"2026-08-01T{self.next(member)}Z"
        return self.next(member) if isinstance(value, int | float) else f"{value[:3]}-{self.next(member)}"


def every_part() -> Campaign:
    """A campaign in which each kind of part occurs, nothing of it marked."""
    one = campaigns.measured()
    note = WordedNote("code", {"rate": 1.0}, False, "A sentence.")
    value = ReportedValue("extra", "Extra", 1.0, "ms", (1.0, 2.0), note, False, "12 requests/s")
    columns = (Column("rate", "Offered", "req/s"), Column("ttft", "TTFT", "ms"))
    table = ReportedTable(
        "extra", "Extra", "5", columns, ((1.0, 2.0), ("a", 2.0)), (note,), False, "12 requests/s"
    )
    series = (Series("a", (1.0, 2.0), (0.5, 1.0), "12 requests/s", ((0.4, 0.6), (0.9, 1.1)), (1,)),)
    shown = Figure(
        "f", "F", "lines", Axis("Load", "req/s"), Axis("TTFT", "ms"), series, (Mark("knee", 1.0, 1.0),)
    )
    switch = StateSwitch("prefix_cache", "off", "verified", "hook", "0 hits")

    def with_all(test: ProcedureDocument) -> ProcedureDocument:
        return replace(
            test,
            plan={**test.plan, "load": {"rate": 12.0}},
            parameters={"rates": [12.0], "percent": [25.0], "unheard_of": 12.0},
            switches=(switch,),
            values=(*test.values, value),
            tables=(*test.tables, table),
            figures=(*test.figures, shown),
            notes=(note,),
            undecided=(note,),
        )

    assert one.sut is not None
    return replace(
        one,
        sut=replace(one.sut, notes="a note", url="http://10.0.3.7:8000"),
        tests=tuple(map(with_all, one.tests)),
        minimum=replace(campaigns.filled(one.minimum), throughput_at_p99_ttft_500ms_tok_s=1.0),
    )


def flagged(value: T, decide: Iterator[bool]) -> T:
    """The same with every `capacity` as decided."""
    return _flagged(value, decide)  # type: ignore[no-any-return]  # the shape is the same


def _flagged(value: Any, decide: Iterator[bool]) -> Any:
    if isinstance(value, msgspec.Struct):
        changed = {name: _flagged(getattr(value, name), decide) for name in value.__struct_fields__}
        if "capacity" in changed:
            changed["capacity"] = next(decide)
        return replace(value, **changed)
    return tuple(_flagged(part, decide) for part in value) if isinstance(value, tuple) else value


def always(flag: bool) -> Iterator[bool]:
    while True:
        yield flag


FREE = {
    "disclosed.key", "disclosed.name", "disclosed.value",
    "verdict.reasons.message", "tests.verdict.reasons.message",
    "tests.values.value", "tests.values.ci", "tests.values.note.facts", "tests.values.note.message",
    "tests.tables.rows", "tests.tables.few", "tests.tables.notes.facts", "tests.tables.notes.message",
    "tests.tables.columns.name", "tests.tables.columns.label", "tests.tables.columns.unit",
    "tests.figures.series.label", "tests.figures.series.x", "tests.figures.series.y", "tests.figures.series.ci",
    "tests.figures.series.few",
    "tests.figures.marks.label", "tests.figures.marks.x", "tests.figures.marks.y",
    "tests.notes.facts", "tests.notes.message", "tests.undecided.facts", "tests.undecided.message",
    *(f"{of}compliance.{kind}.{name}" for of in ("", "tests.") for kind in ("findings", "deviations")
      for name in ("note", "facts")),
}  # fmt: skip
"""Members that stay unless their part is marked."""

KEPT = {
    "version", "tests.version", "tests.title", "tests.objective", "tests.parameters.percent", "tests.plan",
    "tests.switches.what", "tests.runs.part", "tests.runs.state",
    "tests.values.name", "tests.values.label", "tests.values.unit", "tests.tables.name", "tests.tables.title",
    "tests.figures.name", "tests.figures.title",
    *(f"tests.figures.{side}.{name}" for side in "xy" for name in ("label", "unit")),
    "verdict.reasons.runs", "tests.verdict.reasons.runs",
    "environment.os", "environment.kernel", "environment.machine", "environment.cpu", "environment.cores",
    "environment.memory_bytes", "environment.python", "environment.inferometer",
    "sut.model", "sut.software", "sut.accelerator", "sut.accelerator_count", "sut.cache_state", "sut.protocol", "sut.api",
    "sut.observed.server", "sut.observed.models", "sut.prefix_caching",
    "tokenizer.kind", "tokenizer.name", "tokenizer.version", "tokenizer.vocab_size", "tokenizer.source",
    "tokenizer.method",
    "minimum.model", "minimum.hardware", "minimum.software", "minimum.workload", "minimum.ttft_p50_ms",
    "minimum.ttft_p99_ms", "minimum.tpot_p50_ms", "minimum.tpot_p99_ms", "minimum.seed",
    "reproduction.versions", "reproduction.seeds",
    *(f"{of}compliance.{name}" for of in ("", "tests.") for name in ("draft", "counts")),
    *(f"{of}compliance.{kind}.{name}" for of in ("", "tests.") for kind in ("findings", "deviations")
      for name in ("id", "level", "text")),
}  # fmt: skip
"""Members that stay in any case. What is new is withheld, or has to be entered here."""


def test_every_member_would_tell() -> None:
    """Without redaction all marks are found, most of them in a page for people: the laws below are about something."""
    marks = Marks()
    document = marks.planted(flagged(every_part(), always(True)))
    assert marks.surviving(renderings(document)) == set(marks.members.values())
    assert len(marks.surviving(render_markdown(document).replace(THIN, ""))) > 50


def test_nothing_that_is_marked_is_anywhere() -> None:
    """In JSON, text, Markdown, HTML with its embedded copy, or on the screen; as it was or as it is written."""
    marks = Marks()
    document = marks.planted(flagged(every_part(), always(True)))
    assert marks.surviving(renderings(redact(document, "capacity"))) <= KEPT


def test_what_is_not_marked_stays_and_free_text_does_not() -> None:
    """Only members that are known may stay: loads, commands, hashes, run names and the tester's own words are among none of
    them."""
    marks = Marks()
    document = marks.planted(flagged(every_part(), always(False)))
    kept = marks.surviving(renderings(redact(document, "capacity")))
    assert kept <= KEPT | FREE
    assert kept >= FREE & set(marks.members.values())


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_the_marks_decide_part_by_part(seed: int) -> None:
    """Whatever is marked and whatever is not beside it, a marked part is gone and the document keeps its shape."""
    draw = random.Random(seed)
    marks = Marks()
    document = marks.planted(flagged(every_part(), iter(lambda: draw.random() < 0.5, None)))
    redacted = redact(document, "capacity")
    text = to_json(redacted) + render_markdown(redacted).replace(THIN, "")
    for before, after in zip(document.tests, redacted.tests, strict=True):
        for value in (one for one in before.values if one.value is not None):
            assert (str(value.value) in text) is (not value.capacity), value
        for table in before.tables:
            hidden = [table.capacity or column.capacity for column in table.columns]
            for row in table.rows:
                assert [str(cell) not in text for cell in row if cell is not None] == [
                    hide for cell, hide in zip(row, hidden, strict=True) if cell is not None
                ]
        for note in (*before.notes, *before.undecided):
            assert (note.message in text) is (not note.capacity)
        assert len(after.values) == len(before.values)


@pytest.mark.parametrize("name", [*NAMES.values(), "a-test-of-tomorrow"])
def test_a_parameter_stays_only_if_its_field_is_marked_as_harmless(name: str) -> None:
    """A load, a duration, a threshold and a parameter without a mark are withheld, in each test; what one has no value for
    says so."""
    parts = {of: field for field, of in NAMES.items()}
    fields = Tests.model_fields[parts[name]].annotation.model_fields if name in parts else {}  # type: ignore[union-attr]
    (test,) = campaigns.valid().tests
    given = {**dict.fromkeys(fields, 7.5), "unheard_of": 7.5, "rate": None}
    document = replace(campaigns.valid(), tests=(replace(test, test=name, parameters=given),))
    kept = {
        field for field, value in redact(document, "capacity").tests[0].parameters.items() if value == 7.5
    }
    assert kept == {field for field, about in fields.items() if HARMLESS in about.metadata}
    assert not kept & {
        "rates",
        "concurrencies",
        "concurrency",
        "duration_s",
        "capacity_rate",
        "maximum",
        "max_rate",
    }
    assert redact(document, "capacity").tests[0].parameters["rate"] is None


def test_a_word_of_a_load_is_kept_where_nothing_is_marked() -> None:
    """No sentence is read: a note that is not marked stays as it is, whatever stands in it."""
    one = campaigns.valid()
    note = WordedNote("x", {}, False, "draft 5.2: at 12 requests/s")
    (test,) = one.tests
    redacted = redact(replace(one, tests=(replace(test, notes=(note,)),)), "capacity")
    assert redacted.tests[0].notes == (note,)


def test_a_redacted_document_is_a_document() -> None:
    """It is read back as any other, whatever was marked."""
    for flag in (True, False):
        redacted = redact(flagged(every_part(), always(flag)), "capacity")
        assert from_data(to_data(redacted), Campaign) == redacted


def test_no_load_of_the_simulated_campaign_is_shared() -> None:
    """As procedures mark their results: the loads they tried and the capacity they found are in no rendering."""
    document = campaigns.measured()
    text = renderings(redact(document, "capacity"))
    capacity = next(test for test in document.tests if test.test == "capacity")
    loads = [value.value for value in capacity.values if isinstance(value.value, float) and value.value > 100]
    assert loads
    for load in loads:
        assert not re.search(rf"(?<![\d.]){re.escape(figure(load).replace(THIN, ''))}(?![\d])", text), load
    assert "requests/s" not in re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)


def test_the_document_itself_is_untouched() -> None:
    """Redaction is of a copy."""
    document = every_part()
    before = to_json(document)
    redact(document, "capacity")
    assert to_json(document) == before


def test_what_tells_nothing_stays() -> None:
    """Latency, verdicts, labels, the system, seeds and the rules of the draft are what a shared report is for."""
    document = campaigns.measured()
    text = render_markdown(redact(document, "capacity")).replace("\u00a0", " ")
    ttft = next(test for test in document.tests if test.test == "ttft")
    latency = next(value for value in ttft.values if value.name == "ttft_p99")
    assert isinstance(latency.value, float)
    assert ttft.compliance is not None
    rule = ttft.compliance.deviations[0].id
    for words in (f"{figure(latency.value, trim=True)} ms", "INCONCLUSIVE", "conditionally compliant", "simulated engine",
                  rule, "| Seeds "):  # fmt: skip
        assert words in text, words


def test_it_says_so_prominently_and_cannot_be_rerun() -> None:
    """First line of Markdown and minimum report, a banner and the title of the page; no command to carry it out."""
    redacted = redact(campaigns.measured(), "capacity")
    assert redacted.redacted == ("capacity",)
    assert render_markdown(redacted).startswith("# REDACTED\n")
    assert render_minimum(redacted).startswith("REDACTED: ")
    page = render_html(redacted)
    assert "<title>REDACTED, INVALID" in page
    for text in (page, render_markdown(redacted)):
        assert "cannot be repeated" in text
        assert "inferometer rerun" not in text
    for label in ("Max Throughput", "Throughput at P99 TTFT < 500ms", "Load Model", "Chunking"):
        assert f"- {label}: {WITHHELD}\n" in render_minimum(redacted)


def test_redacting_again_changes_nothing_more() -> None:
    """What was shared can be shared again."""
    once = redact(every_part(), "capacity")
    assert redact(once, "capacity") == once


def test_there_is_one_kind() -> None:
    """Another is refused, not ignored."""
    with pytest.raises(ValueError, match="latency"):
        redact(campaigns.measured(), "latency")
