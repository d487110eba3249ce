"""How what a test shows is held against its runs: columns and values that must be there, and cells that must be right.

A cell is right if some run of the test measured it: for each row of a table there is one run that has all the figures of the
row. A derived value is right if it follows from the cells beside it by the draft's formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from inferometer.documents.results import Cell
from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    note,
    satisfied,
    violated,
)
from inferometer.metrics.statistics import Stats

Figure = Callable[[MeasuredRun], float | None]
"""A figure of a run; None: not measured."""
TOLERANCE = 1e-6
"""Two computations of one figure differ by rounding, and by no more."""


def equal(a: float | None, b: float | None) -> bool:
    """Whether two figures are the same, null included."""
    if a is None or b is None:
        return a is b
    return math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-9)


def number(cell: Cell) -> float | None:
    """A cell's number; None: it holds none."""
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None


def columns(name: str, *wanted: str, blank: bool = False) -> RuleCheck:
    """A table (or several, of which one is of each level) has these columns, each with a cell in every row. `blank`: null says
    that a system did not tell, and is a cell too."""

    def check(evidence: Evidence) -> Ruling | None:
        if evidence.shown is None:
            return None
        rows = evidence.shown.rows(name)
        if not rows:
            return violated(note("no_table", table=name, sections=()))
        missing = tuple(
            column
            for column in wanted
            if any(column not in row or (row[column] is None and not blank) for row in rows)
        )
        if missing:
            return violated(note("empty_columns", table=name, columns=missing))
        return satisfied(note("columns", table=name, columns=wanted))

    return check


def right(name: str, **figures: Figure) -> RuleCheck:
    """A table has these columns, and for each row there is one run with these figures."""
    there = columns(name, *figures)

    def check(evidence: Evidence) -> Ruling | None:
        ruling = there(evidence)
        if ruling is None or ruling.state != "satisfied" or evidence.shown is None:
            return ruling
        for i, row in enumerate(evidence.shown.rows(name), 1):
            if not any(_matches(row, figures, run) for run in evidence.runs):
                return violated(note("cells_of_no_run", table=name, row=i, columns=tuple(figures)))
        return satisfied(note("cells_of_runs", table=name, columns=tuple(figures)))

    return check


def _matches(row: Mapping[str, Cell], figures: Mapping[str, Figure], run: MeasuredRun) -> bool:
    return all(equal(number(row[column]), figure(run)) for column, figure in figures.items())


def measured(*patterns: str) -> RuleCheck:
    """Values of these names, or of names like these (`inflation_*`), are there and were measured."""

    def check(evidence: Evidence) -> Ruling | None:
        if evidence.shown is None:
            return None
        shown = evidence.shown.values
        found = {pattern: fitting(shown, pattern) for pattern in patterns}
        missing = tuple(
            name for pattern, names in found.items() for name in (names or [pattern]) if not shown.get(name)
        )
        if missing:
            return violated(note("not_measured", names=missing))
        return satisfied(note("values", names=tuple(name for names in found.values() for name in names)))

    return check


def fitting(names: Iterable[str], pattern: str) -> list[str]:
    """The names that are like a pattern."""
    return [name for name in names if fnmatchcase(name, pattern)]


def follows(name: str, formula: Callable[[Evidence], float | None]) -> RuleCheck:
    """A value was measured and is what the formula gives; where that gives nothing, it is left at having been measured."""
    there = measured(name)

    def check(evidence: Evidence) -> Ruling | None:
        ruling = there(evidence)
        if ruling is None or ruling.state != "satisfied" or evidence.shown is None:
            return ruling
        expected, value = formula(evidence), number(evidence.shown.numbers[name])
        if expected is None or equal(value, expected):
            return ruling
        return violated(note("does_not_follow", capacity=True, value=name, shown=value, expected=expected))

    return check


# Figures of runs, in the units of the tables.


def latency(metric: str, statistic: str) -> Figure:
    """A statistic of a latency in ms."""

    def figure(run: MeasuredRun) -> float | None:
        stats: Stats | None = getattr(run.summary.metrics, f"{metric}_ms")
        value: float | None = getattr(stats, statistic, None)
        return value

    return figure


def latencies(metrics: Sequence[str], statistics: Sequence[str]) -> dict[str, Figure]:
    """Columns such as `ttft_p50`, in the spelling of procedures/."""
    return {f"{metric}_{name}": latency(metric, name) for metric in metrics for name in statistics}


def output_tok_s(run: MeasuredRun) -> float | None:
    """Output tokens per second over the steady span."""
    return run.summary.throughput.output_tok_s


def success(run: MeasuredRun) -> float | None:
    """Requests that succeeded of those that ended, in per cent."""
    share = run.summary.success_rate.value
    return None if share is None else 100.0 * share


def rate(run: MeasuredRun) -> float | None:
    """The rate that was asked for, in requests per second."""
    return run.at.rate


def concurrency(run: MeasuredRun) -> float | None:
    """Requests in flight that were asked for."""
    return run.at.concurrency


def context(run: MeasuredRun) -> float | None:
    """Tokens of a prompt that were asked for."""
    return run.at.context


def change(before: float | None, after: float | None) -> float | None:
    """By how much it grew, in per cent of what it was."""
    return None if after is None or not before else 100.0 * (after - before) / before
