"""What a test comes to, as data: values, tables in the draft's own columns, figures. `report/` gives them words and pictures.

A cell is a number, a text, or None: it was not measured. An empty text: it has no meaning there. `capacity` marks what tells
how much a system can take before it falls over: what `--redact capacity` leaves out (draft 7.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from inferometer.procedures.step import KnownLimits

Cell = float | int | str | bool | None
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Value:
    """One figure that the test is about. `ci`: its 95 % interval, if it has one; `note`: how it was found, or why it is
    None."""

    name: str
    label: str
    value: Cell
    unit: str = ""
    ci: Interval | None = None
    note: str = ""
    capacity: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key, its heading, and the unit of its numbers (`ms`, `tok/s`, `%`, "" for plain)."""

    name: str
    label: str
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `section` is where the draft asks for it; each row has a cell a column."""

    name: str
    title: str
    section: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    capacity: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """A line, or a group of bars: as many x as y. `x` may be names (bars)."""

    label: str
    x: tuple[float | str, ...]
    y: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something to point out: a vertical line at `x`, a horizontal one at `y`, or a point at both."""

    label: str
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: what it shows, its unit, and whether it is logarithmic."""

    label: str
    unit: str = ""
    log: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture: `lines` joins points in their order (a throughput-latency curve may turn back), `points` does not, `bars`
    are grouped by series, `cdf` steps up."""

    name: str
    title: str
    kind: Literal["lines", "points", "bars", "cdf"]
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    capacity: bool = False


@dataclass(frozen=True, slots=True)
class Results:
    """All of a test, complete or as far as it came. `notes`: what a reader has to know, in sentences. `undecided`: what the
    search could not settle, in sentences: then the test is inconclusive. `known`: what it found that other tests can
    use."""

    values: tuple[Value, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    known: KnownLimits = field(default_factory=KnownLimits)


def joined(parts: Sequence[Results]) -> Results:
    """Several results as one, in their order."""
    known = KnownLimits()
    for part in parts:
        known = known | part.known
    return Results(
        tuple(value for part in parts for value in part.values),
        tuple(table for part in parts for table in part.tables),
        tuple(figure for part in parts for figure in part.figures),
        tuple(note for part in parts for note in part.notes),
        tuple(open_ for part in parts for open_ in part.undecided),
        known,
    )
