"""Engines in turn: each alone, with a cool-down between two, and what there is written after each.

| when Ctrl-C comes            | what is written then                                                               |
| ---------------------------- | ---------------------------------------------------------------------------------- |
| in a turn                    | the results so far, that of this turn as far as it went, and who was not measured   |
| while its result is made     | the same: the result is made again                                                  |
| in the cool-down             | the same, this turn whole                                                           |
| while the results are written | the same: they are written again                                                   |

A fault of the instrument ends the turns as well, and is raised after the results were written. What is written while engines
wait names them and is cut short: if the process is killed, that is what stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from inferometer.documents.bench import Remark
from inferometer.errors import InstrumentError, RecordError
from inferometer.run.ui import Ui
from inferometer.studies.bench_engine import Engine
from inferometer.studies.bench_gate import Clock, Machine, cool_down

Result = TypeVar("Result")
Made = TypeVar("Made", covariant=True)
Written = TypeVar("Written")


class Turn(Protocol[Made]):
    """One engine's turn. `interrupted`: by Ctrl-C; `failure`: the instrument's, which ends the benchmark."""

    interrupted: bool
    failure: RecordError | InstrumentError | None

    def carry_out(self) -> None:
        """Measure. What the engine does wrong is in the result."""

    def made(self) -> Made:
        """The result, as far as it goes. Raises RecordError."""


@dataclass(slots=True)
class Standing(Generic[Result]):
    """Where the turns stand. `waiting`: labels of the engines whose turn has not come."""

    results: list[Result] = field(default_factory=list)
    noted: list[Remark] = field(default_factory=list)
    waiting: tuple[str, ...] = ()
    interrupted: bool = False
    failure: RecordError | InstrumentError | None = None

    @property
    def stopped(self) -> bool:
        """Whether no engine's turn comes any more, though one may wait."""
        return self.interrupted or self.failure is not None

    @property
    def over(self) -> bool:
        """Whether no turn follows."""
        return self.stopped or not self.waiting

    @property
    def cut_short(self) -> bool:
        """Whether this is not the whole benchmark: by a person, or, so far, because engines wait."""
        return self.interrupted or (bool(self.waiting) and self.failure is None)

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """What was noted, and who was not measured."""
        return (*self.noted, *(Remark("not_measured", {"engine": label}) for label in self.waiting))


def in_turn(
    engines: Sequence[Engine],
    begin: Callable[[Engine], Turn[Result]],
    write: Callable[[Standing[Result]], Written],
    machine: Machine,
    clock: Clock,
    ui: Ui,
    before: Sequence[Remark] = (),
) -> Written:
    """All turns; what was written last. `before`: what is noted before the first. Raises RecordError and InstrumentError."""
    standing: Standing[Result] = Standing(noted=list(before))
    for at, engine in enumerate(engines):
        standing.waiting = tuple(one.label for one in engines[at + 1 :])
        turn = begin(engine)
        try:
            ui.note(f"engine {at + 1} of {len(engines)}: {engine.label}")
            turn.carry_out()
        except KeyboardInterrupt:  # where the turn itself does not expect it
            turn.interrupted = True
        standing.results.append(_made(turn))
        standing.interrupted, standing.failure = turn.interrupted, turn.failure
        try:
            written = write(standing)
            if not standing.over and (remains := cool_down(machine, clock)) is not None:
                standing.noted.append(remains)
        except KeyboardInterrupt:
            standing.interrupted = True
            written = write(standing)
        if standing.failure is not None:
            raise standing.failure
        if standing.over:
            return written
    raise ValueError("a benchmark has at least one engine")


def _made(turn: Turn[Result]) -> Result:
    try:
        return turn.made()
    except KeyboardInterrupt:
        turn.interrupted = True
        return turn.made()
