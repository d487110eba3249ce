"""`requests.arrow`: what is to be sent, written before the clock starts and mapped into memory by every worker.

It is written twice: with the warm-up's rows, and while the server warms up, with the measurement's behind them.

Rows stand in batches of BATCH, so that row i is row i mod BATCH of batch i div BATCH and no index is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pyarrow as pa

from inferometer.errors import RecordError
from inferometer.journal.schema import SCHEDULE

BATCH = 1024


@dataclass(frozen=True, slots=True)
class Scheduled:
    """One request to be: SCHEDULE's columns in their order."""

    index: int
    phase: int
    due_ns: int | None
    body: bytes
    nonce_at: int
    nonce_len: int
    input_tokens_asked: int
    input_tokens_sent: int
    output_tokens_asked: int
    request_class: int | None = None


def write(path: Path, rows: Iterable[Scheduled]) -> None:
    """Write all rows, so that a reader sees the old file or the new one; `rows` may be a generator, one batch is held."""
    names = SCHEDULE.names
    remaining: Iterator[Scheduled] = iter(rows)
    part = path.with_name(path.name + ".part")
    with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_file(sink, SCHEDULE) as writer:
        while batch := list(islice(remaining, BATCH)):
            columns = [[getattr(row, name) for row in batch] for name in names]
            arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEDULE, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=SCHEDULE))
    os.replace(part, path)


class Schedule:
    """A schedule on disk, mapped. Raises RecordError if the file is missing or not one of ours."""

    def __init__(self, path: Path) -> None:
        try:
            self._map = pa.memory_map(str(path))
            reader = pa.ipc.open_file(self._map)
        except (OSError, pa.ArrowInvalid) as cause:
            raise RecordError(f"{path.name}: not a schedule ({cause})") from cause
        if reader.schema.metadata != SCHEDULE.metadata:
            raise RecordError(
                f"{path.name}: of a version this program does not read: {reader.schema.metadata}"
            )
        self._batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        self._bodies = [_Bodies(batch.column("body")) for batch in self._batches]
        self.table: pa.Table = pa.Table.from_batches(self._batches, schema=SCHEDULE)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def body(self, row: int) -> bytes:
        """The body of the request in this row."""
        batch, at = divmod(row, BATCH)
        return self._bodies[batch][at]


class _Bodies:
    """Bytes straight out of an Arrow binary column, without the cost of a scalar object a row."""

    __slots__ = ("_data", "_offsets")

    def __init__(self, column: pa.Array) -> None:
        _, offsets, data = column.buffers()
        self._offsets = memoryview(offsets).cast("i")
        self._data = memoryview(data) if data is not None else memoryview(b"")

    def __getitem__(self, at: int) -> bytes:
        return bytes(self._data[self._offsets[at] : self._offsets[at + 1]])
