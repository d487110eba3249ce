"""How the steps of recorded sessions hang together, as arrays over the rows of a schedule: who waits for whom."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inferometer.journal.schedule import Schedule

Ints = NDArray[np.int64]
NONE = -1


class StepGraph:
    """Of every row of the schedule, as plain numbers that a look-up gives without a copy of the column:

    `first`: the row of its session's first step. `awaits`: how many rows it waits for. `extends`: the row whose conversation it
    goes on with, or -1, and `extended`: how many rows go on with its own. `delay_ns`: from the last end that it waits for until
    it is due. `due_ns`: of a first row, when its session is due, or -1. `user`: whose it is, or -1. `count`: of a first row,
    the rows of its session.
    """

    def __init__(self, schedule: Schedule, steps: pa.Table) -> None:
        table, n = schedule.table, len(schedule)
        turn = _column(table, "turn")
        rows = np.arange(n, dtype=np.int64)
        first = rows - turn
        at = _column(steps, "index")
        after = steps.column("after").combine_chunks()
        lengths = np.diff(np.asarray(after.offsets)).astype(np.int64)
        awaited = np.asarray(after.flatten(), dtype=np.int64)
        awaits, extends = np.zeros(n, np.int64), np.full(n, NONE, np.int64)
        awaits[at] = lengths
        extends[at] = _column(steps, "extends")
        waiting = np.repeat(at, lengths)
        self._following = _seen(waiting[np.argsort(awaited, kind="stable")])
        self._from = _seen(np.concatenate(([0], np.cumsum(np.bincount(awaited, minlength=n)))))
        going_on = extends[extends >= 0]
        steps_only = np.zeros(n, bool)
        steps_only[at] = True
        self.first, self.awaits, self.extends = _seen(first), _seen(awaits), _seen(extends)
        self.extended = _seen(np.bincount(going_on, minlength=n))
        self.count = _seen(np.bincount(first[steps_only], minlength=n))
        self.delay_ns = _seen(_column(table, "think_ns"))
        self.due_ns = _seen(_column(table, "due_ns"))
        self.user = _seen(_column(table, "user"))
        self._further: dict[int, list[int]] = {}
        for row in np.flatnonzero(steps_only & (awaits == 0) & (turn > 0)).tolist():
            self._further.setdefault(int(first[row]), []).append(row)

    def following(self, row: int) -> Sequence[int]:
        """The rows that wait for this one."""
        begin, end = self._from[row], self._from[row + 1]
        return [] if begin == end else self._following[begin:end].tolist()

    def roots(self, first: int) -> list[int]:
        """The rows of a session that wait for none: those that are due from its start on."""
        return [first, *self._further.get(first, ())]

    def lanes(self, rows: Sequence[int]) -> list[list[int]]:
        """The first rows of the sessions among these rows: each by itself, or with the others of its user, in their order."""
        lanes: list[list[int]] = []
        of_user: dict[int, list[int]] = {}
        for row in rows:
            if self.first[row] != row:
                continue
            user = self.user[row]
            if user < 0:
                lanes.append([row])
            elif user in of_user:
                of_user[user].append(row)
            else:
                lanes.append(of_user.setdefault(user, [row]))
        return lanes


def _column(table: pa.Table, name: str) -> Ints:
    column = table.column(name).combine_chunks().fill_null(NONE)
    values: Ints = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _seen(values: Ints) -> memoryview:
    """Numbers as plain ints one by one, which an array of numpy is slow at."""
    return np.ascontiguousarray(values, dtype=np.int64).data
