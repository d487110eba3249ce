"""The lines of a file of recorded sessions that others wrote, and what is wrong with one: its file, line and field, never its
words.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from inferometer.errors import PlanError, Problem
from inferometer.whole_file import check_regular

LONGEST_LINE = 256 << 20
"""Bytes: a session may hold images."""
_BOM = b"\xef\xbb\xbf"


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Number, from 1, and bytes of each line that is not blank.

    Raises PlanError where the file cannot be read, or a line is too long.
    """
    try:
        check_regular(path)  # a pipe would be waited for
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE):
                number += 1
                if len(line) >= LONGEST_LINE:
                    raise refusal(path, number, None, f"is longer than {LONGEST_LINE >> 20} MiB")
                line = (line.removeprefix(_BOM) if number == 1 else line).strip()
                if line:
                    yield number, line
    except OSError as cause:
        raise unreadable(path, cause) from cause


def beginning(path: Path, size: int = 1 << 16) -> bytes:
    """The first bytes of a file, by which its format is recognised. Raises PlanError."""
    try:
        check_regular(path)
        with path.open("rb") as file:
            return file.read(size).removeprefix(_BOM).lstrip()
    except OSError as cause:
        raise unreadable(path, cause) from cause


def unreadable(path: Path, cause: OSError) -> PlanError:
    """Why a file cannot be read."""
    return PlanError([Problem(path.name, f"cannot be read: {(cause.strerror or 'unknown error').lower()}")])


def refusal(path: Path, line: int, field: str | None, message: str) -> PlanError:
    """What is wrong with a field of a line, or with all of it."""
    where = f"{path.name}:{line}"
    return PlanError([Problem(where if field is None else f"{where}: {field}", message)])
