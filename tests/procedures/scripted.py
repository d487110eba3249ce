"""A procedure played on a script: a function from a step to its outcome takes the place of a system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inferometer.documents.summary import Summary
from inferometer.errors import PlanError
from inferometer.procedures.step import (
    Measured,
    Performed,
    PerformedRun,
    Refused,
    RefusedRun,
    Run,
    Step,
    Steps,
    Switched,
)

Answer = Callable[[Step], Summary | Switched | PlanError]


def played(steps: Steps, answer: Answer, most: int = 200) -> list[Performed]:
    """A procedure's steps, each answered by a function: a summary, a Switched, or a PlanError that is thrown into it."""
    done: list[Performed] = []
    came: Any = None
    for number in range(most):
        try:
            step = steps.throw(came) if isinstance(came, PlanError) else steps.send(came)
        except StopIteration:
            return done
        came = answer(step)
        if isinstance(came, PlanError):
            assert isinstance(step, Run)
            done.append(RefusedRun(step, Refused(str(came))))
        elif isinstance(step, Run):
            assert isinstance(came, Summary)
            came = Measured(f"run-{number}", came)
            done.append(PerformedRun(step, came))
        else:
            done.append(Performed(step, came))
    raise AssertionError(f"a procedure without end: {most} steps")
