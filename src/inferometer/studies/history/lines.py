"""Entries as JSON Lines and as CSV: exports, imports, and the results that no folder here holds.

An import is refused whole where one line is no entry: half of a file would be a history nobody measured. Of the file beside
the index such lines are passed over with a note: a process that was killed while it wrote leaves a torn one, and the results
in the other lines are in no other place.

| refused             | limit                        |
| ------------------- | ---------------------------- |
| a file              | whole_file.MOST bytes        |
| a line              | LONGEST bytes                |
| lines               | MOST                         |
| members             | those of an entry, all of them, of their types |
| an instant          | a day ahead of now           |
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from inferometer import whole_file
from inferometer.documents.history import ENTRY_SCHEMA, HistoryEntry, NumberedEntry
from inferometer.documents.part import from_json, to_data
from inferometer.errors import RecordError
from inferometer.printable import json_text, printable, printable_cell
from inferometer.studies.history.entries import ahead, fault
from inferometer.studies.history.folders import Note

LONGEST = 1 << 20
MOST = 1_000_000
COLUMNS = (
    "number", "kind", "id", "part", "name", "started", "verdict", "interrupted", "folder", "seed", "model", "engine",
    "engine_version", "quantization", "accelerator", "figure", "unit", "better", "value", "low", "high",
)  # fmt: skip
"""Of the CSV: a row for each figure of each entry."""


def beside(index: Path) -> Path:
    """The file of results without a folder: `history.jsonl` of `history.sqlite3`."""
    return index.with_suffix(".jsonl")


def as_line(entry: HistoryEntry) -> str:
    """One entry as a line of JSON."""
    return json_text(to_data(entry)) + "\n"


def exported(entries: Iterable[NumberedEntry]) -> Iterator[str]:
    """Lines for another machine: without folders, which are not there."""
    return (as_line(replace(one.entry, folder=None)) for one in entries)


def read(path: Path, now: float) -> list[HistoryEntry]:
    """The entries of a file of lines. `now`: seconds since the epoch. Raises RecordError, which names the line."""
    found = []
    for line, where in _numbered(path):
        entry = _entry(line, where)
        if ahead(entry, now):
            raise RecordError(f"{where}: is dated {entry.started[:40]}, ahead of this machine's clock")
        found.append(entry)
    return found


def readable(path: Path, note: Note) -> list[HistoryEntry]:
    """The entries of a file of our own, without the lines that are none: how many these are is noted, and what is wrong with
    the first. Raises RecordError where the file cannot be read at all."""
    found, wrong = [], list[str]()
    for line, where in _numbered(path):
        try:
            found.append(_entry(line, where))
        except RecordError as why:
            wrong.append(str(why))
    if wrong:
        count = (
            "1 line is no result and is" if len(wrong) == 1 else f"{len(wrong)} lines are no results and are"
        )
        note(f"not in the history: {path}: {count} passed over ({wrong[0]})")
    return found


def _numbered(path: Path) -> Iterator[tuple[bytes, str]]:
    """The lines that are not blank, each with its place. Raises RecordError."""
    try:
        text = whole_file.read(path)
    except OSError as cause:
        raise RecordError(f"{path}: {cause.strerror}") from cause
    lines = text.split(b"\n")
    if len(lines) > MOST:
        raise RecordError(f"{path}: has more than {MOST:,} lines")
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield line, f"{path}:{number}"


def _entry(line: bytes, where: str) -> HistoryEntry:
    if len(line) > LONGEST:
        raise RecordError(f"{where}: is longer than {LONGEST >> 20} MiB")
    entry = from_json(line, HistoryEntry, ENTRY_SCHEMA, where)
    if (why := fault(entry)) is not None:
        raise RecordError(f"{where}: {why}")
    return replace(entry, folder=None)


def append(path: Path, entries: Iterable[HistoryEntry]) -> None:
    """Add entries to a file of lines, in one write: those of two processes do not mix. A line that was torn off before keeps
    its place: the new ones begin behind a line feed. Raises OSError."""
    text = "".join(as_line(replace(one, folder=None)) for one in entries)
    if text:
        whole_file.append(path, text if _ends_a_line(path) else f"\n{text}")


def _ends_a_line(path: Path) -> bool:
    """Whether what is added begins a line. What cannot be read is left to the writer's own error."""
    try:
        whole_file.check_regular(path)
        with path.open("rb") as file:
            if file.seek(0, os.SEEK_END) == 0:
                return True
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"
    except OSError:
        return True


def table(entries: Iterable[NumberedEntry]) -> str:
    """The CSV (RFC 4180, lines end in CR LF). Of texts that a spreadsheet would take for a formula the first sign is an
    apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for numbered in entries:
        one = numbered.entry
        said, versions = one.conditions.get, one.versions.get
        for each in one.figures:
            low, high = each.ci95 or (None, None)
            cells = (
                numbered.number, one.kind, one.id, one.part, one.name, one.started, one.verdict, one.interrupted, one.folder,
                one.seed, said("sut.model"), said("sut.engine"), versions("engine"), said("sut.quantization"),
                said("sut.accelerator"), each.name, each.unit, each.better, each.value, low, high,
            )  # fmt: skip
            writer.writerow([_cell(cell) for cell in cells])
    return out.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    return printable_cell(printable(value))
