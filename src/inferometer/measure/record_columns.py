"""From Arrow to numpy: the columns of a record, taken from its parts one after the other.

A record may be larger than memory, and is never held as a table: of each part the columns in use are kept as arrays, in a file
where they come to much (large_arrays.py), and put together at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from inferometer.errors import RecordError
from inferometer.measure.large_arrays import Appended, held

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Array = NDArray[Any]


class GatheredColumn:
    """A column that may hold nulls: values, 0 where null, and which are valid."""

    def __init__(self) -> None:
        self._values, self._valid = Appended(np.int64), Appended(np.bool_)

    def add(self, column: pa.ChunkedArray) -> None:
        """The next part."""
        self._values.add(filled(column))
        self._valid.add(np.asarray(pc.is_valid(column).to_numpy(), np.bool_))

    def whole(self) -> tuple[Ints, Mask]:
        """Of all parts."""
        return self._values.whole(), self._valid.whole()


class GatheredNames:
    """A column of strings: a code a row, -1 for null, and the names in order of their first appearance."""

    def __init__(self) -> None:
        self._codes = Appended(np.int64)
        self._names: dict[str, int] = {}

    def add(self, column: pa.ChunkedArray) -> None:
        """The next part."""
        for chunk in column.chunks:
            coded = chunk.dictionary_encode()
            known = [self._names.setdefault(name, len(self._names)) for name in coded.dictionary.to_pylist()]
            codes = np.asarray(pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False), np.int64)
            self._codes.add(np.array([*known, -1], np.int64)[codes])

    def whole(self) -> tuple[Ints, tuple[str, ...]]:
        """Of all parts."""
        return self._codes.whole(), tuple(self._names)


class GatheredLists:
    """A column of lists: the values of all rows behind each other, and where each row begins."""

    def __init__(self, kind: type[np.generic]) -> None:
        self._values, self._sizes = Appended(kind), Appended(np.int32)

    def add(self, values: Array, offsets: Ints) -> None:
        """The next part."""
        self._values.add(values)
        self._sizes.add(np.diff(offsets).astype(np.int32))

    def whole(self) -> tuple[Array, Ints]:
        """Of all parts: row i owns `values[offsets[i]:offsets[i + 1]]`."""
        sizes = self._sizes.whole()
        offsets = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        return self._values.whole(), held(offsets)


def chunked(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column of a record. Raises RecordError if there is none of that name."""
    if name not in table.column_names:
        raise RecordError(f"the record has no column `{name}`")
    return table.column(name)


def ints(table: pa.Table, name: str) -> Array:
    """An integer column that has no nulls, in its own width. Raises RecordError if it has."""
    column = chunked(table, name)
    if column.null_count:
        raise RecordError(f"the record is damaged: column `{name}` holds nulls")
    return np.asarray(column.to_numpy())


LONGEST = 1 << 61
"""Nanoseconds, 73 years: an instant beyond is none, and the difference of any two within is an int64."""


def check_range(name: str, values: Array, least: int, most: int = LONGEST) -> None:
    """Raises RecordError where a column holds what no writer of records puts there."""
    if len(values) and not (least <= int(values.min()) and int(values.max()) <= most):
        worst = int(values.min()) if int(values.min()) < least else int(values.max())
        raise RecordError(f"the record is damaged: column `{name}` holds {worst:,}")


def filled(column: pa.ChunkedArray) -> Array:
    """An integer column in its own width, 0 where null: pyarrow itself would turn it into doubles."""
    return np.asarray(pc.fill_null(column, 0).to_numpy())


def ragged(table: pa.Table, name: str) -> tuple[Array, Ints]:
    """A column of lists of integers: the values of all rows, and where each row begins."""
    return _joined(_list_parts(chunk) for chunk in chunked(table, name).chunks)


def ragged_bytes(table: pa.Table, name: str) -> tuple[NDArray[np.uint8], Ints]:
    """The same of a binary column."""
    values, offsets = _joined(_bytes_parts(chunk) for chunk in chunked(table, name).chunks)
    return values.astype(np.uint8, copy=False), offsets


def _list_parts(array: pa.Array) -> tuple[Array, Ints]:
    offsets = np.asarray(array.offsets.to_numpy(), np.int64)
    values = np.asarray(array.values.to_numpy(zero_copy_only=False))
    return values[offsets[0] : offsets[-1]], offsets - offsets[
        0
    ]  # a sliced one owns only a part of the values


def _bytes_parts(array: pa.Array) -> tuple[Array, Ints]:
    _, offset_buffer, data = array.buffers()
    if len(array) == 0 or offset_buffer is None:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    raw = np.frombuffer(offset_buffer, np.int32)[array.offset : array.offset + len(array) + 1]
    offsets = raw.astype(np.int64)
    values = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    return values[offsets[0] : offsets[-1]], offsets - offsets[0]


def _joined(parts: Iterable[tuple[Array, Ints]]) -> tuple[Array, Ints]:
    found = list(parts)
    if len(found) == 1:
        return found[0]
    if not found:
        return np.zeros(0, np.int64), np.zeros(1, np.int64)
    ends = np.cumsum([0, *(offsets[-1] for _, offsets in found)])
    offsets = [one[1:] + end for (_, one), end in zip(found, ends, strict=False)]
    return np.concatenate([values for values, _ in found]), np.concatenate((np.zeros(1, np.int64), *offsets))
