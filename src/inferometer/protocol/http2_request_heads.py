"""Heads of requests as frames: one that was sent before is not compressed again.

h2 looks each field up and spells it, at every request. But all requests of a class have the same fields, and once the table of
the compression holds them (RFC 7541), each is an index into it and the whole block is the same bytes, until the table changes.
Only the length of the body follows, spelled out. h2 is told of the stream by a head that its own table is not touched by.
"""

from __future__ import annotations

import copy

from hpack import NeverIndexedHeaderTuple

from inferometer.protocol.http2_connection import Connection
from inferometer.protocol.http2_fields import Fields
from inferometer.protocol.http2_frames import END_HEADERS, END_STREAM, HEADERS, frame

_TOLD = ((b":method", b"POST"),)
"""A field of the static table."""
_CONTENT_LENGTH = b"\x1f\x0d"
"""The name of the static table (28), of a literal that is never indexed: a 1 in four bits, then 15 + 13."""
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

    def send(self, number: int, fields: Fields, length: int) -> bytes:
        """Open a stream with these fields, and a body of so many bytes. The frame; empty where h2 has it to send. Nothing else
        may be left for h2 to send before."""
        connection = self._connection
        found = self._known.get(id(fields))
        if found is None:
            # Of another value each time: in the table it would push the others out.
            counted = NeverIndexedHeaderTuple(b"content-length", b"%d" % length)
            connection.send_headers(number, [*fields, counted], end_stream=not length)
            self._learn(fields)
            return b""
        connection.send_headers(number, _TOLD, end_stream=not length)
        connection.data_to_send()
        digits = b"%d" % length
        block = b"%b%b%c%b" % (found[1], _CONTENT_LENGTH, len(digits), digits)
        return frame(HEADERS, END_HEADERS if length else END_HEADERS | END_STREAM, number, block)

    def _learn(self, fields: Fields) -> None:
        """Keep the block of fields that the table holds by now. Those that it has no room for push each other out each time."""
        encoder = copy.deepcopy(self._connection.encoder)
        before = list(encoder.header_table.dynamic_entries)
        block = encoder.encode(fields)
        self._known.clear()  # what was just sent may have moved what the others point at
        if list(encoder.header_table.dynamic_entries) == before and len(block) <= _MOST_BLOCK:
            self._known[id(fields)] = (fields, block)
