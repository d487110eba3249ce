"""Counters that the parent can watch while the workers run, and they each other: a file mapped by all, one row of integers
a worker.

Each row has one writer, and a torn read would only show on a progress line. Behind the counters stands the start (ns) of the
last phase whose measured requests have all ended at this worker; GONE for one that has died. The last one is a beat, which
goes on for as long as the worker's loop does.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

COUNTERS = 6
FIELDS = COUNTERS + 2
BEAT = COUNTERS + 1
GONE = 2**62
_ROW = FIELDS * 8
_NAME = "journal/live"


@dataclass(frozen=True, slots=True)
class Progress:
    """Totals so far, warm-up included. `led`: how many of `ok` a closed loop was led in or out by, and did not measure."""

    sent: int
    ok: int
    failed: int
    in_flight: int
    events: int
    led: int = 0


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
        """Write this worker's row: the counters of Progress. Each time is a beat."""
        for i, value in enumerate(values):
            self._values[self._row + i] = value
        self._values[self._row + BEAT] += 1

    def arrived(self, start_ns: int) -> None:
        """The measured requests of the phase that began then have all ended at this worker."""
        self._values[self._row + COUNTERS] = start_ns

    def others_arrived(self, own: Collection[int], start_ns: int) -> None:
        """The same of all workers but these: of those of other hosts, which cannot write their rows here."""
        for worker in range(len(self._values) // FIELDS):
            if worker not in own:
                self._values[worker * FIELDS + COUNTERS] = start_ns

    def row(self, worker: int) -> list[int]:
        """All that a worker has written."""
        return self._values[worker * FIELDS : (worker + 1) * FIELDS].tolist()

    def gone(self, worker: int) -> None:
        """This worker has died: nobody waits for it."""
        self._values[worker * FIELDS + COUNTERS] = GONE

    def complete(self, start_ns: int) -> bool:
        """Whether those of all workers have ended."""
        return min(self._values[COUNTERS::FIELDS]) >= start_ns

    def progress(self) -> Progress:
        """Sum over all rows."""
        return Progress(*(sum(self._values[i::FIELDS]) for i in range(COUNTERS)))

    def of(self, worker: int) -> Progress:
        """One worker's row."""
        return Progress(*self._values[worker * FIELDS : worker * FIELDS + COUNTERS])

    def beat(self, worker: int) -> int:
        """How often this worker has written its row: it hangs if that stands still while a phase runs."""
        return self._values[worker * FIELDS + BEAT]

    @staticmethod
    def remove(folder: Path) -> None:
        """Delete the file: it says nothing once the run is over."""
        (folder / _NAME).unlink(missing_ok=True)


class Company:
    """The workers of one phase, as a pacer asks for them (pacer.py)."""

    def __init__(self, counters: Counters, start_ns: int) -> None:
        self._counters, self._start_ns = counters, start_ns

    def arrived(self) -> None:
        """See pacer.Company."""
        self._counters.arrived(self._start_ns)

    def complete(self) -> bool:
        """See pacer.Company."""
        return self._counters.complete(self._start_ns)
