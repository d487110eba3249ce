"""How the tasks of a run went (draft 4.1.3): completed, succeeded, how long each took, and what its system did meanwhile.

A task is *completed* if its request succeeded (draft 4.2.6), and *succeeded* if it was completed, within the task's own time
limit if it has one, and its answer met its criterion. Answers that could not be judged are left out of the share: it is

    succeeded / (ended - unjudged)

They are no random choice, so its interval begins where it would with all of them as failures, and ends where it would with all
of them as successes. Requests of one task in several passes are not independent of each other: the task is its unit.
With x_i successes among n_i requests of task i, m tasks and p the share,

    variance = m / (m - 1) * sum((x_i - p * n_i)^2) / n^2,    effective number = p * (1 - p) / variance

and Wilson's interval is that of as many trials, at most n. This counts completion; it is no statement about accuracy (draft 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inferometer.journal.schema import Outcome
from inferometer.journal.tasks import FAILED, PASSED, STEP_KINDS, UNJUDGED, USAGE, exceeds
from inferometer.measure.record import Floats, Record
from inferometer.measure.record_columns import Ints
from inferometer.measure.samples import Samples
from inferometer.measure.stats import describe, share_interval
from inferometer.metrics.statistics import Interval, Stats

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class OfCriterion:
    """Answers by the kind of their criterion; `criterion` None: to be complete is enough."""

    criterion: str | None
    passed: int
    failed: int
    unjudged: int


@dataclass(frozen=True, slots=True)
class StepKind:
    """Steps of one kind. `steps`: of a task; `ms`: time of a task in which one at least ran; `share`: of the tasks' whole
    latency, over all tasks with a trace; None where one of them was over before a step of the kind was."""

    kind: str
    steps: Stats | None
    ms: Stats | None
    share: float | None


@dataclass(frozen=True, slots=True)
class Traced:
    """What the system's own spans say of the tasks of which there are any, and its usage of others, `by_usage` of them: how
    many steps and tokens, and nothing else. Tokens are those of all model steps of a task; `failed_steps` are those of a task,
    `resends` its requests inside that were sent once more; `completed_after_failure`: tasks that were completed though a step
    failed, since their system tried again or did without."""

    tasks: int
    spans: Stats | None
    kinds: tuple[StepKind, ...]
    model_input_tokens: Stats | None
    model_output_tokens: Stats | None
    failed_steps: Stats | None
    resends: Stats | None
    completed_after_failure: int
    by_usage: int = 0


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """The tasks of one class, or all. `different`: different tasks among them; `success`: see the module's head, with its 95 %
    interval, answers that could not be judged included; `latency_ms`: from the sending to the end of the answer, of those
    completed, `success_ms` of those that succeeded; `first_answer_ms`: to the first of the answer that a user sees."""

    name: str | None
    ended: int
    different: int | None
    completed: int
    succeeded: int | None
    unjudged: int | None
    timed_out: int
    success: float | None
    success_ci95: Interval | None
    latency_ms: Stats | None
    success_ms: Stats | None
    first_answer_ms: Stats | None


@dataclass(frozen=True, slots=True)
class TasksAccount:
    """All tasks of the measured phase. `judged`: answers were held to their criteria; False in a simulation, and where a run
    ended before. `retried`: sent again by the client since a connection was lost before anything was answered; no outcome makes
    it send a task again. `succeeded_s`: tasks that succeeded a second, over the whole run."""

    judged: bool
    all: TaskGroup
    retried: int
    succeeded_s: float | None
    by_criterion: tuple[OfCriterion, ...]
    by_class: tuple[TaskGroup, ...]
    traced: Traced | None


@dataclass(frozen=True, slots=True)
class _Rows:
    """Of each request of the measured phase that ended, in the record's order."""

    record: Ints
    completed: Mask
    late: Mask
    state: Sequence[str | None]
    task: Sequence[str | None]
    latency: Floats
    first_answer: Floats

    def success(self) -> Mask:
        passed = np.array([one == PASSED for one in self.state], dtype=bool)
        return passed & self.completed & ~self.late

    def undecided(self) -> Mask:
        unjudged = np.array([one in (UNJUDGED, None) for one in self.state], dtype=bool)
        return unjudged & self.completed & ~self.late


def tasks_account(record: Record, samples: Samples, judged: pa.Table | None) -> TasksAccount:
    """The account of a run of tasks. `judged`: tasks.arrow; None: no answer was judged."""
    table = {} if judged is None else judged.to_pydict()
    rows, found = _rows_of(record, samples, table)
    at = rows.record
    every = np.ones(len(at), dtype=bool)
    overall = _group(None, rows, every, judged is not None)
    span = float(record.t_end[at].max() - record.t_intended[at].min()) / 1e9 if len(at) else 0.0
    classes = [record.request_class.are(name)[at] for name in _class_names(record)]
    return TasksAccount(
        judged is not None,
        overall,
        int((record.attempts[at] > 1).sum()),
        overall.succeeded / span if overall.succeeded is not None and span > 0 else None,
        _by_criterion(table, found),
        tuple(
            _group(name, rows, mask, judged is not None)
            for name, mask in zip(_class_names(record), classes, strict=True)
            if mask.any()
        ),
        _traced(table, found, rows),
    )


def task_successes(record: Record, samples: Samples, judged: pa.Table) -> Floats:
    """Of each row of the record 1 if its task succeeded and 0 if not; NaN if that was not decided, or it has not ended."""
    rows, _ = _rows_of(record, samples, judged.to_pydict())
    found = np.full(len(record), np.nan)
    found[rows.record] = np.where(rows.undecided(), np.nan, rows.success())
    return found


def _rows_of(
    record: Record, samples: Samples, table: dict[str, list[Any]]
) -> tuple[_Rows, Sequence[int | None]]:
    """The requests that ended, and of each its row in the table of what was judged."""
    stopped = record.outcome.are(Outcome.CANCELLED) & record.interrupted  # by a person: these have not ended
    at = np.flatnonzero(record.measured & ~stopped)
    place = {
        key: row for row, key in enumerate(zip(table.get("index", ()), table.get("cycle", ()), strict=True))
    }
    found = [place.get((int(record.index[row]), int(record.cycle[row]))) for row in at]
    latency, first = _of_rows(record, samples, at, samples.e2e), _of_rows(record, samples, at, samples.ttfo)
    limits = np.array(
        [
            np.inf if one is None or table["timeout_ns"][one] is None else table["timeout_ns"][one] / 1e6
            for one in found
        ]
    )
    whole = (record.t_end[at] - record.t_submit[at].values) / 1e6
    rows = _Rows(
        at,
        record.ok[at],
        record.outcome.are(Outcome.TIMEOUT)[at] | (np.where(record.ok[at], whole, 0.0) > limits),
        [None if one is None else table["state"][one] for one in found],
        [None if one is None else table["task"][one] for one in found],
        latency,
        first,
    )
    return rows, found


def _class_names(record: Record) -> tuple[str, ...]:
    return tuple(record.request_class.names)


def _of_rows(record: Record, samples: Samples, at: Ints, values: Floats) -> Floats:
    """Values of samples, which are the requests that succeeded, by rows of the record; NaN elsewhere."""
    spread = np.full(len(record), np.nan)
    spread[samples.rows] = values
    return spread[at]


def _group(name: str | None, rows: _Rows, mask: Mask, judged: bool) -> TaskGroup:
    success, undecided = rows.success() & mask, rows.undecided() & mask
    counted = mask & ~undecided
    share = interval = None
    if judged and counted.any():
        share = float(success[counted].mean())
        interval = _interval(success[mask], undecided[mask], _named(rows.task, mask))
    names = set(_named(rows.task, mask))
    return TaskGroup(
        name,
        int(mask.sum()),
        len(names) if judged else None,
        int((rows.completed & mask).sum()),
        int(success.sum()) if judged else None,
        int(undecided.sum()) if judged else None,
        int((rows.late & mask).sum()),
        share,
        interval,
        describe(rows.latency[mask]),
        describe(rows.latency[success]) if judged else None,
        describe(rows.first_answer[mask]),
    )


def _interval(success: Mask, undecided: Mask, units: Sequence[object]) -> Interval:
    """From the low end with all that could not be judged as failures to the high end with all of it as successes."""
    worst, best = (
        share_interval(int(hits.sum()), len(hits), effective(hits, units))
        for hits in (success, success | undecided)
    )
    assert worst is not None
    assert best is not None
    return worst[0], best[1]


def _named(names: Sequence[str | None], mask: Mask) -> list[str | None]:
    return [name for name, there in zip(names, mask.tolist(), strict=True) if there]


def effective(hits: Mask, units: Sequence[object]) -> float:
    """How many independent trials these tell as much as, where those of one unit may be alike: see the module's head."""
    n = len(hits)
    _, group = np.unique([str(one) for one in units], return_inverse=True)
    m = int(group.max()) + 1
    if m == n:
        return float(n)
    share = float(hits.mean())
    if share in (0.0, 1.0) or m == 1:
        return float(m)
    excess = np.bincount(group, weights=hits - share)
    variance = m / (m - 1) * float((excess**2).sum()) / n**2
    return min(float(n), share * (1 - share) / variance) if variance > 0 else float(n)


def _by_criterion(table: dict[str, list[object]], found: Sequence[int | None]) -> tuple[OfCriterion, ...]:
    counts: dict[str | None, dict[str, int]] = {}
    for row in found:
        if row is not None:
            kind, state = table["criterion"][row], str(table["state"][row])
            of = counts.setdefault(None if kind is None else str(kind), {PASSED: 0, FAILED: 0, UNJUDGED: 0})
            of[state] += 1
    ordered = sorted(counts, key=lambda kind: (kind is None, kind or ""))
    return tuple(
        OfCriterion(kind, counts[kind][PASSED], counts[kind][FAILED], counts[kind][UNJUDGED])
        for kind in ordered
    )


def _traced(table: dict[str, list[object]], found: Sequence[int | None], rows: _Rows) -> Traced | None:
    at = [
        place for place, row in enumerate(found) if row is not None and table["steps_from"][row] is not None
    ]
    if not at:
        return None

    def column(name: str) -> Floats:
        values = [table[name][found[place]] for place in at]  # type: ignore[index] # only those that are found
        return np.array([np.nan if one is None else float(one) for one in values])  # type: ignore[arg-type] # numbers

    latency = rows.latency[at]
    known = ~np.isnan(latency)
    kinds = []
    for kind in STEP_KINDS:
        ms, end_ns = column(f"{kind}_ns") / 1e6, column(f"{kind}_end_ns")
        end_ns = np.where(np.isnan(end_ns), ms * 1e6, end_ns)  # an earlier version has no ends
        timed = known & ~np.isnan(ms)
        whole = float(latency[timed].sum())
        beyond = any(exceeds(*one) for one in zip(end_ns[timed], latency[timed] * 1e6, strict=True))
        share = float(ms[timed].sum()) / whole if whole > 0 and not beyond else None
        kinds.append(StepKind(kind, describe(column(f"{kind}_steps")), describe(ms), share))
    return Traced(
        len(at),
        describe(column("spans")),
        tuple(kinds),
        describe(column("model_input_tokens")),
        describe(column("model_output_tokens")),
        describe(column("failed_steps")),
        describe(column("resends")),
        int(((column("failed_steps") > 0) & rows.completed[at]).sum()),
        sum(table["steps_from"][found[place]] == USAGE for place in at),  # type: ignore[index] # only those that are found
    )
