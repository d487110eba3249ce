"""OpenTelemetry's request to export traces (`ExportTraceServiceRequest`, opentelemetry-proto v1), without I/O.

| message        | fields read, by number                                                                            |
| -------------- | ------------------------------------------------------------------------------------------------- |
| request        | 1 resource spans; of these 2 scope spans; of these 2 spans                                         |
| span           | 1 trace id, 2 span id, 4 parent's, 7 start, 8 end (fixed64, ns), 9 attributes, 15 status           |
| key and value  | 1 key, 2 value; of this 1 text, 3 integer                                                          |
| status         | 3 code                                                                                            |

All other fields are passed over: names, events and links may hold what a user asked. The tests hold this to the published
messages, and to the SDK's own exporter.
"""

from __future__ import annotations

from collections.abc import Iterator

from inferometer.protocol.protobuf import (
    BYTES,
    EIGHT_BYTES,
    VARINT,
    Field,
    Malformed,
    integer,
    key,
    piece,
    read,
)

Span = dict[str, object]
"""A span as OTLP's JSON has it: ids in hexadecimal, 64-bit numbers as text."""

_ONE, _TWO = key(1, BYTES), key(2, BYTES)
_IDS = {key(1, BYTES): "traceId", key(2, BYTES): "spanId", key(4, BYTES): "parentSpanId"}
_TIMES = {key(7, EIGHT_BYTES): "startTimeUnixNano", key(8, EIGHT_BYTES): "endTimeUnixNano"}
_ATTRIBUTE, _STATUS = key(9, BYTES), key(15, BYTES)
_CODE, _INTEGER = key(3, VARINT), key(3, VARINT)


def spans_in(body: bytes, most: int) -> Iterator[Span]:
    """The spans of a request, which may have `most` fields in all: an empty one takes two bytes, and a hundred of memory.
    Raises Malformed."""
    fields = _Fields(most)
    for resource in fields.messages(body, _ONE):
        for scope in fields.messages(resource, _TWO):
            for span in fields.messages(scope, _TWO):
                yield _span(span, fields)


def reply(rejected: int, words: str) -> bytes:
    """The answer to a request of whose spans so many were rejected, for this reason."""
    return piece(1, integer(1, rejected) + piece(2, words)) if rejected else b""


class _Fields:
    """The fields of the messages within one, `left` of them in all."""

    def __init__(self, left: int) -> None:
        self._left = left

    def read(self, data: bytes) -> list[Field]:
        """Those of one message. Raises Malformed."""
        found = read(data, self._left)
        self._left -= len(found)
        return found

    def messages(self, data: bytes, wanted: int) -> Iterator[bytes]:
        """The messages within one under this key. Raises Malformed."""
        for tag, value in self.read(data):
            if tag == wanted and isinstance(value, bytes):
                yield value


def _span(data: bytes, fields: _Fields) -> Span:
    attributes: list[Span] = []
    found: Span = {"attributes": attributes}
    for tag, value in fields.read(data):
        if not isinstance(value, bytes):
            continue
        if tag in _IDS:
            found[_IDS[tag]] = value.hex()
        elif tag in _TIMES:
            found[_TIMES[tag]] = str(int.from_bytes(value, "little"))
        elif tag == _ATTRIBUTE:
            attributes.append(_attribute(value, fields))
        elif tag == _STATUS:
            codes = [number for field, number in fields.read(value) if field == _CODE]
            found["status"] = {"code": codes[-1] if codes else 0}
    return found


def _attribute(data: bytes, fields: _Fields) -> Span:
    found: Span = {}
    for tag, value in fields.read(data):
        if tag == _ONE and isinstance(value, bytes):
            found["key"] = _text(value)
        elif tag == _TWO and isinstance(value, bytes):
            found["value"] = _value(value, fields)
    return found


def _value(data: bytes, fields: _Fields) -> Span:
    for tag, value in fields.read(data):
        if tag == _ONE and isinstance(value, bytes):
            return {"stringValue": _text(value)}
        if tag == _INTEGER and isinstance(value, int):
            return {"intValue": str(value - (1 << 64) if value >> 63 else value)}
    return {}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as cause:
        raise Malformed("text that is not UTF-8") from cause
