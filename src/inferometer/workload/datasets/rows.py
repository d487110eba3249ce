"""Rows of JSON, JSON Lines, Parquet and Arrow files, one after the other: memory holds a batch, never a file.

A `.json` file is an array of objects, or JSON Lines by another name: its first character tells. Every row comes with its place,
in words for an error: the line where there are lines, else the row, counted from 1.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from inferometer import foreign_json
from inferometer.foreign_tables.arrow import check_arrow
from inferometer.foreign_tables.cells import as_values
from inferometer.foreign_tables.limits import TooLarge
from inferometer.foreign_tables.parquet import check_parquet
from inferometer.workload.datasets.files import refused

Row = tuple[str, Any]

_CHUNK = 1 << 20
_LONGEST = 1 << 26
"""No row is longer than this, in characters: what looks like one is a file that does not close its brackets."""
_BATCH = 256
_SPACE = " \t\r\n"


def read(path: Path, name: str, columns: Sequence[str], chunk: int = _CHUNK) -> Iterator[Row]:
    """The rows of a file that errors call `name`, each with its place. Of columnar files only `columns` are read; an array of
    JSON is read in chunks of `chunk` bytes or more.

    Raises PlanError naming file and line or row.
    """
    kind = path.suffix.lower()
    try:
        if kind == ".parquet":
            yield from _batches(_parquet(path, columns), columns)
        elif kind == ".arrow":
            yield from _batches(_arrow(path), columns)
        else:
            yield from _json(path, name, chunk)
    except TooLarge as cause:
        raise refused(f"{name}: {cause}") from None
    except pa.ArrowException as cause:
        raise refused(f"{name}: cannot be read as {kind.removeprefix('.')} ({_first_line(cause)})") from cause
    except UnicodeDecodeError as cause:
        raise refused(f"{name}: is not UTF-8 ({cause.reason})") from cause
    except OSError as cause:
        raise refused(f"{name}: cannot be read ({cause.strerror or _first_line(cause)})") from cause


def _first_line(cause: Exception) -> str:
    return (str(cause).splitlines() or [""])[0][:200]


def _parquet(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    check_parquet(path, columns, _BATCH)
    with pq.ParquetFile(path) as file:
        held = [name for name in columns if name in file.schema_arrow.names]
        yield from file.iter_batches(_BATCH, columns=held)


def _arrow(path: Path) -> Iterator[pa.RecordBatch]:
    check_arrow(path)
    with pa.memory_map(str(path)) as mapped:
        try:
            file = pa.ipc.open_file(mapped)
        except pa.ArrowInvalid:
            yield from pa.ipc.open_stream(mapped)
        else:
            yield from map(file.get_batch, range(file.num_record_batches))


def _batches(batches: Iterator[pa.RecordBatch], columns: Sequence[str]) -> Iterator[Row]:
    number = 0
    for batch in batches:
        there = [name for name in batch.schema.names if name in columns]
        if len(there) > len(set(there)):
            raise pa.ArrowInvalid("it names a column twice")
        held = batch.select(there)
        held.validate(full=True)  # an offset that points elsewhere would be followed
        # A batch without a column has no rows of its own to give.
        for row in as_values(held, _BATCH) if there else repeat({}, batch.num_rows):
            number += 1
            yield f"row {number}", row


def _json(path: Path, name: str, chunk: int) -> Iterator[Row]:
    with open(path, encoding="utf-8-sig", newline="\n") as source:
        first = source.read(1)
        while first and first in _SPACE:
            first = source.read(1)
    if path.suffix.lower() == ".json" and first == "[":
        with open(path, "rb") as raw:
            yield from _Array(raw, name, chunk).rows()
        return
    with open(path, encoding="utf-8-sig", newline="\n") as source:
        for number, line in enumerate(iter(lambda: source.readline(_LONGEST), ""), 1):
            if len(line) == _LONGEST:
                raise refused(
                    f"{name}, line {number}: is longer than {_LONGEST:,} characters: that is no row"
                )
            if line.strip():
                try:
                    yield f"line {number}", foreign_json.loads(line, halves=True)
                except foreign_json.NotJSON as cause:
                    raise refused(f"{name}, line {number}: {cause}") from cause


class _Array:
    """One JSON array, item by item. `raw` is read in chunks of `chunk` bytes; what has been given is let go."""

    def __init__(self, raw: IO[bytes], name: str, chunk: int) -> None:
        self._raw, self._name, self._chunk = raw, name, chunk
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._decode = json.JSONDecoder().raw_decode
        self._text, self._at, self._ended = "", 0, False
        self._line, self._counted_to = 1, 0  # the line at the place in the text that was last asked for

    def rows(self) -> Iterator[Row]:
        """See Row."""
        self._expect("[")
        if self._next() == "]":
            return
        number = 0
        while True:
            number += 1
            value = self._value()
            yield f"row {number} (up to line {self._line_here()})", value
            if self._expect(",]") == "]":
                return

    def _more(self, size: int) -> bool:
        """Read on; False at the end of the file."""
        if self._ended:
            return False
        self._line_here()
        chunk = self._raw.read(size)
        self._ended = not chunk
        self._text = self._text[self._at :] + self._decoder.decode(chunk, self._ended)
        self._at = self._counted_to = 0
        return True

    def _line_here(self) -> int:
        self._line += self._text.count("\n", self._counted_to, self._at)
        self._counted_to = self._at
        return self._line

    def _next(self) -> str:
        """The next character that is no white space; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if not self._more(self._chunk):
                return ""

    def _expect(self, characters: str) -> str:
        found = self._next()
        if not found or found not in characters:
            self._fail(f"{' or '.join(characters)} is missing")
        self._at += 1
        return found

    def _value(self) -> Any:
        self._next()
        size = self._chunk
        while True:
            try:
                value, at = self._decode(self._text, self._at)
            except (ValueError, RecursionError) as cause:
                if len(self._text) - self._at > _LONGEST or not self._more(size):
                    self._fail(_first_line(cause))
                size *= 2  # so that a long row is not tried again for each chunk of it
            else:
                try:
                    foreign_json.check_depth(value)
                except foreign_json.NotJSON as cause:
                    raise refused(f"{self._name}, line {self._line_here()}: {cause}") from None
                self._at = at
                return value

    def _fail(self, why: str) -> None:
        raise refused(f"{self._name}, line {self._line_here()}: is no JSON array of objects ({why})")
