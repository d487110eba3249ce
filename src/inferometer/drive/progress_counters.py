"""Counters that the parent can watch while the workers run: a small file mapped by both, one row of integers a worker.

Each row has one writer, and a torn read would only show on a progress line.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

FIELDS = 5
_ROW = FIELDS * 8
_NAME = "journal/live"


@dataclass(frozen=True, slots=True)
class Progress:
    """Totals so far, warm-up included."""

    sent: int
    ok: int
    failed: int
    in_flight: int
    events: int


class Counters:
    """The mapped file, as a worker writes its row or as the parent reads all."""

    def __init__(self, mapped: mmap.mmap, row: int) -> None:
        self._values = memoryview(mapped).cast("q")
        self._row = row * FIELDS

    @classmethod
    def create(cls, folder: Path, workers: int) -> Counters:
        """Make the file, all zero."""
        (folder / _NAME).write_bytes(bytes(_ROW * workers))
        return cls.attach(folder, 0, workers)

    @classmethod
    def attach(cls, folder: Path, worker: int, workers: int) -> Counters:
        """Map the existing file."""
        with open(folder / _NAME, "r+b") as file:
            return cls(mmap.mmap(file.fileno(), _ROW * workers), worker)

    def put(self, *values: int) -> None:
        """Write this worker's row."""
        for i, value in enumerate(values):
            self._values[self._row + i] = value

    def progress(self) -> Progress:
        """Sum over all rows."""
        return Progress(*(sum(self._values[i::FIELDS]) for i in range(FIELDS)))

    def of(self, worker: int) -> Progress:
        """One worker's row."""
        return Progress(*self._values[worker * FIELDS : (worker + 1) * FIELDS])

    @staticmethod
    def remove(folder: Path) -> None:
        """Delete the file: it says nothing once the run is over."""
        (folder / _NAME).unlink(missing_ok=True)
