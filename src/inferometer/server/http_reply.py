"""HTTP/1.1 responses as bytes."""

from __future__ import annotations

from dataclasses import dataclass

import inferometer
from inferometer.server.clock import http_date

JsonObject = dict[str, object]
"""A JSON object that comes from the wire or goes there."""

PRODUCT = "inferometer-reference"
SERVER = f"{PRODUCT}/{inferometer.__version__}"
_REASONS = {
    200: b"OK",
    400: b"Bad Request",
    401: b"Unauthorized",
    404: b"Not Found",
    405: b"Method Not Allowed",
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
        fields = [
            (b"Content-Type", self.content_type),
            (b"Content-Length", b"%d" % len(self.body)),
            *self.headers,
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
