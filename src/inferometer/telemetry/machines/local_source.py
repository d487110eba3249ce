"""This machine as one more endpoint of the scraper: read in its process, and recorded as a scrape is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from inferometer.telemetry.machine import this_machine
from inferometer.telemetry.machines.local import LocalMachine, Part
from inferometer.telemetry.machines.side_by_side import PATIENCE_AT_THE_ENDS_S, PATIENCE_S, Patience
from inferometer.telemetry.metrics.fetch import Fetched
from inferometer.telemetry.metrics.scraper_messages import LocalReadings
from inferometer.units import NS_PER_S

MakeParts = Callable[[Sequence[str], Patience], Sequence[Part]]


class LocalSource:
    """See Fetcher. Meters are opened at the first reading, in the thread that reads."""

    instead: str | None = None

    def __init__(self, wanted: LocalReadings, parts: MakeParts) -> None:
        self._wanted, self._parts = wanted, parts
        self._patience = Patience(PATIENCE_AT_THE_ENDS_S)
        self._machine: LocalMachine | None = None

    def get(self) -> Fetched:
        """The readings now. The stamp is that of their beginning."""
        if self._machine is None:
            parts = self._parts(self._wanted.meters, self._patience)
            self._machine = LocalMachine(this_machine(), self._wanted.roles, parts)
        began = time.monotonic_ns()
        text = self._machine.text()
        # No reading but the first and the last one reaches into the next.
        self._patience.seconds = min(PATIENCE_S, self._wanted.interval_ns / NS_PER_S / 2)
        return Fetched(began, time.monotonic_ns() - began, None, text)

    def comes_last(self) -> None:
        """The next reading is the last one: it waits for slow meters too, as none could bring what they read later."""
        self._patience.seconds, self._patience.for_all = PATIENCE_AT_THE_ENDS_S, True

    def close(self) -> None:
        """Nothing is held open but what ends with the process."""
