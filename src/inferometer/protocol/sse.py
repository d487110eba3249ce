"""Server-sent events, decoded by the rules of the WHATWG (HTML standard, section 9.2.6 "Interpreting an event stream").

| line            | effect                                                              |
| --------------- | ------------------------------------------------------------------- |
| empty           | dispatch: the data lines so far, joined by LF; nothing if there are none |
| starts with `:` | a comment: given out as None, since servers use it as a keep-alive   |
| `data:X`        | X joins the data lines, less one leading space                      |
| `data`          | an empty line of data                                               |
| `event:X`       | the event's name; `message` is that of an event without one          |
| anything else   | ignored, `id` and `retry` too                                        |

Typed dialects repeat the name inside their JSON, where it is read. Only an event whose data does not have it in quotes is given
out with its name, as a NamedEvent.

A line ends in LF, CR or CRLF; one byte order mark at the very start is dropped; an event without its final blank line is
never dispatched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from inferometer.protocol.event_decoder import BOM, LINE_END, EventTooLarge, NamedEvent

_UNNAMED = (b"", b"message")


class SseDecoder:
    """Feed it the body in any pieces; it gives back the data of each event that these bytes complete, None for a comment.

    `limit` bounds the bytes held back for an unfinished event, so a server cannot make us grow.
    """

    CONTENT_TYPES: ClassVar[tuple[str, ...]] = ("text/event-stream",)
    STARTS: ClassVar[tuple[bytes, ...]] = (b"data:", b"event:", b"id:", b"retry:", b":", BOM)
    LAST: ClassVar[int] = LINE_END

    __slots__ = (
        "_between",
        "_buffer",
        "_data",
        "_held",
        "_kind",
        "_limit",
        "_name",
        "_quoted",
        "_skip_lf",
        "_started",
    )

    def __init__(self, limit: int = 1 << 20) -> None:
        self._limit = limit
        self._buffer = bytearray()  # grows in place: a long line may come a byte at a time
        self._data: list[bytes] = []
        self._name = b""  # of the event that is being read
        self._kind = self._quoted = b""  # the last typed event's first line, and its name in quotes
        self._held = 0
        self._skip_lf = False
        self._started = False
        self._between = True  # nothing of an event or a line end is held back

    @property
    def unfinished(self) -> bool:
        """True if the stream would end inside an event, which the standard then drops."""
        return bool(self._data or self._buffer)

    def feed(self, chunk: bytes) -> Sequence[bytes | None]:
        """Return the payloads completed by `chunk` and its comments, in order. Raises EventTooLarge."""
        # Nearly every read holds whole events of one data line each; only then may the splitter be this short. `find` is
        # used for `in` and `count` since it costs half of either.
        if self._between and chunk[:6] == b"data: " and chunk[-2:] == b"\n\n" and chunk.find(b"\r") < 0:
            self._started = True  # what begins with a field has no byte order mark
            size = len(chunk)
            if chunk.find(b"\n") == size - 2 and size <= self._limit:
                return (chunk[6:-2],)
            pieces = chunk[6:-2].split(b"\n\ndata: ")
            # As many line ends as separators have: none is left inside a piece.
            if chunk.count(b"\n") == 2 * len(pieces) and max(map(len, pieces)) <= self._limit:
                return pieces
        # Typed events come one a read, as a type and one data line.
        elif self._between and chunk[:7] == b"event: " and chunk[-2:] == b"\n\n" and chunk.find(b"\r") < 0:
            kind, separator, payload = chunk[:-2].partition(b"\ndata: ")
            if separator and kind.find(b"\n") < 0 and payload.find(b"\n") < 0 and len(payload) <= self._limit:
                self._started = True
                if kind != self._kind:
                    self._kind, self._quoted = kind, b'"%b"' % kind[7:]
                return (payload if payload.find(self._quoted) >= 0 else _named(payload, kind[7:]),)
        return self._feed_lines(chunk)

    def end(self) -> Sequence[bytes]:
        """The body has ended: nothing, since an event without its blank line is never dispatched."""
        return ()

    def _feed_lines(self, chunk: bytes) -> list[bytes | None]:
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]
        buffer, searched = self._buffer, len(self._buffer)
        buffer += chunk
        if not self._started:
            if len(buffer) < len(BOM) and BOM.startswith(bytes(buffer)):
                self._between = False
                return []
            self._started = True
            searched = 0
            if buffer.startswith(BOM):
                del buffer[: len(BOM)]
        events: list[bytes | None] = []
        at = 0
        while (end := _line_end(buffer, max(at, searched))) >= 0:
            self._line(bytes(buffer[at:end]), events)
            at = end + 1
            if buffer[end : end + 1] == b"\r":
                if at == len(buffer):
                    self._skip_lf = True
                elif buffer[at : at + 1] == b"\n":
                    at += 1
        del buffer[:at]
        self._between = not (buffer or self._data or self._skip_lf or self._name)
        if self._held + len(buffer) > self._limit:
            raise EventTooLarge(f"an event of more than {self._limit} bytes")
        return events

    def _line(self, line: bytes, events: list[bytes | None]) -> None:
        if not line:
            if self._data:
                events.append(_named(b"\n".join(self._data), self._name))
                self._data = []
                self._held = 0
            self._name = b""
        elif line[:5] == b"data:":
            self._add(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            self._add(b"")
        elif line[:6] == b"event:":
            self._name = line[7:] if line[6:7] == b" " else line[6:]
        elif line == b"event":
            self._name = b""
        elif line[:1] == b":":
            events.append(None)

    def _add(self, value: bytes) -> None:
        """One more data line of the event, which counts even if it is empty: a line end joins it to those before it."""
        self._held += len(value) + bool(self._data)
        if self._held > self._limit:
            raise EventTooLarge(f"an event of more than {self._limit} bytes")
        self._data.append(value)


def _named(data: bytes, name: bytes) -> bytes:
    """An event's data, with its name if only that has it."""
    return data if name in _UNNAMED or b'"%b"' % name in data else NamedEvent(data, name)


def _line_end(buffer: bytearray, start: int) -> int:
    """Index of the first CR or LF at or after `start`; -1 if there is none."""
    lf = buffer.find(b"\n", start)
    cr = buffer.find(b"\r", start, lf if lf >= 0 else len(buffer))
    return cr if cr >= 0 else lf
