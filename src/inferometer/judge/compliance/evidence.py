"""What a statement is worked out from, and how a rule is held against it.

A check takes the Evidence and gives what was Seen, or None where nothing is there yet to show it either way: before the start
that rule is left open, and afterwards it is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["satisfied", "violated", "declared", "unknown", "not applicable"]
Summary = Mapping[str, Any]
Named = Sequence[tuple[Mapping[str, Any], str | None]]
"""Parts of plans, each with the name of its run; None: not of a run."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How a rule stands, and what was seen: the value and its limit. `run`: the first run that breaks it."""

    state: State
    note: str
    run: str | None = None


Check = Callable[["Evidence"], Seen | None]


def met(note: str) -> Seen:
    """Seen to be kept."""
    return Seen("satisfied", note)


def broken(note: str, run: str | None = None) -> Seen:
    """Seen to be broken."""
    return Seen("violated", note, run)


def told(note: str) -> Seen:
    """Kept by the tester's word; nothing seen contradicts it."""
    return Seen("declared", note)


def unknown(note: str) -> Seen:
    """Neither seen nor declared."""
    return Seen("unknown", note)


def beside(note: str) -> Seen:
    """The rule's precondition does not hold."""
    return Seen("not applicable", note)


@dataclass(frozen=True, slots=True)
class Ran:
    """A measurement of the test: its place in the test (procedures/step.py), the data of its summary.json, and the states that
    the system had been switched into."""

    name: str
    part: str
    at: Mapping[str, Any]
    summary: Summary
    state: Mapping[str, str] = field(default_factory=dict)

    @property
    def load(self) -> Mapping[str, Any]:
        """The load of its plan."""
        load: Mapping[str, Any] = self.summary["plan"]["load"]
        return load

    @property
    def lasted_s(self) -> float:
        """What it was to last where time ended it, else its window; 0 where there was none."""
        asked, window = self.load.get("duration_s"), self.summary["window"]["duration_s"]
        most = self.load.get("requests")
        by_count = most is not None and self.summary["requests"]["sent"] >= most
        cut = self.summary["run"]["interrupted"] or by_count
        return float((window if cut else asked or window) or 0.0)

    def check(self, code: str) -> Mapping[str, Any] | None:
        """A check of its verdict."""
        return next((one for one in self.summary["verdict"]["checks"] if one["code"] == code), None)

    def fails(self, code: str) -> str | None:
        """That a check of its verdict failed, with its number and limit; None: it did not."""
        one = self.check(code)
        if one is None or one["status"] != "fail":
            return None
        shown = [number(x) if isinstance(x, int | float) else str(x) for x in (one["value"], one["limit"])]
        unit = f" {one['unit']}" if one["unit"] else ""
        return f"check {code} failed: {shown[0]}{unit}, limit {shown[1]}{unit}"

    def measured(self, metric: str) -> Mapping[str, Any] | None:
        """A metric's statistics, if it has samples."""
        found = self.summary["metrics"].get(metric)
        return found if found and found["n"] else None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table of the test: its section, its rows, and the columns in which a cell is null."""

    section: str
    rows: int
    empty: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """What a test shows: its values (whether each was measured), its tables and the names of its figures."""

    values: Mapping[str, bool] = field(default_factory=dict)
    tables: Mapping[str, Sheet] = field(default_factory=dict)
    figures: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of one test. `plan` is resolved; `items` are draft 4.3.1's by id, where no run has told them yet.

    `switches` are `{what, state, status, ...}`; `ahead`: nothing was sent yet; `cut`: what ended the test before its end;
    `virtual`: it was to happen in virtual time, whether or not a run came of it.
    """

    test: str
    plan: Mapping[str, Any]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    runs: Sequence[Ran] = ()
    switches: Sequence[Mapping[str, Any]] = ()
    shown: Shown | None = None
    items: Mapping[str, str | None] | None = None
    ahead: bool = False
    cut: str | None = None
    virtual: bool = False

    @property
    def simulated(self) -> bool:
        """Whether any of it happened in virtual time."""
        return self.virtual or any(one.summary["run"]["simulated"] for one in self.runs)

    @property
    def levels(self) -> list[Ran]:
        """The runs that the test is about: no pilots and warm-ups, and nothing that only looks for the base of percentages."""
        return [one for one in self.runs if one.part not in BEFORE and not one.part.startswith("base-")]

    def of(self, *parts: str) -> list[Ran]:
        """The runs of these parts."""
        return [one for one in self.runs if one.part in parts]

    @property
    def embedded(self) -> bool:
        """Whether the reference server is measured, of which everything is known."""
        return self.plan["target"]["url"] is None

    def sut(self, name: str) -> Any:
        """What is declared of the system under test, or known where it is our own."""
        declared = self.runs[0].summary["sut"] if self.runs else self.plan["sut"]
        found = declared[name]
        return OURS.get(name) if self.embedded and found is None else found

    @property
    def filters(self) -> tuple[bool | None, bool | None]:
        """Whether inputs and outputs are filtered; None: undeclared."""
        rails = self.sut("guardrails")
        pair = rails["input_filter"], rails["output_filter"]
        return (False, False) if self.embedded and pair == (None, None) else pair

    def declared(self, name: str) -> Any:
        """A declaration of the tester; None: none was made."""
        return (self.plan.get("declared") or {}).get(name)

    def parameter(self, name: str) -> Any:
        """A parameter of the test."""
        return self.parameters.get(name)

    @property
    def loads(self) -> Named:
        """The loads of the test's levels with the names of their runs; before there are any, the plan's."""
        found: Named = [(one.load, one.name) for one in self.levels]
        return found or [(self.plan["load"], None)]

    @property
    def workloads(self) -> Named:
        """The workloads, likewise."""
        found: Named = [(one.summary["plan"]["workload"], one.name) for one in self.levels]
        return found or [(self.plan["workload"], None)]


BEFORE = ("pilot", "warm-up")
"""Parts of a test before its first level."""
OURS: Mapping[str, Any] = {
    "boundary": "engine",
    "software": "the reference server",
    "model_version": "that of inferometer",
    "accelerator": "cpu",
    "accelerator_count": 0,
    "prefix_caching": "disabled",
}
"""What is known of the embedded reference server without asking."""


def every(
    runs: Iterable[Ran], wrong: Callable[[Ran], str | None], right: str | Callable[[Ran], str]
) -> Seen | None:
    """A rule about runs: broken by the first of which `wrong` has something to say; None without runs."""
    runs = list(runs)
    for one in runs:
        said = wrong(one)
        if said is not None:
            return broken(said, one.name)
    if not runs:
        return None
    return met(right if isinstance(right, str) else right(runs[-1]))


def worst(*found: Seen | None) -> Seen | None:
    """Of several looks at one rule the one that counts: broken, unknown, declared, kept; None where none is there to say."""
    order: tuple[State, ...] = ("violated", "unknown", "declared", "satisfied", "not applicable")
    said = [one for one in found if one is not None]
    return min(said, key=lambda one: order.index(one.state)) if said else None


def number(value: float) -> str:
    """A number in a note: no more digits than a reader needs."""
    return f"{value:,.10g}" if float(value).is_integer() else f"{value:,.4g}"
