"""`steps.arrow`: of a run of recorded agent sessions, how its requests hang together; one row a step, in the schedule's order.

Written with the schedule, before the load begins. Workers read it to know when a step is due and what it repeats; later, the
record is held to it. Rows are those of the schedule (journal/schedule.py), so that a step may be named across batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from pathlib import Path

import pyarrow as pa

from inferometer.journal.schedule import BATCH, batch_of
from inferometer.journal.schema import SCHEDULE
from inferometer.journal.versions import read_whole
from inferometer.whole_file import replacing

STEPS = pa.schema(
    [
        pa.field("index", pa.int64(), nullable=False),  # the schedule's row
        pa.field("session", pa.int32(), nullable=False),  # of the schedule
        pa.field("step", pa.int16(), nullable=False),  # in its session, from 0: the schedule's `turn`
        pa.field(
            "after", pa.list_(pa.int64()), nullable=False
        ),  # rows that it waits for; none: the session's start
        pa.field("extends", pa.int64()),  # the row whose conversation it goes on with; null: none
        pa.field("tool_ns", pa.int64(), nullable=False),  # of the schedule's `think_ns`, while tools ran
        pa.field("visible", pa.bool_(), nullable=False),  # its answer goes to the user
        pa.field("name", pa.string()),
        pa.field("agent", pa.string()),
    ],
    metadata={"inferometer": "steps/1"},
)


@dataclass(frozen=True, slots=True)
class StepRow:
    """STEPS' columns in their order."""

    index: int
    session: int
    step: int
    after: Sequence[int]
    extends: int | None
    tool_ns: int
    visible: bool
    name: str | None = None
    agent: str | None = None


def write(path: Path, rows: Iterable[StepRow]) -> None:
    """Write all rows, so that a reader sees the old file or the new one."""
    remaining = map(attrgetter(*STEPS.names), rows)
    with replacing(path) as part, pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, STEPS) as writer:
        while batch := list(islice(remaining, BATCH)):
            writer.write_batch(_batch(batch))


Both = tuple[tuple[object, ...], tuple[object, ...] | None]
"""A request, by SCHEDULE's columns, and what it is as a step, by STEPS'; None: it is none."""


def write_both(schedule: Path, steps: Path, rows: Iterable[Both]) -> None:
    """Write a schedule and its steps in one go. What one batch holds is held."""
    remaining = iter(rows)
    with (
        replacing(schedule) as first,
        replacing(steps) as second,
        pa.OSFile(str(first), "wb") as first_sink,
        pa.OSFile(str(second), "wb") as second_sink,
        pa.ipc.new_file(first_sink, SCHEDULE) as requests,
        pa.ipc.new_file(second_sink, STEPS) as graph,
    ):
        while batch := list(islice(remaining, BATCH)):
            requests.write_batch(batch_of([one for one, _ in batch]))
            graph.write_batch(_batch([step for _, step in batch if step is not None]))


def _batch(rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    columns: Iterable[Sequence[object]] = zip(*rows, strict=True) if rows else ([] for _ in STEPS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, STEPS, strict=True)]
    return pa.record_batch(arrays, schema=STEPS)


def read(path: Path) -> pa.Table:
    """All rows. Raises RecordError for what is no such file, or of another version."""
    return read_whole(path, STEPS, "the steps of a run")


FILE = "steps.arrow"
_STRIDE = 381_966_011
_NONCES = 10**9


def renewed(nonce: bytes, cycle: int) -> bytes:
    """The nonce, nine digits, of a step that is sent for the `cycle`-th time anew."""
    return b"%09d" % ((int(nonce) + cycle * _STRIDE) % _NONCES)
