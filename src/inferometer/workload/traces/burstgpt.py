"""BurstGPT's traces: CSV, `Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type`.

`Timestamp` is in seconds from the first day's midnight. Later releases put `Session ID` and `Elapsed time` behind it; columns
are found by name. Rows without response tokens are requests that failed (the authors' word).
"""

from __future__ import annotations

from inferometer.workload.traces.row import Read, Row, cells, seconds_ns, tokens

COLUMNS = ("Timestamp", "Request tokens", "Response tokens")


def reader(columns: list[str]) -> Read:
    """A reader for a file whose header names these columns."""
    when, request, response = (columns.index(name) for name in COLUMNS)
    count = len(columns)

    def read(number: int, line: bytes) -> Row:
        found = cells(line, count)
        at_ns = seconds_ns(found[when], COLUMNS[0])
        return Row(number, at_ns, tokens(found[request], COLUMNS[1]), tokens(found[response], COLUMNS[2]))

    return read
