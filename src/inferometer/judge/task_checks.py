"""The check of a run of tasks: that enough of its answers were judged.

With s successes and u answers that were not judged among n tasks that ended, the true share that succeeded lies between

    s / n  and  (s + u) / n,

since answers that nothing decided are no random choice: a judge may fail on the long ones, or on those that it dislikes. The
share that is reported leaves them out, its interval (measure/tasks.py) does not, and successes a second count them as none.
"""

from __future__ import annotations

from inferometer.judge.verdict import Check, Facts
from inferometer.measure.record import Record
from inferometer.measure.stats import share_interval
from inferometer.measure.tasks import TasksAccount
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
    succeeded, unjudged, ended = every.succeeded, every.unjudged, every.ended
    facts: Facts = {"ended": ended, "succeeded": succeeded, "unjudged": unjudged}
    more = unjudged / max(succeeded, 1)
    chance = share_interval(succeeded, ended - unjudged, None)
    inside = (
        chance is not None and chance[0] <= succeeded / ended and (succeeded + unjudged) / ended <= chance[1]
    )
    passed = more <= BENT_SHARE or inside
    return Check("task_results", "pass" if passed else "unsure", more, BENT_SHARE, facts=facts)
