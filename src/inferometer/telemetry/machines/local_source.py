"""This machine as one more endpoint of the scraper: read in its process, and recorded as a scrape is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from inferometer.telemetry.machine import this_machine
from inferometer.telemetry.machines.local import LocalMachine, Part
from inferometer.telemetry.metrics.fetch import Fetched
from inferometer.telemetry.metrics.scraper_messages import LocalReadings

MakeParts = Callable[[Sequence[str]], Sequence[Part]]


class LocalSource:
    """See Fetcher. Meters are opened at the first reading, in the thread that reads."""

    instead: str | None = None

    def __init__(self, wanted: LocalReadings, parts: MakeParts) -> None:
        self._wanted, self._parts = wanted, parts
        self._machine: LocalMachine | None = None

    def get(self) -> Fetched:
        """The readings now. The stamp is that of their beginning."""
        if self._machine is None:
            self._machine = LocalMachine(this_machine(), self._wanted.roles, self._parts(self._wanted.meters))
        began = time.monotonic_ns()
        text = self._machine.text()
        return Fetched(began, time.monotonic_ns() - began, None, text)

    def close(self) -> None:
        """Nothing is held open but what ends with the process."""
