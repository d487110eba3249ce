"""Tables of earlier versions, read as today's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa

from inferometer.errors import RecordError, file_error
from inferometer.foreign_tables.arrow import check_arrow
from inferometer.foreign_tables.limits import TooLarge
from inferometer.journal.schema import READ, RUN
from inferometer.whole_file import check_regular

_OF_FEW_BYTES = (
    pa.types.is_null, pa.types.is_dictionary, pa.types.is_run_end_encoded, pa.types.is_string_view, pa.types.is_binary_view,
)  # fmt: skip
"""Types that hold very many values in a few bytes, or in none. No version wrote any, and a cast would spell them out."""


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
            _spelled_out(table.column(field.name)).cast(field.type)
            if field.name in table.column_names
            else pa.nulls(len(table), field.type)
            for field in schema
        ]
        check_filled(zip(schema, columns, strict=True), path)
        return pa.Table.from_arrays(columns, schema=schema)
    except (
        pa.ArrowException,
        KeyError,
        UnicodeDecodeError,
    ) as cause:  # of another type, there twice, or no text
        raise RecordError(f"{path.name}: damaged ({cause})") from cause


def check_filled(columns: Iterable[tuple[pa.Field, pa.Array | pa.ChunkedArray]], path: Path) -> None:
    """Raises RecordError for a null where each row has a value: a file may hold one, or lack the column, whatever its schema
    and its version say."""
    for field, column in columns:
        if not field.nullable and column.null_count:
            raise RecordError(f"{path.name}: damaged ({column.null_count} rows without {field.name})")


def read_whole(
    path: Path, schema: pa.Schema, what: str, run: str | None = None, earlier: Sequence[pa.Schema] = ()
) -> pa.Table:
    """All rows of an Arrow file. `what` is in it: the steps of a run. `run`: the id of that run, which the file may state
    (journal/schema.py, of_run). `earlier`: versions that are read as well; columns that they lack are null. Raises RecordError,
    also for a file of another run."""
    try:
        check_regular(path)
        check_unpacked(path)
        with pa.OSFile(str(path)) as source:
            reader = pa.ipc.open_file(source)
            stated = dict(reader.schema.metadata or {})
            of = stated.pop(RUN, None)
            versions = (one for one in (schema, *earlier) if reader.schema == one and stated == one.metadata)
            if next(versions, None) is None:
                raise RecordError(f"{path.name}: of a version this program does not read: {stated}")
            if run is not None and of not in (None, run.encode()):
                raise RecordError(f"{path.name}: of another run than {run}")
            table = reader.read_all()
        table.validate(full=True)
        there = {name: table.column(name) for name in table.column_names}
        nulls = (pa.nulls(len(table), field.type) for field in schema)
        columns = [there.get(field.name, null) for field, null in zip(schema, nulls, strict=True)]
        table = pa.Table.from_arrays(columns, schema=schema)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as cause:
        raise file_error(f"{path.name}: not {what} ({cause})", cause) from cause
    check_filled(zip(schema, table.columns, strict=True), path)
    return table


def _spelled_out(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    while pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    if any(is_one(kind) for is_one in _OF_FEW_BYTES):
        raise pa.ArrowInvalid(f"a column of type {str(column.type)[:80]}, which no version has")
    return column
