"""Newline-delimited JSON, decoded by the ndjson specification (github.com/ndjson/ndjson-spec, section 3).

| line                     | effect                                                                         |
| ------------------------ | ------------------------------------------------------------------------------ |
| empty, or white space    | ignored                                                                        |
| anything else            | one payload, without the line's end; whether it is JSON is for its reader      |

A line ends in LF or CRLF. A last line without its end is never given out: it may be half of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from inferometer.protocol.event_decoder import EventTooLarge


class NdjsonDecoder:
    """Feed it the body in any pieces; it gives back the lines that these bytes complete. See EventDecoder.

    `limit` bounds the bytes of one line, so a server cannot make us grow.
    """

    CONTENT_TYPE: ClassVar[str] = "application/x-ndjson"
    STARTS: ClassVar[tuple[bytes, ...]] = (b"{",)

    __slots__ = ("_buffer", "_limit")

    def __init__(self, limit: int = 1 << 20) -> None:
        self._limit = limit
        self._buffer = b""

    @property
    def unfinished(self) -> bool:
        """True if the stream would end inside a line, which is then dropped."""
        return bool(self._buffer.strip())

    def feed(self, chunk: bytes) -> Sequence[bytes | None]:
        """The lines completed by `chunk`, in order. Raises EventTooLarge."""
        held = len(self._buffer)
        if held:
            # Most of what is held has been searched before.
            if chunk.find(b"\n") < 0:
                self._hold(self._buffer + chunk)
                return ()
            chunk = self._buffer + chunk
        *lines, rest = chunk.split(b"\n")
        self._hold(rest)
        if lines and max(map(len, lines)) > self._limit:
            raise EventTooLarge(f"an event of more than {self._limit} bytes")
        return [line for line in map(bytes.strip, lines) if line]

    def _hold(self, rest: bytes) -> None:
        if len(rest) > self._limit:
            raise EventTooLarge(f"an event of more than {self._limit} bytes")
        self._buffer = rest
