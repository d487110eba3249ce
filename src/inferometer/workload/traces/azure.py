"""Azure's LLM inference traces of 2023 and 2024: CSV, `TIMESTAMP,ContextTokens,GeneratedTokens`.

The timestamps are dates: `2023-11-16 18:15:46.6805900` (seven digits) in one, `2024-05-12 00:00:00.001163+00:00` in the other,
where whole seconds have no point. Without a time zone they are taken for UTC.
"""

from __future__ import annotations

import re
from datetime import datetime

from inferometer.units import NS_PER_S
from inferometer.workload.traces.row import Read, Row, Unfit, cells, fraction_ns, tokens

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")

_EPOCH = datetime(1970, 1, 1)
_SECOND = 19  # characters of `2023-11-16 18:15:46`
_REST = re.compile(rb"(?:\.([0-9]{1,9}))?(?:Z|([+-])([0-9]{2}):?([0-9]{2}))?")


def reader(columns: list[str]) -> Read:
    """A reader for a file whose header names these columns."""
    when, context, generated = (columns.index(name) for name in COLUMNS)
    count = len(columns)

    def read(number: int, line: bytes) -> Row:
        found = cells(line, count)
        at_ns = _instant_ns(found[when])
        return Row(number, at_ns, tokens(found[context], COLUMNS[1]), tokens(found[generated], COLUMNS[2]))

    return read


def _instant_ns(cell: bytes) -> int:
    """A date and time in ns since 1970. Raises Unfit."""
    rest = _REST.fullmatch(cell, _SECOND)
    try:
        moment = datetime.fromisoformat(cell[:_SECOND].decode("ascii"))
    except ValueError:
        rest = None
    # A date with few digits for its time may have its zone within the first characters.
    if rest is None or len(cell) < _SECOND or moment.tzinfo is not None:
        raise Unfit(COLUMNS[0], "must be a date and time such as 2023-11-16 18:15:46.6805900")
    since = moment - _EPOCH
    seconds = since.days * 86_400 + since.seconds
    if seconds < 0:
        raise Unfit(COLUMNS[0], "must not lie before 1970")
    digits, sign, hours, minutes = rest.groups()
    if sign is not None:
        east = int(hours) * 3600 + int(minutes) * 60
        seconds += east if sign == b"-" else -east
    return seconds * NS_PER_S + (fraction_ns(digits) if digits else 0)
