"""The checks of recorded agent sessions: that each step was sent, when it was due, with what it repeats, and with a cache as it
was declared.

| check             | holds                                      | to                                                          |
| ----------------- | ------------------------------------------ | ----------------------------------------------------------- |
| `session_steps`   | the steps that have a row                  | those whose predecessors succeeded, before the load's end   |
| `session_gaps`    | t_intended, t_taken and t_submit of a step | the ends of its predecessors in the record, and its delay   |
| `session_context` | the CRC-32 of what a request sent          | the body put together anew (measure/sent_bodies.py)         |
| `session_ends`    | the durations of sessions that finished    | those of all that were begun (measure/session_survival.py)  |
| `session_cache`   | the cached tokens that the server reports  | what each step repeats, and the cache that was declared     |

All are about agent sessions; the third also about conversations of several turns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.documents.verdict import CheckStatus
from inferometer.judge.cache import CACHE_SHARE, WARM_SHARE
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.agent_sessions import AgentSessions
from inferometer.measure.record import Floats, Ints, Mask, Record
from inferometer.measure.sent_bodies import SentBodies
from inferometer.measure.session_steps import SessionRuns
from inferometer.measure.session_survival import survival
from inferometer.plan.schema import Plan
from inferometer.units import NS_PER_MS, NS_PER_S

ROUNDING_NS = 4
"""What putting an instant of one clock on another, and back, may round it by."""
BENT_SHARE = 0.05
"""A figure that is off by more than a twentieth is another number."""
END_NS = 1_000_000
"""A worker takes the load's end from its own clock and its own first request: so near to it a step may be left out or not."""


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    """What a run left of its sessions. `runs`, `measured`: None where it had no recorded agent sessions; `bodies`: None where
    nothing on record says what was sent."""

    runs: SessionRuns | None = None
    measured: AgentSessions | None = None
    bodies: SentBodies | None = None


NO_SESSIONS = SessionEvidence()


def session_steps(plan: Plan, evidence: SessionEvidence) -> Check:
    """Steps that should have been sent and were not, that were sent twice, or although one before them had not succeeded.

    What died with a worker is left to `workers_alive`, and what a person's stop kept from being sent to `interrupted`.
    """
    runs = evidence.runs
    if runs is None or not len(runs):
        return Check("session_steps", "na", None, 0.0)
    dead = np.isin(_worker(runs), [death.worker for death in runs.record.deaths])
    due = runs.due_ns
    in_time = due < _end_ns(plan, runs)
    missing = runs.ready & ~runs.sent & in_time & ~dead
    early = runs.sent & ~runs.ready & ~dead
    cut = runs.ready & ~runs.sent & ~in_time
    ended = ~runs.sent & (cut | runs.behind(cut))
    faults = int(missing.sum()) + int(early.sum()) + runs.twice
    facts: Facts = {
        "sessions": len(runs),
        "planned": len(runs.row),
        "sent": int(runs.sent.sum()),
        "skipped": int(runs.skipped.sum()) or None,
        "ended": int((ended & ~runs.skipped).sum()) or None,
        "missing": int(missing.sum()) or None,
        "unready": int(early.sum()) or None,
        "twice": runs.twice or None,
        "where": runs.where(missing) or runs.where(early),
    }
    return Check("session_steps", "fail" if faults else "pass", float(faults), 0.0, facts=facts)


def _worker(runs: SessionRuns) -> Ints:
    """The worker of each entry's session, by those of its steps that have a row."""
    workers = np.full(len(runs), -1, np.int64)
    workers[runs.run[runs.sent]] = runs.record.worker[runs.row[runs.sent]]
    return workers[runs.run]


def _end_ns(plan: Plan, runs: SessionRuns) -> Ints:
    """Of each entry, from when on its worker may have left it out: the load was over, or a person had ended it."""
    record, workers = runs.record, _worker(runs)
    ends = np.full(len(runs.row), np.iinfo(np.int64).max)
    mine, all_workers = record.measured, record.worker[record.measured]
    intended = record.t_intended[mine]
    due = record.due_ns[mine]
    begun = int((intended - due.values)[due.valid].min()) if due.valid.any() else None
    for worker in np.unique(all_workers).tolist():
        own, entries = intended[all_workers == worker], workers == worker
        if plan.load.duration_s is not None:
            start = int(own.min()) if begun is None else begun
            ends[entries] = start + round(plan.load.duration_s * NS_PER_S) - END_NS
        if record.interrupted:
            ends[entries] = np.minimum(ends[entries], int(own.max()))
    return ends


def session_gaps(evidence: SessionEvidence) -> Check:
    """Steps whose due instant is not the end of what they waited for plus their delay, or that left before it.

    Lateness behind that instant is the matter of `lateness`, for steps as for arrivals; the facts have its distribution.
    """
    runs = evidence.runs
    if runs is None:
        return Check("session_gaps", "na", None, 0.0)
    first = runs.graph.step[runs.place] == 0
    judged = runs.sent & runs.ready & (runs.due_ns >= 0) & ~first
    if not judged.any():
        return Check("session_gaps", "na", None, 0.0)
    record, rows = runs.record, runs.row[judged]
    off = record.t_intended[rows] - runs.due_ns[judged]
    moved = np.abs(off) > _tolerance(runs, judged)
    early = _early(record, rows)
    wrong = np.zeros(len(runs.row), np.bool_)
    wrong[judged] = moved | early
    late = _lateness_ms(record, rows)
    facts: Facts = {
        "steps": len(rows),
        "sooner": int((moved & (off < 0)).sum()) or None,
        "later": int((moved & (off > 0)).sum()) or None,
        "early": int(early.sum()) or None,
        "worst_ms": float(np.abs(off[moved]).max()) / NS_PER_MS if moved.any() else None,
        "where": runs.where(wrong),
    }
    if len(late):
        facts |= {"late_p50_ms": float(np.quantile(late, 0.5)), "late_p99_ms": float(np.quantile(late, 0.99))}
    faults = int(wrong.sum())
    return Check("session_gaps", "fail" if faults else "pass", float(faults), 0.0, facts=facts)


def _tolerance(runs: SessionRuns, judged: Mask) -> Ints:
    """How far an instant may be off: by rounding, and on a load host by what its clock's rate makes of the time since the step
    before was due, since every row is moved by what its clock was off at its own `t_intended` (cluster/merging.py)."""
    allowed = np.full(int(judged.sum()), ROUNDING_NS, np.int64)
    if not runs.record.hosts:
        return allowed
    last = runs.last_before[judged]
    before = runs.record.t_intended[runs.row[last]]
    since = np.where(last >= 0, runs.due_ns[judged] - before, runs.graph.think_ns[runs.place[judged]])
    workers = runs.record.worker[runs.row[judged]]
    for host in runs.record.hosts:
        if host.clock is not None:
            mine = host.of(workers)
            allowed[mine] += np.ceil(np.abs(host.clock.drift_ppm) * 1e-6 * since[mine]).astype(np.int64)
    return allowed


def _early(record: Record, rows: Ints) -> Mask:
    """Taken up, or its first or last byte sent, before it was due."""
    intended = record.t_intended[rows]
    found: Mask = record.t_taken[rows] < intended
    for column in (record.t_send[rows], record.t_submit[rows]):
        found |= column.valid & (column.values < intended)
    return found


def _lateness_ms(record: Record, rows: Ints) -> Floats:
    submitted = record.t_submit[rows]
    late: Floats = (submitted.values - record.t_intended[rows])[submitted.valid] / NS_PER_MS
    return late


def session_context(evidence: SessionEvidence) -> Check:
    """Requests whose body, put together anew from schedule and record, is not the one that was sent."""
    bodies, runs = evidence.bodies, evidence.runs
    if bodies is None:
        if runs is None or not runs.sent.any() or runs.record.simulated:
            return Check("session_context", "na", None, 0.0)
        return Check("session_context", "unsure", None, 0.0, facts={"of": "unrecorded"})
    unchecked = sum(bodies.unchecked.values())
    facts: Facts = {
        "compared": bodies.compared,
        "continued": bodies.continued,
        "unchecked": unchecked or None,
        "why": dict(bodies.unchecked) or None,
        "row": bodies.first,
    }
    if bodies.wrong:
        facts["where"] = _where(runs, bodies.first)
        return Check("session_context", "fail", float(bodies.wrong), 0.0, facts=facts)
    if unchecked and not bodies.continued:
        return Check("session_context", "note", float(unchecked), 0.0, facts=facts | {"of": "unchecked"})
    return Check("session_context", "pass", 0.0, 0.0, facts=facts)


def _where(runs: SessionRuns | None, row: int | None) -> str | None:
    if runs is None or row is None:
        return None
    places = np.flatnonzero(runs.graph.index == row)
    return runs.graph.name(int(places[0])) if len(places) else None


def session_ends(evidence: SessionEvidence) -> Check:
    """Whether sessions that broke off, or that the end of the load cut short, would have lasted longer than the finished ones,
    of which all figures of sessions are."""
    runs = evidence.runs
    if runs is None or not len(runs):
        return Check("session_ends", "na", None, BENT_SHARE)
    found = survival(runs)
    if found is None:
        status: CheckStatus = "pass" if runs.ok.all() else "na"
        return Check("session_ends", status, None if status == "na" else 0.0, BENT_SHARE)
    facts: Facts = {
        "point": found.point,
        "stated_ms": found.stated_ms,
        "with_ms": found.ms,
        "finished": found.finished,
        "unfinished": found.unfinished,
    }
    status = "pass" if found.share <= BENT_SHARE else "unsure"
    return Check("session_ends", status, found.share, BENT_SHARE, facts=facts)


def session_cache(plan: Plan, evidence: SessionEvidence) -> Check:
    """What the server took from its prefix cache of what each session had computed before, where the plan says what to expect.

    | declared                   | held to, of the best possible (measure/kv_reuse.py)                 | otherwise |
    | -------------------------- | ------------------------------------------------------------------- | --------- |
    | cache warm                 | at least WARM_SHARE; with repeatable prompts the same share of the  | fail      |
    |                            | prompts of steps that go on with none                               |           |
    | prefix caching disabled    | at most CACHE_SHARE                                                 | fail      |
    | prefix caching enabled     | at least CACHE_SHARE                                                | unsure    |
    """
    measured = evidence.measured
    declared = _declared(plan)
    if evidence.runs is None or measured is None or declared is None:
        return Check("session_cache", "na", None, None)
    tokens = measured.reused_tokens
    limit = WARM_SHARE if declared == "warm" else CACHE_SHARE
    if tokens is None or tokens.best <= 0:
        return Check("session_cache", "note" if tokens is None else "na", None, limit, facts={"of": "untold"})
    share = tokens.found / tokens.best
    facts: Facts = {"of": declared, "best": tokens.best, "found": tokens.found}
    if declared == "disabled":
        return Check("session_cache", "pass" if share <= limit else "fail", share, limit, facts=facts)
    if share < limit:
        return Check("session_cache", "fail" if declared == "warm" else "unsure", share, limit, facts=facts)
    if declared == "warm" and plan.workload.repeatable_prompts and tokens.first_prompt > 0:
        first = tokens.first_cached / tokens.first_prompt
        if first < limit:
            return Check("session_cache", "fail", first, limit, facts=facts | {"of": "first"})
    return Check("session_cache", "pass", share, limit, facts=facts)


def _declared(plan: Plan) -> str | None:
    """What the plan says of the cache that the server's own word can be held to. One called warm is there, whatever else."""
    return "warm" if plan.sut.cache_state == "warm" else plan.sut.prefix_caching
