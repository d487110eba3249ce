"""Requests as frames: the head of one that was sent before is not compressed again.

h2 looks each field up and spells it, at every request. But all requests of a class have the same fields, and once the table of
the compression holds them (RFC 7541), each is an index into it and the whole block is the same bytes, until the table changes.
Only the length of the body follows, and the request's own field, spelled out. h2 is told of the stream by a head that its own
table is not touched by; and where all of the body may go at once, of a request without one, whose bytes are taken from the
window of the connection here.
"""

from __future__ import annotations

from hpack import NeverIndexedHeaderTuple
from hpack.hpack import encode_integer

from inferometer.protocol.http2_connection import Connection
from inferometer.protocol.http2_fields import Fields
from inferometer.protocol.http2_frames import DATA, END_HEADERS, END_STREAM, HEADERS, frame

_TOLD = ((b":method", b"POST"),)
"""A field of the static table."""
_CONTENT_LENGTH = b"\x1f\x0d"
"""The name of the static table (28), of a literal that is never indexed: a 1 in four bits, then 15 + 13."""
_LITERAL = b"\x10"
"""A literal that is never indexed, whose name is one too (RFC 7541, 6.2.3)."""
_INDEXED = 0x80
"""A field that is an index and nothing else (6.1)."""
_MOST_BLOCK = 1 << 12
"""Bytes of a block that is kept: it has to fit a frame with the rest."""


class RequestHeads:
    """The heads that the client of one connection sends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[
            int, tuple[Fields, bytes]
        ] = {}  # by the identity of the fields, which are kept with it

    def forget(self) -> None:
        """The peer has changed the size of the table."""
        self._known.clear()

    def send(
        self, number: int, fields: Fields, body: bytes, own: tuple[bytes, bytes] | None = None
    ) -> tuple[bytes, bool]:
        """Open a stream with these fields and its `own`, for this body. What is to be sent, empty where h2 has it; and whether
        that is the whole request. Nothing else may be left for h2 to send before."""
        connection, length = self._connection, len(body)
        found = self._known.get(id(fields))
        if found is None:
            # Of another value each time: in the table it would push the others out.
            counted = NeverIndexedHeaderTuple(b"content-length", b"%d" % length)
            further = [] if own is None else [NeverIndexedHeaderTuple(own[0].lower(), own[1])]
            connection.send_headers(number, [*fields, counted, *further], end_stream=not length)
            self._learn(fields)
            return b"", False
        whole = length <= min(
            connection.outbound_flow_control_window,
            connection.remote_settings.initial_window_size,
            connection.max_outbound_frame_size,
        )
        connection.send_headers(number, _TOLD, end_stream=whole)
        connection.data_to_send()
        digits = b"%d" % length
        block = b"%b%b%c%b" % (found[1], _CONTENT_LENGTH, len(digits), digits)
        if own is not None:
            block += _LITERAL + _spelled(own[0].lower()) + _spelled(own[1])
        if not length:
            return frame(HEADERS, END_HEADERS | END_STREAM, number, block), True
        head = frame(HEADERS, END_HEADERS, number, block)
        if not whole:
            return head, False
        connection.outbound_flow_control_window -= length
        return head + frame(DATA, END_STREAM, number, body), True

    def _learn(self, fields: Fields) -> None:
        """Keep the block of fields that the table holds by now. Those that it has no room for push each other out each time."""
        self._known.clear()  # what was just sent may have moved what the others point at
        search, block = self._connection.encoder.header_table.search, bytearray()
        for name, value in fields:
            found = search(name, value)
            if found is None or found[2] is None:
                return
            index = encode_integer(found[0], 7)
            index[0] |= _INDEXED
            block += index
        if len(block) <= _MOST_BLOCK:
            self._known[id(fields)] = (fields, bytes(block))


def _spelled(text: bytes) -> bytes:
    """A string of RFC 7541, 5.2, without Huffman's code; its length takes 7 bits, or more bytes (5.1)."""
    if len(text) < 0x7F:
        return b"%c%b" % (len(text), text)
    rest, digits = len(text) - 0x7F, bytearray(b"\x7f")
    while rest >= 0x80:
        digits.append(rest & 0x7F | 0x80)
        rest >>= 7
    digits.append(rest)
    return bytes(digits) + text
