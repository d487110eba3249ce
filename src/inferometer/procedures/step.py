"""What a procedure asks for, and what it is sent back.

    procedure -- Run(plan) ------------------> run or simulation
              <- Seen(summary) ---------------
              <- PlanError, thrown ----------- it cannot be carried out: the model has no room for it
              -- Switch("prefix_cache", ...) -> whoever can: the reference engine, a hook, a person
              <- Switched(status) ------------
              <- CannotSwitch, thrown -------- nobody can

A procedure decides by what it is sent alone. So one code drives a live server, a model in virtual time, and a test's script.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard

from inferometer.plan.schema import Plan

Scalar = float | str | bool | None


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement. `part` says what for (`pilot`, `level`, `confirm`, `mixed`), `at` where it lies in the test: the
    load level in the test's own terms (`{"rate": 12.0}`, `{"context": 8192}`), `why` why it comes now, for the person
    watching."""

    plan: Plan
    part: str
    at: Mapping[str, Scalar]
    why: str


@dataclass(frozen=True, slots=True)
class Switch:
    """The system under test is to be brought into a state before the next run: `what` (a name of plan/switching.py) and
    `state`."""

    what: str
    state: str


Step = Run | Switch


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a Run: the name of its folder and its summary, the data of summary.json."""

    run: str
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Switched:
    """What came of a Switch. `verified`: asked afterwards, the system said so itself; `declared`: somebody or something was
    told to, and nothing contradicts it. `how` says who did it; `evidence` what was seen. `seconds`: of a server that was
    started, from there to its first healthy answer."""

    status: Literal["verified", "declared"]
    how: str
    evidence: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A Run that could not be carried out, of which nothing was sent, or a Switch; and why: PlanError's or CannotSwitch's
    words."""

    why: str


@dataclass(frozen=True, slots=True)
class Done:
    """A step and what came of it."""

    step: Step
    came: Seen | Switched | Refused


Steps = Generator[Step, Any, None]
"""A procedure under way. Sent Seen for a Run and Switched for a Switch; ends when there is nothing more to measure."""


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier tests of a campaign found out about the system, so that later ones need not: by key of a workload
    (`setup.workload_key`), the highest sustainable request rate of draft 5.2 without objectives, and the highest
    concurrency of 5.5."""

    saturation: Mapping[str, float] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)

    def __or__(self, other: Known) -> Known:
        return Known({**self.saturation, **other.saturation}, {**self.capacity, **other.capacity})


def of_run(done: Done) -> TypeGuard[DoneRun]:
    """Whether a measurement was done."""
    return isinstance(done.came, Seen)


@dataclass(frozen=True, slots=True)
class DoneRun(Done):
    """A measurement that was done."""

    step: Run
    came: Seen


@dataclass(frozen=True, slots=True)
class DoneRefused(Done):
    """A measurement that was refused."""

    step: Run
    came: Refused


def refusals(done: Sequence[Done]) -> list[DoneRefused]:
    """The measurements that could not be carried out, in their order."""
    return [one for one in done if isinstance(one, DoneRefused)]


def runs(done: Sequence[Done], *parts: str) -> list[DoneRun]:
    """The measurements among what was done, of these parts or of all, in their order."""
    return [one for one in done if of_run(one) and (not parts or one.step.part in parts)]
