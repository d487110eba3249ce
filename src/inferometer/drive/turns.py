"""Requests that wait for answers: turns of conversations, and users who ask one thing at a time. Pure, as pacer.py is.

A lane is a chain of requests of which one is in flight at most. The next is due a think time after the answer before it, and
where it has an instant of its own, not before that. A lane is

| load   | each of                                            | from                   |
| ------ | -------------------------------------------------- | ---------------------- |
| open   | the conversations                                  | its arrival on         |
| users  | all that one user asks                             | the start on           |
| closed | the conversations of one slot, one after the other | the start on           |

When a turn fails, nobody knows what a later one would repeat: the rest of its conversation is left out, and the lane goes on
with what comes after.

What a turn repeats is put in front of its own messages here: the messages of the turns before it, as they were sent, and
behind each the server's answer to it, or the recorded one.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from inferometer.drive.pacer import Ending, Hit, deal, slots_of
from inferometer.drive.schedule_partition import Share
from inferometer.engines.conversation import extended, inserted, messages_bytes
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import Phase


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
