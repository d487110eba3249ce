"""The requests of a trace, made and written ahead of the clock: a trace may be longer than anybody wants to wait for.

    trace -> workload -> journal (requests.arrows, piece by piece) -> the workers, who are told how much there is

The parent makes them before the start, since making them takes a core that the workers may need, but for PATIENCE_NS at most.
The rest it makes while it watches, and stays AHEAD_NS of the load ahead. A request that is written after it was due is sent
late by a worker, as any late request is: none is dropped, and no other moves. How many there were is kept (`unprepared`), so
that the verdict can name the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Protocol

import msgspec

from inferometer.documents.run_facts import RequestFacts
from inferometer.documents.workload import TraceFacts, WarmPrefixes
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import PIECE, Appender, Scheduled, write
from inferometer.journal.schema import Phase
from inferometer.plan.schema import Plan
from inferometer.run.warmup import Rows
from inferometer.units import NS_PER_S, ns_to_ms
from inferometer.workload.nonces import NONCES
from inferometer.workload.prompts import Fingerprint, Prompt
from inferometer.workload.shared_prefixes import Composer
from inferometer.workload.sources import TraceRows
from inferometer.workload.traces.repeats import Repeats
from inferometer.workload.traces.survey import Arrival, replay

AHEAD_NS = 30 * NS_PER_S
PATIENCE_NS = 10 * NS_PER_S
"""Enough for some 50,000 requests with prompts of 1,000 tokens. People wait as long for a start."""

Compose = Callable[[int], Composer]
"""From a salt to the maker of prompts."""
Make = Callable[[Phase, int, Iterable[Prompt], Iterable[int | None]], Iterator[Scheduled]]
"""Requests as bytes: of a phase, from a row of the schedule on, these prompts at these instants."""
Probes = Callable[[Sequence[Prompt], int], Iterable[Scheduled]]
"""The probes of a warm-up of these prompts, from a row of the schedule on."""
Announce = Callable[[int, bool], None]
"""Tells the workers up to which size the appended schedule may be read, and whether that is all of it."""
Clock = Callable[[], int]
"""The monotonic clock, in ns."""


def nobody(size: int, complete: bool) -> None:
    """An Announce to no worker."""


class Ahead(Protocol):
    """What writes the rest of a schedule while the load runs."""

    def began(self, start_ns: int) -> None:
        """When the measurement starts or started, on the monotonic clock."""

    def write_on(self) -> bool:
        """Write one more piece, unless there is enough. Whether there is more to do now."""

    def write_all(self) -> None:
        """Write what is left: for virtual time, which waits."""

    def close(self) -> None:
        """Nothing more is written."""

    def course(self) -> TraceFacts:
        """The trace, and how its replay went: requests that were written too late, and the best possible prefix-hit rates."""


class Replayed:
    """Every request of a replay as bytes: the warm-up's whole, the measurement's ahead of the clock.

    `rows` are written so far; the measurement will have `measured`, and the warm-up has `warm`. `appended`: the row that the
    measurement begins with.
    """

    def __init__(
        self,
        plan: Plan,
        source: TraceRows,
        folder: RunFolder,
        salt: int,
        compose: Compose,
        make: Make,
        probes: Probes,
        clock: Clock,
    ) -> None:
        assert plan.trace is not None
        found = source.trace
        self.salt = salt
        self.measured = found.facts.rows
        self.total: int | None = found.facts.rows
        self.warm = min(plan.load.warmup, found.facts.rows)
        self.rows = self.appended = 0
        self.unprepared = self.unprepared_ns = 0
        self._trace, self._survey, self._folder, self._source = plan.trace, found, folder, source
        self._compose, self._make, self._clock = compose, make, clock
        self._probes = probes
        self.warm_rows = Rows(0, 0, indivisible=False)
        self._fingerprint = Fingerprint()
        self._repeats = Repeats(repeatable=plan.workload.repeatable_prompts)
        self._announce: Announce = nobody
        self._start: int | None = None
        self._reached = 0  # when the last request written is due
        self._arrivals: Iterator[Arrival] = iter(())
        self._composer: Composer | None = None
        self._appender: Appender | None = None

    @property
    def ahead(self) -> Ahead:
        """See RequestWriter: this, which writes on."""
        return self

    def course(self) -> TraceFacts:
        """See Ahead."""
        return msgspec.structs.replace(
            self._survey.facts,
            unprepared=self.unprepared,
            unprepared_ms=ns_to_ms(self.unprepared_ns),
            prefix_hits=self._repeats.facts(),
        )

    @property
    def fingerprint(self) -> str | None:
        """As of any requests (workload/prompts.py); None until all of them are made."""
        return str(self._fingerprint) if self._all else None

    def facts(self) -> RequestFacts:
        """See RequestWriter: they are of no class and of no file of prompts."""
        prefixes: WarmPrefixes = "not populated" if self._survey.facts.shares_prefixes else "none shared"
        return RequestFacts(self.fingerprint, None, prefixes, self._source.facts())

    def warm_up(self) -> None:
        """Write the warm-up: the trace's first requests at their own instants, with nonces that nothing measured has; and its
        probes."""
        composer = self._compose((self.salt + NONCES // 2) % NONCES)
        first = list(islice(replay(self._trace, self._survey), self.warm))
        prompts = [composer.prompt(row) for _, row in first]
        warm = self._make(Phase.WARMUP, 0, prompts, [due for due, _ in first])
        probes = list(self._probes(prompts, len(first)))
        write(self._folder.schedule, chain(warm, probes))
        self.warm_rows = Rows(len(first), len(probes), indivisible=False)
        self.rows = self.appended = len(first) + len(probes)

    def measurement(self, announce: Announce = nobody) -> None:
        """Write all of it, or what can be made in PATIENCE_NS; the rest comes by `write_on`."""
        if not self.rows:
            write(self._folder.schedule, ())
        self._announce = announce
        self._appender = Appender(self._folder.schedule)
        self._composer = self._compose(self.salt)
        self._arrivals = replay(self._trace, self._survey)
        patience = self._clock() + PATIENCE_NS
        while not self._all:
            self._write_piece()
            if self._clock() >= patience:
                return

    def began(self, start_ns: int) -> None:
        """When the measurement starts or started, on the monotonic clock."""
        self._start = start_ns

    def write_on(self) -> bool:
        """Write one more piece, unless there is enough. Whether there is more to do now."""
        elapsed = 0 if self._start is None else self._clock() - self._start
        if self._all or (self.rows > self.appended and self._reached - elapsed >= AHEAD_NS):
            return False
        self._write_piece()
        return True

    def write_all(self) -> None:
        """Write what is left: for virtual time, which waits."""
        while not self._all:
            self._write_piece()

    def close(self) -> None:
        """Nothing more is written."""
        if self._appender is not None:
            self._appender.close()
            self._appender = None

    @property
    def _all(self) -> bool:
        return self.rows - self.appended == self.measured

    def _write_piece(self) -> None:
        assert self._appender is not None, "measurement first"
        assert self._composer is not None, "measurement first"
        arrivals = list(islice(self._arrivals, PIECE))
        for _, row in arrivals:
            self._repeats.add(row)
        prompts = self._fingerprint.of(self._composer.prompt(row) for _, row in arrivals)
        due = [due_ns for due_ns, _ in arrivals]
        self._appender.append(list(self._make(Phase.MEASURE, self.rows, prompts, due)))
        self.rows += len(arrivals)
        self._reached = due[-1]
        self._announce(self._appender.size, self._all)
        if self._start is not None:
            late = [behind for due_ns in due if (behind := self._clock() - self._start - due_ns) > 0]
            self.unprepared += len(late)
            self.unprepared_ns = max([self.unprepared_ns, *late])
