"""Evidence before the start, of a run by itself, and of a test's document: one set of rules for all three."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from judge.compliant import TABLES, buckets, changed, perfect
from msgspec.structs import replace as with_members

from inferometer.documents.campaign import (
    TEST_SCHEMA,
    ProcedureDocument,
    ProcedureRun,
    ProcedureVerdict,
    ReportedTable,
    ReportedValue,
)
from inferometer.documents.note import Note
from inferometer.documents.results import Axis, Cell, Column, Figure
from inferometer.judge.compliance.evidence import (
    TESTS,
    Evidence,
    ShownTable,
    ahead_of,
    of_run,
    of_test,
    shown_in,
)
from inferometer.judge.compliance.statement import OPEN, comply, deviations_of
from inferometer.plan import procedure_parameters
from inferometer.plan.lengths import uniform
from inferometer.plan.parse import build
from inferometer.plan.procedure_parameters import Parameters
from inferometer.plan.saved import resolved
from inferometer.plan.schema import Plan

ALONE = [test for test in TESTS if test != "compare"]
GATEWAY: dict[str, object] = {
    "--url": "https://gateway.example.org",
    "--boundary": "gateway",
    "--model": "m",
    "--rate": "5",
}


def parameters(test: str, *, quick: bool = False, **more: Any) -> Parameters:
    """A test's parameters: the draft's own, or a quick run's; with others in their place."""
    tests = procedure_parameters.Tests.model_validate(procedure_parameters.quickened({}) if quick else {})
    attribute = next(key for key, name in procedure_parameters.NAMES.items() if name == test)
    found: Parameters = getattr(tests, attribute)
    return found.model_copy(update=more)


def foreseen(test: str, flags: dict[str, object], *, quick: bool = False, **more: Any) -> dict[str, Note]:
    """Rules that such a plan breaks before anything is sent, and what is observed of each."""
    found = deviations_of(test, parameters(test, quick=quick, **more), build(None, GATEWAY | flags))
    return {one.rule.id: one.note for one in found}


QUICK: dict[str, set[str]] = {
    "ttft": {"D-5.1.2-count-p99", "D-5.1.2-count-p999"},
    "throughput": {"D-5.2.2-duration", "D-5.2.2-duration-300"},
    "tradeoff": {"D-5.3.2-duration", "D-5.3.2-levels", "D-5.3.3-steps"},
    "itl": {"D-5.4.2-count", "D-5.4.2-levels"},
    "capacity": {"D-5.5.3-duration"},
    "fairness": {"D-5.6.2-count", "D-5.6.3-mixed"},
    "memory-pressure": {"D-5.8.3-run"},
    "long-context": {"D-5.9.2-count", "D-5.9.2-output"},
    "guardrail": {"D-5.10.2-levels"},
}


@pytest.mark.parametrize(("test", "rules"), QUICK.items())
def test_a_quick_run_deviates_by_its_numbers(test: str, rules: set[str]) -> None:
    """Before the start already, by the same rules as any other plan with such numbers; the draft's own break none of them. A
    quick run has a threshold of its own, which the draft leaves to the tester."""
    quick, whole = foreseen(test, {}, quick=True), foreseen(test, {})
    assert rules <= quick.keys()
    assert not rules & whole.keys()
    assert whole.keys() - {"D-5.5.2-ttft"} <= quick.keys()


FORESEEN: list[tuple[str, dict[str, object], dict[str, Any], str]] = [
    ("ttft", {"--rate": None, "--users": "8", "--user-rate": "1"}, {}, "D-5.1.2-load-model"),
    ("capacity", {"--workload": "synthetic-skewed"}, {}, "D-5.5.2-workload"),
    ("prefix-cache", {"--workload": "synthetic-uniform"}, {}, "D-5.7.2-workload"),
    ("capacity", {}, {}, "D-5.5.2-ttft"),
    ("itl", {"--workload": "synthetic-skewed"}, {}, "D-5.4.2-min-output"),
    ("itl", {}, {"output_tokens": uniform(49, 256)}, "D-5.4.2-min-output"),
    ("ttft", {"--arrival": "constant"}, {}, "D-5.1.2-arrival"),
    ("ttft", {"--no-stream": True}, {}, "D-4.2.2-streaming"),
    ("ttft", {}, {}, "D-4.5.1-load"),
    ("memory-pressure", {"--declare": ["isolated=no"]}, {}, "D-7.4-isolated"),
]


@pytest.mark.parametrize(("test", "flags", "more", "rule"), FORESEEN, ids=lambda part: str(part)[:50])
def test_what_a_plan_breaks_is_said_before_the_start(
    test: str, flags: dict[str, object], more: dict[str, Any], rule: str
) -> None:
    """Whatever is wrong with it: load, workload, parameters or declarations."""
    assert rule in foreseen(test, flags, **more)


@pytest.mark.parametrize("test", ALONE)
def test_what_is_foreseen_is_what_a_statement_says_then(test: str) -> None:
    """Never another note or state than that of the statement on the same evidence: one list, one code."""
    ahead = ahead_of(test, parameters(test, quick=True), build(None, GATEWAY))
    then = {one.rule.id: (one.state, one.note) for one in comply(ahead).findings}
    found = deviations_of(test, parameters(test, quick=True), build(None, GATEWAY))
    assert found
    assert all(one.state in OPEN for one in found)
    assert all(then[one.rule.id] == (one.state, one.note) for one in found)


@pytest.mark.parametrize("test", ALONE)
def test_nothing_is_foreseen_of_what_only_runs_can_show(test: str) -> None:
    """The embedded server with the draft's numbers: what is left are declarations, and what an engine's test always lacks."""
    found = {one.rule for one in deviations_of(test, parameters(test), Plan())}
    assert {rule.kind for rule in found} <= {"plan", "declared", "report"}


def test_clocks_that_the_run_will_read_are_not_held_against_the_plan() -> None:
    """Draft 4.7.2 is open until then, unless what is declared breaks it."""
    rules = {"D-4.7.2-ntp", "D-4.7.2-report"}
    assert not rules & foreseen("ttft", {}).keys()
    loose = foreseen("ttft", {"--declare": ["clock_accuracy_ms=11"]})
    assert rules & loose.keys() == {"D-4.7.2-ntp"}


def test_what_a_test_brings_along_is_not_held_against_the_plan() -> None:
    """Its own words, its own loop and its own warm-up are none of the plan's."""
    flags: dict[str, object] = {
        "--rate": None,
        "--concurrency": "8",
        "--warmup": "0",
        "--workload": "synthetic-uniform",
    }
    brought = {
        "D-5.3.2-open-loop",
        "D-5.6.2-workload",
        "D-5.8.2-workload",
        "D-5.9.2-workload",
        "D-4.5.1-volume",
    }
    for test in ("tradeoff", "fairness", "memory-pressure", "long-context"):
        assert not brought & foreseen(test, flags).keys()


def test_a_run_by_itself_is_a_test_of_ttft() -> None:
    """Its load is the one level; enough samples and all declarations make it as compliant as a test."""
    of = changed(
        perfect("ttft"),
        {"runs.0.summary.run.id": "run", "runs.0.summary.ttft_by_input": buckets((0, 10), (256, 10))},
    )
    summary = of.runs[0].summary
    statement = comply(of_run(summary))
    assert (statement.test, statement.label) == ("ttft", "unconditionally compliant")
    assert summary.metrics.ttft_ms is not None
    few = with_members(summary.metrics, ttft_ms=replace(summary.metrics.ttft_ms, n=9_999))
    (broken, *_) = comply(of_run(with_members(summary, metrics=few))).deviations
    assert (broken.rule.id, broken.run) == ("D-5.1.2-count-p999", "run")


def table(name: str, section: str, *rows: tuple[Cell, ...]) -> ReportedTable:
    """A table of as many columns as its rows have cells."""
    columns = tuple(Column("abc"[i], "") for i in range(len(rows[0])))
    return ReportedTable(name, "", section, columns, rows, (), capacity=False)


def as_shown(name: str, shown: ShownTable) -> ReportedTable:
    """The table whose evidence this is; where its cells are not known, as many rows of no matter what."""
    if not shown.cells:
        return table(name, shown.section, *[(1, 2)] * shown.rows)
    columns = tuple(Column(one, "") for one in shown.cells[0])
    rows = tuple(tuple(row.values()) for row in shown.cells)
    return ReportedTable(name, "", shown.section, columns, rows, (), capacity=False)


def with_cells(evidence: Evidence, document: ProcedureDocument) -> Evidence:
    """The evidence with all cells of its document's tables."""
    shown = evidence.shown
    assert shown is not None
    return replace(evidence, shown=replace(shown, tables=shown_in(document).tables))


def document_of(evidence: Evidence) -> ProcedureDocument:
    """The document of a test whose evidence this is."""
    shown, parameters = evidence.shown, evidence.parameters
    assert shown is not None
    assert parameters is not None
    return ProcedureDocument(
        TEST_SCHEMA,
        "0.1.0",
        evidence.test,
        "",
        "",
        "",
        started=None,
        ended=None,
        simulated=False,
        quick=False,
        ended_by=None,
        problem=None,
        parameters=parameters.model_dump(mode="json"),
        plan=resolved(evidence.plan),
        plan_hash=None,
        verdict=ProcedureVerdict("VALID", ()),
        compliance=None,
        switches=tuple(evidence.switches),
        runs=tuple(
            ProcedureRun(one.name, one.part, one.at, "", one.state, "VALID", None) for one in evidence.runs
        ),
        values=tuple(
            ReportedValue(name, "", value, "", None, None, capacity=False)
            for name, value in shown.numbers.items()
        ),
        tables=tuple(as_shown(name, one) for name, one in shown.tables.items()),
        figures=tuple(Figure(name, "", "cdf", Axis(""), Axis(""), ()) for name in shown.figures),
        notes=(),
        undecided=(),
    )


@pytest.mark.parametrize("test", ALONE)
def test_a_tests_document_with_its_runs_is_its_evidence(test: str) -> None:
    """Whatever was null in a table, and whatever was measured, is the same from the document."""
    whole = perfect(test)
    document = document_of(whole)
    summaries = {one.name: one.summary for one in whole.runs}
    found = of_test(document, summaries)
    assert found == with_cells(whole, document)
    assert found.shown is not None
    assert whole.shown is not None
    for name, shown in whole.shown.tables.items():
        assert (found.shown.tables[name].section, found.shown.tables[name].rows) == (
            shown.section,
            shown.rows,
        )
        assert not shown.cells or found.shown.tables[name].cells == shown.cells
    name, section = TABLES[test][0]
    lacking = with_members(document, tables=(table(name, section, (1, 2), (None, 2)),))
    left = of_test(lacking, summaries).shown
    assert left is not None
    assert left.tables[name].empty == ("a",)


def test_a_table_for_each_level_is_whole_if_each_of_them_is() -> None:
    """They share a name."""

    def empty(*cells: float | None) -> tuple[str, ...]:
        tables = tuple(table("ttft", "5.1.5.2", (cell,)) for cell in cells)
        return shown_in(with_members(document, tables=tables)).tables["ttft"].empty

    document = document_of(perfect("ttft"))
    assert empty(None, 1.0) == ("a",)
    assert empty(1.0, 2.0) == ()
