"""Who kept the processor busy: seconds of CPU of the whole machine, and of us and what we started.

The two accounts, one by ticks and one by the scheduler, differ by some hundredths of a core. Processes that a child of ours
left behind without waiting for them count as others.
"""

from __future__ import annotations

import contextlib
import resource
import threading
import time

import psutil


def machine_s() -> float:
    """Seconds of CPU the whole machine has spent."""
    times = psutil.cpu_times()
    return float(
        sum(getattr(times, kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq", "steal"))
    )


def ours_s(*running: int) -> float:
    """Seconds that we, the processes we started and waited for, and those `running` (by their id) have spent."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    seconds = sum(use.ru_utime + use.ru_stime for use in uses)
    for pid in running:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            seconds += times.user + times.system
    return seconds


class Others:
    """From its making on, the cores that others keep busy. `running`: processes of ours that outlast it."""

    def __init__(self, *running: int) -> None:
        self._running = running
        self._began, self._machine, self._ours = time.monotonic(), machine_s(), ours_s(*running)

    def cores(self) -> float:
        """On average until now."""
        spent = machine_s() - self._machine - (ours_s(*self._running) - self._ours)
        return max(0.0, spent) / (time.monotonic() - self._began)


class Standstill(threading.Thread):
    """Inside its block, looks at the clock every 50 ms: `longest_s` is how much longer than that one look took at most.

    A virtual machine that is stopped and goes on later leaves no other trace than this: all its clocks jump, and every client
    under measurement takes the pause for the server's.
    """

    EVERY_S = 0.05

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.longest_s = 0.0
        self._over = threading.Event()

    def run(self) -> None:
        """Until the block ends."""
        before = time.monotonic()
        while not self._over.wait(self.EVERY_S):
            at = time.monotonic()
            self.longest_s, before = max(self.longest_s, at - before - self.EVERY_S), at

    def __enter__(self) -> Standstill:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
