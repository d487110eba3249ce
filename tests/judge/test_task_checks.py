"""The check of a run of tasks: unjudged answers may not hide what the share that succeeded is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.judge.compliance.compound_rules import tasks
from inferometer.judge.task_checks import BENT_SHARE, task_results
from inferometer.judge.verdict import Check
from inferometer.measure.stats import share_interval
from inferometer.measure.tasks import TaskGroup, TasksAccount
from inferometer.plan.schema import Plan


def account(succeeded: int, failed: int, unjudged: int) -> TasksAccount:
    """Of different tasks that all were completed."""
    judged = succeeded + failed
    ended = judged + unjudged
    ends = [share_interval(good, ended, ended) for good in (succeeded, succeeded + unjudged)]
    interval = (ends[0][0], ends[1][1]) if judged and ends[0] and ends[1] else None
    share = succeeded / judged if judged else None
    every = TaskGroup(None, ended, ended, ended, succeeded, unjudged, 0, share, interval, None, None, None)
    return TasksAccount(True, every, 0, None, (), (), None)


def checked(found: TasksAccount | None, *, simulated: bool = False, boundary: str = "compound") -> Check:
    record: Any = SimpleNamespace(simulated=simulated)
    return task_results(Plan.model_validate({"sut": {"boundary": boundary}}), found, record)


@given(st.integers(0, 2_000), st.integers(0, 2_000), st.integers(0, 500))
def test_what_passes_is_known_to_a_twentieth_or_to_chance(succeeded: int, failed: int, unjudged: int) -> None:
    """Law: however the unjudged ones would have been judged, successes are those counted to BENT_SHARE, or the share lies in
    the interval that those judged have by chance; and where all are judged, it passes."""
    found = account(succeeded, failed, unjudged)
    check = checked(found)
    if not found.all.ended:
        assert check.status == "na"
    elif check.status == "pass":
        chance, ended = share_interval(succeeded, succeeded + failed, None), found.all.ended
        known = unjudged <= BENT_SHARE * max(succeeded, 1)
        assert known or (
            chance is not None
            and chance[0] <= succeeded / ended
            and (succeeded + unjudged) / ended <= chance[1]
        )
    else:
        assert (check.status, unjudged > 0) == ("unsure", True)


def test_more_unjudged_answers_never_make_it_pass() -> None:
    """Law: of one run, the status turns from pass to unsure once."""
    statuses = [checked(account(900 - n // 2, 100 - (n - n // 2), n)).status for n in range(0, 100, 5)]
    assert statuses == sorted(statuses)
    assert {"pass", "unsure"} == set(statuses)


@pytest.mark.parametrize(
    ("simulated", "boundary", "status"),
    [
        (False, "engine", "unsure"),
        (False, "compound", "unsure"),
        (True, "compound", "unsure"),
        (True, "engine", "na"),
    ],
)
def test_answers_that_were_never_judged_are_no_result(simulated: bool, boundary: str, status: str) -> None:
    """Law: unsure, but for an engine's filler; a run without tasks has nothing to judge."""
    found = replace(account(0, 0, 9), judged=False)
    assert checked(found, simulated=simulated, boundary=boundary).status == status
    assert checked(None).status == "na"


@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_a_task_driver_that_leaves_answers_unjudged_is_not_known_to_be_one(
    succeeded: int, failed: int, unjudged: int
) -> None:
    """Law: draft 4.1.3 has completion measured, so the rule is kept just where `task_results` passes; of a test too, whose
    verdict does not look at it."""
    found = account(succeeded, failed, unjudged)
    run: Any = SimpleNamespace(name="level", summary=SimpleNamespace(tasks=found))
    evidence: Any = SimpleNamespace(system=SimpleNamespace(boundary="compound"), runs=(run,))
    ruling = tasks(evidence)
    assert ruling is not None
    kept = checked(found).status == "pass" and found.all.success is not None
    assert ruling.state == ("satisfied" if kept else "unknown")
