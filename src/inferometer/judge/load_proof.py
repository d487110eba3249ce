"""Was each request of the plan sent, once, for its own instant? An exact proof, arrival by arrival.

The plan alone fixes when each request of an open loop is due: offsets o_1 <= ... <= o_n from the start of the measurement
(plan/arrivals.py). They are drawn anew here, from the plan, and held against the record. Every request there has the offset
d that it was given and the instant t on the run's clock at which it was due, whatever became of it.

| an arrival is | if                                                           | because                               |
| ------------- | ------------------------------------------------------------ | ------------------------------------- |
| missing       | its offset o is not among the d, as often as in the plan     | it was never sent                     |
| added         | its offset d is not among the o, as often as in the record   | it was sent twice, or not in the plan |
| moved         | t - d differs from the start that most of the requests have, | the schedule was shifted              |
|               | or of several hosts by more than their clocks are known to   |                                       |
| early         | it was taken up, or its first byte sent, before t            | it left before it was due             |

None of these may occur once. What is left is lateness, which is on record one by one, and which the check `lateness` limits.
So the process that the server met is the plan's, each arrival displaced by its own lateness, and no statistic of the gaps
(arrival.py) can add to that.

| load           | the plan's offsets                                                                                     |
| -------------- | ------------------------------------------------------------------------------------------------------ |
| by count       | n of them                                                                                              |
| by time        | those before the end                                                                                   |
| conversations  | of their first turns; by count, those of the conversations that the number of turns reaches            |
| trace          | the trace's, as they were written when it was surveyed; how many are due is known from the survey      |
| users, closed  | none: a request waits for an answer, so `users_held` and `concurrency_held` judge these                |

Whatever the load, no request is sent twice: one that is on record twice fails the check in any loop.
"""

from __future__ import annotations

import numpy as np

from inferometer.judge.verdict import Check
from inferometer.measure.measurement import Measurement
from inferometer.measure.record import Ints, Mask, Record
from inferometer.plan.arrivals import phase_instants
from inferometer.plan.schema import Plan
from inferometer.units import NS_PER_MS

ROUNDING_NS = 4
"""What putting an instant of one clock on another, and back, may round it by."""


def load_exact(plan: Plan, measurement: Measurement, record: Record) -> Check:
    """Arrivals that are missing, added, moved or early; none may be. Where the plan fixes no instants, requests that are on
    record twice; `na` without any.

    What died with a worker is left to `workers_alive`, and what a person's stop kept from being sent to `interrupted`.
    """
    rows = np.flatnonzero(record.measured & (record.turn == 0))
    if plan.load.model != "open" or not len(rows):
        return _no_instants(record)
    due = record.due_ns[rows]
    if not due.valid.all():  # a record of an earlier version
        return Check("load_exact", "na", None, 0.0, facts={"of": "unrecorded"})
    missing, added, planned = _compared(plan, measurement, record, due.values)
    added += _twice(record, record.measured & (record.turn > 0))
    if record.interrupted:
        missing = 0
    missing = max(0, missing - measurement.requests.unaccounted)
    moved = _moved(record, rows, due.values)
    early = int(_early(record, rows).sum())
    faults = missing + added + moved + early
    late = (_offered(record, rows) - record.t_intended[rows]) / NS_PER_MS
    facts = {
        "planned": planned,
        "arrivals": len(rows),
        "missing": missing,
        "added": added,
        "moved": moved,
        "early": early,
        "late_p50_ms": float(np.quantile(late, 0.5)),
        "late_p99_ms": float(np.quantile(late, 0.99)),
        "late_max_ms": float(late.max()),
        "overtaken": _overtaken(record, rows, due.values),
    }
    return Check("load_exact", "fail" if faults else "pass", float(faults), 0.0, facts=facts)


def _no_instants(record: Record) -> Check:
    if twice := _twice(record, record.measured):
        facts = {"of": "twice", "requests": int(record.measured.sum())}
        return Check("load_exact", "fail", float(twice), 0.0, facts=facts)
    return Check("load_exact", "na", None, 0.0)


def _twice(record: Record, of: Mask) -> int:
    """How many of these requests are on record once more: each has its row of the schedule, and the cycle of its sending."""
    index, cycle = record.index[of], record.cycle[of]
    order = np.lexsort((cycle, index))
    return int(((np.diff(index[order]) == 0) & (np.diff(cycle[order]) == 0)).sum())


def _moved(record: Record, rows: Ints, due: Ints) -> int:
    """Requests whose instant is not the plan's from the start that most of them have.

    Several hosts begin at one instant, each as its own clock shows it and then by its own rate. So each request is held to the
    start of its host, which follows the host's rate, to ROUNDING_NS; and each host's start to that of the others, to what is
    known of both clocks.
    """
    starts = record.t_intended[rows] - due
    if not record.hosts:
        return int((starts != _usual(starts)).sum())
    moved, begun = 0, list[tuple[int, int, int]]()  # of each host: its start, its bound, its requests
    for host in record.hosts:
        mine = host.of(record.worker[rows])
        if host.clock is None or not mine.any():
            continue
        own = starts[mine] - np.rint(host.clock.drift_ppm * 1e-6 * due[mine]).astype(np.int64)
        start = int(np.median(own))
        moved += int((np.abs(own - start) > ROUNDING_NS).sum())
        begun.append((start, host.clock.bound_ns, int(mine.sum())))
    if begun:
        first, known, _ = max(begun, key=lambda one: one[2])
        moved += sum(
            count for start, bound, count in begun if abs(start - first) > bound + known + ROUNDING_NS
        )
    return moved


def _compared(plan: Plan, measurement: Measurement, record: Record, due: Ints) -> tuple[int, int, int]:
    """How many arrivals are missing, how many were added, and how many the plan has."""
    if record.replay is not None:  # the survey counted the trace's; its instants are those on record
        rows = record.replay.rows
        return max(0, rows - len(due)), max(0, len(due) - rows), rows
    planned = phase_instants(plan.load, plan.workload.seed)
    behind = 0
    if measurement.conversations is not None and plan.load.requests is not None:
        # How many turns the conversations have is the workload's; a number of turns ends the last of them.
        sent = measurement.requests.sent + measurement.conversations.left_out
        behind = max(0, plan.load.requests - sent)
        reached = record.session[record.measured & (record.turn == 0)].values
        planned = planned[: int(reached.max()) + 1]
    if np.array_equal(planned, due) or np.array_equal(np.sort(planned), np.sort(due)):
        return behind, 0, len(planned)
    return _less(planned, due) + behind, _less(due, planned), len(planned)


def _less(of: Ints, other: Ints) -> int:
    """Size of the difference of two multisets: how many entries of `of` are left when those of `other` are taken out."""
    values, counts = np.unique(of, return_counts=True)
    others, other_counts = np.unique(other, return_counts=True)
    at = np.searchsorted(others, values)
    there = np.zeros(len(values), np.int64)
    inside = at < len(others)
    inside[inside] = others[at[inside]] == values[inside]
    there[inside] = other_counts[at[inside]]
    return int(np.maximum(counts - there, 0).sum())


def _usual(starts: Ints) -> int:
    """The start that most requests have."""
    values, counts = np.unique(starts, return_counts=True)
    return int(values[counts.argmax()])


def _early(record: Record, rows: Ints) -> Mask:
    """Taken up, or its first byte sent, before it was due."""
    sent = record.t_send[rows]
    early: Mask = record.t_taken[rows] < record.t_intended[rows]
    return early | (sent.valid & (sent.values < record.t_intended[rows]))


def _offered(record: Record, rows: Ints) -> Ints:
    """When each was offered: its first byte, or if none was sent, when it was taken up."""
    sent = record.t_send[rows]
    return np.where(sent.valid, sent.values, record.t_taken[rows])


def _overtaken(record: Record, rows: Ints, due: Ints) -> int:
    """Requests that left after one that was due later."""
    order = np.argsort(due, kind="stable")
    offered = _offered(record, rows)[order]
    return int((np.minimum.accumulate(offered[::-1])[::-1] < offered).sum())
