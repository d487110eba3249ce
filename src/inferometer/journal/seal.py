"""From the workers' streams to the sealed tables, after the end of a run or after its death.

A stream that was cut off in the middle of a batch gives every batch before it; what the dead worker had not yet flushed (a
second's worth at most) is gone, and its requests stay without an outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from inferometer.errors import RecordError, file_error
from inferometer.journal.folder import RunFolder, unwritten
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import OUTCOME, PULSE, READ, RECORD, EventClass

Count = Callable[[Sequence[str]], Sequence[int | None]]
"""The tokens of each text, None where nobody could count it."""

RUN = b"inferometer.run"
"""Key of the run's id in a sealed table's metadata."""

_JOINED = (
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
    batches: list[pa.RecordBatch] = []
    with pa.OSFile(str(path)) as source:
        try:
            reader = pa.ipc.open_stream(source)
        except pa.ArrowInvalid:
            return schema.empty_table()  # killed before the header was out
        while True:
            try:
                batches.append(reader.read_next_batch())
            except StopIteration:
                break
            except pa.ArrowInvalid:
                break  # cut off in mid-batch
            except OSError as cause:
                if cause.errno is None:  # the same, in other words of Arrow's
                    break
                raise  # the disk's: what follows may well be there
    return _current(pa.Table.from_batches(batches, schema=reader.schema), schema, path)


def streams(folder: RunFolder, kind: str, schema: pa.Schema) -> pa.Table:
    """All workers' streams of one kind, `worker` or `pulse`, one after the other."""
    paths = sorted(folder.journal.glob(f"{kind}-*.arrows"))
    return pa.concat_tables([read_stream(path, schema) for path in paths] or [schema.empty_table()])


def seal(folder: RunFolder, count: Count, run: str) -> None:
    """Join outcomes with the schedule, count the generated text with `count`, and write both parquet files.

    `run`: the id in run.json, which both files carry in their metadata. Readers ignore it but for `run_of`.
    """
    outcomes = streams(folder, "worker", OUTCOME).sort_by(
        [("t_intended", "ascending"), ("index", "ascending")]
    )
    schedule = Schedule(folder.schedule).table
    asked = schedule.select(_JOINED).take(outcomes.column("index"))
    texts = outcomes.column("text").to_pylist()
    counted = iter(count([text for text in texts if text is not None]))
    local = pa.array([None if text is None else next(counted) for text in texts], pa.int32())
    columns = [*outcomes.columns, *asked.columns, local]
    record = pa.Table.from_arrays(columns, schema=RECORD)
    if asked.column("session").null_count < len(record):
        record = _with_repeated(record, schedule.column("reply").is_valid().take(outcomes.column("index")))
    write_table(_of_run(record, run), folder.record)
    pulses = streams(folder, "pulse", PULSE).sort_by([("t_ns", "ascending")])
    write_table(_of_run(pulses, run), folder.pulse)


def _of_run(table: pa.Table, run: str) -> pa.Table:
    return table.replace_schema_metadata({**(table.schema.metadata or {}), RUN: run.encode()})


def run_of(path: Path) -> str | None:
    """The id of the run that a sealed table is of; None: an earlier version did not write it. Raises RecordError."""
    try:
        found = (pq.read_schema(path).metadata or {}).get(RUN)
    except (OSError, pa.ArrowInvalid) as cause:
        raise file_error(_unreadable(path, cause), cause) from cause
    return None if found is None else found.decode(errors="replace")


def _unreadable(path: Path, cause: Exception) -> str:
    return f"{path.name}: missing or damaged ({cause}); try `inferometer recover`"


def _with_repeated(record: pa.Table, recorded: pa.ChunkedArray) -> pa.Table:
    """The record of conversations: what a turn repeats is part of the tokens asked for and sent.

    How long the server's own replies are is known now. A turn repeats their text, which the server reads anew: as other tokens
    than it generated, where several sequences spell the same text. So they are counted by the tokenizer, as the rest of a
    prompt is; of a reply of more than content, which is repeated alone, and without a tokenizer, it is the server's count less
    the reasoning. `recorded`: turns whose recorded reply is repeated instead, and whose tokens the schedule knows.
    """
    names = (
        "session",
        "cycle",
        "phase",
        "turn",
        "input_tokens_asked",
        "input_tokens_sent",
        "input_tokens_repeated",
    )
    session, cycle, phase, turn, asked, sent, known = (record.column(name).to_pylist() for name in names)
    replies = ("usage_output", "usage_reasoning", "output_tokens_local", "event_class")
    said = [
        _repeated(*one) for one in zip(*(record.column(name).to_pylist() for name in replies), strict=True)
    ]
    before: dict[tuple[int, int, int], int] = {}
    # A conversation's turns are due one after the other, and the record stands in that order.
    for row, fixed in enumerate(recorded.to_pylist()):
        if session[row] is None:
            continue
        key = (phase[row], session[row], cycle[row])
        repeated = known[row] if fixed else before.get(key, 0) if turn[row] else 0
        before[key] = repeated + sent[row] + said[row]
        asked[row] += repeated
        sent[row] += repeated
        known[row] = repeated
    for name, values in zip(names[-3:], (asked, sent, known), strict=True):
        at = record.schema.get_field_index(name)
        record = record.set_column(at, RECORD.field(name), pa.array(values, pa.int32()))
    return record.replace_schema_metadata(RECORD.metadata)


def _repeated(usage: int | None, thought: int | None, local: int | None, kinds: bytes) -> int:
    """The tokens of a reply as the next turn repeats it."""
    more = thought or EventClass.REASONING in kinds or EventClass.TOOL_CALL in kinds
    if local is not None and (usage is None or not more):
        return local
    return max(0, (usage or 0) - (thought or 0))


def write_table(table: pa.Table, path: Path) -> None:
    """Write a parquet file that appears whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        pq.write_table(table, part, compression="zstd")
        part.replace(path)
    except OSError as cause:
        raise unwritten(path, part, cause) from cause


def read_table(path: Path, schema: pa.Schema) -> pa.Table:
    """Read a sealed table. Raises RecordError if it is missing, damaged or of another version."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as cause:
        raise file_error(_unreadable(path, cause), cause) from cause
    return _current(table, schema, path)


def _current(table: pa.Table, schema: pa.Schema, path: Path) -> pa.Table:
    """The table in today's columns; those that an earlier version lacks are null. Raises RecordError for a version that is not
    read."""
    found = (table.schema.metadata or {}).get(b"inferometer", b"none").decode()
    kind = schema.metadata[b"inferometer"].decode().partition("/")[0]
    versions = [f"{kind}/{version}" for version in READ[kind]]
    if found not in versions:
        raise RecordError(f"{path.name}: of version {found}; this program reads {' and '.join(versions)}")
    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)
