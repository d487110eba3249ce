"""Event streams, SSE and newline-delimited JSON: the same events however cut, as the standard's own algorithm has them."""

from __future__ import annotations

from fuzz.pieces import same_however_cut
from inferometer.protocol.event_decoder import EventDecoder, EventTooLarge, NamedEvent
from inferometer.protocol.ndjson import NdjsonDecoder
from inferometer.protocol.sse import SseDecoder

LIMIT = 64
"""Bytes of an event, small enough to be met."""
Event = bytes | tuple[bytes, bytes] | None
TOO_LARGE = (b"too large", b"")


def check(data: bytes) -> None:
    """Feed both decoders."""
    events = same_however_cut(data, lambda pieces: decoded(SseDecoder(), pieces))
    assert events == by_the_standard(data)
    same_however_cut(data, lambda pieces: decoded(NdjsonDecoder(), pieces))
    for kind in (SseDecoder, NdjsonDecoder):
        for event in decoded(kind(LIMIT), [data]):
            assert not isinstance(event, bytes) or len(event) <= LIMIT


def decoded(decoder: EventDecoder, pieces: list[bytes]) -> list[Event]:
    """What comes out; too large an event is the last."""
    events: list[Event] = []
    try:
        for piece in pieces:
            for event in decoder.feed(piece):
                events.append((event.name, bytes(event)) if isinstance(event, NamedEvent) else event)
        events.extend(decoder.end())
    except EventTooLarge:
        events.append(TOO_LARGE)
    return events


def by_the_standard(stream: bytes) -> list[Event]:
    """WHATWG HTML 9.2.6, literally. A name is given out unless it is `message` or stands in the data in quotes."""
    text = stream.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    events: list[Event] = []
    data: list[bytes] = []
    name = b""
    for line in text.split(b"\n")[:-1]:
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data:
                whole = b"\n".join(data)
                named = name not in (b"", b"message") and b'"' + name + b'"' not in whole
                events.append((name, whole) if named else whole)
            data, name = [], b""
        elif not field:
            events.append(None)
        elif field == b"event":
            name = value
        elif field == b"data":
            data.append(value)
    return events
