"""What a procedure asks for, and what it is sent back.

    procedure -- Run(plan) ------------------> run or simulation
              <- Measured(summary) -----------
              <- PlanError, thrown ----------- it cannot be carried out: the model has no room for it
              -- Switch("prefix_cache", ...) -> whoever can: the reference engine, a hook, a person
              <- Switched(status) ------------
              <- CannotSwitch, thrown -------- nobody can

A procedure decides by what it is sent alone. So one code drives a live server, a model in virtual time, and a test's script.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard, TypeVar

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.summary import Summary
from inferometer.measure.request_times import RequestTimes
from inferometer.plan.schema import Plan

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Run:
    """One measurement. `part` says what for (`pilot`, `level`, `confirm`, `mixed`), `at` the conditions it is
    made at, in the test's own terms, `why` why it comes now, for the person watching."""

    plan: Plan
    part: str
    at: Conditions
    why: Note


@dataclass(frozen=True, slots=True)
class Switch:
    """The system under test is to be brought into a state before the next run: `what` (a name of plan/switching.py) and
    `state`."""

    what: str
    state: str


Step = Run | Switch


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of a Run: the name of its folder, its summary, and its successful requests one by one, for what a summary
    cannot tell (intervals of figures of several runs); None: only the summary is at hand."""

    run: str
    summary: Summary
    requests: RequestTimes | None = None


@dataclass(frozen=True, slots=True)
class Switched:
    """The outcome of a Switch. `verified`: the system itself confirmed it afterwards; `declared`: a command, a call or a
    person was to do it, and nothing contradicts it. `how`: who did it; `evidence`: what was observed. `seconds`: of a server
    that was started, from the start to its first healthy answer."""

    status: Literal["verified", "declared"]
    how: str
    evidence: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A Run of which nothing could be sent, or a Switch that is not possible. `why`: the message of the PlanError or
    CannotSwitch."""

    why: str


@dataclass(frozen=True, slots=True)
class Performed:
    """A step and its outcome."""

    step: Step
    outcome: Measured | Switched | Refused


Steps = Generator[Step, Any, None]
"""A procedure in progress. It is sent Measured for a Run and Switched for a Switch; it ends when nothing is left to measure."""


@dataclass(frozen=True, slots=True)
class Collapse:
    """That a system does less with more to do. `seen`: how, and how much; `arrival_s`: the load that it
    then does."""

    seen: Note
    arrival_s: float


@dataclass(frozen=True, slots=True)
class KnownLimits:
    """Limits of the system that earlier tests of the campaign measured, so that later ones need not: by key of a workload
    (`setup.workload_key`), the highest sustainable rate of draft 5.2 without objectives, in the workload's arrivals a second
    (arrivals.py), and the highest concurrency of 5.5. `full`: the least in flight that filled the system in the search of
    5.2, whatever the workload. `collapses`: of the rates, those whose search saw the system do less with more to do; `lives`:
    of the rates, those of conversations and sessions, how long one takes at that rate, s."""

    saturation: Mapping[str, float] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)
    full: int | None = None
    collapses: Mapping[str, Collapse] = field(default_factory=dict)
    lives: Mapping[str, float] = field(default_factory=dict)

    def __or__(self, other: KnownLimits) -> KnownLimits:
        return KnownLimits(
            {**self.saturation, **other.saturation},
            {**self.capacity, **other.capacity},
            self.full if other.full is None else other.full,
            {**self.collapses, **other.collapses},
            {**self.lives, **other.lives},
        )


def kept(steps: Generator[Step, Any, T], done: list[Performed]) -> Generator[Step, Any, T]:
    """The same steps; what is measured is added to `done`."""
    came: Any = None
    while True:
        try:
            step = steps.throw(came) if isinstance(came, Exception) else steps.send(came)
        except StopIteration as end:
            value: T = end.value
            return value
        try:
            came = yield step
        except Exception as why:
            came = why
        if isinstance(step, Run) and isinstance(came, Measured):
            done.append(PerformedRun(step, came))


def is_run(done: Performed) -> TypeGuard[PerformedRun]:
    """Whether a measurement was done."""
    return isinstance(done.outcome, Measured)


@dataclass(frozen=True, slots=True)
class PerformedRun(Performed):
    """A measurement that was done."""

    step: Run
    outcome: Measured


@dataclass(frozen=True, slots=True)
class RefusedRun(Performed):
    """A measurement that was refused."""

    step: Run
    outcome: Refused


def refusals(done: Sequence[Performed]) -> list[RefusedRun]:
    """The measurements that could not be carried out, in their order."""
    return [one for one in done if isinstance(one, RefusedRun)]


def runs(done: Sequence[Performed], *parts: str) -> list[PerformedRun]:
    """The measurements among what was done, of these parts or of all, in their order."""
    return [one for one in done if is_run(one) and (not parts or one.step.part in parts)]
