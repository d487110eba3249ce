"""One gRPC call and its whole response, for all that is not load: within one deadline, on a connection of its own.

What can go wrong has the reasons of http_client.py, and one more:

| `not_grpc` | it is HTTP/2, but not a response of gRPC: another status than 200, or another media type |

A status of gRPC's own is a response, whatever it says.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass

from inferometer.client.http_client import READ_BYTES, Client, Unanswered, left, send_all
from inferometer.protocol.grpc import OK_OF_GRPC, BadMessage, Status, read_status, speaks_grpc
from inferometer.protocol.http2_client import Http2Client
from inferometer.protocol.http2_events import End, Event, Failed, Head
from inferometer.protocol.http2_fields import Fields

_REASONS = {"unbegun": "closed", "reset": "closed", "malformed": "not_http", "too_large": "too_large"}


@dataclass(frozen=True, slots=True)
class Called:
    """How a call has ended. `body`: its messages as they came, framed; `server`: the Server header."""

    status: Status
    body: bytes
    server: str


class GrpcClient:
    """Calls to one server; see Client, whose connections and deadlines these are. `fields`: of every call, besides the path."""

    def __init__(
        self, client: Client, scheme: str, fields: Mapping[str, str], *, timeout_s: float, largest: int
    ) -> None:
        self._client = client
        lines = {name.lower(): value for name, value in fields.items()}
        authority = lines.pop("host", "")
        self._pseudo = {":method": "POST", ":scheme": scheme, ":authority": authority}
        self._lines = lines
        self._timeout_s, self._largest = timeout_s, largest

    def call(self, path: str, body: bytes, timeout_s: float | None = None) -> Called:
        """One call with a framed message. Raises Unanswered."""
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        until = time.monotonic_ns() + int(limit_s * 1e9)
        sock = self._client.dial(until)
        http2 = Http2Client(1)
        under_way = _Call(sock, http2, self._largest)
        try:
            if isinstance(sock, ssl.SSLSocket) and sock.selected_alpn_protocol() != "h2":
                raise Unanswered("tls", "the server does not choose HTTP/2 by ALPN, which gRPC needs")
            return under_way.run(self._fields(path), body, until)
        except TimeoutError:
            missing = "no answer" if under_way.begun else "the server allowed no request"
            raise Unanswered("timeout", f"connected, but {missing} in time") from None
        except OSError as cause:
            raise Unanswered("closed", f"the connection ended before the answer did ({cause})") from None
        finally:
            http2.close()
            with contextlib.suppress(OSError):
                sock.close()

    def _fields(self, path: str) -> Fields:
        fields = self._pseudo | {":path": path} | self._lines
        return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()]


class _Call:
    """One call under way. `begun`: its request has been sent, or some of it."""

    def __init__(self, sock: socket.socket, http2: Http2Client, largest: int) -> None:
        self._sock, self._http2, self._largest = sock, http2, largest
        self._head: Head | None = None
        self._body = bytearray()
        self.begun = False

    def run(self, fields: Fields, body: bytes, until: int) -> Called:
        """Send it as soon as the server takes requests, and read on to its end. Raises Unanswered, OSError."""
        http2 = self._http2
        http2.open()
        while True:
            if not self.begun and http2.places:
                self.begun = True
                http2.request(fields, body, self)
            for data, _, _ in http2.outgoing:
                send_all(self._sock, data, until)
            http2.outgoing.clear()
            self._sock.settimeout(left(until))
            data = self._sock.recv(READ_BYTES)
            if not data:
                raise ConnectionResetError(http2.leave or "the server closed the connection")
            for event in http2.receive(data):
                if (called := self._take(event)) is not None:
                    return called
            if http2.fault:
                raise Unanswered("not_http", http2.fault)
            if http2.closing and not self.begun:
                raise Unanswered("closed", f"the server takes no request ({http2.leave})")

    def _take(self, event: Event) -> Called | None:
        """What has come; the whole of it at its end."""
        if isinstance(event, Failed):
            raise Unanswered(_REASONS[event.why], event.words)
        if isinstance(event, Head):
            self._head = event
            kind = event.headers.get(b"content-type", b"").decode("latin-1")
            if event.status != OK_OF_GRPC or not speaks_grpc(kind):
                raise Unanswered("not_grpc", f"the answer is {event.status} of type {kind!r}, not gRPC")
        elif isinstance(event, End):
            return self._called(event)
        else:
            self._body += event.take()
            if len(self._body) > self._largest:
                raise Unanswered("too_large", f"the answer has more than {self._largest} bytes")
        return None

    def _called(self, end: End) -> Called:
        try:
            status = read_status(end.stream.trailers or {})
        except BadMessage as cause:
            raise Unanswered("not_grpc", str(cause)) from None
        if status is None:
            raise Unanswered("not_grpc", "the answer ended without a grpc-status")
        head = self._head
        server = b"" if head is None else head.headers.get(b"server", b"")
        return Called(status, bytes(self._body), server.decode("latin-1"))
