"""When the next request is due. Pure: time is an argument, nothing sleeps, no clock is read.

| load   | a request is due                                     | what a slow answer changes                  |
| ------ | ---------------------------------------------------- | ------------------------------------------- |
| open   | at its instant, drawn or recorded before the start   | nothing (draft 4.2.3, 4.2.5)                |
| closed | when one of the `slots` becomes free                 | its slot's next request (draft 4.2.4)       |
| turns  | some at their instants or when a slot becomes free,  | what waits for it: turn_pacer.py            |
|        | the others after the answer that they wait for       |                                             |

A request that cannot be sent when due is sent late, and its lateness is on record; none is dropped and none re-anchored.

A closed loop that starts with all its slots at once meets an idle server with a burst, and ends with ever fewer in flight. So
it is led in and led out by requests that are sent like the measured ones and not measured:

    lead-in    its rows, once each, before the first measured request; a slot goes on from one to the other without a pause
    measured   `duration` counts from the first one
    lead-out   the lead-in's rows again, those with whole answers first, until the last measured request has ended; at most as
               many as were measured

The last measured request is that of all workers, each of which has its own slots and requests (Company): one that is through
with its own goes on for the others', or they would be measured with ever fewer in flight.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from inferometer.plan.lead_in import LEAD_PER_SLOT


class Hit(NamedTuple):
    """One request that is due: its row in the schedule, how often that was used up before, and the instant (ns)."""

    row: int
    cycle: int
    due_ns: int


class Ending(NamedTuple):
    """How a request that was given out has ended: in success or not; its slot is free from `at` (ns) on."""

    row: int
    cycle: int
    at: int
    ok: bool


class Pacer(Protocol):
    """What the reactor asks of either kind of load."""

    def take(self, now: int) -> Hit | None:
        """The next request that is due at `now`, or None. Each is given out once."""

    def next_due(self) -> int | None:
        """The instant of the next request, as far as it is known now."""

    def ended(self, end: Ending) -> None:
        """A request given out earlier has ended."""

    def stop(self) -> None:
        """Give out no more."""

    def measured_from(self) -> int | None:
        """When the measured requests began to be due; None: a lead-in still goes before them."""

    @property
    def exhausted(self) -> bool:
        """True once nothing more will be given out."""


class OpenPacer:
    """Open loop: `due_ns[i]` (ascending, absolute) is the instant of request `indexes[i]`, of a phase from `start` on."""

    def __init__(self, indexes: Sequence[int], due_ns: Sequence[int], start: int = 0) -> None:
        self._indexes, self._start = indexes, start
        self._due = due_ns
        self._next = 0
        self._end = len(indexes)

    def take(self, now: int) -> Hit | None:
        """See Pacer."""
        i = self._next
        if i >= self._end or self._due[i] > now:
            return None
        self._next = i + 1
        return Hit(self._indexes[i], 0, self._due[i])

    def next_due(self) -> int | None:
        """See Pacer."""
        return self._due[self._next] if self._next < self._end else None

    def ended(self, end: Ending) -> None:
        """Answers do not move arrivals."""

    def measured_from(self) -> int | None:
        """See Pacer."""
        return self._start

    def stop(self) -> None:
        """See Pacer."""
        self._end = self._next

    @property
    def exhausted(self) -> bool:
        """See Pacer."""
        return self._next >= self._end


class TailPacer:
    """Open loop whose schedule is still being written: `extend` adds what has come, `finish` says that nothing more will.

    A request that is added after it was due is given out at once, and keeps the instant at which it was due.
    """

    def __init__(self, start: int) -> None:
        self._start = start
        self._coming: deque[Hit] = deque()
        self._finished = False

    def extend(self, indexes: Iterable[int], due_ns: Iterable[int]) -> None:
        """More requests, with their instants in ns from the start, behind those there are. None are taken after `stop`."""
        if self._finished:
            return
        start = self._start
        self._coming.extend(Hit(index, 0, start + due) for index, due in zip(indexes, due_ns, strict=True))

    def finish(self) -> None:
        """There are no more."""
        self._finished = True

    def take(self, now: int) -> Hit | None:
        """See Pacer."""
        coming = self._coming
        return coming.popleft() if coming and coming[0].due_ns <= now else None

    def next_due(self) -> int | None:
        """See Pacer."""
        return self._coming[0].due_ns if self._coming else None

    def ended(self, end: Ending) -> None:
        """Answers do not move arrivals."""

    def measured_from(self) -> int | None:
        """See Pacer."""
        return self._start

    def stop(self) -> None:
        """See Pacer."""
        self._coming.clear()
        self._finished = True

    @property
    def exhausted(self) -> bool:
        """See Pacer."""
        return self._finished and not self._coming


class Company(Protocol):
    """The workers that share a closed loop."""

    def arrived(self) -> None:
        """This one's measured requests have all ended."""

    def complete(self) -> bool:
        """Whether those of all have."""


class Alone:
    """A company of one."""

    def arrived(self) -> None:
        """See Company."""

    def complete(self) -> bool:
        """See Company: asked once this one has arrived."""
        return True


class Course:
    """What a slot of a closed loop sends next once it is free: a request, or a conversation by its first request.

    `measured`: rows in their order, once, or with `again` over and over. `duration`: none of them later than so many ns after
    the first; None: no such end. `lead`: rows of the lead-in, whose first is due at `start`; without any, the first measured
    one is. `ended` counts measured requests, or conversations, that are over; `leading` says which rows are not measured.
    `company`: who else measures.
    """

    def __init__(
        self,
        measured: Sequence[int],
        start: int,
        duration: int | None = None,
        *,
        again: bool = False,
        lead: Sequence[int] = (),
        leading: Iterable[int] | None = None,
        company: Company | None = None,
    ) -> None:
        self._measured, self._lead = measured, lead
        self._company = company or Alone()
        self.leading = frozenset(lead if leading is None else leading)
        self._given = self._led = self._open = 0
        self.began = None if lead else start
        self._duration, self._again = duration, again

    def take(self, due: int) -> tuple[int, int] | None:
        """For a slot that is free from `due` on: how often the row was used up before, and the row. None: nothing."""
        if self._led < len(self._lead):
            return self._next_leading()
        if self.began is None:
            self.began = due
        if not self.over(due):
            cycle, at = divmod(self._given, len(self._measured))
            self._given += 1
            self._open += 1
            return cycle, self._measured[at]
        # Bounded, or a request that hangs until its timeout would draw requests behind it without end.
        if not self._lead or self._led >= len(self._lead) + self._given:
            return None
        return self._next_leading() if self._open or not self._company.complete() else None

    def _next_leading(self) -> tuple[int, int]:
        # The lead-in's first wave has cut answers. The last measured requests would meet a server that has more prompts to read
        # than the others met; so the lead-out begins with the wave after it.
        first_wave = len(self._lead) // LEAD_PER_SLOT if self._led >= len(self._lead) else 0
        cycle, at = divmod(self._led + first_wave, len(self._lead))
        self._led += 1
        return cycle, self._lead[at]

    def ended(self, row: int) -> None:
        """The request in this row, or the conversation that it is of, is over."""
        self._open -= row not in self.leading

    @property
    def all_given(self) -> bool:
        """Whether the measured rows are used up."""
        return not self._again and self._given >= len(self._measured)

    def out_of_time(self, at: int) -> bool:
        """Whether the duration is over at `at`."""
        return self._duration is not None and self.began is not None and at >= self.began + self._duration

    def over(self, at: int) -> bool:
        """Whether no measured row is given out at `at` or later."""
        return self.all_given or self.out_of_time(at)

    def led_out(self, at: int) -> bool:
        """Whether there is a lead-out, and at `at` all that it was for has ended."""
        if not self._lead or self.began is None or self._open or not self.over(at):
            return False
        self._company.arrived()
        return self._company.complete()


class ClosedPacer:
    """Closed loop: `slots` requests in flight from `start` on, each the next of its Course."""

    def __init__(
        self,
        indexes: Sequence[int],
        slots: int,
        start: int,
        duration: int | None = None,
        *,
        again: bool = False,
        lead: Sequence[int] = (),
        company: Company | None = None,
    ) -> None:
        self._course = Course(indexes, start, duration, again=again, lead=lead, company=company)
        self._leads = bool(lead)
        self._free = [start] * (slots if indexes else 0)
        self._stopped = not indexes

    def take(self, now: int) -> Hit | None:
        """See Pacer."""
        if self._stopped or not self._free or self._free[0] > now:
            return None
        due = heapq.heappop(self._free)
        found = self._course.take(due)
        self._stopped = found is None or (self._course.all_given and not self._leads)
        return None if found is None else Hit(found[1], found[0], due)

    def next_due(self) -> int | None:
        """See Pacer."""
        return self._free[0] if self._free and not self._stopped else None

    def ended(self, end: Ending) -> None:
        """See Pacer."""
        self._course.ended(end.row)
        heapq.heappush(self._free, end.at)
        if self._course.led_out(end.at):
            self._stopped = True

    def measured_from(self) -> int | None:
        """See Pacer."""
        return self._course.began

    def stop(self) -> None:
        """See Pacer."""
        self._stopped = True

    @property
    def exhausted(self) -> bool:
        """See Pacer."""
        return self._stopped


class LaterPacer:
    """A pacer of what was gone through `cycle` times before: its requests carry other nonces than those."""

    def __init__(self, pacer: Pacer, cycle: int) -> None:
        self._pacer, self._cycle = pacer, cycle

    def take(self, now: int) -> Hit | None:
        """See Pacer."""
        hit = self._pacer.take(now)
        return None if hit is None else hit._replace(cycle=hit.cycle + self._cycle)

    def next_due(self) -> int | None:
        """See Pacer."""
        return self._pacer.next_due()

    def ended(self, end: Ending) -> None:
        """See Pacer."""
        self._pacer.ended(end._replace(cycle=end.cycle - self._cycle))

    def measured_from(self) -> int | None:
        """See Pacer."""
        return self._pacer.measured_from()

    def stop(self) -> None:
        """See Pacer."""
        self._pacer.stop()

    @property
    def exhausted(self) -> bool:
        """See Pacer."""
        return self._pacer.exhausted


def deal(count: int, worker: int, workers: int, slots: int | None) -> range | list[int]:
    """The schedule indexes of one worker.

    Open loop (`slots` None): every `workers`-th, so that the superposition is the one process drawn. Closed loop: request
    i belongs to slot i mod slots and slot s to worker s mod workers, so that each worker's share of the requests is its
    share of the slots.
    """
    if slots is None:
        return range(worker, count, workers)
    return [i for i in range(count) if (i % slots) % workers == worker]


def slots_of(worker: int, workers: int, slots: int) -> int:
    """How many of the `slots` belong to this worker."""
    return slots // workers + (worker < slots % workers)
