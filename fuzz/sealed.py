"""Sealed tables of a run's folder, `requests.parquet` and `pulse.parquet`: as many rows in parts as whole, or what is wrong
with the file. That memory ran out is no such words: the file would have the machine blamed for what it claims."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from fuzz.bounds import bounded_memory
from fuzz.place import lain
from inferometer.errors import RecordError
from inferometer.journal.schema import PULSE, RECORD
from inferometer.journal.seal import read_table, record_parts, run_of
from inferometer.measure.record import COLUMNS, Pulse, Record


def check(data: bytes) -> None:
    """The first byte chooses what the file is read as; the rest is the file."""
    if not data:
        return
    path = lain("table.parquet", data[1:])
    with bounded_memory():
        try:
            run_of(path)
            if data[0] % 2:
                Pulse.from_table(read_table(path, PULSE))
                return
            record = Record.from_tables(record_parts(path, COLUMNS), PULSE.empty_table())
        except RecordError as error:
            str(error).encode("utf-8", "replace")
            return
        table = whole(path)
    holds(record, table)


def whole(path: Path) -> pa.Table | None:
    """The record as those read it who need all columns of it; None: one of the others is damaged."""
    try:
        return read_table(path, RECORD)
    except RecordError:
        return None


def holds(record: Record, table: pa.Table | None) -> None:
    """What is said of a record that was read."""
    assert table is None or len(table) == len(record)
    rows = len(record)
    assert len(record.event_offsets) == len(record.emitted_offsets) == rows + 1
    assert record.event_offsets[-1] == len(record.event_ns) == len(record.event_class)
    assert len(record.event_wait_ns) == len(record.event_ns)
    assert len(record.outcome.codes) == rows == len(record.ok)
