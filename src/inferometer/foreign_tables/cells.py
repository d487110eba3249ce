"""Rows of a table as values of Python, where each cell has a text of its own: a table may hold it once, and point to it from
very many cells, or hold a list of very many nulls in no bytes at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from inferometer.foreign_tables.limits import MOST_BATCH, TooLarge, gib

_VALUE = 64
"""Bytes of a small value and of its place in a list."""

_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
_VIEWS = (pa.types.is_string_view, pa.types.is_binary_view)
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_SMALL = (
    pa.types.is_null,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_temporal,
)


def as_values(rows: pa.RecordBatch, at_once: int = 256, most: int = MOST_BATCH) -> Iterator[Any]:
    """Valid rows, of which so many are made at once, and come to no more than `most` bytes. Raises TooLarge, and
    pa.ArrowInvalid for columns of types that no values are made of here."""
    for start in range(0, rows.num_rows, at_once):
        part, found = rows.slice(start, at_once), 0
        for column in part.columns:
            found += _size(column, most - found)
            if found > most:
                raise TooLarge(f"{len(part)} rows of it come to more than {gib(most)}")
        yield from part.to_pylist()


def _size(cells: pa.Array, most: int) -> int:
    """About how many bytes, or so many that they are more than `most`."""
    kind, found = cells.type, _VALUE * len(cells)
    if found > most or any(is_one(kind) for is_one in _SMALL):
        return found
    if any(is_one(kind) for is_one in _TEXT):
        return found + _sum(pc.binary_length(cells))
    if any(is_one(kind) for is_one in _VIEWS):
        views = np.frombuffer(cells.buffers()[1] or b"", np.int32).reshape(-1, 4)
        return found + int(views[cells.offset : cells.offset + len(cells), 0].sum(dtype=np.int64))
    if pa.types.is_dictionary(kind) and any(is_one(kind.value_type) for is_one in _TEXT):
        return found + _sum(pc.binary_length(cells.dictionary).take(cells.indices))
    if pa.types.is_struct(kind):
        inner = cells.flatten()
    elif any(is_one(kind) for is_one in _LISTS):
        inner = [cells.flatten()]
    else:
        raise pa.ArrowInvalid(f"a column of type {str(kind)[:80]} is not read")
    for part in inner:
        found += _size(part, most - found)
        if found > most:
            break
    return found


def _sum(sizes: pa.Array) -> int:
    return pc.sum(sizes).as_py() or 0
