"""The scraper as the run sees it. Whatever becomes of it, the run goes on: a scraper that died is told in its account."""

from __future__ import annotations

import os
import selectors
import time
from pathlib import Path

import msgspec

from inferometer.isolation import Child
from inferometer.telemetry.metrics.scraper_messages import (
    Done,
    EndpointAccount,
    Finish,
    Job,
    Mark,
    Ready,
    Report,
)

START_S = 10.0
"""The load waits as long for a baseline at least, before it begins without one; and the end of a run as long for the process to
write down what it has, beside the time a scrape may take."""
LEAVE_S = 2.0
"""From the end of its input to its own."""


class Scraping:
    """Started early, since that takes a while, then briefed, marked and ended. Leaving the context ends it in any case."""

    def __init__(self, log: Path, start_s: float = START_S) -> None:
        self._log, self._start_s = log, start_s
        self._briefed = time.monotonic()
        self._over = False
        with open(log, "ab") as sink:
            self._process = Child(
                "inferometer.telemetry.metrics.scraper", called="the scraper of metrics", stderr=sink
            )
        os.set_blocking(self._process.stdin.fileno(), False)
        self._unsent = self._buffer = b""
        self._reports: list[Report] = []
        self._job: Job | None = None

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def cpu_s(self) -> float | None:
        """CPU time that the process has taken so far; None if it is gone."""
        return self._process.cpu_s()

    def __enter__(self) -> Scraping:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """End the process: politely, then not."""
        self._process.end(LEAVE_S)
        self._process.close()

    def brief(self, job: Job) -> None:
        """Hand over the job: the baseline begins."""
        self._job, self._briefed = job, time.monotonic()
        self._tell(job)

    def ready(self) -> Ready | None:
        """Wait until the baseline is in, for as long from the brief as two tries may take; None if the scraper died.

        A scraper that hangs has tried nothing in time: every endpoint timed out then, and the log says so.
        """
        assert self._job is not None, "brief first"
        bound = max(self._start_s, 2 * self._job.timeout_s)
        report = self._hear(Ready, bound - (time.monotonic() - self._briefed))
        if isinstance(report, Ready):
            return report
        if self._over:
            return None
        with self._log.open("a") as log:
            log.write(
                f"the scraper of metrics told of no baseline within {bound:g} s; the load began without it\n"
            )
        missing = {one.shown: "timeout" for one in self._job.endpoints}
        return Ready(endpoints=len(missing), failures=missing)

    def mark(self, phase: str, then: str | None) -> None:
        """Scrape now; does not wait for it. See Mark."""
        self._tell(Mark(phase=phase, then=then))

    def end(self) -> Done:
        """The last scrape; wait for it within bounds, and give the account."""
        assert self._job is not None, "brief first"
        self._tell(Finish())
        report = self._hear(Done, START_S + self._job.timeout_s)
        if isinstance(report, Done):
            return report
        unscraped = [EndpointAccount(url=one.shown, own=one.own) for one in self._job.endpoints]
        return Done(endpoints=unscraped, cpu_s=0.0, failed="the scraper died or hung; what it wrote is kept")

    def _tell(self, message: Job | Mark | Finish) -> None:
        """Send it, or as much as the pipe takes: a scraper that reads no orders holds up no run."""
        self._unsent += msgspec.json.encode(message) + b"\n"
        self._send()

    def _send(self) -> None:
        """Send more of what the pipe has not taken yet."""
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._process.stdin.fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except OSError:  # a scraper that is gone shows when it is listened to
            self._unsent = b""

    def _hear(self, kind: type[Report], timeout_s: float) -> Report | None:
        """The first report of this kind; None if it does not come."""
        until = time.monotonic() + timeout_s
        while not any(isinstance(report, kind) for report in self._reports):
            self._send()
            if not self._readable(until):
                if time.monotonic() >= until:
                    return None
                continue
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                self._over = True
                return None
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            self._reports += [msgspec.json.decode(line, type=Report) for line in lines]
        return next(report for report in self._reports if isinstance(report, kind))

    def _readable(self, until: float) -> bool:
        """Wait until there is a report to read, or room for more orders where some are left."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if self._unsent:
                selector.register(self._process.stdin, selectors.EVENT_WRITE)
            found = selector.select(max(0.0, until - time.monotonic()))
        return any(key.fileobj is self._process.stdout for key, _ in found)
