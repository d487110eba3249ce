"""Recorded sessions: steps that wait for several others, many of one session in flight at once.

| load   | a session begins                                      | and its slot, or its user, is free for the next one  |
| ------ | ----------------------------------------------------- | ---------------------------------------------------- |
| open   | at its arrival: the rate is that of sessions          |                                                      |
| closed | when a slot is free                                   | when each of its steps has ended or was left out     |
| users  | at its user's instant, and not before the one before  | the same                                             |

A step is due when all it waits for have ended in success and its delay has passed since the last of those ends; one that waits
for none, when that delay has passed since the session's start. After a failure whatever waits for the failed step is left out,
and what waits for that; other branches go on. With a `duration` no measured step is given out that would be due so many ns
after the first, or later: it is left out like one after a failure.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import pairwise

from inferometer.drive.pacer import Company, Course, Ending, Hit
from inferometer.drive.step_graph import StepGraph

_STEP, _SESSION = 0, 1
_WHICHEVER = -1
"""Stands for the session that is next when its slot is free."""


class _Session:
    """One under way. `left`: its steps that have neither ended nor been left out; `pending`: of those that wait for several and
    for which some have ended, how many have not, and the latest end."""

    __slots__ = ("latest", "left", "left_out", "pending")

    def __init__(self, steps: int, start: int) -> None:
        self.left, self.latest = steps, start
        self.left_out: set[int] = set()
        self.pending: dict[int, tuple[int, int]] = {}


def _no_matter(_first: int, _cycle: int) -> None:
    """Nobody wants to know which session is over."""


class StepPacer:
    """See Pacer. `lanes`: first rows of sessions, each list one after the other; with `slots` they are taken in their order,
    whosever they are. `lead`: first rows of the lead-in's sessions, `leading` all its rows. `over` is called with the first row
    and the cycle of a session all of whose steps have ended or been left out."""

    def __init__(
        self,
        graph: StepGraph,
        lanes: Sequence[Sequence[int]],
        start: int,
        slots: int | None,
        duration: int | None = None,
        *,
        again: bool = False,
        lead: Sequence[int] = (),
        leading: Sequence[int] = (),
        company: Company | None = None,
        over: Callable[[int, int], None] = _no_matter,
    ) -> None:
        self._graph, self._start, self._slots, self._tell = graph, start, slots, over
        firsts = [first for lane in lanes for first in lane]
        self._course = Course(
            firsts, start, duration, again=again, lead=lead, leading=leading, company=company
        )
        self._sessions: dict[tuple[int, int], _Session] = {}
        self._next = {before: behind for lane in lanes for before, behind in pairwise(lane)}
        self._stopped = self._given_up = False
        # What is due when: the instant, what it is, the cycle, the row.
        self._waiting: list[tuple[int, int, int, int]] = []
        if slots is None:
            self._waiting = [(start + graph.due_ns[lane[0]], _SESSION, 0, lane[0]) for lane in lanes]
        elif firsts:
            number = slots if again or lead else min(slots, len(firsts))
            self._waiting = [(start, _SESSION, 0, _WHICHEVER)] * number
        heapq.heapify(self._waiting)

    def take(self, now: int) -> Hit | None:
        """See Pacer."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= now:
            due, what, cycle, row = heapq.heappop(waiting)
            if what == _SESSION:
                self._begin(row, cycle, due)
            elif self._too_late(row, due):
                self._leave_out([row], cycle, due)
            else:
                return Hit(row, cycle, due)
        if self._slots is not None and not self._given_up and self._course.out_of_time(now):
            self._give_up(now)
        return None

    def _begin(self, row: int, cycle: int, due: int) -> None:
        """A session begins: its first steps are due."""
        if row == _WHICHEVER:
            found = self._course.take(due)
            if found is None:
                return
            cycle, row = found
        graph = self._graph
        self._sessions[row, cycle] = _Session(graph.count[row], due)
        for root in graph.roots(row):
            # A session all of whose first steps come too late holds its slot until then: else one would follow the other,
            # without end and at one instant, where sessions are gone through again.
            self._await(root, cycle, due, until=due + graph.delay_ns[root])

    def _await(self, row: int, cycle: int, since: int, until: int = 0) -> None:
        """All that a step waits for has ended: its delay begins. `until`: a session of which nothing is left is not over
        before."""
        due = since + self._graph.delay_ns[row]
        if self._too_late(row, due):
            self._leave_out([row], cycle, max(since, until))
        else:
            heapq.heappush(self._waiting, (due, _STEP, cycle, row))

    def _too_late(self, row: int, due: int) -> bool:
        return self._course.out_of_time(due) and row not in self._course.leading

    def _leave_out(self, rows: Sequence[int], cycle: int, at: int) -> None:
        """None of these steps of one session is sent, nor what waits for them."""
        if not rows:
            return
        first = self._graph.first[rows[0]]
        session = self._sessions[first, cycle]
        gone, waiting = session.left_out, list(rows)
        while waiting:
            row = waiting.pop()
            if row not in gone:
                gone.add(row)
                session.left -= 1
                waiting += self._graph.following(row)
        self._end_if_over(first, cycle, session, at)

    def _end_if_over(self, first: int, cycle: int, session: _Session, at: int) -> None:
        if session.left:
            return
        del self._sessions[first, cycle]
        self._tell(first, cycle)
        free = max(session.latest, at)
        if self._slots is not None:
            self._course.ended(first)
            heapq.heappush(self._waiting, (free, _SESSION, 0, _WHICHEVER))
            if self._course.led_out(free):
                self.stop()
        elif (behind := self._next.get(first)) is not None:
            due = max(free, self._start + self._graph.due_ns[behind])
            if not self._course.out_of_time(due):
                heapq.heappush(self._waiting, (due, _SESSION, cycle, behind))

    def _give_up(self, now: int) -> None:
        """The measured steps that are awaited come too late: the slots of sessions that wait for nothing else are free."""
        self._given_up = True
        late = [one for one in self._waiting if one[1] == _STEP and self._too_late(one[3], one[0])]
        if late:
            gone = set(late)
            self._waiting = [one for one in self._waiting if one not in gone]
            heapq.heapify(self._waiting)
        for _, _, cycle, row in late:
            if (self._graph.first[row], cycle) in self._sessions:
                self._leave_out([row], cycle, now)
        if self._course.led_out(now) or not self._course.leading:
            self.stop()

    def next_due(self) -> int | None:
        """See Pacer."""
        return self._waiting[0][0] if self._waiting else None

    def ended(self, end: Ending) -> None:
        """See Pacer. What waited for this answer alone, or for it last, comes next."""
        if self._stopped:
            return
        graph, cycle = self._graph, end.cycle
        first = graph.first[end.row]
        session = self._sessions[first, cycle]
        session.left -= 1
        session.latest = max(session.latest, end.at)
        following = graph.following(end.row)
        if not end.ok:
            self._leave_out(following, cycle, end.at)
            following = ()
        for row in following:
            at = end.at
            if graph.awaits[row] > 1:
                left, latest = session.pending.get(row, (graph.awaits[row], 0))
                at = max(at, latest)
                session.pending[row] = left - 1, at
                if left > 1 or row in session.left_out:
                    continue
                del session.pending[row]
            self._await(row, cycle, at)
        if (first, cycle) in self._sessions:
            self._end_if_over(first, cycle, session, end.at)

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
