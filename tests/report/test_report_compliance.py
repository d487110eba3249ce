"""A statement in words: of any run, in 80 columns, whatever a server calls itself."""

from __future__ import annotations

import ast
import dataclasses
import string
from pathlib import Path

import pytest
from judge.compliant import ALL, changed, perfect, simulated
from msgspec.structs import replace

import inferometer.judge
from inferometer.documents.part import from_data, to_data
from inferometer.documents.statement import ComplianceStatement
from inferometer.documents.summary import Summary
from inferometer.judge.compliance.evidence import DRAFT, note, of_run
from inferometer.judge.compliance.statement import comply
from inferometer.plan.parse import build
from inferometer.report.compliance import WIDTH, lines, statement_document
from inferometer.report.compliance_notes import NOTES, worded

JUDGE = Path(inferometer.judge.__file__).parent
PLANS: dict[str, dict[str, object]] = {
    "closed": {"--concurrency": "4"},
    "open": {"--rate": "5", "--url": "https://gateway.example.org"},
    "users": {"--users": "3", "--user-rate": "1"},
    "trace": {"--trace": "azure.csv"},
    "whole": {"--no-stream": True, "--tokenizer": "none"},
    "prompts": {"--prompts": "own.jsonl", "--concurrency": "2"},
}


def nothing_measured(summary: Summary) -> Summary:
    """The same run, if no answer had come."""
    metrics = replace(summary.metrics, **dict.fromkeys(summary.metrics.__struct_fields__))
    return replace(
        summary,
        metrics=metrics,
        ttft_by_input=(),
        itl_shape=None,
        window=replace(summary.window, duration_s=None),
        tokens=replace(summary.tokens, count_source=None, events=None, single_token_share=None),
    )


@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize("plan", PLANS)
def test_any_run_has_a_statement_that_fits(plan: str, measured: bool) -> None:
    """Also one in which nothing was measured: then little is kept, and nothing is thrown."""
    summary = replace(simulated(), plan=build(None, PLANS[plan]))
    for one in (summary, replace(summary, run=replace(summary.run, simulated=False))):
        statement = statement_document(comply(of_run(one if measured else nothing_measured(one))))
        said = lines(statement)
        assert max(map(len, said)) <= WIDTH
        assert said[0] == f"ttft (draft 5.1): {statement.label.upper()}"
        assert from_data(to_data(statement), ComplianceStatement) == statement


def test_what_a_server_calls_itself_cannot_steer_the_terminal() -> None:
    """Neither colours nor a change of direction reach it."""
    vile = {"runs.0.summary.sut.model": "\x1b[31mred\u202e", "runs.0.summary.sut.model_version": "\x1b]8;;x"}
    said = lines(statement_document(comply(changed(perfect("ttft"), vile))))
    assert not any(set(line) & set("\x1b\u202e") for line in said)


def test_without_samples_nothing_that_they_would_show_is_kept() -> None:
    """Neither latencies nor their table."""
    empty = nothing_measured(simulated())
    summary = replace(empty, run=replace(empty.run, simulated=False), plan=build(None, {"--rate": "5"}))
    found = {one.rule.id: one.state for one in comply(of_run(summary)).findings}
    names = (
        "D-4.2.6-first",
        "D-5.1.4.1-percentiles",
        "D-5.1.4.3-samples",
        "D-5.1.5.2-table",
        "D-5.1.5.4-plot",
    )
    assert {found[name] for name in names} == {"violated"}


def test_the_draft_is_cited_as_work_in_progress() -> None:
    """With its revision and month, and no expiry date (Q-expiry)."""
    text = "\n".join(lines(statement_document(comply(perfect("ttft")))))
    assert DRAFT in text
    assert "work in progress, revision -00, January 2026" in text


def test_what_is_taken_on_trust_is_listed() -> None:
    """Each declared rule with its words; first of all that a test is cut short, or was a simulation."""
    whole = perfect("ttft")
    trusted = statement_document(comply(whole)).limitations
    assert any(one.startswith("D-4.5.1-load") and "declared" in one for one in trusted)
    cut = statement_document(comply(dataclasses.replace(whole, cut="connection refused")))
    assert "connection refused" in cut.limitations[0]
    virtual = statement_document(comply(dataclasses.replace(whole, virtual=True)))
    assert virtual.limitations[0].startswith("Simulated")


def test_a_document_has_every_finding_in_words_and_as_values() -> None:
    """Deviations are those of the statement, in its order."""
    statement = comply(changed(perfect("ttft"), {"parameters.requests": 10}))
    document = statement_document(statement)
    assert [one.id for one in document.findings] == [one.rule.id for one in statement.findings]
    assert [one.id for one in document.deviations] == [one.rule.id for one in statement.deviations]
    for finding, one in zip(statement.findings, document.findings, strict=True):
        assert one.note == worded(finding.note)
        assert (one.code, one.facts) == (finding.note.code, finding.note.facts)
    few = next(one for one in document.deviations if one.id == "D-5.1.2-count-p99")
    assert few.note == "requests 10, at least 1,000"


def codes() -> set[str]:
    """The codes of all notes that judge/ makes: each is written where its note is made."""
    found = set()
    for path in (*JUDGE.glob("compliance/*.py"), JUDGE / "procedure_verdict.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
                continue
            first = node.args[0]
            if node.func.id in ("note", "Note", "_in_own_words") and isinstance(first, ast.Constant):
                found.add(str(first.value))
    return found


def test_every_note_has_words_and_all_words_are_of_a_note() -> None:
    """One entry a code, none missing and none left over."""
    assert codes() == NOTES.keys()


@pytest.mark.parametrize("evidence", ALL)
def test_words_tell_every_fact_that_a_template_names(evidence: str) -> None:
    """No note lacks a fact that its words ask for, and none is told in half: each value of a template is in its sentence."""
    for one in comply(perfect(evidence)).findings:
        said, words = worded(one.note), NOTES[one.note.code]
        assert said
        if isinstance(words, str):
            named = {name for _, name, _, _ in string.Formatter().parse(words) if name}
            assert named <= one.note.facts.keys()


def test_numbers_are_shown_as_people_write_them() -> None:
    """No more digits than a reader needs, a list with commas, a share in percent, a unit behind its number."""
    assert worded(note("rates", rates=(1234.5678, 10.0))) == "1,235, 10 requests/s"
    assert worded(note("cache_at_work", share=0.1234)).startswith("declared disabled, yet 12.3% of")
    duration = note("parameter", parameter="duration_s", value=6.0, limit=300.0, unit="s")
    assert worded(duration) == "duration_s 6 s, at least 300 s"
    assert worded(note("no_table", table=None, sections=("5.5.5", "5.5.4"))) == "no table of 5.5.5 or 5.5.4"
