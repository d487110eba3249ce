"""The results of a test: values, tables in the draft's own columns, figures, and notes. `report/` has the words for notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from inferometer.documents.note import Note
from inferometer.documents.results import Cell, Column, Figure, Interval
from inferometer.procedures.step import KnownLimits

NO_HEADLINE = Note("no_headline")
"""Of a test that came to its end without a value that answers it."""


@dataclass(frozen=True, slots=True)
class Value:
    """A figure that the test is about. `ci`: its 95 % interval; `note`: how it was found, or why it is None; `at`: the load
    it is of, in words."""

    name: str
    label: str
    value: Cell
    unit: str = ""
    ci: Interval | None = None
    note: Note | None = None
    capacity: bool = False
    at: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `section`: where the draft asks for it; each row has a cell for each column; `at` as of a value."""

    name: str
    title: str
    section: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[Note, ...] = ()
    capacity: bool = False
    at: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """All of a test, complete or as far as it went. `notes`: what a reader has to know; `undecided`: what the test could not
    settle, which makes it inconclusive; `known`: what other tests can use."""

    values: tuple[Value, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    notes: tuple[Note, ...] = ()
    undecided: tuple[Note, ...] = ()
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
        tuple(note for part in parts for note in part.undecided),
        known,
    )
