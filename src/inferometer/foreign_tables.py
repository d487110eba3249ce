"""Arrow and Parquet files that somebody else wrote: what they would take once unpacked, found before anything is.

A file of some kilobytes can hold gigabytes of one byte. What an Arrow file states of the size of its parts is what is taken for
them, so the limit holds whatever it states. A Parquet file is believed what it states.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq

MOST_BATCH = 1 << 30
"""Bytes of a batch of an Arrow file, unpacked."""
MOST_GROUP = 4 << 30
"""Bytes of a row group of a Parquet file, unpacked."""
MOST_ROWS = 100_000_000
"""Rows of a Parquet file."""

_MAGIC = b"ARROW1"
_GOES_ON = 0xFFFFFFFF
_DICTIONARY, _BATCH = 2, 3
"""Kinds of messages that hold data."""


class TooLarge(Exception):
    """The words go after the name of the file."""


def check_parquet(file: pq.ParquetFile) -> None:
    """That a file states no more than the limits. Columns are not looked at one by one: where what is said of one is damaged,
    pyarrow ends the process. Raises TooLarge."""
    about = file.metadata
    if about.num_rows > MOST_ROWS:
        raise TooLarge(f"has {about.num_rows:,} rows: at most {MOST_ROWS:,}")
    largest = max(
        (about.row_group(group).total_byte_size for group in range(about.num_row_groups)), default=0
    )
    if largest > MOST_GROUP:
        raise TooLarge(f"a row group of it has {_gib(largest)} once unpacked: at most {_gib(MOST_GROUP)}")


def check_arrow(path: Path) -> None:
    """That no batch of a file or stream would take more than MOST_BATCH once it is unpacked. What is damaged is left to the
    reader. Raises TooLarge, OSError."""
    with path.open("rb") as file:
        try:
            for at in _messages(file):
                if (size := _unpacked(file, at)) > MOST_BATCH:
                    raise TooLarge(
                        f"a batch of it has {_gib(size)} once unpacked: at most {_gib(MOST_BATCH)}"
                    )
        except (struct.error, IndexError):
            return


def _gib(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GiB"


def _messages(file: BinaryIO) -> Iterator[int]:
    """Where messages begin: those that the footer of a file names, or one after the other in a stream."""
    if file.read(len(_MAGIC)) == _MAGIC:
        end = file.seek(max(0, file.seek(0, os.SEEK_END) - 10))
        (size,) = struct.unpack("<i", file.read(4))
        _seek(file, end - size)
        footer = _Flat(file.read(max(0, size)))
        for which in (2, 3):  # of dictionaries, of record batches
            for at in footer.items(footer.root, which, 24):
                yield footer.number("<q", at)
        return
    at = 0
    while True:
        yield at
        body, length, _ = _message(file, at)
        at = body + length


class _Flat:
    """As much of a FlatBuffer as is asked for."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.root = self.number("<I", 0)

    def number(self, form: str, at: int) -> int:
        if at < 0:
            raise IndexError(at)
        (value,) = struct.unpack_from(form, self._data, at)
        return int(value)

    def field(self, table: int, which: int) -> int | None:
        """Where a table's field lies, if it is there."""
        layout = table - self.number("<i", table)
        if 4 + 2 * which >= self.number("<H", layout):
            return None
        return table + there if (there := self.number("<H", layout + 4 + 2 * which)) else None

    def inner(self, table: int, which: int) -> int | None:
        """Where a table's field points to."""
        at = self.field(table, which)
        return None if at is None else at + self.number("<I", at)

    def items(self, table: int, which: int, size: int) -> Iterator[int]:
        """Where the structs of so many bytes lie that a field lists."""
        at = self.inner(table, which)
        if at is not None:
            yield from range(at + 4, at + 4 + size * self.number("<I", at), size)


def _message(file: BinaryIO, at: int) -> tuple[int, int, _Flat]:
    """Of a message: where its body begins, its bytes, and what it says of it. Raises struct.error at the end."""
    _seek(file, at)
    (size,) = struct.unpack("<I", file.read(4))
    at += 4
    if size == _GOES_ON:  # not so in files of Arrow before 0.15
        (size,) = struct.unpack("<I", file.read(4))
        at += 4
    about = _Flat(file.read(size))
    length = about.field(about.root, 3)
    return at + size, 0 if length is None else max(0, about.number("<q", length)), about


def _unpacked(file: BinaryIO, at: int) -> int:
    """How many bytes the compressed parts of a message come to."""
    body, _, about = _message(file, at)
    kind, batch = about.field(about.root, 1), about.inner(about.root, 2)
    if kind is None or batch is None:
        return 0
    if about.number("<B", kind) == _DICTIONARY:
        batch = about.inner(batch, 1)
    elif about.number("<B", kind) != _BATCH:
        return 0
    if batch is None or about.field(batch, 3) is None:
        return 0  # not compressed: as large as the file at most
    total = 0
    for part in about.items(batch, 2, 16):
        if about.number("<q", part + 8) < 8:
            continue
        try:
            _seek(file, body + about.number("<q", part))
            total += max(0, *struct.unpack("<q", file.read(8)))
        except (struct.error, IndexError):
            continue  # damaged, which does not keep a reader from unpacking the others first
    return total


def _seek(file: BinaryIO, at: int) -> None:
    """Raises IndexError for a place that the file has not."""
    if not 0 <= at <= os.fstat(file.fileno()).st_size:
        raise IndexError(at)
    file.seek(at)
