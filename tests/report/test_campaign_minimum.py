"""minimum.txt: draft C.1's own lines, then what the draft makes mandatory beyond them."""

from __future__ import annotations

import re
from pathlib import Path

import campaigns
import pytest
from judge.compliant import changed, perfect
from msgspec.structs import replace

from inferometer.documents.campaign import Campaign
from inferometer.documents.results import Column
from inferometer.report.campaign import deviations, disclosure
from inferometer.report.campaign.minimum import c1, render_minimum
from inferometer.report.campaign.redaction import redact
from inferometer.report.figures import figure

TEMPLATE = (Path(__file__).parent.parent / "vectors" / "report" / "minimum.txt").read_text().splitlines()
"""Draft C.1 as it stands, with its placeholders in brackets."""


def pattern(line: str) -> str:
    """A template line with anything, but something, in the place of each bracket."""
    parts = re.split(r"\[[^\]]*\]", line)
    return ".+".join(map(re.escape, parts))


def test_the_lines_are_those_of_the_draft() -> None:
    """Line by line, in order; a note more or fewer is all that may differ, and the hardware's count is a number."""
    filled = campaigns.filled(campaigns.measured().minimum)
    lines = c1(filled, filled.notes)
    assert len(lines) == len(TEMPLATE)
    for line, template in zip(lines, TEMPLATE, strict=True):
        assert re.fullmatch(pattern(template), line) or line.endswith(": not measured"), (line, template)


@pytest.mark.parametrize("name", campaigns.SAMPLES)
def test_the_template_stands_in_every_report(name: str) -> None:
    """Whatever was measured: each line up to its bracket, between title and end."""
    lines = render_minimum(campaigns.SAMPLES[name]()).splitlines()
    start, end = (lines.index(TEMPLATE[i]) for i in (0, -1))
    heads = [line.partition("[")[0] for line in TEMPLATE if line.startswith("- ") and line[2] != "["]
    between = lines[start:end]
    assert [line for line in between if line.startswith(tuple(heads))] == [
        next(line for line in between if line.startswith(head)) for head in heads
    ]


def noted(campaign: Campaign) -> list[str]:
    """The notes of its minimum report."""
    between = render_minimum(campaign).partition("\nNotes:\n")[2].partition("\n\n=== End Report ===")[0]
    return [line.removeprefix("- ") for line in between.splitlines()]


@pytest.mark.parametrize("redacted", [False, True])
@pytest.mark.parametrize("name", campaigns.SAMPLES)
def test_the_notes_hold_every_deviation_and_the_guardrails(name: str, redacted: bool) -> None:
    """Draft C.1: each rule that is broken or unknown, with the tests it is about; what makes it no plain VALID campaign;
    guardrails last. Never that there is none. A redacted report has them too."""
    campaign = campaigns.SAMPLES[name]()
    notes = noted(redact(campaign, "capacity") if redacted else campaign)
    assert notes[-1].startswith("Guardrails: ")
    assert "none" not in notes
    for test in campaign.tests:
        for one in test.compliance.deviations if test.compliance else ():
            about = [note for note in notes if note.startswith(f"{one.id}, {one.level}, {one.state} (")]
            assert any(test.test in note or "(all tests)" in note for note in about), one.id
        assert not test.problem or any(note.startswith(f"{test.title}: Ended early") for note in notes)
    heads = {note.partition(":")[0] for note in notes}
    status = campaign.verdict.status
    assert (status in heads) is (status != "VALID")
    assert ("QUICK" in heads) is campaign.quick
    assert ("SIMULATED" in heads) is campaign.simulated


def test_a_document_without_notes_gets_them() -> None:
    """Those of a campaign that an earlier version wrote down with none."""
    campaign = campaigns.simulated()
    assert campaign.minimum.notes
    bare = replace(campaign, minimum=replace(campaign.minimum, notes=()))
    assert noted(bare) == noted(campaign)


def test_latencies_of_fewer_requests_than_were_sent_say_of_how_many() -> None:
    """Law: where not all were answered a note says how many were, and where all were there is none. A redacted copy has no
    such number."""
    one = campaigns.measured()
    few = replace(one, minimum=replace(one.minimum, request_count=80, answered=57))
    assert "57 of 80 requests were answered, and latencies are of these" in deviations.notes(few)
    for told in (
        one,
        replace(one, minimum=replace(one.minimum, request_count=80, answered=None)),
        redact(few, "capacity"),
    ):
        assert not any("were answered" in line for line in deviations.notes(told))


def test_refused_requests_are_those_of_all_runs() -> None:
    """Law: with the configuration in which they were; that of the run which stands for the system has no filters."""
    summary = changed(perfect("ttft"), {}).runs[0].summary
    test = campaigns.simulated().tests[0]
    ran = [
        replace(test.runs[0], run=name, state=state)
        for name, state in (("a", {}), ("b", {"guardrails": "input"}))
    ]
    tests = [replace(test, runs=tuple(ran))]
    filtered = replace(summary, requests=replace(summary.requests, by_error={"refused": 222}))
    none = disclosure.guardrails(summary.sut, tests, {"a": summary, "b": summary})
    assert none.endswith("refused requests in all runs 0")
    some = disclosure.guardrails(summary.sut, tests, {"a": summary, "b": filtered})
    assert some.endswith("refused requests in all runs 222 (222 with the input filter)")


def test_a_workload_that_is_no_standard_one_is_noted() -> None:
    """How it differs from that, and in which tests: capacity's answers are of one length."""
    (note,) = (note for note in noted(campaigns.simulated()) if note.startswith("Workload (capacity"))
    assert "output_tokens is 64; synthetic-uniform has uniform(64,256)" in note


def test_null_is_not_measured_and_never_zero() -> None:
    """Every line of a campaign in which nothing was measured says so; what is declared says that it was not."""
    text = render_minimum(campaigns.empty())
    for label in ("TTFT P50", "TTFT P99", "TPOT P50", "Max Throughput", "Request Count", "Test Duration"):
        assert f"- {label}: not measured\n" in text
    assert "- Model: not declared\n" in text
    assert "- SUT Boundary: not declared\n" in text
    assert not re.search(r": 0(\.0)?( |$)", text, re.MULTILINE)


def test_the_disclosures_hold_what_c1_lacks() -> None:
    """Tokenizer with version, vocabulary and source; counting option by word, section and letter; seed, protocol, chunking,
    ITL option, special tokens, all five percentiles with their count."""
    campaign = campaigns.simulated()
    block = render_minimum(campaign).partition("=== End Report ===")[2]
    ttft = next(test for test in campaign.tests if test.test == "ttft")
    p99 = next(value.value for value in ttft.values if value.name == "ttft_p99")
    assert isinstance(p99, float)
    for words in (
        "Seeds: ",
        "Tokenizer: cl100k_base, version sha256:223921b7",
        "Vocabulary size: 100",
        "Tokenizer source: ",
        "(draft 4.4.2, option",
        "Special tokens: ",
        "Streaming: none: simulated, chat, streamed",
        "Chunking: ",
        "ITL option: direct",
        "Warm-up: ",
        "Guardrails: input filter",
        "TTFT, first level: TTFT, 5 requests/s",
        "TTFT Requests: 40",
        "TTFT P50: ",
        "TTFT P90: ",
        "TTFT P95: ",
        f"TTFT P99: {figure(p99, trim=True)}\u00a0ms",
        "TTFT P99.9: ",
    ):
        assert words in block, words
    assert "claims no compliance" in block


def test_what_no_run_told_is_not_known() -> None:
    """Without a run's method the fields stand there all the same; what was declared of the system is used."""
    rows = dict(disclosure.rows(campaigns.empty()))
    assert {rows[name] for name in ("Chunking", "ITL option", "Clocks", "Warm-up")} == {"not known"}
    assert rows["Guardrails"] == "not known"
    declared = replace(campaigns.empty(), sut=campaigns.simulated().sut)
    assert dict(disclosure.rows(declared))["Guardrails"].startswith("input filter off")
    assert rows["TTFT P99.9"] == "not measured"


def test_a_run_tells_its_method() -> None:
    """All rows that the disclosures take are in a run's method, and those known to tell no load are not marked."""
    rows = {row.key: row for row in campaigns.simulated().disclosed}
    assert set(disclosure.SHARED) <= set(rows)
    assert {key for key, row in rows.items() if not row.capacity} <= set(disclosure.HARMLESS.values())
    assert rows["requests"].capacity


def test_several_columns_are_told_apart() -> None:
    """A table of results with intervals has each number with its heading."""
    document = campaigns.valid()
    (test,) = document.tests
    results = next(table for table in test.tables if table.section == "5.1.5.2")
    rows = tuple((name, value, None if name == "Requests" else 523.0) for name, value in results.rows)
    columns = (*results.columns, Column("low", "95 % from", "ms"))
    wider = replace(test, tables=(replace(results, columns=columns, rows=rows),))
    told = dict(disclosure.ttft(replace(document, tests=(wider,))))
    assert re.fullmatch(r"Value: [\d.]+\u00a0ms°; 95 % from: 523\u00a0ms", told["TTFT P99"])
    assert told["TTFT Requests"] == "40"


@pytest.mark.parametrize(("name", "words"), [("simulated", ["SIMULATED", "QUICK"]), ("measured", [])])
def test_what_nobody_may_overlook_stands_first(name: str, words: list[str]) -> None:
    """Simulated and quick, above the title."""
    above = render_minimum(campaigns.SAMPLES[name]()).partition("=== LLM")[0]
    assert re.findall(r"^([A-Z]+):", above, re.MULTILINE) == words
