"""One worker's part of a load of recorded sessions: when its steps are due, and what each repeats.

    own messages of a step  |  in the schedule
    all before them         |  of the step that it goes on with: all before that, its own, and the answer to it

An answer is the recorded one, the server's, or the server's text in what was recorded (engines/dialect.py). What may be
repeated of a step is kept until all that go on with it are sent, or its session is over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from inferometer.drive.pacer import Company, Ending, Hit
from inferometer.drive.share import Assignment, Share
from inferometer.drive.step_graph import StepGraph
from inferometer.drive.step_pacer import StepPacer
from inferometer.engines.dialect import extended, inserted, repeated
from inferometer.journal.schedule import Schedule
from inferometer.journal.steps import renewed


class StepShare(Share):
    """As Share, of the steps of sessions; all of a session, or of a user, are one worker's. `steps`: see journal/steps.py."""

    listens = True
    by_end = True

    def __init__(self, schedule: Schedule, steps: pa.Table, assignment: Assignment) -> None:
        super().__init__(schedule, assignment)
        self._graph = StepGraph(schedule, steps)
        columns = schedule.table.select(["own_at", "own_len", "nonce_at", "nonce_len"])
        self._own_at, self._own_len, self._nonce_at, self._nonce_len = (
            memoryview(column.to_numpy()) for column in columns.columns
        )
        self._replies = schedule.table.column("reply")
        self._sessions = schedule.table.column("session")
        # Of sessions under way, by first row and cycle: what may be repeated of their steps, and by how many more.
        self._said: dict[tuple[int, int], dict[int, tuple[bytes, int]]] = {}
        self._sent: dict[
            tuple[int, int], tuple[bytes, bytes]
        ] = {}  # of what is in flight: before it, its own

    def _paced(self, start_ns: int, duration_ns: int, again: bool, company: Company | None) -> StepPacer:
        slots = None if self.slots is None else self._own_slots
        lead = [first for lane in self._own_lanes(self._lead) for first in lane]
        return StepPacer(
            self._graph,
            self._own_lanes(self._rows),
            start_ns,
            slots,
            duration_ns or None,
            again=again,
            lead=lead,
            leading=self._rows_of(lead),
            company=company,
            over=self._forget,
        )

    def own_rows(self) -> list[int]:
        """See Share: those of its sessions."""
        return self._rows_of(first for lane in self._own_lanes(self._rows) for first in lane)

    def _own_lanes(self, rows: Sequence[int]) -> list[list[int]]:
        lanes = self._graph.lanes(rows)
        return [lanes[at] for at in self._dealt(len(lanes))]

    def _rows_of(self, firsts: Iterable[int]) -> list[int]:
        return [row for first in firsts for row in range(first, first + self._graph.count[first])]

    def session_of(self, row: int, /) -> int | None:
        """See Share."""
        session: int | None = self._sessions[row].as_py()
        return session

    def body(self, hit: Hit) -> bytes:
        """The body of a step, with all that it repeats."""
        row, graph = hit.row, self._graph
        body = self._schedule.body(row)
        if hit.cycle and self._nonce_at[row] >= 0:
            begin = self._nonce_at[row]
            end = begin + self._nonce_len[row]
            body = body[:begin] + renewed(body[begin:end], hit.cycle) + body[end:]
        at, before = self._own_at[row], graph.extends[row]
        history = b"" if before < 0 else self._taken(before, hit.cycle)
        if graph.extended[row]:
            self._sent[row, hit.cycle] = history, body[at : at + self._own_len[row]]
        return inserted(body, at, history)

    def _taken(self, row: int, cycle: int) -> bytes:
        """What is repeated of a step, once more."""
        said = self._said[self._graph.first[row], cycle]
        history, times = said.pop(row)
        if times > 1:
            said[row] = history, times - 1
        return history

    def ended(self, end: Ending, reply: str) -> None:
        """See Share. Nothing goes on with a step that failed."""
        sent = self._sent.pop((end.row, end.cycle), None)
        if sent is None or not end.ok:
            return
        said = self._said.setdefault((self._graph.first[end.row], end.cycle), {})
        answer = repeated(self._replies[end.row].as_py(), reply)
        said[end.row] = extended(*sent, answer), self._graph.extended[end.row]

    def _forget(self, first: int, cycle: int) -> None:
        """A session is over."""
        self._said.pop((first, cycle + self._assignment.cycle), None)
