"""What a Parquet file would take once it is unpacked, found by walking through its footer and the heads of its pages.

A footer can claim anything. What a page says of itself is what pyarrow takes memory for, so the bound holds whatever the file
claims elsewhere. A page of a few bytes can stand for very many cells:

| a page                             | takes                                                          |
| ---------------------------------- | -------------------------------------------------------------- |
| any                                | its own size, unpacked, and of each cell its levels and value  |
| of texts, by a dictionary          | of each cell the longest text of the dictionary                |
| of texts, by their common prefixes | of each cell the size of the page                              |

The last two are more than the truth. Where a row is one cell of a column, and few rows are read at once, those rows alone
count; where all are, the texts themselves are looked up before a file is refused.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from inferometer.foreign_tables.thrift import Struct, Thrift, number_of, struct_of, structs_of

MOST_FOOTER = 1 << 23
"""Bytes. Those of files of thousands of row groups have some megabytes."""

_MAGIC = b"PAR1"
_HEAD, _LONGEST_HEAD = 1 << 14, 1 << 20
"""Bytes in which the head of a page nearly always has room, and always, with statistics of long texts in it."""
_SLACK = 100
"""Bytes that pyarrow looks for a page beyond a column's end, for writers that stated it too low."""
_MOST_WORDS = 1 << 20
"""Entries of a dictionary that are looked at one by one."""

_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3
"""Kinds of pages."""
_ABOUT = {_DATA: (5, 2), _DICTIONARY: (7, 2), _DATA_2: (8, 4)}
"""Which member of a page's head is of its kind, and which of that is the encoding."""
_BY_DICTIONARY, _BY_PREFIX = (2, 8), 7
"""Encodings."""
_TEXT, _FIXED = 6, 7
_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 8, 4: 4, 5: 8, _TEXT: 8}
"""Bytes of a value in memory by its type; of a text, where it lies."""
_LEVELS = 4
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
_REPEATED = 2


class Damaged(pa.ArrowInvalid):  # type: ignore[misc]  # pyarrow is untyped
    """The file is not laid out as Parquet is: for pyarrow's callers, in its way."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column that holds values. `name`: of the column at the top; `own`: it is that one. `flat`: a row is one cell of it."""

    name: bytes
    own: bool
    flat: bool
    text: bool
    width: int


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of its rows, columns and groups of rows."""

    rows: int
    leaves: tuple[Leaf, ...]
    groups: tuple[Struct, ...]


def footer(file: BinaryIO) -> Footer | None:
    """What a file says of itself; None: it is no Parquet file, or encrypted. Raises Damaged, OSError."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 8))
    tail = file.read(8)
    size = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or size > end - 8:
        return None
    if size > MOST_FOOTER:
        raise Damaged(f"its footer has {size:,} bytes: at most {MOST_FOOTER:,}")
    file.seek(end - 8 - size)
    try:
        about = Thrift(file.read(size)).struct()
        leaves, groups = tuple(_leaves(structs_of(about, 2))), tuple(structs_of(about, 4))
        rows = max(number_of(about, 3), sum(number_of(group, 3) for group in groups))
    except LookupError:
        raise Damaged("its footer is damaged") from None
    if len({leaf.name for leaf in leaves if leaf.own}) < sum(leaf.own for leaf in leaves):
        raise Damaged("it names a column twice")
    return Footer(rows, leaves, groups)


@dataclass(frozen=True, slots=True)
class Reading:
    """What is to be read of a file: which columns (all if None), and how many rows at once."""

    path: Path
    columns: Collection[str] | None
    rows: int

    def unpacked(self, file: BinaryIO, about: Footer, group: int, most: int) -> int:
        """At most how many bytes a group of rows comes to, or more than `most`. Raises Damaged, OSError."""
        wanted = None if self.columns is None else {name.encode() for name in self.columns}
        total = 0
        try:
            chunks = structs_of(about.groups[group], 1)
            if len(chunks) != len(about.leaves):
                raise Damaged("its footer is damaged")
            for leaf, chunk in zip(about.leaves, chunks, strict=True):
                if total <= most and (wanted is None or leaf.name in wanted):
                    total += self._of_column(file, leaf, struct_of(chunk, 3), group, most - total)
        except LookupError:
            raise Damaged("a page of it is damaged") from None
        return total

    def _of_column(self, file: BinaryIO, leaf: Leaf, about: Struct, group: int, most: int) -> int:
        plain = dictionary = prefixes = longest = 0
        for page in _pages(file, about):
            plain += page.size + page.cells * (_LEVELS + leaf.width)
            if plain > most:
                return plain
            if not leaf.text:
                continue
            if page.kind == _DICTIONARY:
                longest = max(longest, _longest(file, page, number_of(about, 4)))
            elif page.encoding in _BY_DICTIONARY:
                dictionary += page.cells
            elif page.encoding == _BY_PREFIX:
                prefixes += page.size * (min(self.rows, page.cells) if leaf.flat else page.cells)
        found = plain + prefixes + longest * (min(self.rows, dictionary) if leaf.flat else dictionary)
        if found > most and leaf.own and leaf.flat and not prefixes:
            return plain + self._of_texts(leaf.name.decode(), group)
        return found

    def _of_texts(self, name: str, group: int) -> int:
        """The bytes of a column's texts, each as often as it is there. Takes memory for the dictionary and a number a cell."""
        with pq.ParquetFile(self.path, read_dictionary=[name]) as file:
            column = file.read_row_group(group, columns=[name]).column(0)
        total = 0
        for part in column.chunks:
            part.validate(full=True)
            if not isinstance(part, pa.DictionaryArray):
                raise Damaged(f"its column {name[:60]!r} is no text")
            sizes = pc.binary_length(part.dictionary)
            total += pc.sum(sizes.take(part.indices)).as_py() or 0
        return total


@dataclass(frozen=True, slots=True)
class _Page:
    """`size`: unpacked; `packed`, `at`: how many bytes it has in the file, and where they begin."""

    kind: int
    size: int
    packed: int
    at: int
    cells: int
    encoding: int


def _pages(file: BinaryIO, about: Struct) -> Iterator[_Page]:
    """The pages of a column in the order in which they are read."""
    at, first = number_of(about, 9), number_of(about, 11, 0)
    if 0 < first < at:
        at = first
    end, values, seen = at + number_of(about, 7), number_of(about, 5), 0
    while seen < values and at < end + _SLACK:
        try:
            page = _page(file, at)
        except LookupError:
            if at >= end:
                return
            raise
        if page.kind in (_DATA, _DATA_2):
            seen += page.cells
        yield page
        at = page.at + page.packed


def _page(file: BinaryIO, at: int) -> _Page:
    if not 0 <= at <= os.fstat(file.fileno()).st_size:
        raise IndexError(at)
    file.seek(at)
    head = file.read(_HEAD)
    reader = Thrift(head)
    try:
        about = reader.struct()
    except LookupError:
        reader = Thrift(head + file.read(_LONGEST_HEAD))
        about = reader.struct()
    kind, size, packed = (number_of(about, which) for which in (1, 2, 3))
    cells = encoding = 0
    if kind in _ABOUT:
        member, encoded = _ABOUT[kind]
        cells, encoding = (number_of(struct_of(about, member), which) for which in (1, encoded))
    if min(size, packed, cells) < 0:
        raise IndexError(at)
    return _Page(kind, size, packed, at + reader.at, cells, encoding)


def _longest(file: BinaryIO, page: _Page, codec: int) -> int:
    """The bytes of the longest text of a dictionary; more where it has too many to look at each, or is packed in a way that is
    not known here."""
    if page.cells > _MOST_WORDS or (codec and codec not in _CODECS):
        return max(0, page.size - 4 * page.cells)
    file.seek(page.at)
    data = file.read(page.packed)
    if codec:
        data = pa.Codec(_CODECS[codec]).decompress(data, decompressed_size=page.size, asbytes=True)
    longest = at = 0
    for _ in range(page.cells):
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4 + size
        if at > len(data):
            raise IndexError(at)
        longest = max(longest, size)
    return longest


def _leaves(schema: list[Struct]) -> Iterator[Leaf]:
    """The leaves of a schema, whose nodes each have those below them behind them; the first is the root."""
    above: list[
        tuple[int, bytes, bool]
    ] = []  # how many nodes are still to come below it, its column, whether it is flat
    for place, node in enumerate(schema):
        while above and not above[-1][0]:
            above.pop()
        if not above and place:
            raise LookupError(place)
        name, flat = b"", True
        if place:
            left, name, flat = above[-1]
            above[-1] = left - 1, name, flat
            flat = flat and number_of(node, 3, 0) != _REPEATED
        own = len(above) == 1
        if own:
            given = node.get(4)
            if not isinstance(given, bytes):
                raise LookupError(place)
            name = given
        children = number_of(node, 5, 0)
        if children > 0 or not place:
            above.append((children, name, flat))
            continue
        kind = number_of(node, 1)
        width = max(0, number_of(node, 2)) if kind == _FIXED else _WIDTHS.get(kind, 8)
        yield Leaf(name, own, flat, kind == _TEXT, width)
