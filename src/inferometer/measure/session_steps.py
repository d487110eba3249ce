"""Sessions of steps as they went: how the rows of a record hang together, by `steps.arrow` (journal/steps.py).

A step is due when all steps that it waits for (`after`) have ended and its delay has passed; one that waits for none, with the
delay from its session's start, which is when the session's first step was due. What a step repeats is the conversation of the
step that it goes on with (`extends`).

A session may be sent several times, once a cycle of the schedule. Each time is one *run* of the session, with an entry for each
of its steps, sent or not:

    head      position, in the graph, of the session's first step
    offsets   run i owns the entries offsets[i] to offsets[i + 1], one a step, in the session's order
    row       the record's row of an entry; -1: there is none
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inferometer.errors import RecordError
from inferometer.measure.record import Ints, Labels, Mask, Record

NONE = -1
_DAMAGED = "steps.arrow is damaged"
ASKED = ("session", "turn", "think_ns")
"""Columns of the schedule that a graph is made of and held to."""


@dataclass(frozen=True)
class StepGraph:
    """The steps of all sessions of a schedule, one entry a step: those of one session stand together, in its order.

    `index`: the schedule's row, ascending. `head`: position of its session's first step, `step`: counted from there. `after`:
    positions of the steps that entry i waits for, from `after_offsets[i]` on. `extends`: position, or NONE. `think_ns`: its
    whole delay, of which `tool_ns` while tools ran. `own_reply`: later steps repeat the server's answer to it, not a recorded
    one. `labels`: what it is called.
    """

    index: Ints
    head: Ints
    step: Ints
    session: Ints
    after: Ints
    after_offsets: Ints
    extends: Ints
    tool_ns: Ints
    think_ns: Ints
    visible: Mask
    own_reply: Mask
    agents: Labels
    labels: pa.ChunkedArray

    def __len__(self) -> int:
        return len(self.index)

    @cached_property
    def sizes(self) -> Ints:
        """Steps of the session that begins at each position; 0 where none does."""
        return np.bincount(self.head, minlength=len(self))

    def name(self, position: int) -> str:
        """A step in words that find it in its file: its session and its number, with the recording's name if there is one."""
        label = self.labels[position].as_py()
        number = f"step {int(self.step[position])}"
        named = number if label is None else f"{number} ({str(label)[:40]})"
        return f"{named} of session {int(self.session[position])}"

    @classmethod
    def from_tables(cls, steps: pa.Table, schedule: pa.Table, *, server_replies: bool) -> StepGraph:
        """Of STEPS and of ASKED and `recorded` of the schedule's rows (journal/schedule.py, `asked`). `server_replies`: by plan
        the server's text stands in place of recorded replies.

        Raises RecordError where they contradict themselves or each other.
        """
        index, step, session, tool_ns = (
            _ints(steps, name) for name in ("index", "step", "session", "tool_ns")
        )
        if len(index) and not (np.all(np.diff(index) > 0) and index[0] >= 0 and index[-1] < len(schedule)):
            raise RecordError(f"{_DAMAGED}: its rows are not those of the schedule")
        first = step == 0
        if len(step) and not (first[0] and np.all(first[1:] | (np.diff(step) == 1))):
            raise RecordError(f"{_DAMAGED}: the steps of a session do not follow each other")
        _check_schedule(schedule, index, session=session, step=step, tool_ns=tool_ns)
        head = np.flatnonzero(first)[np.cumsum(first) - 1] if len(step) else np.zeros(0, np.int64)
        after, offsets = _lists(steps.column("after"))
        waiting = np.repeat(np.arange(len(index)), np.diff(offsets))
        extending = np.flatnonzero(np.asarray(pc.is_valid(steps.column("extends")).to_numpy()))
        extends = np.full(len(index), NONE, np.int64)
        extends[extending] = _ints(steps, "extends")[extending]
        places = _positions(index, head, waiting, after)
        extends[extending] = _positions(index, head, extending, extends[extending])
        recorded = np.asarray(schedule.column("recorded").to_numpy(), np.bool_)
        return cls(
            index=index,
            head=head,
            step=step,
            session=session,
            after=places,
            after_offsets=offsets,
            extends=extends,
            tool_ns=tool_ns,
            think_ns=_ints(schedule, "think_ns")[index],
            visible=np.asarray(steps.column("visible").to_numpy(), np.bool_),
            own_reply=~recorded[index] | server_replies,
            agents=_labels(steps.column("agent")),
            labels=steps.column("name"),
        )


def _check_schedule(schedule: pa.Table, index: Ints, *, session: Ints, step: Ints, tool_ns: Ints) -> None:
    """Raise RecordError unless the steps are the schedule's: all of every session, each in its place, and no tool's time longer
    than the delay that it is a part of. A session that is missing, or shorter, would be in no figure and fail no check."""
    planned = np.flatnonzero(np.asarray(pc.is_valid(schedule.column("session")).to_numpy()))
    if not np.array_equal(planned, index):
        raise RecordError(
            f"{_DAMAGED}: it does not have the steps of the schedule, all of them and no others"
        )
    of, turn, think_ns = (_ints(schedule, name)[index] for name in ("session", "turn", "think_ns"))
    if not (np.array_equal(of, session) and np.array_equal(turn, step)):
        raise RecordError(f"{_DAMAGED}: its sessions are not those of the schedule")
    if not np.all((tool_ns >= 0) & (tool_ns <= think_ns)):
        raise RecordError(f"{_DAMAGED}: the time of a tool is no part of its step's delay")


def _ints(table: pa.Table, name: str) -> Ints:
    """An integer column, 0 where null."""
    return np.asarray(pc.fill_null(table.column(name), 0).to_numpy(), np.int64)


def _lists(column: pa.ChunkedArray) -> tuple[Ints, Ints]:
    """The values of all lists, and where each begins."""
    sizes = np.asarray(pc.list_value_length(column).to_numpy(), np.int64)
    flat = pc.list_flatten(column)
    values = flat.to_numpy() if len(flat) else np.zeros(0)
    return np.asarray(values, np.int64), np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))


def _positions(index: Ints, head: Ints, owners: Ints, rows: Ints) -> Ints:
    """Positions of the schedule's rows that entries name. Raises RecordError unless each stands before its owner in the same
    session: so no step waits for itself, by whatever way."""
    if not len(rows):
        return np.zeros(0, np.int64)
    places = np.minimum(np.searchsorted(index, rows), len(index) - 1)
    if not np.all((index[places] == rows) & (places < owners) & (head[places] == head[owners])):
        raise RecordError(f"{_DAMAGED}: a step refers to one that does not stand before it in its session")
    return places


def _labels(column: pa.ChunkedArray) -> Labels:
    coded = pa.concat_arrays([pa.array([], pa.string()), *column.chunks]).dictionary_encode()
    codes = np.asarray(pc.fill_null(coded.indices, NONE).to_numpy(zero_copy_only=False), np.int64)
    return Labels(codes, tuple(coded.dictionary.to_pylist()))


@dataclass(frozen=True)
class SessionRuns:
    """The sessions that were begun, in the order of their starts; see the head. `place`: an entry's position in the graph;
    `twice`: rows of the record beyond the first of their step."""

    graph: StepGraph
    record: Record
    offsets: Ints
    place: Ints
    row: Ints
    twice: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def run(self) -> Ints:
        """Which run each entry is of."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def sent(self) -> Mask:
        """Entries of which there is a row."""
        return self.row >= 0

    @cached_property
    def ok(self) -> Mask:
        """Entries that succeeded."""
        return self.sent & self.record.ok[self.row]

    @cached_property
    def before(self) -> tuple[Ints, Ints]:
        """The entries that each waits for, and where its own begin."""
        graph, place = self.graph, self.place
        sizes = np.diff(graph.after_offsets)[place]
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        at = np.repeat(graph.after_offsets[place] - offsets[:-1], sizes) + np.arange(offsets[-1])
        places = graph.after[at]
        first = self.offsets[:-1][np.repeat(self.run, sizes)]
        return first + places - graph.head[places], offsets

    @cached_property
    def waits(self) -> Mask:
        """Entries that wait for another."""
        return np.diff(self.before[1]) > 0

    @cached_property
    def ready(self) -> Mask:
        """Entries all of whose predecessors succeeded."""
        before, offsets = self.before
        found = np.ones(len(self.row), np.bool_)
        found[self.waits] = (
            np.logical_and.reduceat(self.ok[before], offsets[:-1][self.waits]) if len(before) else True
        )
        return found

    @cached_property
    def last_before(self) -> Ints:
        """Of the entries that each waits for, the one that ended last; NONE where it waits for none, or one has no row."""
        before, offsets = self.before
        found = np.full(len(self.row), NONE, np.int64)
        if not len(before):
            return found
        # Within each entry's own part, in order of the ends; a stable sort keeps the later step last among equals.
        owner = np.repeat(np.arange(len(self.row)), np.diff(offsets))
        order = np.lexsort((before, self.end_ns[before], owner))
        found[self.waits] = before[order][offsets[1:][self.waits] - 1]
        found[self.waits] = np.where(
            np.logical_and.reduceat(self.sent[before], offsets[:-1][self.waits]), found[self.waits], NONE
        )
        return found

    @cached_property
    def end_ns(self) -> Ints:
        """The end of each entry; 0 without a row."""
        return np.where(self.sent, self.record.t_end[self.row], 0)

    @cached_property
    def start_ns(self) -> Ints:
        """When each run of a session was due: by its first step, or if that has no row by the earliest that waits for none."""
        if not len(self):
            return np.zeros(0, np.int64)
        first, never = self.offsets[:-1], np.iinfo(np.int64).max
        intended = self.record.t_intended[self.row]
        since = intended - self.graph.think_ns[self.place]
        by_roots = np.minimum.reduceat(np.where(self.sent & ~self.waits, since, never), first)
        by_any = np.minimum.reduceat(np.where(self.sent, intended, never), first)
        found: Ints = np.where(self.sent[first], since[first], np.where(by_roots < never, by_roots, by_any))
        return found

    @cached_property
    def due_ns(self) -> Ints:
        """When each entry was due, by the ends of what it waits for; NONE where that is not known."""
        last, delay = self.last_before, self.graph.think_ns[self.place]
        since = np.where(last >= 0, self.end_ns[last], NONE) if len(last) else last
        begun = np.where(self.waits, since, self.start_ns[self.run])
        known: Ints = np.where(self.waits & (last < 0), NONE, begun + delay)
        return known

    def behind(self, these: Mask) -> Mask:
        """Entries that wait, directly or not, for one of `these`."""
        before, offsets = self.before
        found = np.zeros(len(self.row), np.bool_)
        if not these.any():
            return found
        concerned = np.zeros(len(self), np.bool_)
        concerned[self.run[these]] = True
        marked, own = these.tolist(), found.tolist()
        for entry in np.flatnonzero(
            concerned[self.run] & self.waits
        ).tolist():  # a step stands behind what it waits for
            waited = before[offsets[entry] : offsets[entry + 1]].tolist()
            own[entry] = any(marked[one] or own[one] for one in waited)
        return np.array(own, np.bool_)

    @cached_property
    def skipped(self) -> Mask:
        """Entries that were not sent because a step before them had failed."""
        return ~self.sent & self.behind(self.sent & ~self.ok)

    def where(self, entries: Mask) -> str | None:
        """The first of these entries in words; None: there is none."""
        found = np.flatnonzero(entries)
        return self.graph.name(int(self.place[found[0]])) if len(found) else None


def session_runs(graph: StepGraph, record: Record) -> SessionRuns:
    """The sessions of the measured phase of a record."""
    rows = np.flatnonzero(record.measured & record.session.valid)
    if len(graph):
        places = np.minimum(np.searchsorted(graph.index, record.index[rows]), len(graph) - 1)
        known = graph.index[places] == record.index[rows]
        rows, places = rows[known], places[known]
    else:
        rows = places = np.zeros(0, np.int64)
    heads, cycles = graph.head[places], record.cycle[rows]
    # Both are far below 2^31.
    keys, run = np.unique(heads << 32 | cycles, return_inverse=True)
    begun = np.full(len(keys), np.iinfo(np.int64).max)
    np.minimum.at(begun, run, record.t_intended[rows])
    order = np.lexsort((keys, begun))
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys))
    head = (keys >> 32)[order]
    sizes = graph.sizes[head] if len(head) else np.zeros(0, np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    place = np.repeat(head - offsets[:-1], sizes) + np.arange(offsets[-1])
    entry = offsets[:-1][rank[run]] + graph.step[places]
    row = np.full(len(place), NONE, np.int64)
    row[entry[::-1]] = rows[::-1]  # of two rows of one step the first stands
    return SessionRuns(graph, record, offsets, place, row, len(rows) - int((row >= 0).sum()))
