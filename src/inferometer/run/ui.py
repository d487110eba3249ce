"""What a run shares with the person who watches it: notes, progress, and Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from inferometer.drive.progress_counters import Progress
from inferometer.drive.worker_pool import Interrupt
from inferometer.journal.schema import Phase
from inferometer.run.request_writer import RequestWriter
from inferometer.run.warmup import Part
from inferometer.units import NS_PER_S


class Ui(Protocol):
    """Progress of a run, for the person who watches it."""

    def note(self, text: str) -> None:
        """One line about what happens now."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """Progress of the load; called several times a second. `total`: the number of requests of this phase, if known."""


class Expected:
    """The number of requests of each phase, as far as it is known. A warm-up may send some of its own again; what a closed loop
    is led in and out by does not count (Progress.led)."""

    def __init__(self, schedule: RequestWriter) -> None:
        self._schedule = schedule
        self._warm = 0

    def ordered(self, part: Part) -> None:
        """A part of the warm-up is about to be sent."""
        if part.phase is Phase.WARMUP:
            self._warm += part.stop - part.first

    def of(self, phase: Phase) -> int | None:
        """Those of a phase, once it has begun."""
        measured = None if self._schedule.total is None else self._schedule.measured
        return {Phase.WARMUP: self._warm, Phase.MEASURE: measured}.get(phase)


INTERRUPTED_NS = 30 * NS_PER_S
"""Whoever stops a run does not wait longer than this for answers, however long its end would wait for them."""


@contextmanager
def interrupts(drain_ns: int) -> Iterator[Interrupt]:
    """Ctrl-C, SIGTERM and SIGHUP mean: stop gracefully; SIGHUP not to a process that was started to outlive its terminal."""
    interrupt = Interrupt(min(drain_ns, INTERRUPTED_NS))
    outlives = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    heeded = (signal.SIGINT, signal.SIGTERM, *(() if outlives else (signal.SIGHUP,)))
    before = {number: signal.signal(number, interrupt.press) for number in heeded}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
