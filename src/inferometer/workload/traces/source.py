"""A trace's file as lines, plain or gzipped, and which format they are in.

| format     | recognised by                                                       |
| ---------- | ------------------------------------------------------------------- |
| `mooncake` | a JSON object with `input_length`                                   |
| `jsonl`    | a JSON object with `input_tokens` or `prompt`                       |
| `azure`    | a header with `TIMESTAMP`, `ContextTokens`, `GeneratedTokens`       |
| `burstgpt` | a header with `Timestamp`, `Request tokens`, `Response tokens`      |
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from inferometer.errors import PlanError, Problem
from inferometer.whole_file import check_regular
from inferometer.workload.traces import azure, burstgpt, mooncake, plain
from inferometer.workload.traces.row import Read

LONGEST_LINE = 16 << 20
"""No row is longer; a file without line ends must not be read as one line."""
UNPACKED, UNPACKED_TIMES = 1 << 30, 500
"""A packed file that comes to more bytes than this, and to as many times its own, is made to take time and is no trace."""
_BUFFER = 1 << 20
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_UNREADABLE = (OSError, EOFError, zlib.error)

_READS: dict[str, Read] = {"mooncake": mooncake.read, "jsonl": plain.read}
_TABLES: dict[str, tuple[tuple[str, ...], Callable[[list[str]], Read]]] = {
    "azure": (azure.COLUMNS, azure.reader),
    "burstgpt": (burstgpt.COLUMNS, burstgpt.reader),
}
NAMES = {"mooncake": "Mooncake", "jsonl": "plain JSONL", "azure": "Azure", "burstgpt": "BurstGPT"}


class Form(NamedTuple):
    """A format found in a file: its name in a plan, its reader, and the field that says when."""

    name: str
    read: Read
    clock: str


class _Hashed(io.FileIO):
    """A file whose bytes are hashed as they pass."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self.sha256 = hashlib.sha256()

    def readinto(self, buffer: Any) -> int | None:
        """See FileIO."""
        count = super().readinto(buffer)
        self.sha256.update(memoryview(buffer)[:count])
        return count


class Source:
    """A trace's file, opened: its lines, numbered from 1, and where they begin in the (unpacked) file.

    `name` is its base name. Everything raises PlanError: the file is the user's.
    """

    def __init__(self, name: str, file: io.BufferedReader, hashed: _Hashed) -> None:
        self.name = name
        self._file = file
        self._hashed = hashed
        self.number = self.offset = self._next = 0
        size = os.fstat(hashed.fileno()).st_size
        self._most = max(UNPACKED, UNPACKED_TIMES * size)

    def refused(self, message: str, line: int | None = None, field: str = "") -> PlanError:
        """An error that names file, line and field."""
        return PlanError([self.problem(message, line, field)])

    def problem(self, message: str, line: int | None = None, field: str = "") -> Problem:
        """A problem at a line, or of the file."""
        place = self.name if line is None else f"{self.name}:{line}"
        return Problem(f"{place}: {field}" if field else place, message)

    def lines(self) -> Iterator[bytes]:
        """The lines that are left, each with its line end. `number` and `offset` are those of the line last given."""
        readline = self._file.readline
        try:
            while line := readline(LONGEST_LINE):
                self.number += 1
                self.offset = self._next
                self._next += len(line)
                if self.number == 1:
                    line = line.removeprefix(_BOM)
                if len(line) == LONGEST_LINE:
                    raise self.refused("is too long a line for a trace", self.number)
                if self._next > self._most:
                    said = f"unpacks to more than {UNPACKED_TIMES:,} times its size: that is no trace"
                    raise self.refused(said, self.number)
                yield line
        except _UNREADABLE as cause:
            raise self.refused(f"cannot be read to its end: {_words(cause)}") from cause

    def go(self, number: int, offset: int) -> None:
        """Go on at this line, which begins at this offset."""
        try:
            self._file.seek(offset)
        except _UNREADABLE as cause:
            raise self.refused(f"cannot be read: {_words(cause)}") from cause
        self.number, self._next = number - 1, offset

    def form(self, wanted: str) -> Form:
        """The format: the one of that name, or for `auto` the one recognised. The next line is the first row."""
        first = next(self.lines(), None)
        if first is None:
            raise self.refused("is empty")
        columns = [name.strip().strip('"') for name in first.decode("utf-8", "replace").split(",")]
        name = self._recognised(first, columns) if wanted == "auto" else wanted
        if name in _READS:
            self.go(1, 0)
            return Form(name, _READS[name], "timestamp")
        needed, make = _TABLES[name]
        missing = [column for column in needed if column not in columns]
        if missing:
            raise self.refused(
                f"a header of {NAMES[name]}'s has {', '.join(needed)}; missing: {', '.join(missing)}", 1
            )
        return Form(name, make(columns), needed[0])

    def _recognised(self, first: bytes, columns: list[str]) -> str:
        try:
            keys = set(msgspec.json.decode(first, type=dict[str, msgspec.Raw]))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            keys = set()
        if "input_length" in keys:
            return "mooncake"
        if keys & {"input_tokens", "prompt"}:
            return "jsonl"
        for name, (needed, _) in _TABLES.items():
            if set(needed) <= set(columns):
                return name
        raise self.refused(
            f"is no trace that can be recognised by its first line; formats are {', '.join(NAMES)}, "
            "and --trace-format names one",
            1,
        )

    def sha256(self) -> str:
        """Of the file as it lies on disk, once it has been read to its end."""
        return self._hashed.sha256.hexdigest()


@contextmanager
def opened(path: str) -> Iterator[Source]:
    """Open a trace. Raises PlanError."""
    name = Path(path).name
    try:
        file = Path(path).expanduser()
        check_regular(file)  # a pipe would be waited for, and a trace is read twice
        hashed = _Hashed(file)
    except OSError as cause:
        raise PlanError([Problem(name, f"cannot be read: {_words(cause)}")]) from cause
    with hashed:
        whole = io.BufferedReader(hashed, _BUFFER)
        packed = whole.peek(2)[:2] == _GZIP
        unpacked = io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=whole)), _BUFFER) if packed else whole
        yield Source(name, cast(io.BufferedReader, unpacked), hashed)


def _words(cause: Exception) -> str:
    text = getattr(cause, "strerror", None) or str(cause)
    return text[:1].lower() + text[1:]
