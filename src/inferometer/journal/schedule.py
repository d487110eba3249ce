"""What is to be sent, mapped into memory by every worker. It is written before the clock starts, or ahead of it:

| file              | written                                                   | holds                             |
| ----------------- | --------------------------------------------------------- | --------------------------------- |
| `requests.arrow`  | whole: with the warm-up's rows, then with the             | the warm-up and the measurement   |
|                   | measurement's behind them                                 |                                   |
| `requests.arrows` | appended, piece by piece, ahead of the clock: a trace may | the measurement of a trace, whose |
|                   | be longer than anybody wants to write first               | warm-up is in the other file      |

Rows of the whole file stand in batches of BATCH, so that row i is row i mod BATCH of batch i div BATCH and no index is
needed; those of the other likewise in pieces of PIECE, counted on from the first one's last row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path

import pyarrow as pa

from inferometer.errors import RecordError, file_error
from inferometer.journal.schema import SCHEDULE
from inferometer.journal.versions import check_unpacked
from inferometer.whole_file import check_regular, replacing

BATCH = 1024
PIECE = 256
"""As many rows are made and appended at once: some tenths of a second's work where prompts are long."""
APPENDED = "requests.arrows"
TOGETHER = 64
"""Batches whose columns are copied at once."""


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
    input_tokens_shared: int = 0
    input_tokens_repeated: int = 0
    session: int | None = None
    turn: int = 0
    turns: int = 1
    think_ns: int = 0
    user: int | None = None
    own_at: int = -1
    own_len: int = 0
    reply: bytes | None = None
    timeout_ns: int | None = None


def write(path: Path, rows: Iterable[Scheduled]) -> None:
    """Write all rows, so that a reader sees the old file or the new one; `rows` may be a generator, one batch is held."""
    remaining: Iterator[Scheduled] = iter(rows)
    with (
        replacing(path) as part,
        pa.OSFile(str(part), "wb") as sink,
        pa.ipc.new_file(sink, SCHEDULE) as writer,
    ):
        while batch := list(islice(remaining, BATCH)):
            writer.write_batch(_batch(batch))


def _batch(rows: Sequence[Scheduled]) -> pa.RecordBatch:
    return batch_of([in_columns(row) for row in rows])


in_columns = attrgetter(*SCHEDULE.names)
"""The values of a Scheduled in the order of the columns."""


def batch_of(rows: Sequence[tuple[object, ...]]) -> pa.RecordBatch:
    """Rows, each as the values of SCHEDULE's columns, as a batch of the file."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEDULE, strict=True)]
    return pa.record_batch(arrays, schema=SCHEDULE)


class Appender:
    """Writes `requests.arrows` beside the whole schedule at `path`. What is up to `size` bytes may be read."""

    def __init__(self, path: Path) -> None:
        self._sink = pa.OSFile(str(path.with_name(APPENDED)), "wb")
        self._writer = pa.ipc.new_stream(self._sink, SCHEDULE)
        self.size = self._sink.tell()

    def append(self, rows: Sequence[Scheduled]) -> None:
        """Add PIECE rows, or the last, which may be fewer."""
        self._writer.write_batch(_batch(rows))
        self.size = self._sink.tell()

    def close(self) -> None:
        """Nothing comes any more."""
        self._writer.close()
        self._sink.close()


class Schedule:
    """A schedule on disk, mapped: the whole file, and behind it what of the appended one there is now.

    Raises RecordError if a file is missing or not one of ours.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():  # a pipe would be waited for
            raise RecordError(f"{path.name}: not a schedule (no regular file)")
        try:
            self._map = pa.memory_map(str(path))
            reader = pa.ipc.open_file(self._map)
        except (OSError, pa.ArrowException) as cause:
            raise file_error(f"{path.name}: not a schedule ({cause})", cause) from cause
        _check_version(path, reader.schema)
        try:
            batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
        except (OSError, pa.ArrowException) as cause:
            raise file_error(f"{path.name}: damaged ({cause})", cause) from cause
        self._bodies = [_Bodies(batch.column("body")) for batch in batches]
        self._whole = sum(int(batch.num_rows) for batch in batches)
        appended = path.with_name(APPENDED)
        pieces = _pieces(appended) if appended.is_file() else []
        self._pieces: list[_Bodies] = [_Bodies(piece.column("body")) for piece in pieces]
        self.table: pa.Table = pa.Table.from_batches([*batches, *pieces], schema=SCHEDULE)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def body(self, row: int) -> bytes:
        """The body of the request in this row."""
        if row < self._whole:
            batch, at = divmod(row, BATCH)
            return self._bodies[batch][at]
        piece, at = divmod(row - self._whole, PIECE)
        return self._pieces[piece][at]


def _pieces(path: Path) -> list[pa.RecordBatch]:
    """Every whole piece of an appended schedule, mapped; one that was cut off is not there yet, or never will be."""
    found: list[pa.RecordBatch] = []
    reader = None
    try:
        reader = pa.ipc.open_stream(pa.memory_map(str(path)))
        while True:
            found.append(reader.read_next_batch())
    except (StopIteration, pa.ArrowInvalid):
        pass
    except OSError as cause:
        if cause.errno is not None:  # the machine's, not a file's end in Arrow's words
            raise
    if reader is not None:
        _check_version(path, reader.schema)
    return found


def asked(path: Path, names: Sequence[str]) -> pa.Table:
    """These columns of all rows of a schedule, and `recorded`, whether a turn's reply is; one chunk each, read into memory: of
    a mapped file all that is looked at would count as the reader's memory, bodies beside it included. Raises RecordError."""
    appended = path.with_name(APPENDED)
    groups = [_asked(SCHEDULE.empty_table(), names)]
    try:
        check_regular(path)
        check_unpacked(path)
        if appended.is_file():
            check_unpacked(appended)
        with pa.OSFile(str(path)) as source:
            reader = pa.ipc.open_file(source)
            _check_version(path, reader.schema)
            batches = map(reader.get_batch, range(reader.num_record_batches))
            pieces = _pieces(appended) if appended.is_file() else []
            rows = (_asked(batch, names) for batch in chain(batches, pieces))
            # Combining copies: a column of a batch keeps all of the batch in memory.
            while group := list(islice(rows, TOGETHER)):
                groups.append(pa.Table.from_batches(group).combine_chunks())
        return pa.concat_tables(groups).combine_chunks()  # refuses columns of other types than ours
    except (OSError, pa.ArrowException, KeyError, UnicodeDecodeError) as cause:
        raise file_error(f"{path.name}: not a schedule ({cause})", cause) from cause


def _asked(rows: pa.RecordBatch | pa.Table, names: Sequence[str]) -> pa.RecordBatch | pa.Table:
    recorded = rows.column("reply").is_valid()
    chosen = rows.select(names).append_column("recorded", recorded)
    chosen.validate(full=True)  # an offset that points elsewhere would be followed
    return chosen


def _check_version(path: Path, schema: pa.Schema) -> None:
    if schema.metadata != SCHEDULE.metadata:
        raise RecordError(f"{path.name}: of a version this program does not read: {schema.metadata}")


class Tail:
    """An appended schedule as a worker reads it: on and on, while it is being written, in the order of its rows.

    Pieces are mapped when they are there and let go when a row behind them was asked for.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(APPENDED)
        self._at = 0
        self._read = self._gone = 0
        self._pieces: deque[tuple[_Bodies, list[int]]] = deque()

    def read_on(self, size: int) -> Iterator[tuple[int, list[int]]]:
        """Map what has been appended, up to `size` bytes of the file: of each piece the first row, and when each is due."""
        if size <= self._at:
            return
        mapped = pa.memory_map(str(self._path))
        mapped.seek(self._at)
        while mapped.tell() < size:
            message = pa.ipc.read_message(mapped)
            if message.type != "record batch":
                continue
            piece = pa.ipc.read_record_batch(message, SCHEDULE)
            tokens: list[int] = piece.column("output_tokens_asked").to_pylist()
            self._pieces.append((_Bodies(piece.column("body")), tokens))
            yield self._read * PIECE, piece.column("due_ns").to_pylist()
            self._read += 1
        self._at = size

    def body(self, row: int) -> bytes:
        """The body of the request in this row of the appended file. Rows may only be asked for in their order."""
        piece, at = divmod(row, PIECE)
        while self._gone < piece:
            self._pieces.popleft()
            self._gone += 1
        return self._pieces[0][0][at]

    def tokens(self, row: int) -> int:
        """The output tokens asked for by the request in this row, whose body was the latest that was asked for."""
        return self._pieces[0][1][row % PIECE]


class _Bodies:
    """Bytes straight out of an Arrow binary column, without the cost of a scalar object a row."""

    __slots__ = ("_data", "_offsets")

    def __init__(self, column: pa.Array) -> None:
        _, offsets, data = column.buffers()
        self._offsets = memoryview(offsets).cast("i")
        self._data = memoryview(data) if data is not None else memoryview(b"")

    def __getitem__(self, at: int) -> bytes:
        return bytes(self._data[self._offsets[at] : self._offsets[at + 1]])
