"""One row of a trace, and what can be wrong with it.

A reader takes one line and gives one Row. It keeps nothing between lines, so a trace is read in the memory of one line, and
the second reading of a file gives what the first gave.

Tokens of 0, which only the CSV formats let through, say that the request failed where it was recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from inferometer.units import NS_PER_S

MOST_TOKENS = 10_000_000
"""As in plan/lengths.py: nothing longer is meant."""

LATEST_S = 10**12
"""Seconds on a file's own clock: those since 1970 are a hundredth of it."""
_MOST_DIGITS = 20

TOKENS = f"a whole number of tokens from 1 to {MOST_TOKENS:,}"


class Row(msgspec.Struct, frozen=True, gc=False):
    """One recorded arrival.

    line            of the file, from 1
    at_ns           on the file's own clock, 0 or more
    input_tokens    of the prompt; None where `prompt` is given
    output_tokens   of the answer
    prompt          the text itself, where the trace has it
    hash_ids        of the prompt's blocks of 512 tokens, first block first; equal ids are equal blocks (Mooncake)
    """

    line: int
    at_ns: int
    input_tokens: int | None
    output_tokens: int
    prompt: str | None = None
    hash_ids: tuple[int, ...] = ()

    @property
    def failed(self) -> bool:
        """The request failed where it was recorded: it has no answer, or no prompt, to be had again."""
        return self.output_tokens == 0 or self.input_tokens == 0


class Unfit(Exception):
    """A line that is no row of its format. `field` is "" where no single field is at fault. Values are never repeated:
    they may be somebody's words."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


Read = Callable[[int, bytes], Row]
"""From a line's number and its bytes, line end included, to a Row. Raises Unfit."""


def unfit(line: bytes, cause: Exception, wanted: Mapping[str, str]) -> Unfit:
    """Why msgspec refused a line of JSON, in words. `wanted`: what each field must be."""
    words = str(cause)
    missing = re.search(r"required field `(\w+)`", words)
    if missing:
        return Unfit(missing[1], f"is missing: it must be {wanted[missing[1]]}")
    at = re.search(r"at `\$\.(\w+)", words)
    if at:
        return Unfit(at[1], f"must be {wanted.get(at[1], 'of another kind')}")
    if isinstance(cause, msgspec.ValidationError):
        return Unfit("", "must be a JSON object")
    cut = "" if line.rstrip().endswith(b"}") else ": it is cut off, or of another kind"
    return Unfit("", f"is no JSON{cut}")


def cells(line: bytes, columns: int) -> list[bytes]:
    """The fields of a line of CSV. Nothing is quoted in these formats. Raises Unfit for another number of them."""
    found = line.rstrip(b"\r\n").split(b",")
    if len(found) != columns:
        raise Unfit("", f"has {len(found)} fields where the header has {columns}; is it cut off?")
    return found


def tokens(cell: bytes, field: str) -> int:
    """A count in a cell, 0 included. Raises Unfit."""
    if not _whole(cell) or (count := int(cell)) > MOST_TOKENS:
        raise Unfit(field, f"must be a whole number of tokens from 0 to {MOST_TOKENS:,}")
    return count


def seconds_ns(cell: bytes, field: str) -> int:
    """Seconds in a cell, such as 45 or 45.25, in ns. Raises Unfit."""
    if _whole(cell):
        return int(cell) * NS_PER_S
    whole, dot, part = cell.partition(b".")
    if not dot or not _whole(whole) or not part.isdigit():
        raise Unfit(field, "must be a number of seconds, 0 or more")
    return int(whole) * NS_PER_S + fraction_ns(part)


def scaled_ns(number: float, unit_ns: int, field: str) -> int:
    """A number of units, 0 or more, in ns. Raises Unfit for one that no clock shows."""
    if not number < LATEST_S * (NS_PER_S // unit_ns):
        raise Unfit(field, f"must be less than {LATEST_S:,} seconds")
    return round(number * unit_ns)


def _whole(cell: bytes) -> bool:
    """Whether this is a whole number that is not too long to be one."""
    return cell.isdigit() and len(cell) <= _MOST_DIGITS


def fraction_ns(digits: bytes) -> int:
    """What stands behind the point of a number of seconds, in ns; further digits are cut."""
    return int(digits[:9].ljust(9, b"0"))
