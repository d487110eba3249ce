"""Arrow files: what one states of the size of its parts is what is taken for them, so the limit holds whatever it states.

Rows are limited too: those of a column of nulls have no bytes in the file, and become values of some.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from inferometer.foreign_tables.limits import FEW_ROWS, MOST_BATCH, TooLarge, gib

_MAGIC = b"ARROW1"
_GOES_ON = 0xFFFFFFFF
_DICTIONARY, _BATCH = 2, 3
"""Kinds of messages that hold data."""


def check_arrow(path: Path, most: int = MOST_BATCH) -> None:
    """That no batch of a file or stream would take more than `most` bytes once it is unpacked, and that many rows have a byte
    each. What is damaged is left to the reader. Raises TooLarge, OSError."""
    with path.open("rb") as file:
        most_rows, rows = max(FEW_ROWS, os.fstat(file.fileno()).st_size), 0
        try:
            for at in _messages(file):
                own, size = _claimed(file, at)
                if size > most:
                    raise TooLarge(f"a batch of it has {gib(size)} once unpacked: at most {gib(most)}")
                if (rows := rows + own) > most_rows:
                    raise TooLarge(f"has {rows:,} rows or more: at most {most_rows:,}, in a file of its size")
        except (struct.error, IndexError):
            return


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


def _claimed(file: BinaryIO, at: int) -> tuple[int, int]:
    """How many rows a message has, and how many bytes its compressed parts come to."""
    body, _, about = _message(file, at)
    kind, batch = about.field(about.root, 1), about.inner(about.root, 2)
    if kind is None or batch is None:
        return 0, 0
    if about.number("<B", kind) == _DICTIONARY:
        batch = about.inner(batch, 1)
    elif about.number("<B", kind) != _BATCH:
        return 0, 0
    if batch is None:
        return 0, 0
    length = about.field(batch, 0)
    rows = 0 if length is None else max(0, about.number("<q", length))
    if about.field(batch, 3) is None:
        return rows, 0  # not compressed: as large as the file at most
    total = 0
    for part in about.items(batch, 2, 16):
        if about.number("<q", part + 8) < 8:
            continue
        try:
            _seek(file, body + about.number("<q", part))
            total += max(0, *struct.unpack("<q", file.read(8)))
        except (struct.error, IndexError):
            continue  # damaged, which does not keep a reader from unpacking the others first
    return rows, total


def _seek(file: BinaryIO, at: int) -> None:
    """Raises IndexError for a place that the file has not."""
    if not 0 <= at <= os.fstat(file.fileno()).st_size:
        raise IndexError(at)
    file.seek(at)
