"""The scraper of a run: a process of its own, `python -m inferometer.telemetry.metrics.scraper`.

Messages are those of scraper_messages.py.

Its life: read the Job; try every endpoint once (the baseline) and say Ready; then one scrape of each at every Mark and at every
interval in between; at Finish a last one, and Done. When the parent is gone it writes down what it has and leaves.

A thread an endpoint, so that one that hangs holds up no other. Their work is waiting, and a join and a decode a scrape; a body
is not parsed here. What they bring goes to the record by a thread of its own (appender.py), one compressed frame a second.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from inferometer.isolation import undisturbed
from inferometer.journal.redact import Redactor
from inferometer.printable import guard_stderr
from inferometer.telemetry.machines.local_source import LocalSource
from inferometer.telemetry.machines.meters import opened
from inferometer.telemetry.metrics.appender import Appender
from inferometer.telemetry.metrics.fetch import BEGINNING, INTERNAL, UNANSWERED, Failed, Fetcher
from inferometer.telemetry.metrics.record import Scrape
from inferometer.telemetry.metrics.scraper_messages import (
    SHORTEST_SECRET,
    Done,
    Endpoint,
    EndpointAccount,
    Finish,
    Job,
    Order,
    Ready,
    Report,
)

NICE = 10
"""Whoever sends and stamps has the first call on a core."""
WRITE_S = 5.0
"""At its end it waits so long for a disk that does not answer."""
RETRY_S = 5.0
"""The longest pause before an endpoint that failed is tried again; it doubles from the interval on."""
LONGEST_TYPE = 200
"""Characters of a Content-Type that are kept."""


class Post(threading.Thread):
    """One endpoint: its connection, its account, and when it is scraped next."""

    def __init__(
        self, place: int, job: Job, appender: Appender, tried: Callable[[], None], redact: Redactor
    ) -> None:
        super().__init__(daemon=True)
        self._job, self._redact = job, redact
        self._endpoint: Endpoint = job.endpoints[place]
        local = self._endpoint.local
        self._interval_ns = job.interval_ns if local is None else local.interval_ns
        self._fetcher = (
            Fetcher(self._endpoint, job.timeout_s) if local is None else LocalSource(local, opened)
        )
        self._appender = appender
        self._tried = tried
        self._orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self._failures = 0
        # Endpoints take turns within an interval.
        self._shift_ns = self._interval_ns * (place + 1) // len(job.endpoints)
        self.account = EndpointAccount(url=self._endpoint.shown, own=self._endpoint.own)

    def order(self, order: Order) -> None:
        """To be carried out as soon as a scrape under way has ended."""
        self._orders.put(order)

    def run(self) -> None:
        """From the baseline to the last scrape."""
        self._baseline()
        self._tried()
        if self.account.absent is not None:
            return
        # Nobody asks a server between the baseline and the load, but what this machine takes while idle is read.
        order: Order | None = self._orders.get() if self._endpoint.local is None else None
        grid = time.monotonic_ns() + self._shift_ns
        phase: str | None = "baseline"
        while True:
            if isinstance(order, Finish):
                if isinstance(self._fetcher, LocalSource):
                    self._fetcher.comes_last()
                self._scrape("final")
                self._fetcher.close()
                return
            if order is None:
                self._scrape(phase)
            else:
                phase = order.then
                self._scrape(order.phase)
            grid = self._next(grid)
            order = self._wait(grid)

    def _wait(self, until: int) -> Order | None:
        """The order that comes first, or None at the instant."""
        try:
            return self._orders.get(timeout=max(0.0, (until - time.monotonic_ns()) / 1e9))
        except queue.Empty:
            return None

    def _next(self, grid: int) -> int:
        """The first instant of the grid, from `grid` on, that lies ahead; after failures, behind a pause that doubles."""
        interval, now = self._interval_ns, time.monotonic_ns()
        self.account.skipped += max(0, _instants(now - grid, interval) - 1)
        pause = 0
        if self._failures > 1:
            pause = min(interval << min(self._failures - 1, 30), int(RETRY_S * 1e9)) - interval
        return grid + max(0, _instants(now + max(0, pause) - grid, interval)) * interval

    def _baseline(self) -> None:
        """The first try. The target's own endpoint, which nobody has named, may not be there: then it is left alone."""
        scrape = self._attempt("baseline")
        if self._endpoint.own and scrape.error is not None and _is_answer(scrape.error):
            self.account.absent = scrape.error
            self._fetcher.close()
        else:
            self._appender.add(scrape)

    def _scrape(self, phase: str | None) -> None:
        self._appender.add(self._attempt(phase))

    def _attempt(self, phase: str | None) -> Scrape:
        began = time.monotonic_ns()
        offset, url, account = self._job.clock_offset_ns, self._endpoint.shown, self.account
        try:
            fetched = self._fetcher.get()
            text = self._redact(fetched.text)
        except Exception as cause:
            # A thread that dies would leave the run waiting for its baseline, and all endpoints without one.
            failure = (
                cause if isinstance(cause, Failed) else Failed(INTERNAL, f"{type(cause).__name__}: {cause}")
            )
            self._failures += 1
            account.errors[failure.reason] = account.errors.get(failure.reason, 0) + 1
            account.words.setdefault(failure.reason, self._redact.line(failure.words, BEGINNING))
            taken = time.monotonic_ns() - began
            return Scrape(url, began + offset, None, taken, phase=phase, error=failure.reason)
        self._failures = 0
        account.instead = self._fetcher.instead
        account.scrapes += 1
        account.characters += len(fetched.text)
        kind = fetched.content_type
        kind = None if kind is None else self._redact.short(kind, LONGEST_TYPE)
        return Scrape(url, fetched.first_byte_ns + offset, text, fetched.latency_ns, kind, phase)


def _instants(duration: int, interval: int) -> int:
    """How many intervals begin within a duration: it divided by them, rounded up."""
    return -(-duration // interval)


def _is_answer(reason: str) -> bool:
    """Whether the endpoint is there and shows no metrics, as opposed to: not there now, or too busy."""
    return reason not in {*UNANSWERED, INTERNAL} and not reason.startswith("http_5") and reason != "http_429"


def redactor_of(job: Job) -> Redactor:
    """What strikes a job's secrets out of all that its endpoints say."""
    return Redactor(secret for secret in job.secrets if len(secret) >= SHORTEST_SECRET)


class Scraper:
    """All endpoints of one run. `say` hands a report to the parent, from any thread."""

    def __init__(self, job: Job, say: Callable[[Report], None]) -> None:
        self._say = say
        self._timeout_s = job.timeout_s
        self._lock = threading.Lock()
        self._untried = len(job.endpoints)
        self.appender = Appender(Path(job.record))
        redact = redactor_of(job)
        self._posts = [
            Post(place, job, self.appender, self._tried, redact) for place in range(len(job.endpoints))
        ]

    def begin(self) -> None:
        """Start with the baseline."""
        self.appender.start()
        for post in self._posts:
            post.start()

    def _tried(self) -> None:
        with self._lock:
            self._untried -= 1
            if self._untried:
                return
        accounts = [post.account for post in self._posts]
        failures = {one.url: next(iter(one.errors)) for one in accounts if one.errors}
        ready = Ready(endpoints=sum(one.absent is None for one in accounts), failures=failures)
        # A parent that does not listen holds up no endpoint.
        threading.Thread(target=self._say, args=(ready,), daemon=True).start()

    def order(self, order: Order) -> None:
        """Pass an order on to every endpoint."""
        for post in self._posts:
            post.order(order)

    def end(self) -> Done:
        """Wait for what is under way, within bounds, and give the account."""
        until = time.monotonic() + self._timeout_s
        for post in self._posts:
            post.join(max(0.0, until - time.monotonic()))
        self.appender.close(WRITE_S)
        accounts = [msgspec.structs.replace(post.account) for post in self._posts]
        return Done(endpoints=accounts, cpu_s=time.process_time(), failed=self.appender.failed)


def main() -> None:
    """The process: orders from stdin, until Finish or the end of it. Signals to a whole group of processes reach it too; the
    parent says what happens."""
    undisturbed()
    guard_stderr()
    with contextlib.suppress(OSError):
        os.nice(NICE)
    buffer, lock = b"", threading.Lock()

    def say(report: Report) -> None:
        left = memoryview(msgspec.json.encode(report) + b"\n")
        with lock, contextlib.suppress(OSError):
            while left:
                left = left[os.write(1, left) :]

    scraper: Scraper | None = None
    while data := os.read(0, 1 << 16):
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            if scraper is None:
                job = msgspec.json.decode(line, type=Job)
                guard_stderr(redactor_of(job).strike)
                scraper = Scraper(job, say)
                scraper.begin()
                continue
            order = msgspec.json.decode(line, type=Order)
            scraper.order(order)
            if isinstance(order, Finish):
                say(scraper.end())
                return
    if scraper is not None:
        scraper.appender.close(WRITE_S)


if __name__ == "__main__":
    main()
