"""The document of a test, out of its steps and results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from inferometer.documents.campaign import (
    ProcedureDocument,
    ProcedureRun,
    RefusedStep,
    ReportedTable,
    ReportedValue,
    StateSwitch,
)
from inferometer.documents.note import Note, WordedNote
from inferometer.documents.results import Cell, Figure, Series
from inferometer.judge.compliance.evidence import MeasuredRun
from inferometer.judge.procedure_verdict import verdict_of_test
from inferometer.metrics.statistics import RoughPercentile
from inferometer.procedures.results import NO_HEADLINE, Results, Table, Value
from inferometer.procedures.step import Performed, PerformedRun, Refused, Run, Switch, Switched, is_run
from inferometer.report.campaign.notes import with_words, worded
from inferometer.report.campaign.titles import headline_of
from inferometer.report.campaign.verdict import verdict_document


def with_results(
    document: ProcedureDocument, measured: Sequence[MeasuredRun], results: Results
) -> ProcedureDocument:
    """A test's document with what its runs came to, and the verdict on that."""
    found = values(results)
    headline = headline_of(document.test, found)
    undecided = results.undecided
    if headline is None and document.problem is None and not undecided:
        undecided = (NO_HEADLINE,)
    judgement = verdict_of_test(document.test, measured, document.problem, undecided, headline)
    return replace(
        document,
        verdict=verdict_document(judgement),
        values=found,
        tables=tables(results),
        figures=figures(results),
        notes=notes(results.notes),
        undecided=notes(undecided),
    )


def switches(done: Sequence[Performed]) -> tuple[StateSwitch, ...]:
    """The states that the system was brought into, in their order."""
    return tuple(
        StateSwitch(
            one.step.what,
            one.step.state,
            one.outcome.status,
            one.outcome.how,
            one.outcome.evidence,
            one.outcome.seconds,
            before,
        )
        for before, one in _counted(done)
        if isinstance(one.step, Switch) and isinstance(one.outcome, Switched)
    )


def refused(done: Sequence[Performed]) -> tuple[RefusedStep, ...]:
    """The steps that could not be carried out, in their order."""
    return tuple(
        RefusedStep(one.step.part, one.step.at, None, None, one.outcome.why, before)
        if isinstance(one.step, Run)
        else RefusedStep(None, None, one.step.what, one.step.state, one.outcome.why, before)
        for before, one in _counted(done)
        if isinstance(one.outcome, Refused)
    )


def _counted(done: Sequence[Performed]) -> Iterable[tuple[int, Performed]]:
    """What was done, each with the number of runs before it."""
    before = 0
    for one in done:
        yield before, one
        before += is_run(one)


def measured_run(done: PerformedRun, state: Mapping[str, str]) -> ProcedureRun:
    """A run of the test. `state`: of the system, by what was switched."""
    step, measured = done.step, done.outcome
    return ProcedureRun(
        run=measured.run,
        part=step.part,
        at=step.at,
        why=worded(step.why),
        state=state,
        verdict=measured.summary.verdict.status,
        fingerprint=measured.summary.workload.fingerprint,
    )


def values(results: Results) -> tuple[ReportedValue, ...]:
    """The test's values, with their notes in words."""
    return tuple(map(_value, results.values))


def tables(results: Results) -> tuple[ReportedTable, ...]:
    """The test's tables, with their notes in words."""
    return tuple(map(_table, results.tables))


def notes(given: Iterable[Note]) -> tuple[WordedNote, ...]:
    """Notes with their sentences."""
    return tuple(map(with_words, given))


def _value(value: Value) -> ReportedValue:
    note = None if value.note is None else with_words(value.note)
    return ReportedValue(
        value.name,
        value.label,
        _plain(value.value),
        value.unit,
        value.ci,
        note,
        value.capacity,
        value.at,
        isinstance(value.value, RoughPercentile),
    )


def _table(table: Table) -> ReportedTable:
    worded_notes = tuple(map(with_words, table.notes))
    return ReportedTable(
        table.name,
        table.title,
        table.section,
        table.columns,
        tuple(tuple(map(_plain, row)) for row in table.rows),
        worded_notes,
        table.capacity,
        table.at,
        tuple(
            (at, column)
            for at, row in enumerate(table.rows)
            for column, cell in enumerate(row)
            if isinstance(cell, RoughPercentile)
        ),
    )


def figures(results: Results) -> tuple[Figure, ...]:
    """The figures, with the points marked that are percentiles of too few samples."""
    return tuple(replace(one, series=tuple(map(_series, one.series))) for one in results.figures)


def _series(series: Series) -> Series:
    rough = tuple(at for at, value in enumerate(series.y) if isinstance(value, RoughPercentile))
    plain = tuple(None if value is None else float(value) for value in series.y)
    return replace(series, y=plain, few=rough)


def _plain(cell: Cell) -> Cell:
    return float(cell) if isinstance(cell, float) else cell
