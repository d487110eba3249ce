"""Entries as JSON Lines and as CSV: exports, imports, and the results that no folder here holds.

An import is refused whole where one line is no entry: half of a file would be a history nobody measured.

| refused             | limit                        |
| ------------------- | ---------------------------- |
| a file              | whole_file.MOST bytes        |
| a line              | LONGEST bytes                |
| lines               | MOST                         |
| members             | those of an entry, all of them, of their types |
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec.structs import replace

from inferometer import whole_file
from inferometer.documents.history import ENTRY_SCHEMA, HistoryEntry, NumberedEntry
from inferometer.documents.part import from_json, to_data
from inferometer.errors import RecordError
from inferometer.printable import json_text, printable
from inferometer.studies.history.entries import fault

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


def read(path: Path) -> list[HistoryEntry]:
    """The entries of a file of lines. Raises RecordError, which names the line."""
    try:
        text = whole_file.read(path)
    except OSError as cause:
        raise RecordError(f"{path}: {cause.strerror}") from cause
    lines = text.split(b"\n")
    if len(lines) > MOST:
        raise RecordError(f"{path}: has more than {MOST:,} lines")
    return [_entry(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]


def _entry(line: bytes, where: str) -> HistoryEntry:
    if len(line) > LONGEST:
        raise RecordError(f"{where}: is longer than {LONGEST >> 20} MiB")
    entry = from_json(line, HistoryEntry, ENTRY_SCHEMA, where)
    if (why := fault(entry)) is not None:
        raise RecordError(f"{where}: {why}")
    return replace(entry, folder=None)


def append(path: Path, entries: Iterable[HistoryEntry]) -> None:
    """Add entries to a file of lines, in one write: those of two processes do not mix. Raises OSError."""
    text = "".join(as_line(replace(one, folder=None)) for one in entries)
    if text:
        whole_file.append(path, text)


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
    text = printable(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
