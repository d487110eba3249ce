"""The check of a run of tasks: that enough of its answers were judged.

With s successes and u answers that were not judged among n tasks that ended, the true share that succeeded lies between

    s / n  and  (s + u) / n,

since answers that nothing decided are no random choice: a judge may fail on the long ones, or on those that it dislikes. The
share that is reported leaves them out, its interval (measure/tasks.py) does not, and successes a second count them as none.
"""

from __future__ import annotations

from inferometer.documents.verdict import CheckStatus
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.record import Record
from inferometer.measure.stats import share_interval
from inferometer.measure.tasks import TaskGroup, TasksAccount
from inferometer.plan.schema import Plan

BENT_SHARE = 0.05
"""A figure that is off by more than a twentieth is another number."""


def task_results(plan: Plan, account: TasksAccount | None, record: Record) -> Check:
    """By how much more there could be successes; passes up to BENT_SHARE, and where both ends lie within the interval that the
    share of those judged has by chance, if no task was sent twice. A simulated engine's answers are filler, which is not
    judged; a system's are."""
    filler = record.simulated and not plan.compound
    if account is None or not account.all.ended or filler:
        return Check("task_results", "na", None, BENT_SHARE)
    every = account.all
    if not account.judged or every.succeeded is None or every.unjudged is None:
        return Check("task_results", "unsure", None, BENT_SHARE, facts={"of": "none"})
    facts: Facts = {"ended": every.ended, "succeeded": every.succeeded, "unjudged": every.unjudged}
    more = every.unjudged / max(every.succeeded, 1)
    status: CheckStatus = "pass" if enough_judged(every) else "unsure"
    return Check("task_results", status, more, BENT_SHARE, facts=facts)


def enough_judged(every: TaskGroup) -> bool:
    """Whether the answers were judged, up to what changes nothing that is said of the run; see task_results."""
    succeeded, unjudged, ended = every.succeeded, every.unjudged, every.ended
    if succeeded is None or unjudged is None:
        return False
    chance = share_interval(succeeded, ended - unjudged, None)
    inside = (
        chance is not None and chance[0] <= succeeded / ended and (succeeded + unjudged) / ended <= chance[1]
    )
    return unjudged <= BENT_SHARE * max(succeeded, 1) or inside
