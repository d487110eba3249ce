"""When the next request is due. Pure: time is an argument, nothing sleeps, no clock is read.

| load   | a request is due                                     | what a slow answer changes                  |
| ------ | ---------------------------------------------------- | ------------------------------------------- |
| open   | at its instant, drawn or recorded before the start   | nothing (draft 4.2.3, 4.2.5)                |
| closed | when one of the `slots` becomes free                 | its slot's next request (draft 4.2.4)       |
| turns  | some at their instants or when a slot becomes free,  | what waits for it: TurnPacer                |
|        | the others after the answer that they wait for       |                                             |

A request that cannot be sent when due is sent late, and its lateness is on record; none is dropped and none re-anchored.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from inferometer.engines.dialect import extended, inserted, messages_bytes
from inferometer.journal.schedule import Schedule, Tail
from inferometer.journal.schema import Phase


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

    @property
    def exhausted(self) -> bool:
        """True once nothing more will be given out."""


class OpenPacer:
    """Open loop: `due_ns[i]` (ascending, absolute) is the instant of request `indexes[i]`."""

    def __init__(self, indexes: Sequence[int], due_ns: Sequence[int]) -> None:
        self._indexes = indexes
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

    def stop(self) -> None:
        """See Pacer."""
        self._coming.clear()
        self._finished = True

    @property
    def exhausted(self) -> bool:
        """See Pacer."""
        return self._finished and not self._coming


class ClosedPacer:
    """Closed loop: `slots` requests in flight from `start` on, until all are given out or `until` is reached.

    With `again` the schedule is gone through over and over, and only `until` ends it.
    """

    def __init__(
        self, indexes: Sequence[int], slots: int, start: int, until: int | None = None, *, again: bool = False
    ) -> None:
        self._indexes = indexes
        self._free = [start] * (slots if indexes else 0)
        self._next = 0
        self._until = until
        self._again = again
        self._stopped = not indexes

    def take(self, now: int) -> Hit | None:
        """See Pacer."""
        if self._stopped or not self._free or self._free[0] > now:
            return None
        due = heapq.heappop(self._free)
        if self._until is not None and due >= self._until:
            self._stopped = True
            return None
        cycle, at = divmod(self._next, len(self._indexes))
        self._next += 1
        if not self._again and self._next >= len(self._indexes):
            self._stopped = True
        return Hit(self._indexes[at], cycle, due)

    def next_due(self) -> int | None:
        """See Pacer."""
        return self._free[0] if self._free and not self._stopped else None

    def ended(self, end: Ending) -> None:
        """See Pacer."""
        heapq.heappush(self._free, end.at)

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


# One worker's part of one phase: which rows of the schedule are its, when they are due, and the bytes of each.


class Share:
    """What one of so many `workers` has to send. `slots`: of the closed loop over all workers; None: open loop.

    `part`: of the phase only the rows from the first up to before the second. `cycle`: how often they were sent before.
    """

    listens = False
    """Whether what is sent depends on what was answered: then `ended` is to be called."""

    def __init__(
        self,
        schedule: Schedule,
        phase: int,
        slots: int | None,
        worker: int = 0,
        workers: int = 1,
        part: tuple[int, int] | None = None,
        cycle: int = 0,
    ) -> None:
        self._schedule = schedule
        self.slots, self._worker, self._workers = slots, worker, workers
        self._phase, self._cycle = phase, cycle
        first, stop = part or (0, len(schedule))
        phases = schedule.table.column("phase").slice(first, stop - first).to_pylist()
        self._rows = [row for row, its_phase in enumerate(phases, first) if its_phase == phase]
        self._classes: bytes = schedule.table.column("request_class").fill_null(0).to_numpy().tobytes()
        # A single probe has no use for them, and is asked for often.
        columns = ["nonce_at", "nonce_len", "phase"] if part is None or cycle else []
        self._nonces: dict[str, list[int]] = schedule.table.select(columns).to_pydict()
        self._marked: dict[int, int] | None = None  # which rows have a nonce, found when it is needed
        self._others: list[int] = []

    def pacer(self, start_ns: int, duration_ns: int = 0, *, again: bool = False) -> Pacer:
        """When they are due, from `start_ns` on. `duration_ns` 0: until all is sent. `again`: over and over."""
        pacer = self._paced(start_ns, duration_ns, again=again)
        return LaterPacer(pacer, self._cycle) if self._cycle else pacer

    def _paced(self, start_ns: int, duration_ns: int, *, again: bool) -> Pacer:
        rows = self._rows
        mine: Sequence[int] = deal(len(rows), self._worker, self._workers, self.slots)
        chosen = [rows[i] for i in mine]
        if self.slots is None:
            due = self._schedule.table.column("due_ns").to_numpy()
            return OpenPacer(chosen, [start_ns + int(due[row]) for row in chosen])
        slots = slots_of(self._worker, self._workers, self.slots)
        until = start_ns + duration_ns if duration_ns else None
        return ClosedPacer(chosen, slots, start_ns, until, again=again)

    def body(self, hit: Hit) -> bytes:
        """The body of a request that is due."""
        body = self._schedule.body(hit.row)
        return self._renew_nonce(body, hit) if hit.cycle else body

    def request_class(self, hit: Hit) -> int:
        """The class of a request that is due; 0 where it has none."""
        return self._classes[hit.row]

    def ended(self, end: Ending, reply: str) -> None:
        """A request has ended; `reply` is what the server answered."""

    def _renew_nonce(self, body: bytes, hit: Hit) -> bytes:
        """The schedule is gone through again: pair this body with another's nonce, so that no prefix recurs."""
        at, length = self._nonces["nonce_at"][hit.row], self._nonces["nonce_len"][hit.row]
        if at < 0:
            return body
        if self._marked is None:
            rows = zip(self._nonces["phase"], self._nonces["nonce_at"], strict=True)
            marked = [row for row, (phase, nonce) in enumerate(rows) if phase == self._phase and nonce >= 0]
            self._marked = {row: number for number, row in enumerate(marked)}
            self._others = marked
        other = self._others[(self._marked[hit.row] + hit.cycle) % len(self._others)]
        other_at = self._nonces["nonce_at"][other]
        nonce = self._schedule.body(other)[other_at : other_at + length]
        return body[:at] + nonce + body[at + length :]


class TailShare:
    """The part of one of so many `workers` in a phase whose schedule is still being written.

    Its requests wait for no answers. `first`: row of the schedule that the appended part begins with. The i-th request of the
    phase is worker i mod workers', as in any open loop.
    """

    listens = False

    def __init__(self, tail: Tail, first: int, start_ns: int, worker: int = 0, workers: int = 1) -> None:
        self._tail, self._first, self._worker, self._workers = tail, first, worker, workers
        self.pacer = TailPacer(start_ns)

    def read_on(self, size: int, *, final: bool) -> None:
        """Take in what has been appended. `final`: nothing more will be."""
        worker, workers, first = self._worker, self._workers, self._first
        for row, due in self._tail.read_on(size):
            skip = (worker - row) % workers
            self.pacer.extend(range(first + row + skip, first + row + len(due), workers), due[skip::workers])
        if final:
            self.pacer.finish()

    def body(self, hit: Hit) -> bytes:
        """The body of a request that is due."""
        return self._tail.body(hit.row - self._first)

    def request_class(self, _hit: Hit) -> int:
        """0: a trace's requests have no class."""
        return 0

    def ended(self, end: Ending, reply: str) -> None:
        """See Share."""


# Requests that wait for answers: turns of conversations, and users who ask one thing at a time.
#
# A lane is a chain of requests of which one is in flight at most. The next is due a think time after the answer before it, and
# where it has an instant of its own, not before that. A lane is
#
# | load   | each of                                            | from                   |
# | ------ | -------------------------------------------------- | ---------------------- |
# | open   | the conversations                                  | its arrival on         |
# | users  | all that one user asks                             | the start on           |
# | closed | the conversations of one slot, one after the other | the start on           |
#
# When a turn fails, nobody knows what a later one would repeat: the rest of its conversation is left out, and the lane goes on
# with what comes after.
#
# What a turn repeats is put in front of its own messages here: the messages of the turns before it, as they were sent, and
# behind each the server's answer to it, or the recorded one.


class Lanes:
    """Which row follows which, and when: one entry a row of the schedule, of all phases.

    `follower`: the row that comes next in its lane, or -1. `due_ns`: from the phase's start, or -1 where it has no instant.
    """

    def __init__(self, schedule: Schedule) -> None:
        table = schedule.table.select(["session", "turn", "think_ns", "user", "due_ns"])
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
        self.turn: list[int] = columns["turn"]
        self.think_ns: list[int] = columns["think_ns"]
        self.due_ns: list[int] = [-1 if due is None else due for due in columns["due_ns"]]
        self.session: list[int | None] = columns["session"]
        self.user: list[int | None] = columns["user"]

    def chains(self, rows: Sequence[int]) -> tuple[list[int], dict[int, int]]:
        """The first row of each lane among these, and the follower of each row that has one."""
        firsts: list[int] = []
        follower: dict[int, int] = {}
        last: dict[int, int] = {}
        for row in rows:
            user = self.user[row]
            before = row - 1 if user is None and self.turn[row] else last.get(-1 if user is None else user)
            if user is not None:
                last[user] = row
            if before is None:
                firsts.append(row)
            else:
                follower[before] = row
        return firsts, follower


class TurnPacer:
    """Lanes of turns. `slots` None: each lane begins at its own instant; else so many at a time begin in their order.

    `until`: nothing is given out that would be due then or later; in a closed loop, nothing more at all once that is so.
    `again`: closed loop only, the lanes are gone through over and over.
    """

    def __init__(
        self,
        lanes: Lanes,
        rows: Sequence[int],
        start: int,
        slots: int | None,
        until: int | None = None,
        *,
        again: bool = False,
    ) -> None:
        self._lanes, self._start, self._until, self._again = lanes, start, until, again
        self._firsts, self._follower = lanes.chains(rows)
        self._slots = slots
        self._begun = 0
        self._stopped = False
        # What is due when: the instant, the cycle, the row; -1 stands for whichever conversation is next.
        self._waiting: list[tuple[int, int, int]] = []
        if slots is None:
            self._waiting = [(start + lanes.due_ns[row], 0, row) for row in self._firsts]
        elif self._firsts:
            self._waiting = [(start, 0, -1)] * (slots if again else min(slots, len(self._firsts)))
        heapq.heapify(self._waiting)

    def take(self, now: int) -> Hit | None:
        """See Pacer."""
        while self._waiting and self._waiting[0][0] <= now:
            due, cycle, row = heapq.heappop(self._waiting)
            if self._until is not None and due >= self._until:
                if self._slots is not None:
                    self.stop()
                continue
            if row < 0:
                cycle, at = divmod(self._begun, len(self._firsts))
                if cycle and not self._again:
                    continue
                self._begun += 1
                row = self._firsts[at]
            return Hit(row, cycle, due)
        return None

    def next_due(self) -> int | None:
        """See Pacer."""
        return self._waiting[0][0] if self._waiting else None

    def ended(self, end: Ending) -> None:
        """See Pacer. What waited for this answer comes next."""
        if self._stopped:
            return
        lanes, follower = self._lanes, self._follower
        following = follower.get(end.row, -1)
        while not end.ok and following >= 0 and lanes.turn[following]:
            following = follower.get(following, -1)
        if following >= 0:
            due = end.at + lanes.think_ns[following] * (lanes.turn[following] > 0)
            if lanes.due_ns[following] >= 0:
                due = max(due, self._start + lanes.due_ns[following])
            heapq.heappush(self._waiting, (due, end.cycle, following))
        elif self._slots is not None:
            heapq.heappush(self._waiting, (end.at, 0, -1))

    def stop(self) -> None:
        """See Pacer."""
        self._stopped = True
        self._waiting.clear()

    @property
    def exhausted(self) -> bool:
        """See Pacer. True also while answers are awaited that more may follow: then something is in flight."""
        return not self._waiting


class TurnShare(Share):
    """As Share, of requests that wait for answers. A session, or all that a user asks, is one worker's."""

    listens = True

    def __init__(
        self,
        schedule: Schedule,
        phase: int,
        slots: int | None,
        worker: int = 0,
        workers: int = 1,
        part: tuple[int, int] | None = None,
        cycle: int = 0,
    ) -> None:
        super().__init__(schedule, phase, slots, worker, workers, part, cycle)
        self._lanes = Lanes(schedule)
        own = schedule.table.select(["own_at", "own_len", "reply"])
        self._own_at, self._own_len = own.column("own_at").to_pylist(), own.column("own_len").to_pylist()
        self._reply = own.column("reply")
        self._history: dict[tuple[int, int], bytes] = {}  # by session and cycle
        self._sent: dict[tuple[int, int], bytes] = {}  # the own messages of what is in flight

    def _paced(self, start_ns: int, duration_ns: int, *, again: bool) -> TurnPacer:
        lanes, rows = self._lanes, self._rows
        firsts, follower = lanes.chains(rows)
        mine: list[int] = []
        for at in deal(len(firsts), self._worker, self._workers, self.slots):
            row = firsts[at]
            while row >= 0:
                mine.append(row)
                row = follower.get(row, -1)
        slots = None if self.slots is None else slots_of(self._worker, self._workers, self.slots)
        until = start_ns + duration_ns if duration_ns else None
        return TurnPacer(lanes, mine, start_ns, slots, until, again=again)

    def body(self, hit: Hit) -> bytes:
        """The body of a turn, with all that it repeats."""
        body = super().body(hit)
        at = self._own_at[hit.row]
        session = self._lanes.session[hit.row]
        if at < 0 or session is None:
            return body
        turn = self._lanes.turn[hit.row]
        self._sent[hit.row, hit.cycle] = body[at : at + self._own_len[hit.row]]
        return inserted(body, at, self._history.get((session, hit.cycle), b"") if turn else b"")

    def ended(self, end: Ending, reply: str) -> None:
        """See Share. After a failure the conversation ends."""
        own = self._sent.pop((end.row, end.cycle), None)
        session = self._lanes.session[end.row]
        if own is None or session is None:
            return
        key = (session, end.cycle)
        history = self._history.pop(key, b"") if self._lanes.turn[end.row] else b""
        if not end.ok or not self._goes_on(end.row):
            return
        recorded = self._reply[end.row].as_py()
        repeated = messages_bytes([("assistant", reply)]) if recorded is None else recorded
        self._history[key] = extended(history, own, repeated)

    def _goes_on(self, row: int) -> bool:
        turns = self._lanes.turn
        return row + 1 < len(turns) and turns[row + 1] == turns[row] + 1


def share_of(
    schedule: Schedule,
    phase: int,
    slots: int | None,
    worker: int = 0,
    workers: int = 1,
    part: tuple[int, int] | None = None,
    cycle: int = 0,
) -> Share:
    """The part of one of so many workers, in the way the phase's requests ask for. `part`, `cycle`: see job.Go.

    A probe is due at once, whatever the load.
    """
    if phase == Phase.PROBE:
        return Share(schedule, phase, None, worker, workers, part, cycle)
    table = schedule.table
    alone = table.column("session").null_count == table.column("user").null_count == len(schedule)
    return (Share if alone else TurnShare)(schedule, phase, slots, worker, workers, part, cycle)
