"""Newline-delimited JSON, decoded by the ndjson specification (github.com/ndjson/ndjson-spec, section 3).

| line                     | effect                                                                         |
| ------------------------ | ------------------------------------------------------------------------------ |
| empty, or white space    | ignored                                                                        |
| anything else            | one payload, without the line's end; whether it is JSON is for its reader      |

A line ends in LF or CRLF. A last line without its end is given out when the body has ended, if it is a whole JSON object: else
it may be half of one. One byte order mark at the very start is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

from inferometer.protocol.event_decoder import BOM, LINE_END, EventTooLarge


class NdjsonDecoder:
    """Feed it the body in any pieces; it gives back the lines that these bytes complete. See EventDecoder.

    `limit` bounds the bytes of one line, so a server cannot make us grow.
    """

    CONTENT_TYPES: ClassVar[tuple[str, ...]] = (
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/json-lines",
        "application/x-jsonlines",
    )
    STARTS: ClassVar[tuple[bytes, ...]] = (b"{", BOM)
    LAST: ClassVar[int] = LINE_END

    __slots__ = ("_begun", "_buffer", "_limit")

    def __init__(self, limit: int = 1 << 20) -> None:
        self._limit = limit
        self._buffer = bytearray()  # grows in place: a long line may come a byte at a time
        self._begun = False

    @property
    def unfinished(self) -> bool:
        """True if the stream would end inside a line, which is then dropped."""
        return bool(self._buffer.strip())

    def feed(self, chunk: bytes) -> Sequence[bytes | None]:
        """The lines completed by `chunk`, in order. Raises EventTooLarge."""
        if self._buffer:
            # What is held has been searched before.
            if chunk.find(b"\n") < 0:
                self._hold(chunk)
                return ()
            chunk = bytes(self._buffer) + chunk
            self._buffer.clear()
        *lines, rest = chunk.split(b"\n")
        self._hold(rest)
        if not lines:
            return ()
        if max(map(len, lines)) > self._limit:
            raise EventTooLarge(f"an event of more than {self._limit} bytes")
        if not self._begun:
            self._begun = True
            lines[0] = lines[0].removeprefix(BOM)
        return [line for line in map(bytes.strip, lines) if line]

    def end(self) -> Sequence[bytes]:
        """The body has ended: its last line, if that is a whole object without its end."""
        line = bytes(self._buffer).removeprefix(BOM).strip()
        self._buffer.clear()
        try:
            return (line,) if isinstance(json.loads(line), dict) else ()
        except (ValueError, RecursionError):
            return ()

    def _hold(self, rest: bytes) -> None:
        if len(self._buffer) + len(rest) > self._limit:
            raise EventTooLarge(f"an event of more than {self._limit} bytes")
        self._buffer += rest
