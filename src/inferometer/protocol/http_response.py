"""HTTP/1.1 responses on the client's side, sans-IO: llhttp (through httptools) plus what it leaves to its caller.

llhttp cuts head, chunks and body. Left to us: interim 1xx responses are skipped, a body without a length ends with the
connection (RFC 9112 section 6.3, rule 8), the head has a size limit, no transfer coding but one `chunked` is known, and bytes
after the end are a fault, since we never pipeline. Such a fault leaves `complete` set: the response before it is as it was.
"""

from __future__ import annotations

from typing import Any

import httptools

HEAD_LIMIT = 1 << 16
FRAMING_LIMIT = 1 << 20
"""Bytes that are not of a body, less MOST_FRAME for each part of one that was brought: trailers, and extensions of chunks."""
MOST_FRAME = 64
"""Bytes around a part of a body: a chunk's size with its line ends, and an extension as an honest server may send."""


_CODING = b"transfer-encoding"
_AFTER_THE_END = "bytes after the end of the response"


class BadResponse(ValueError):
    """The bytes break RFC 9112."""


class HeadTooLarge(ValueError):
    """The header block outgrew HEAD_LIMIT without ending, or what frames a body FRAMING_LIMIT."""


class ResponseDecoder:
    """Decodes the responses of one connection, one after the other; call `next()` between them.

    After each `feed`, `body` holds the body bytes these bytes completed (the caller takes and clears it), `status` is 0 until
    the head is complete, `headers` has the first value of each header by its name in lower case, `complete` says that the
    response has ended, and `keep_alive` that another may follow.
    """

    __slots__ = (
        "_framed",
        "_framing_bytes",
        "_head_bytes",
        "_headers_done",
        "_lines",
        "_parser",
        "_until_close",
        "body",
        "complete",
        "headers",
        "keep_alive",
        "on_body",
        "status",
    )

    def __init__(self) -> None:
        self.body: list[bytes] = []
        self._lines: dict[bytes, bytes] = {}
        # This callback of llhttp's is a container's own method: no Python frame a chunk.
        self.on_body = self.body.append
        self._parser: Any = httptools.HttpResponseParser(self)
        self.next()

    def next(self) -> None:
        """Make ready for the next response on this connection."""
        self.body.clear()
        self.status = 0
        self.complete = False
        self.keep_alive = False
        self._lines.clear()
        self.headers: dict[bytes, bytes] = {}
        self._headers_done = False
        self._head_bytes = self._framing_bytes = 0
        self._framed = (
            False  # whether a read brought some of the body: the first may bring the head before it
        )
        self._until_close = False

    def feed(self, data: bytes) -> None:
        """Take bytes as they came. Raises BadResponse or HeadTooLarge; the connection is of no use then."""
        if self.complete and data:
            raise BadResponse(_AFTER_THE_END)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as cause:
            raise BadResponse("the server switched protocols") from cause
        except httptools.HttpParserError as cause:
            self.keep_alive = False
            raise BadResponse(_AFTER_THE_END if self.complete else _words(cause)) from cause
        parts = self.body
        if not parts:
            self._bodiless(len(data))
        elif len(data) > MOST_FRAME + len(parts[0]):  # hardly ever: more than one part, or much around it
            over = len(data) - sum(map(len, parts)) - MOST_FRAME * len(parts)
            if over > 0 and self._framed:
                self._bodiless(over)
            self._framed = True

    def _bodiless(self, size: int) -> None:
        """So many bytes have brought nothing of the body: they are of the head, or of what frames chunks, trailers included."""
        if not self._headers_done:
            self._head_bytes += size
            if self._head_bytes > HEAD_LIMIT:
                raise HeadTooLarge(f"a header block of more than {HEAD_LIMIT} bytes")
        elif not self.complete:
            self._framing_bytes += size
            if self._framing_bytes > FRAMING_LIMIT:
                raise HeadTooLarge(f"chunk sizes and trailers of more than {FRAMING_LIMIT} bytes")

    def eof(self) -> bool:
        """The peer closed. True if that is how this response had to end; `complete` is then set."""
        if self._headers_done and self._until_close:
            self.complete = True
        return self.complete

    def header(self, name: bytes) -> str:
        """The first header of this name (lower case), or the empty string."""
        return self.headers.get(name, b"").decode("latin-1")

    def close(self) -> None:
        """Break the circle with the parser, which holds this object: nobody collects garbage while measuring."""
        self._parser = None

    # Callbacks of llhttp. What they raise stops it.
    def on_message_begin(self) -> None:
        """Another response begins: an interim one may precede this one, none may follow in its bytes."""
        if self.complete:
            raise BadResponse(_AFTER_THE_END)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head, or of the trailers."""
        if self._lines.setdefault(name, value) is not value and not self._headers_done:
            self._repeated(name)

    def _repeated(self, name: bytes) -> None:
        """Another line of a name that the head has already. Of two codings each may be the one that somebody between us and the
        server went by, and so none is known to frame the body."""
        if name.lower() == _CODING:
            raise BadResponse("several Transfer-Encoding lines")

    def on_headers_complete(self) -> None:
        """The head has ended."""
        status = self._parser.get_status_code()
        if status >= 200:
            self.status = status
            self._headers_done = True
            # Copied now: trailers of a chunked body come the same way and are of no interest.
            headers = self.headers
            for name, value in self._lines.items():
                if headers.setdefault(name.lower(), value) is not value:
                    self._repeated(name)
            coding = headers.get(_CODING, b"chunked")
            if coding.strip().lower() != b"chunked":
                raise BadResponse(f"Transfer-Encoding: {coding.decode('latin-1')}")
            framed = b"content-length" in headers or _CODING in headers
            self._until_close = not framed and status not in (204, 304)

    def on_message_complete(self) -> None:
        """The body has ended; an interim response has none and does not count."""
        if self._headers_done:
            self.complete = True
            self.keep_alive = self._parser.should_keep_alive()  # llhttp forgets it once this returns
        else:
            self._lines.clear()


def _words(cause: httptools.HttpParserError) -> str:
    """What is wrong: the words of a callback that raised, else llhttp's. No local name of `feed` may hold an exception: it
    would be a circle."""
    return str(cause.__context__ if isinstance(cause.__context__, BadResponse) else cause)
