"""Engines in turn, in virtual time: wherever Ctrl-C or a fault comes, what was measured is written, and the rest named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from procedures.driving import Silent

from inferometer.documents.bench import Remark
from inferometer.errors import InstrumentError, RecordError
from inferometer.studies.bench_engine import Engine, LiveEngine
from inferometer.studies.engine_turns import Standing, in_turn

STEPS = ("note", "carry_out", "made", "cool_down", "write")


@dataclass
class Events:
    """What happened, as (step, engine), and when Ctrl-C comes: at the n-th step of all."""

    pressed_at: int | None = None
    seen: list[tuple[str, str]] = field(default_factory=list)
    pressed: tuple[str, str] | None = None

    def step(self, name: str, label: str) -> None:
        """Raises KeyboardInterrupt at the instant of Ctrl-C."""
        self.seen.append((name, label))
        if self.pressed is None and len(self.seen) - 1 == self.pressed_at:
            self.pressed = self.seen[-1]
            raise KeyboardInterrupt


@dataclass
class PlantedTurn:
    """A turn without an engine."""

    label: str
    events: Events
    interrupted: bool = False
    failure: RecordError | InstrumentError | None = None

    def carry_out(self) -> None:
        """As of the real one, which expects Ctrl-C."""
        try:
            self.events.step("carry_out", self.label)
        except KeyboardInterrupt:
            self.interrupted = True

    def made(self) -> str:
        """Its label."""
        self.events.step("made", self.label)
        return self.label


class Pressing(Silent):
    """A Ui, a machine and a clock whose calls are steps."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self.label = ""

    def note(self, text: str) -> None:
        """The head of a turn."""
        self.label = text.rpartition(" ")[2]
        self.events.step("note", self.label)

    def sleep(self, seconds: float) -> None:
        """The cool-down."""
        del seconds
        self.events.step("cool_down", self.label)

    def now_ns(self) -> int:
        """It stands still."""
        return 0


class Calm:
    """A machine at rest."""

    def memory_pressure(self) -> Calm:
        """Normal."""
        return self

    thermal = memory_pressure
    level: str | None = "normal"
    speed_limit_percent: float | None = 100.0

    def chip(self) -> str | None:
        """Unknown."""

    def os_version(self) -> str | None:
        """Unknown."""


Document = tuple[tuple[str, ...], tuple[Remark, ...], bool]


def taken(
    labels: Sequence[str], events: Events, failing: str | None = None
) -> tuple[Document | None, list[Document]]:
    """What was returned, None if a fault was raised, and all that was written."""
    documents: list[Document] = []

    def begin(engine: Engine) -> PlantedTurn:
        failure = InstrumentError("a worker died") if engine.label == failing else None
        return PlantedTurn(engine.label, events, failure=failure)

    def write(standing: Standing[str]) -> Document:
        events.step("write", standing.results[-1])
        documents.append((tuple(standing.results), standing.remarks, standing.cut_short))
        return documents[-1]

    around = Pressing(events)
    engines = [LiveEngine(label, label, "http://127.0.0.1:1") for label in labels]
    try:
        return in_turn(engines, begin, write, Calm(), around, around), documents
    except InstrumentError:
        return None, documents


def unmeasured(*labels: str) -> tuple[Remark, ...]:
    return tuple(Remark("not_measured", {"engine": label}) for label in labels)


def test_every_turn_is_taken_and_written_before_the_next() -> None:
    """With a cool-down between two, and none behind the last."""
    events = Events()
    last, documents = taken("abc", events)
    assert [one[0] for one in documents] == [("a",), ("a", "b"), ("a", "b", "c")]
    assert last == (("a", "b", "c"), (), False)
    assert [label for name, label in events.seen if name == "cool_down"] == ["a", "b"]


@given(st.integers(0, 40), st.integers(1, 4))
def test_ctrl_c_at_any_instant_loses_no_turn_and_names_who_was_not_measured(at: int, number: int) -> None:
    """The turn that was under way is the last result; those behind it are named; what is returned is what was written last."""
    labels = "abcd"[:number]
    events = Events(at)
    last, documents = taken(labels, events)
    assert last == documents[-1]
    if events.pressed is None:
        assert last == (tuple(labels), (), False)
        return
    reached = labels.index(events.pressed[1]) + 1
    assert last == (tuple(labels[:reached]), unmeasured(*labels[reached:]), True)


@pytest.mark.parametrize("failing", ["a", "b", "c"])
def test_a_fault_of_the_instrument_is_raised_after_the_results_were_written(failing: str) -> None:
    """No engine is measured after it."""
    last, documents = taken("abc", Events(), failing)
    reached = "abc".index(failing) + 1
    assert last is None
    assert documents[-1] == (tuple("abc"[:reached]), unmeasured(*"abc"[reached:]), False)


@given(st.integers(2, 4))
def test_what_a_killed_process_leaves_is_cut_short_and_names_who_waits(number: int) -> None:
    """Each turn is written before the cool-down behind it; only with the last turn is the benchmark whole."""
    labels = "abcd"[:number]
    events = Events()
    _, documents = taken(labels, events)
    for at, document in enumerate(documents, 1):
        assert document == (tuple(labels[:at]), unmeasured(*labels[at:]), at < number)
    order = [name for name, _ in events.seen if name in ("write", "cool_down")]
    assert order == ["write", "cool_down"] * (number - 1) + ["write"]
