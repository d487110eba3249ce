"""HTTP/1.1 requests on the server's side, sans-IO: llhttp (through httptools) and what it leaves to us.

llhttp cuts request line, headers and body. The rest, with the section of RFC 9112 that asks for it:

| what                                     | becomes                                                       |
| ---------------------------------------- | ------------------------------------------------------------- |
| several requests in one read (9.3.2)     | one `Request` each, in order                                   |
| HTTP/1.1 without exactly one Host (3.2)  | `BadRequest` 400                                               |
| `Transfer-Encoding` but one `chunked`    | `BadRequest` 400 (6.1)                                         |
| bytes that break the grammar (2.2)       | `BadRequest` 400                                               |
| request line and headers above the limit | `BadRequest` 431                                               |
| body above the limit                     | `BadRequest` 413, from its declared length if it has one       |
| `Expect: 100-continue` (RFC 9110 10.1.1) | `take_continue` is true, until the first byte of the body      |
| `Upgrade` without a body                 | an ordinary request: we offer no other protocol (RFC 9110 7.8) |
| `Upgrade` with a body                    | `BadRequest` 501: llhttp stops before that body                |
| `CONNECT`                                | the connection's last request: what follows is no HTTP        |

A bad request is a value and always the last one: whatever came before it is still answered, whatever
follows is not read. The same bytes give the same values however they are cut (unless a header is padded with
more blanks than `head_limit`).
"""

from __future__ import annotations

from dataclasses import dataclass

import httptools

HEAD_LIMIT = 1 << 16
BODY_LIMIT = 1 << 25


@dataclass(frozen=True, slots=True)
class Request:
    """One complete request. `headers` in order, names in lower case; `target` as sent, undecoded."""

    method: str
    target: str
    headers: list[tuple[bytes, bytes]]
    body: bytes
    keep_alive: bool
    version: str = "1.1"

    def header(self, name: bytes) -> str:
        """The first header of this name (lower case), or the empty string."""
        for key, value in self.headers:
            if key == name:
                return value.decode("latin-1")
        return ""


@dataclass(frozen=True, slots=True)
class BadRequest:
    """What could not be read as a request. Answer with `status` and close."""

    status: int
    reason: str


class _Stop(Exception):
    """Raised in a callback so that llhttp stops where it is."""


class RequestDecoder:
    """Decodes the requests of one connection.

    `head_limit` bounds names, values and target of one request together, `body_limit` its body, both in
    bytes. Memory held between calls stays below head_limit + body_limit + one `feed`.
    """

    def __init__(self, head_limit: int = HEAD_LIMIT, body_limit: int = BODY_LIMIT) -> None:
        self._head_limit = head_limit
        self._body_limit = body_limit
        self._parser = httptools.HttpRequestParser(self)
        self._ready: list[Request | BadRequest] = []
        self._bad: BadRequest | None = None
        self._closed = False
        self._unfinished = (
            0  # bytes of a line of the head that has not ended, without those of the feed it began in
        )
        self._fresh = False  # a line of the head began within this feed
        self._reset()

    def _reset(self) -> None:
        self._in_head = False
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._expects = False

    def take_continue(self) -> bool:
        """The client has sent a head and holds its body back until it is told to go on: send `100 Continue`.

        True once a request, and only while that is still of use.
        """
        if self._in_head or self._body_bytes:
            return False
        expects, self._expects = self._expects, False
        return expects

    def feed(self, data: bytes) -> list[Request | BadRequest]:
        """Take bytes as they came; return what they completed. After a BadRequest, or a request that is the
        connection's last, further bytes are dropped.
        """
        self._ready = []
        while data and not self._closed:
            data = self._parse(data)
        ready, self._ready = self._ready, []
        return ready

    def _parse(self, data: bytes) -> bytes:
        """Give `data` to llhttp; return what is left for another round."""
        self._fresh = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as pause:
            self._parser = httptools.HttpRequestParser(self)
            return data[pause.args[0] :]
        except httptools.HttpParserError as cause:
            # llhttp objects to bytes after a last request; we drop them (RFC 9112 section 9.6).
            if not self._closed:
                self._fail(self._bad or BadRequest(400, str(cause)))
            return b""
        if self._in_head and not self._fresh:
            self._unfinished += len(data)
            if self._unfinished > 2 * self._head_limit:
                self._fail(BadRequest(431, f"request line and headers of more than {self._head_limit} bytes"))
        return b""

    def _fail(self, bad: BadRequest) -> None:
        self._closed = True
        self._ready.append(bad)
        self._reset()

    def _stop(self, status: int, reason: str) -> None:
        self._bad = BadRequest(status, reason)
        raise _Stop

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._head_limit:
            self._stop(431, f"request line and headers of more than {self._head_limit} bytes")

    # Callbacks of llhttp.
    def on_message_begin(self) -> None:
        """A request line starts."""
        self._reset()
        self._in_head = True
        self._unfinished = 0
        self._fresh = True

    def on_url(self, part: bytes) -> None:
        """A piece of the target."""
        self._target += part
        self._count_head(len(part))

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header line, or one trailer line, which is counted and dropped."""
        self._count_head(len(name) + len(value))
        self._unfinished = 0
        self._fresh = True
        if self._in_head:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head has ended."""
        self._in_head = False
        self._unfinished = 0
        names = [name for name, _ in self._headers]
        codings = [value.strip().lower() for name, value in self._headers if name == b"transfer-encoding"]
        if codings not in ([], [b"chunked"]):
            self._stop(400, "a Transfer-Encoding other than one chunked")
        if self._parser.get_http_version() == "1.1":
            if names.count(b"host") != 1:
                self._stop(400, "HTTP/1.1 needs exactly one Host header")
            expect = [value.lower() for name, value in self._headers if name == b"expect"]
            self._expects = expect == [b"100-continue"]
        for name, value in self._headers:
            if name == b"content-length" and int(value) > self._body_limit:  # llhttp has checked the digits
                self._stop(413, f"a body of more than {self._body_limit} bytes")
        has_body = b"transfer-encoding" in names or any(
            name == b"content-length" and int(value) > 0 for name, value in self._headers
        )
        if has_body and self._parser.should_upgrade():
            self._stop(501, "Upgrade on a request with a body")

    def on_body(self, part: bytes) -> None:
        """A piece of the body."""
        self._body.append(part)
        self._body_bytes += len(part)
        if self._body_bytes > self._body_limit:
            self._stop(413, f"a body of more than {self._body_limit} bytes")

    def on_message_complete(self) -> None:
        """The request has ended."""
        method = self._parser.get_method().decode("ascii")
        version = self._parser.get_http_version()
        keep_alive = method != "CONNECT" and _persists(version, self._headers)
        self._ready.append(
            Request(
                method=method,
                target=self._target.decode("latin-1"),
                headers=self._headers,
                body=b"".join(self._body),
                keep_alive=keep_alive,
                version=version,
            )
        )
        self._closed = not keep_alive
        self._reset()


def _persists(version: str, headers: list[tuple[bytes, bytes]]) -> bool:
    """RFC 9112 section 9.3. llhttp's own answer turns false after any Upgrade, taken or not."""
    options = {
        option.strip().lower()
        for name, value in headers
        if name == b"connection"
        for option in value.split(b",")
    }
    if b"close" in options:
        return False
    return version == "1.1" or b"keep-alive" in options
