"""The workers' outcomes in the order of the record, a piece at a time: a run's answers may be larger than any memory.

    1. go through every stream once, and keep of each row when it was due, and of each batch where it lies in its file
    2. sort the rows by (t_intended, index); rows that are the same in both stay in the order of the streams
    3. piece by piece, read the batches that hold the next rows, and take those

Workers append what ends, about in the order in which it was due, so a piece lies in few batches. Held at a time are 28 bytes a
row and one piece, whatever the rows hold.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from inferometer.errors import RecordError
from inferometer.journal.schema import OUTCOME
from inferometer.journal.stream_batches import StreamBatches
from inferometer.journal.versions import check_filled, current

PIECE_ROWS = 1 << 16
PIECE_BYTES = 1 << 26
"""A piece has at most so many rows, and holds about so many bytes unless a single row is larger."""


_DUE = ("t_intended", "index")
"""Columns by which the record is in order."""


class _Stream:
    """A worker's stream, open, and its schema."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._source = pa.OSFile(str(path))
        self._schema = pa.ipc.read_schema(self._source)
        version = (self._schema.metadata or {}).get(b"inferometer")
        self._today = version == OUTCOME.metadata[b"inferometer"] and self._schema.equals(OUTCOME)

    def read(self, at: int) -> pa.RecordBatch:
        """The batch whose message begins there."""
        self._source.seek(at)
        found = pa.ipc.read_record_batch(pa.ipc.read_message(self._source), self._schema)
        if self._today:
            check_filled(zip(OUTCOME, found.columns, strict=True), self._path)
            return found.replace_schema_metadata(OUTCOME.metadata)
        (one,) = current(pa.Table.from_batches([found]), OUTCOME, self._path).to_batches()
        return one

    def close(self) -> None:
        """No more is read."""
        self._source.close()


class Outcomes:
    """What is in these streams, each as far as it is whole; `cut`: those that are not, to their end. Raises RecordError for
    another format or version."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self.cut: list[Path] = []
        file, at, rows, size = (array("q") for _ in range(4))  # of each batch
        keys: list[NDArray[np.int64]] = [np.zeros((2, 0), np.int64)]
        for number, path in enumerate(paths):
            batches, whole = _batches(path)
            if not whole:
                self.cut.append(path)
            for begin, end, due in batches:
                file.append(number)
                at.append(begin)
                rows.append(due.shape[1])
                size.append(end - begin)
                keys.append(due)
        self._file, self._at = file, at
        self._first = np.concatenate(([0], np.cumsum(rows, dtype=np.int64)))
        each = np.array(size, np.float64) / np.maximum(rows, 1)
        self._row_size = np.repeat(each.astype(np.float32), rows)
        due = np.concatenate(keys, axis=1)
        del keys
        self._order: NDArray[np.int64] = np.lexsort((due[1], due[0]))

    def __len__(self) -> int:
        return len(self._order)

    def pieces(self, rows: int = PIECE_ROWS, size: int = PIECE_BYTES) -> Iterator[pa.Table]:
        """All rows in order, OUTCOME's columns; at most `rows` a piece, and about `size` bytes."""
        with ExitStack() as stack:
            streams: dict[int, _Stream] = {}
            for number in sorted(set(self._file)):
                streams[number] = stack.enter_context(closing(_Stream(self._paths[number])))
            start = 0
            while start < len(self):
                chosen = self._order[start : start + rows]
                held = np.cumsum(self._row_size[chosen], dtype=np.float64)
                chosen = chosen[: max(1, int(np.searchsorted(held, size, "right")))]
                yield self._taken(streams, chosen)
                start += len(chosen)

    def _taken(self, streams: dict[int, _Stream], rows: NDArray[np.int64]) -> pa.Table:
        """These rows, in this order."""
        order = np.argsort(rows)
        ascending = rows[order]
        numbers = np.searchsorted(self._first, ascending, "right") - 1
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        parts = []
        for start, end in zip(starts, [*starts[1:], len(rows)], strict=True):
            number = int(numbers[start])
            batch = streams[self._file[number]].read(self._at[number])
            if end - start < batch.num_rows:
                batch = batch.take(pa.array(ascending[start:end] - self._first[number]))
            parts.append(batch)
        table = pa.Table.from_batches(parts).combine_chunks()
        if np.array_equal(ascending, rows):
            return table
        place = np.empty(len(rows), np.int64)
        place[order] = np.arange(len(rows))
        return table.take(pa.array(place))


def _batches(path: Path) -> tuple[list[tuple[int, int, NDArray[np.int64]]], bool]:
    """Every whole batch of a stream: where it begins and ends, and of its rows t_intended and index, shape (2, rows); and
    whether that is all of it."""
    stream, found = StreamBatches(path), list[tuple[int, int, NDArray[np.int64]]]()
    if stream.schema is None:
        return found, False
    if any(stream.schema.get_field_index(name) < 0 for name in _DUE):  # other names may be no text
        raise RecordError(f"{path.name}: damaged (it has no columns {' and '.join(_DUE)}, or several)")
    # An empty array is not made of every type.
    current(pa.Table.from_batches([], stream.schema), OUTCOME, path)
    for begin, end, batch in stream:
        try:
            due = [batch.column(name).to_numpy() for name in _DUE]
        except (pa.ArrowException, KeyError):
            return found, False  # a null, where no version has one
        found.append((begin, end, np.array(due, np.int64)))
    return found, stream.whole
