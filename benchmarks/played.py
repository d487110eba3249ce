"""A test of the draft carried out on a simulated engine, run by run, in virtual time; nothing stays on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inferometer.documents.summary import Summary
from inferometer.drive.progress_counters import Progress
from inferometer.errors import CannotSwitch, PlanError
from inferometer.journal.schema import Phase
from inferometer.plan.schema import Plan
from inferometer.procedures.step import Measured, Performed, PerformedRun, Refused, RefusedRun, Run, Steps
from inferometer.run.evaluate import RunResult
from inferometer.simulation.engine import Chosen, choose
from inferometer.studies.stand import Virtual

CAPACITY = {
    "tiny-cpu": 90.37,
    "testbed": 10.18,
    "a100-8b": 16.25,
    "h100-70b-tp4": 18.20,
    "m4-laptop-8b": 0.2034,
}
"""Requests of the default workload per second that a preset sustains, by `python -m benchmarks maximum`."""


class Silent:
    """A Ui that says nothing."""

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


def measured(stand: Virtual, plan: Plan) -> Summary:
    """One run; its folder is gone once it is read."""
    return _result(stand, plan).summary


def _result(stand: Virtual, plan: Plan) -> RunResult:
    with tempfile.TemporaryDirectory() as folder:
        return stand.measure(plan, Path(folder))


def stand_of(engine: str | Chosen) -> Virtual:
    """A stand with a preset, or with settings of one's own."""
    return Virtual(choose(engine) if isinstance(engine, str) else engine, Silent())


def played(engine: str | Chosen, steps: Steps, *, most: int = 200) -> list[Performed]:
    """What a procedure does with an engine, up to `most` steps."""
    return played_in_states(engine, steps, most=most)[0]


def played_in_states(
    engine: str | Chosen, steps: Steps, *, most: int = 200
) -> tuple[list[Performed], list[dict[str, str]]]:
    """The same, with what had been switched before each measurement."""
    stand, done = stand_of(engine), list[Performed]()
    state, states = dict[str, str](), list[dict[str, str]]()
    came: Any = None
    for number in range(most):
        try:
            step = steps.throw(came) if isinstance(came, Exception) else steps.send(came)
        except StopIteration:
            break
        try:
            if isinstance(step, Run):
                found = _result(stand, step.plan)
                came = Measured(f"run-{number}", found.summary, found.requests)
                done.append(PerformedRun(step, came))
                states.append(state)
            else:
                came = stand.switch(step.what, step.state)
                state = {**state, step.what: step.state}
                done.append(Performed(step, came))
        except (PlanError, CannotSwitch) as why:
            came, kind = why, RefusedRun if isinstance(step, Run) else Performed
            done.append(kind(step, Refused(str(why))))  # type: ignore[arg-type]  # a RefusedRun's step is a Run
    return done, states


def plan_of(seed: int, *, slos: Sequence[str] = ()) -> Plan:
    """The default workload of one seed, asked for as ids."""
    return Plan.model_validate(
        {"workload": {"seed": seed}, "target": {"api": "completions"}, "slos": list(slos)}
    )
