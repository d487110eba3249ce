"""Whole requests and responses over HTTP/1.1, for all that is not load: within one deadline, over connections that are kept.

| reason        | there is no response, because                                           |
| ------------- | ----------------------------------------------------------------------- |
| `unresolved`  | the host's name has no address                                          |
| `refused`     | nothing listens there                                                   |
| `unreachable` | there is no connection for another reason                               |
| `tls`         | there is no TLS session: an untrusted certificate, or no TLS at all     |
| `timeout`     | it is not whole by the deadline, name look-up and connecting included   |
| `closed`      | the connection ended inside the response, or without one                |
| `not_http`    | the bytes break HTTP                                                    |
| `too_large`   | it has more bytes than allowed, or declares so                          |

Redirects are not followed, proxies of the environment are not used, and nothing is decompressed, as nothing compressed is asked
for. A kept connection that the server has closed is no failure: the request goes out on another.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from inferometer.client.name_lookup import Addresses, NameLookup, NoAddress
from inferometer.client.websocket_conversation import converse
from inferometer.protocol.http_response import BadResponse, HeadTooLarge, ResponseDecoder

LARGEST = 64 << 20
"""Bytes of a response, unless a client is told otherwise."""
READ_BYTES = 1 << 18
HTTP2_ONLY = "the server speaks HTTP/2 only, and all but the load itself is requested over HTTP/1.1"


class Unanswered(Exception):
    """There is no response. `reason` is of the table above; the text says it in words; `part`: of one that is too large and
    has begun, what had come of it."""

    def __init__(self, reason: str, words: str | Exception, part: Response | None = None) -> None:
        super().__init__(str(words) or reason)
        self.reason = reason
        self.part = part


class _Stale(Exception):
    """A kept connection had been closed before anything was answered on it."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole response; header names are in lower case. `first_byte_ns`: monotonic; `latency_ns`: from the call to the end."""

    status: int
    headers: Mapping[bytes, bytes]
    body: bytes
    first_byte_ns: int
    latency_ns: int

    def header(self, name: bytes) -> str:
        """The first header of this name (lower case), or the empty string."""
        return self.headers.get(name, b"").decode("latin-1")

    def text(self) -> str:
        """The body as text, whatever its bytes."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body as JSON. Raises ValueError, also for what is nested too deeply to be read."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None


@dataclass(frozen=True, slots=True)
class _Connection:
    sock: socket.socket
    decoder: ResponseDecoder

    def close(self) -> None:
        self.decoder.close()
        with contextlib.suppress(OSError):
            self.sock.close()


class Client:
    """Requests to one host and port, from any thread, each over a connection of its own while it lasts.

    `headers`: of every request, Host among them. `base` stands before every path. `tls` makes the context at the first connect.
    `parts`: of a response that is too large, read as much as is allowed. `resolve` finds a host's addresses, and may hang.
    """

    def __init__(
        self,
        host: str,
        port: int,
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        base: str = "",
        tls: Callable[[], ssl.SSLContext] | None = None,
        largest: int = LARGEST,
        parts: bool = False,
        resolve: Callable[..., Addresses] = socket.getaddrinfo,
    ) -> None:
        self._host, self._port = host, port
        self._headers = dict(headers)
        self._base = base
        self._timeout_s = timeout_s
        self._tls = tls
        self._context: ssl.SSLContext | None = None
        self._largest, self._parts = largest, parts
        self._lookup = NameLookup(host, port, resolve)
        self._idle: list[_Connection] = []

    def __enter__(self) -> Client:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()

    def get(self, path: str) -> Response:
        """See `request`."""
        return self.request("GET", path)

    def send_json(self, method: str, path: str, value: Any) -> Response:
        """See `request`; the body is this value as JSON."""
        return self.request(method, path, json.dumps(value, ensure_ascii=False).encode())

    def request(
        self, method: str, path: str, body: bytes | None = None, timeout_s: float | None = None
    ) -> Response:
        """One request, with a body of JSON if any, unless the client's headers name another Content-Type. `timeout_s`: another
        than the client's. Raises Unanswered."""
        began = time.monotonic_ns()
        until = began + int((self._timeout_s if timeout_s is None else timeout_s) * 1e9)
        wire = self._wire(method, path, body)
        while True:
            try:
                connection, kept = self._idle.pop(), True
            except IndexError:
                connection, kept = _Connection(self.dial(until), ResponseDecoder()), False
            try:
                return self._exchange(connection, wire, began, until, kept=kept)
            except _Stale:
                connection.close()
            except Unanswered:
                connection.close()
                raise

    def converse(
        self,
        path: str,
        message: bytes,
        read: Callable[[bytes], bool],
        stray: Callable[[bytes], object],
        listen_s: float,
    ) -> None:
        """Send a message over a WebSocket of its own, and `read` those that answer it until it returns True, or the server
        closes in order. `stray` gets those that come before it and behind the end, for `listen_s` each. Raises Unanswered,
        NoConversation."""
        until = time.monotonic_ns() + int(self._timeout_s * 1e9)
        sock = self.dial(until)
        try:
            converse(
                sock,
                self._base + path,
                self._headers,
                message,
                read,
                lambda: left(until),
                self._largest,
                stray,
                listen_s,
            )
        except TimeoutError:
            raise Unanswered("timeout", "connected, but no answer in time") from None
        except OSError as cause:
            raise Unanswered("closed", f"the connection ended before the answer did ({cause})") from None
        finally:
            sock.close()

    def _wire(self, method: str, path: str, body: bytes | None) -> bytes:
        lines = dict(self._headers)
        if body is not None:
            lines.setdefault("Content-Type", "application/json")
        if body is not None or method != "GET":
            lines["Content-Length"] = str(len(body or b""))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"{method} {self._base}{path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + (body or b"")

    def _exchange(
        self, connection: _Connection, wire: bytes, began: int, until: int, *, kept: bool
    ) -> Response:
        sock, decoder = connection.sock, connection.decoder
        decoder.next()
        first, taken, data = 0, 0, b""
        try:
            send_all(sock, wire, until)
            while not decoder.complete:
                sock.settimeout(left(until))
                data = sock.recv(READ_BYTES)
                if not data:
                    if decoder.eof():
                        break
                    raise ConnectionResetError("the server closed the connection")
                first = first or time.monotonic_ns()
                decoder.feed(data)
                taken += len(data)
                declared = decoder.header(b"content-length")
                over = declared.isdecimal() and int(declared) > self._largest
                if taken > self._largest or (over and not self._parts):
                    part = _response(decoder, first, began) if self._parts else None
                    raise Unanswered("too_large", f"the answer has more than {self._largest} bytes", part)
        except TimeoutError:
            raise Unanswered("timeout", "connected, but no answer in time") from None
        except (BadResponse, HeadTooLarge) as cause:
            raise Unanswered(
                "not_http", HTTP2_ONLY if _is_http2(data) else f"the answer is not HTTP ({cause})"
            ) from None
        except OSError as cause:
            if kept and not first:
                raise _Stale from None
            raise Unanswered("closed", f"the connection ended before the answer did ({cause})") from None
        found = _response(decoder, first, began)
        if decoder.keep_alive:
            self._idle.append(connection)
        else:
            connection.close()
        return found

    def dial(self, until: int) -> socket.socket:
        """A new connection to the first address that takes one, with TLS on it if that is wanted. `until`: monotonic, ns.
        Raises Unanswered."""
        reason, words = "unreachable", "no address"
        for family, kind, proto, _, address in self._addresses(until):
            sock = socket.socket(family, kind, proto)
            try:
                sock.settimeout(left(until))
                sock.connect(address)
                return self._wrapped(sock)
            except TimeoutError:
                reason, words = "timeout", "no connection in time"
            except ConnectionRefusedError as cause:
                reason, words = "refused", str(cause)
            except (ssl.SSLError, ssl.CertificateError) as cause:
                reason, words = "tls", str(cause)
            except OSError as cause:
                reason, words = "unreachable", str(cause)
            sock.close()
        raise Unanswered(reason, words)

    def _addresses(self, until: int) -> Addresses:
        try:
            return self._lookup.addresses(until)
        except NoAddress as cause:
            raise Unanswered(cause.reason, cause) from None

    def _wrapped(self, sock: socket.socket) -> socket.socket:
        if self._tls is None:
            return sock
        self._context = self._context or self._tls()
        return self._context.wrap_socket(sock, server_hostname=self._host)


def send_all(sock: socket.socket, wire: bytes, until: int) -> None:
    """Hand all bytes over. `sendall` would give a peer that reads slowly the whole time again for every piece, over TLS."""
    rest = memoryview(wire)
    while rest:
        sock.settimeout(left(until))
        rest = rest[sock.send(rest) :]


def _response(decoder: ResponseDecoder, first: int, began: int) -> Response:
    latency = time.monotonic_ns() - began
    return Response(decoder.status, dict(decoder.headers), b"".join(decoder.body), first, latency)


def _is_http2(data: bytes) -> bool:
    """Whether this is how an HTTP/2 server begins: with a SETTINGS frame, or with a GOAWAY at once (RFC 9113, 3.4)."""
    return len(data) >= 9 and data[:1] == b"\0" and data[3] in (4, 7) and data[5:9] == bytes(4)


def left(until: int) -> float:
    """Seconds until then. Raises TimeoutError once it is over."""
    seconds = (until - time.monotonic_ns()) / 1e9
    if seconds <= 0:
        raise TimeoutError
    return seconds
