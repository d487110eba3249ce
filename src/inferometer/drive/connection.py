"""One connection to the server: a non-blocking socket, perhaps TLS on it, and the exchange it is carrying.

    CONNECTING -> [HANDSHAKE ->] IDLE <-> BUSY -> CLOSED

Writing may be partial; what is left waits for the socket to take more. An exchange's `t_submit` is the moment the kernel
accepts its last byte (draft B.1.1), read just before the call that hands it over: the true instant lies inside that call, so
a TTFT errs by the length of one system call at most and towards the longer. Read after it, a server quick enough to answer
from another core within the call would show a TTFT below zero.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from dataclasses import dataclass

from inferometer.drive import clock
from inferometer.drive.exchange import Exchange
from inferometer.drive.tls import TlsLayer
from inferometer.protocol.http_response import ResponseDecoder

CONNECTING, HANDSHAKE, IDLE, BUSY, CLOSED = range(5)


@dataclass(frozen=True, slots=True)
class Peer:
    """Where to connect: an address as `socket.connect` wants it, and for TLS the context and the name to verify."""

    family: int
    address: tuple[str | int, ...]
    tls: ssl.SSLContext | None = None
    server_name: str = ""


class Connection:
    """One socket. Raises OSError where the kernel does."""

    __slots__ = (
        "_out",
        "exchange",
        "fd",
        "http",
        "kept",
        "recvmsg_into",
        "responses",
        "sock",
        "state",
        "t_connect",
        "t_connected",
        "t_tls",
        "tls",
        "waiting",
    )

    def __init__(self, peer: Peer, now: int) -> None:
        self.sock = socket.socket(peer.family, socket.SOCK_STREAM)
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        clock.ask_for_stamps(self.sock)
        self.fd = self.sock.fileno()
        self.recvmsg_into = self.sock.recvmsg_into
        self.http = ResponseDecoder()
        self.tls = TlsLayer(peer.tls, peer.server_name) if peer.tls is not None else None
        self.exchange: Exchange | None = None
        self.waiting: Exchange | None = None  # to be begun once the connection stands
        self.responses = 0
        self.kept = False  # it has stood idle: the server may have closed it unseen
        self.state = CONNECTING
        self.t_connect = now
        self.t_connected = 0
        self.t_tls = 0
        self._out: memoryview | None = None
        code = self.sock.connect_ex(peer.address)
        if code not in (0, errno.EINPROGRESS):
            self.close()
            raise OSError(code, os.strerror(code))

    @property
    def wants_write(self) -> bool:
        """True while bytes or the connect itself wait for the socket."""
        return self._out is not None or self.state == CONNECTING

    def connected(self, now: int) -> None:
        """The socket became writable for the first time. Raises OSError if the connect failed."""
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        self.t_connected = now
        if self.tls is None:
            self.state = IDLE
        else:
            self.state = HANDSHAKE
            self.shake(b"", now)

    def decrypt(self, data: bytes) -> bytes:
        """The plain bytes that `data` from the peer completes. Raises ssl.SSLError, OSError."""
        assert self.tls is not None
        self.tls.received(data)
        plain = self.tls.decrypt()
        if answer := self.tls.pending_output():
            self._write(answer)
        return plain

    def shake(self, data: bytes, now: int) -> None:
        """Carry the TLS handshake on with `data` from the peer. Raises ssl.SSLError, OSError."""
        assert self.tls is not None
        if data:
            self.tls.received(data)
        try:
            done = self.tls.handshake()
        finally:
            self._write(self.tls.pending_output())  # also the alert that says why
        if done:
            self.t_tls = now
            self.state = IDLE

    def begin(self, exchange: Exchange) -> None:
        """Carry this exchange: send its request. Raises OSError."""
        if self.responses:
            self.http.next()
        else:
            exchange.t_connect, exchange.t_connected = self.t_connect, self.t_connected
            exchange.t_tls = self.t_tls
        self.state = BUSY
        self.exchange = exchange
        wire = exchange.wire
        self._write(wire if self.tls is None else self.tls.encrypt(wire))

    def flush(self) -> None:
        """Send more of what is waiting. Raises OSError."""
        out, self._out = self._out, None
        if out is not None:
            self._write(out)

    def _write(self, data: bytes | memoryview) -> None:
        if self._out is not None:
            data = bytes(self._out) + bytes(data)
            self._out = None
        size = len(data)
        if not size:
            return
        exchange = self.exchange
        before = clock.monotonic_ns()
        try:
            sent = self.sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent < size:
            self._out = memoryview(data)[sent:]
        if exchange is not None:
            if sent and not exchange.t_send:
                exchange.t_send = before
            if sent == size and not exchange.t_submit:
                exchange.t_submit = before

    def release(self) -> Exchange:
        """Let go of the exchange, which has ended."""
        exchange = self.exchange
        assert exchange is not None
        self.exchange = None
        self.responses += 1
        return exchange

    def close(self) -> None:
        """Close the socket; more than once does no harm."""
        self.state = CLOSED
        self._out = None
        self.http.close()
        self.sock.close()
