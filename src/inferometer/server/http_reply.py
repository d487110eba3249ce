"""HTTP/1.1 responses as bytes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import inferometer
from inferometer.protocol.websocket_handshake import SWITCHING
from inferometer.server.clock import http_date

JsonObject = dict[str, object]
"""A JSON object that comes from the wire or goes there."""

PRODUCT = "inferometer-reference"
SERVER = f"{PRODUCT}/{inferometer.__version__}"
_REASONS = {
    101: b"Switching Protocols",
    200: b"OK",
    400: b"Bad Request",
    401: b"Unauthorized",
    404: b"Not Found",
    405: b"Method Not Allowed",
    426: b"Upgrade Required",
    413: b"Content Too Large",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    501: b"Not Implemented",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
    505: b"HTTP Version Not Supported",
}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete response. `headers`: further ones, names and values as sent. `trailers`: lines behind the body, which then
    comes as a chunk."""

    status: int
    body: bytes
    content_type: bytes = b"application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    trailers: bytes = b""

    def encode(self, keep_alive: bool) -> bytes:
        """Head and body."""
        if self.trailers:
            fields = [(b"Content-Type", self.content_type), (b"Transfer-Encoding", b"chunked"), *self.headers]
            return _head(self.status, fields, keep_alive) + chunk(self.body) + last_chunk(self.trailers)
        fields = [*self.headers]
        if self.status != SWITCHING:
            fields = [
                (b"Content-Type", self.content_type),
                (b"Content-Length", b"%d" % len(self.body)),
                *fields,
            ]
        return _head(self.status, fields, keep_alive) + self.body


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body (RFC 9112 section 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def last_chunk(trailers: bytes = b"") -> bytes:
    """The end of a chunked body, with these lines behind it."""
    return b"0\r\n%b\r\n" % trailers


EVENT_STREAM = b"text/event-stream; charset=utf-8"


def stream_head(keep_alive: bool, content_type: bytes = EVENT_STREAM) -> bytes:
    """The head of a stream of events in a chunked body."""
    fields = [
        (b"Content-Type", content_type),
        (b"Cache-Control", b"no-cache"),
        (b"Transfer-Encoding", b"chunked"),
    ]
    return _head(200, fields, keep_alive)


def _head(status: int, fields: list[tuple[bytes, bytes]], keep_alive: bool) -> bytes:
    common = [(b"Date", http_date())]
    if not any(name == b"Server" for name, _ in fields):
        common.insert(0, (b"Server", SERVER.encode()))
    if not keep_alive:
        common.append((b"Connection", b"close"))
    lines = [b"%b: %b\r\n" % field for field in (*common, *fields)]
    return b"HTTP/1.1 %d %b\r\n%b\r\n" % (status, _REASONS[status], b"".join(lines))


# What these are read back as, by protocols that carry answers in frames of their own.


_OF_CONNECTION = (b"connection", b"transfer-encoding")


Fields = list[tuple[bytes, bytes]]


def read_head(head: bytes) -> tuple[int, Fields, bool]:
    """The status and the fields of a head of ours, and whether its body comes in chunks."""
    line, *lines = head.split(b"\r\n")
    fields = _read_fields(lines)
    chunked = any(name == b"transfer-encoding" for name, _ in fields)
    return int(line[9:12]), [field for field in fields if field[0] not in _OF_CONNECTION], chunked


def unchunked(data: bytes) -> tuple[bytes, bool, Fields]:
    """The content of whole chunks, whether the last one is among them, and the trailers behind it."""
    parts: list[bytes] = []
    at = 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        size = int(data[at:end], 16)
        if not size:
            return b"".join(parts), True, _read_fields(data[end + 2 :].split(b"\r\n")[:-2])
        parts.append(data[end + 2 : end + 2 + size])
        at = end + 4 + size
    return parts[0] if len(parts) == 1 else b"".join(parts), False, []


def _read_fields(lines: Iterable[bytes]) -> Fields:
    parted = (line.partition(b": ") for line in lines)
    return [(name.lower(), value) for name, _, value in parted]
