"""From the workers' streams to the sealed tables, after the end of a run or after its death.

A stream that was cut off in the middle of a batch gives every batch before it; what the dead worker had not yet flushed (a
second's worth at most) is gone, and its requests stay without an outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from inferometer.errors import RecordError, file_error
from inferometer.foreign_tables.limits import TooLarge
from inferometer.foreign_tables.parquet import check_parquet
from inferometer.journal import hold
from inferometer.journal.folder import RunFolder
from inferometer.journal.kept_text import KeepText
from inferometer.journal.outcomes import PIECE_ROWS, Outcomes
from inferometer.journal.repeated_replies import RepeatedReplies
from inferometer.journal.schedule import asked
from inferometer.journal.schema import PULSE, RECORD, RUN, Outcome, of_run
from inferometer.journal.stream_batches import StreamBatches
from inferometer.journal.text_counts import text_counts
from inferometer.journal.versions import current
from inferometer.whole_file import check_regular, replacing

LONGEST_FAILED = 1 << 20
"""Bytes of text beyond which the tokens of a failed answer are not counted: no figure needs them, and texts that a server makes
to be slow to count take a second a mebibyte."""

Count = Callable[[Sequence[str]], Sequence[int | None]]
"""The tokens of each text, None where nobody could count it."""

_DAMAGED = (OSError, pa.ArrowException, TooLarge, UnicodeDecodeError)
"""What reading a sealed table raises; the last for names of columns that are no text."""

JOINED = (
    "input_tokens_asked",
    "input_tokens_sent",
    "output_tokens_asked",
    "request_class",
    "input_tokens_shared",
    "input_tokens_repeated",
    "session",
    "turn",
    "turns",
    "user",
    "due_ns",
)


def read_stream(path: Path, schema: pa.Schema) -> pa.Table:
    """All whole batches of an append-only stream. Raises RecordError for another format or version."""
    return _read_stream(path, schema)[0]


def _read_stream(path: Path, schema: pa.Schema) -> tuple[pa.Table, bool]:
    """The same, and whether that is all of it."""
    stream = StreamBatches(path)
    if stream.schema is None:
        return schema.empty_table(), False
    batches = [batch for _, _, batch in stream]
    return current(pa.Table.from_batches(batches, schema=stream.schema), schema, path), stream.whole


def streams(folder: RunFolder, kind: str, schema: pa.Schema) -> pa.Table:
    """All workers' streams of one kind, `worker` or `pulse`, one after the other."""
    paths = stream_paths(folder, kind)
    return pa.concat_tables([read_stream(path, schema) for path in paths] or [schema.empty_table()])


def stream_paths(folder: RunFolder, kind: str) -> list[Path]:
    """The files of those streams, in their order."""
    return sorted(folder.journal.glob(f"{kind}-*.arrows"))


@dataclass(frozen=True, slots=True)
class Sealed:
    """What sealing met. `cut`: streams that could not be read to their end mark. `kept`: the record that was there holds more
    requests than the streams still do, and was left as it is."""

    cut: tuple[Path, ...] = ()
    kept: bool = False


def seal(folder: RunFolder, count: Count, run: str, keep: KeepText = "all") -> Sealed:
    """Join outcomes with the schedule, count the generated text with `count`, and write both parquet files.

    `run`: the id in run.json, which both files carry in their metadata. Readers ignore it but for `run_of`. `keep`: whose text
    the record keeps; all of it has been counted by then. Held at a time are what `Outcomes` holds, 45 bytes a row of the
    schedule, and one piece of the record. A record of the same run that holds more stays: of a journal that was damaged, or
    removed in part, it is the last that does. Raises RecordError, also for a stream of another run.
    """
    _check_of_run(folder, run)
    outcomes, schedule = Outcomes(stream_paths(folder, "worker")), asked(folder.schedule, JOINED)
    if _holds_more(folder.record, len(outcomes), run):
        return Sealed(kept=True)
    replies = RepeatedReplies()
    schema = of_run(RECORD, run)

    def pieces() -> Iterator[pa.Table]:
        for piece in outcomes.pieces():
            joined = _joined(schedule, piece, folder)
            record = _sealed(piece, joined, count)
            if record.column("session").null_count < len(record):
                record = replies.added(record, joined.column("recorded").to_pylist())
            yield _keeping(record, keep).replace_schema_metadata(schema.metadata)

    write_tables(pieces(), schema, folder.record)
    pulses = [(path, *_read_stream(path, PULSE)) for path in stream_paths(folder, "pulse")]
    table = pa.concat_tables([pulse for _, pulse, _ in pulses] or [PULSE.empty_table()])
    table = table.sort_by([("t_ns", "ascending")])
    write_table(table.replace_schema_metadata(of_run(PULSE, run).metadata), folder.pulse)
    return Sealed((*outcomes.cut, *(path for path, _, whole in pulses if not whole)))


def _holds_more(record: Path, rows: int, run: str) -> bool:
    """Whether there is a record of this run with more than so many rows, all of which can be read, and its pulses."""
    try:
        if not record.is_file() or run_of(record) not in (None, run) or rows_of(record) <= rows:
            return False
        read_table(record.with_name("pulse.parquet"), PULSE)
        return sum(len(part) for part in record_parts(record, RECORD.names)) > rows
    except RecordError:
        return False


def _check_of_run(folder: RunFolder, run: str) -> None:
    """That the streams are this run's: those of another of the same plan would fit its schedule. Earlier builds wrote no id.
    Raises RecordError."""
    for path in (*stream_paths(folder, "worker"), *stream_paths(folder, "pulse")):
        check_regular(path)
        try:
            with pa.OSFile(str(path)) as source:
                found = (pa.ipc.open_stream(source).schema.metadata or {}).get(RUN, run.encode())
        except pa.ArrowException:
            continue  # cut off in its header, or damaged: for its reader to tell
        if found != run.encode():
            whose = found.decode(errors="replace")[:80]
            raise RecordError(
                f"{path}: is of another run ({whose}) than {folder.facts}, which has the id {run}"
            )


def _joined(schedule: pa.Table, outcomes: pa.Table, folder: RunFolder) -> pa.Table:
    """What was asked of each request. Raises RecordError for requests that the schedule does not have."""
    try:
        return schedule.take(outcomes.column("index").combine_chunks())
    except (pa.ArrowException, IndexError) as cause:
        said = f"{folder.schedule}: is damaged, or of other requests than {folder.journal} ({cause})"
        raise RecordError(said) from cause


def _sealed(outcomes: pa.Table, joined: pa.Table, count: Count) -> pa.Table:
    """A piece of the record, without what turns repeat."""
    column = _one(outcomes.column("text"))
    excess = pc.greater(pc.binary_length(column), LONGEST_FAILED)
    needless = pc.and_(excess, pc.not_equal(outcomes.column("outcome"), Outcome.OK))
    wanted = _one(pc.if_else(needless, None, column))
    local = pa.array(count(wanted.drop_null().to_pylist()), pa.int32())
    if wanted.null_count:
        place = np.cumsum(np.asarray(wanted.is_valid())) - 1
        local = local.take(pa.array(place, mask=np.asarray(wanted.is_null())))
    columns = [*outcomes.columns, *(joined.column(name) for name in JOINED), local, *text_counts(column)]
    return pa.Table.from_arrays(columns, schema=RECORD)


def _keeping(record: pa.Table, keep: KeepText) -> pa.Table:
    """The record with the text of those answers that are to keep it."""
    if keep == "all":
        return record
    failed = pc.not_equal(record.column("outcome"), Outcome.OK)
    for name in ("text", "content"):
        text = pa.nulls(len(record), pa.string())
        if keep == "errors":
            text = pc.if_else(failed, record.column(name), text)
        record = record.set_column(record.schema.get_field_index(name), RECORD.field(name), text)
    return record


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def run_of(path: Path) -> str | None:
    """The id of the run that a sealed table is of; None: an earlier version did not write it. Raises RecordError."""
    try:
        check_regular(path)
        found = (pq.read_schema(path).metadata or {}).get(RUN)
    except _DAMAGED as cause:
        raise file_error(_unreadable(path, cause), cause) from cause
    return None if found is None else found.decode(errors="replace")


def rows_of(path: Path) -> int:
    """How many rows a sealed table has. Raises RecordError."""
    try:
        check_regular(path)
        return int(pq.read_metadata(path).num_rows)
    except _DAMAGED as cause:
        raise file_error(_unreadable(path, cause), cause) from cause


def _unreadable(path: Path, cause: object) -> str:
    if not path.exists() and hold.held(path.parent / "journal"):
        return f"{path.parent}: {hold.GOING}"
    return f"{path.name}: missing or damaged ({cause}); try `inferometer recover`"


def write_table(table: pa.Table, path: Path) -> None:
    """Write a parquet file that appears whole or not at all."""
    write_tables([table], table.schema, path)


def write_tables(tables: Iterable[pa.Table], schema: pa.Schema, path: Path) -> None:
    """The same of several tables, one group of rows each."""
    with replacing(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as writer:
        for table in tables:
            writer.write_table(table)


def read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a sealed table. Raises RecordError if it is missing, damaged or of another version."""
    try:
        check_regular(path)
        file = pq.ParquetFile(path)
        check_parquet(path)
        table = file.read()
        table.validate(full=True)
        return current(table, schema, path)
    except _DAMAGED as cause:
        raise file_error(_unreadable(path, cause), cause) from cause


def record_parts(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """A sealed record with these columns, in parts of PIECE_ROWS rows at most, the first of which is empty; with `text` as well
    if it is of an earlier version, which did not count it. Raises RecordError as `read_table` does."""
    try:
        check_regular(path)
        with pq.ParquetFile(path) as file:
            check_parquet(path, None, PIECE_ROWS)
            found = file.schema_arrow
            current(found.empty_table(), RECORD, path)
            wanted = [*columns] if "text_chars" in found.names else [*columns, "text"]
            schema = pa.schema([RECORD.field(name) for name in wanted], RECORD.metadata)
            yield schema.empty_table()
            there = [name for name in wanted if name in found.names]
            for batch in file.iter_batches(PIECE_ROWS, columns=there):
                batch.validate(full=True)
                yield current(pa.Table.from_batches([batch]), schema, path)
    except _DAMAGED as cause:
        raise file_error(_unreadable(path, cause), cause) from cause
