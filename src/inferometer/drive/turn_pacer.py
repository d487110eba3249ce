"""Requests that wait for answers: turns of conversations, and users who ask one thing at a time.

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

from inferometer.drive.pacer import Company, Course, Ending, Hit
from inferometer.journal.schedule import Schedule


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
    """Lanes of turns. `slots` None: each lane begins at its own instant; else so many at a time, each the next of its Course.

    `duration`: no measured turn is given out that would be due so many ns after the first, or later.
    """

    def __init__(
        self,
        lanes: Lanes,
        rows: Sequence[int],
        start: int,
        slots: int | None,
        duration: int | None = None,
        *,
        again: bool = False,
        lead: Sequence[int] = (),
        company: Company | None = None,
    ) -> None:
        self._lanes, self._start, self._slots = lanes, start, slots
        firsts, follower = lanes.chains(rows)
        lead_firsts, lead_follower = lanes.chains(lead)
        self._follower = follower | lead_follower
        self._course = Course(
            firsts, start, duration, again=again, lead=lead_firsts, leading=lead, company=company
        )
        self._stopped = self._given_up = False
        # What is due when: the instant, the cycle, the row; -1 stands for whichever conversation is next.
        self._waiting: list[tuple[int, int, int]] = []
        if slots is None:
            self._waiting = [(start + lanes.due_ns[row], 0, row) for row in firsts]
        elif firsts:
            self._waiting = [(start, 0, -1)] * (slots if again or lead else min(slots, len(firsts)))
        heapq.heapify(self._waiting)

    def take(self, now: int) -> Hit | None:
        """See Pacer."""
        course = self._course
        while self._waiting and self._waiting[0][0] <= now:
            due, cycle, row = heapq.heappop(self._waiting)
            if row >= 0 and self._too_late(row, due):
                if self._slots is None:
                    continue
                course.ended(row)
                row = -1
            if row < 0:
                found = course.take(due)
                if found is None:
                    continue
                cycle, row = found
            return Hit(row, cycle, due)
        if self._slots is not None and not self._given_up and course.out_of_time(now):
            self._give_up(now)
        return None

    def _too_late(self, row: int, due: int) -> bool:
        return row not in self._course.leading and self._course.out_of_time(due)

    def _give_up(self, now: int) -> None:
        """The measured turns that somebody still thinks about come too late: their slots are free when they were due."""
        self._given_up = True
        waiting, self._waiting = self._waiting, []
        for due, cycle, row in waiting:
            if row >= 0 and self._too_late(row, due):
                self._course.ended(row)
                cycle, row = 0, -1
            self._waiting.append((due, cycle, row))
        heapq.heapify(self._waiting)
        if self._course.led_out(now) or not self._course.leading:
            self.stop()

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
            if self._slots is None or not self._too_late(following, due):
                heapq.heappush(self._waiting, (due, end.cycle, following))
                return
        if self._slots is not None:
            self._course.ended(end.row)
            heapq.heappush(self._waiting, (end.at, 0, -1))
            if self._course.led_out(end.at):
                self.stop()

    def measured_from(self) -> int | None:
        """See Pacer."""
        return self._course.began

    def stop(self) -> None:
        """See Pacer."""
        self._stopped = True
        self._waiting.clear()

    @property
    def exhausted(self) -> bool:
        """See Pacer. True also while answers are awaited that more may follow: then something is in flight."""
        return not self._waiting
