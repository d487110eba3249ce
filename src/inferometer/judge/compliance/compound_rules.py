"""Checks of a compound system's tests (draft 4.1.3): that it is given tasks, and what belongs inside its boundary. Its own
spans or usage tell of parts of it, where they were read; a client sees no others."""

from __future__ import annotations

from inferometer.judge.compliance.evidence import (
    Evidence,
    MeasuredRun,
    RuleCheck,
    Ruling,
    not_applicable,
    note,
    satisfied,
    unknown,
    violated,
)
from inferometer.judge.task_checks import enough_judged

COMPOUND_STEPS = ("tool", "retrieval", "rerank")
"""Steps that neither an engine nor a gateway has."""


def tasks(evidence: Evidence) -> Ruling | None:
    """Draft 4.1.3: what loads a compound system is a task driver, which measures end-to-end task completion."""
    if evidence.system.boundary != "compound":
        return not_applicable(note("not_a_compound"))
    if not evidence.runs:
        return None
    for run in evidence.runs:
        account = run.summary.tasks
        if account is None:
            return violated(note("no_tasks"), run.name)
        if not account.judged:
            return unknown(note("tasks_not_judged"), run.name)
        if account.all.success is None:
            return unknown(note("no_task_decided"), run.name)
        if not enough_judged(account.all):
            words = note("too_few_judged", ended=account.all.ended, unjudged=account.all.unjudged)
            return unknown(words, run.name)
    accounts = [run.summary.tasks.all for run in evidence.runs if run.summary.tasks is not None]
    return satisfied(note("tasks_completed", ended=sum(one.ended for one in accounts)))


def included(evidence: Evidence) -> Ruling | None:
    """Draft 4.1.3: a compound system holds retrieval, tools and orchestration besides the gateway; the others do not."""
    boundary = evidence.system.boundary
    if not evidence.runs:
        return None
    seen = {
        kind: run for run in reversed(evidence.runs) for kind in steps_seen(run) if kind in COMPOUND_STEPS
    }
    parts = tuple(kind for kind in COMPOUND_STEPS if kind in seen)
    if boundary != "compound":
        if parts and boundary is not None:
            return violated(note("compound_inside", boundary=boundary, parts=parts), seen[parts[0]].name)
        return not_applicable(note("not_a_compound"))
    if parts:
        return satisfied(note("compound_parts", parts=parts))
    return unknown(note("compound_parts_unseen"))


def steps_seen(run: MeasuredRun) -> tuple[str, ...]:
    """The kinds of steps that the system's own spans or usage tell of."""
    account = run.summary.tasks
    if account is None or account.traced is None:
        return ()
    return tuple(one.kind for one in account.traced.kinds if one.steps is not None and one.steps.max)


CHECKS: dict[str, RuleCheck] = {
    "D-4.1.3-included": included,
    "D-4.1.3-task": tasks,
}
