"""Tables of earlier versions, read as today's."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from inferometer.errors import RecordError
from inferometer.foreign_tables import TooLarge, check_arrow
from inferometer.journal.schema import READ


def check_unpacked(path: Path) -> None:
    """That an Arrow file of a run takes no more memory than it may. Raises RecordError, OSError."""
    try:
        check_arrow(path)
    except TooLarge as cause:
        raise RecordError(f"{path.name}: {cause}; no version of inferometer wrote it") from None


def current(table: pa.Table, schema: pa.Schema, path: Path) -> pa.Table:
    """The table in today's columns; those that an earlier version lacks are null. Raises RecordError for a version that is not
    read."""
    found = (table.schema.metadata or {}).get(b"inferometer", b"none").decode(errors="replace")
    kind = schema.metadata[b"inferometer"].decode().partition("/")[0]
    versions = [f"{kind}/{version}" for version in READ[kind]]
    if found not in versions:
        raise RecordError(f"{path.name}: of version {found}; this program reads {' and '.join(versions)}")
    try:
        columns = [
            table.column(field.name).cast(field.type)
            if field.name in table.column_names
            else pa.nulls(len(table), field.type)
            for field in schema
        ]
        return pa.Table.from_arrays(columns, schema=schema)
    except (
        pa.ArrowException,
        KeyError,
        UnicodeDecodeError,
    ) as cause:  # of another type, there twice, or no text
        raise RecordError(f"{path.name}: damaged ({cause})") from cause
