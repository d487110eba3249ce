"""One socket to the server, perhaps TLS on it, and the channel that it carries.

    CONNECTING -> [HANDSHAKE ->] OPENING -> OPEN -> CLOSED

OPENING is a channel's own greeting; HTTP/1.1 has none. Writing may be partial; what is left waits for the socket to take more.

An exchange's `t_submit` is the moment the kernel accepts the last byte of its request (draft B.1.1), read just before the call
that hands it over: the true instant lies inside that call, so a TTFT errs by the length of one system call at most and towards
the longer. Read after it, a server quick enough to answer from another core within the call would show a TTFT below zero.
It is the first attempt's: a request that is sent again has waited since then.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections import deque
from collections.abc import Callable, Set
from dataclasses import dataclass

from inferometer.drive import clock
from inferometer.drive.channel import Channel
from inferometer.drive.exchange import Exchange
from inferometer.drive.tls import TlsLayer
from inferometer.drive.unread import RoundClock, SocketUnread

Feed = Callable[[bytes, int, int], bool]

CONNECTING, HANDSHAKE, OPENING, OPEN, CLOSED = range(5)

NOT_CHOSEN = "the server does not choose %s by ALPN, as HTTP/2 over TLS needs; it chooses %s"
MOST_UNSENT = 20_000
"""Writes that wait for a socket: of a hundred streams at most a few each, and what answers the server's own frames. A server
that sends those and never reads would fill the memory."""

LOOPBACK = ("127.", "::1")
"""Addresses whose peer has the bytes before `send` gives up the core. The rest of the call is the peer's own work, which the
kernel may run at once on the core of the sender: a call of 0.8 ms says nothing of when the request was submitted."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Where to connect: an address as `socket.connect` wants it, and for TLS the context, the name to verify, and the protocols
    of which the server has to choose one; none: whatever it chooses."""

    family: int
    address: tuple[str | int, ...]
    tls: ssl.SSLContext | None = None
    server_name: str = ""
    alpn: tuple[str, ...] = ()


class Transport:
    """One socket and its channel. Raises OSError where the kernel does.

    `feed` is the channel's own, held here for the loop. `unread`: how long what it reads may have waited. `unsent`: what
    waits for the socket, as Write. `waiting`: exchanges to be submitted once the channel is open. `ahead`: it was opened
    before a request needed it. `places`: the capacity that the reactor's pool counts. `used`: it has carried an exchange.
    `kept`: it has stood idle, so the server may have closed it unseen. `answers`: exchanges that have ended on it, the latest
    at `t_answered`. `loopback`: see LOOPBACK.
    """

    __slots__ = (
        "ahead",
        "alpn",
        "answers",
        "channel",
        "fd",
        "feed",
        "kept",
        "loopback",
        "places",
        "recvmsg_into",
        "sock",
        "state",
        "t_answered",
        "t_connect",
        "t_connected",
        "t_tls",
        "tls",
        "unread",
        "unsent",
        "used",
        "waiting",
    )

    def __init__(self, peer: Peer, channel: Channel, now: int, rounds: RoundClock) -> None:
        self.sock = socket.socket(peer.family, socket.SOCK_STREAM)
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        clock.ask_for_stamps(self.sock)
        self.fd = self.sock.fileno()
        self.recvmsg_into = self.sock.recvmsg_into
        self.unread = SocketUnread(self.sock, rounds)
        self.channel = channel
        self.feed: Feed = channel.feed
        self.alpn = peer.alpn
        self.tls = TlsLayer(peer.tls, peer.server_name) if peer.tls is not None else None
        self.waiting: list[Exchange] = []
        self.places = self.answers = self.t_answered = 0
        self.ahead = self.used = self.kept = False
        self.loopback = str(peer.address[0]).startswith(LOOPBACK)
        self.state = CONNECTING
        self.t_connect = now
        self.t_connected = 0
        self.t_tls = 0
        self.unsent: deque[tuple[bytes | memoryview, Exchange | None, bool]] = deque()
        code = self.sock.connect_ex(peer.address)
        if code not in (0, errno.EINPROGRESS):
            self.close()
            raise OSError(code, os.strerror(code))

    @property
    def wants_write(self) -> bool:
        """True while bytes or the connect itself wait for the socket."""
        return bool(self.unsent) or self.state == CONNECTING

    def connected(self, now: int) -> None:
        """The socket became writable for the first time. Raises OSError if the connect failed."""
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        self.t_connected = now
        if self.tls is None:
            self.state = OPENING
        else:
            self.state = HANDSHAKE
            self.shake(b"", now)

    def decrypt(self, data: bytes) -> bytes:
        """The plain bytes that `data` from the peer completes. Raises ssl.SSLError, OSError."""
        assert self.tls is not None
        self.tls.received(data)
        plain = self.tls.decrypt()
        self._write(self.tls.pending_output(), None, False)
        return plain

    def shake(self, data: bytes, now: int) -> None:
        """Carry the TLS handshake on with `data` from the peer. Raises ssl.SSLError, OSError."""
        assert self.tls is not None
        if data:
            self.tls.received(data)
        try:
            done = self.tls.handshake()
        finally:
            self._write(self.tls.pending_output(), None, False)  # also the alert that says why
        if done:
            if self.alpn and self.tls.protocol not in self.alpn:
                raise ssl.SSLError(
                    ssl.SSL_ERROR_SSL, NOT_CHOSEN % (self.alpn[0], self.tls.protocol or "none")
                )
            self.t_tls = now
            self.state = OPENING

    def greeted(self, now: int) -> None:
        """The channel's own greeting is over, if it has one: a part of connecting, which the peer's first word ends."""
        if self.tls is None:
            self.t_connected = now
        else:
            self.t_tls = now

    def send(self) -> None:
        """Write all that the channel has for the peer. Raises OSError, ssl.SSLError."""
        outgoing, tls = self.channel.outgoing, self.tls
        for data, exchange, last in outgoing:
            self._write(data if tls is None else tls.encrypt(data), exchange, last)
        outgoing.clear()
        if len(self.unsent) > MOST_UNSENT:
            raise ConnectionAbortedError("the server reads nothing of what it is sent")

    def introduce(self, exchange: Exchange) -> None:
        """Give an exchange that the transport was opened for, or its first, the times of its opening; unless it was sent
        before, over another one: its times are of that attempt."""
        if exchange.t_send:
            return
        exchange.t_connect, exchange.t_connected = self.t_connect, self.t_connected
        exchange.t_tls = self.t_tls

    def flush(self) -> None:
        """Write more of what is waiting, in its order. Raises OSError."""
        waiting, self.unsent = self.unsent, deque()
        while waiting:
            self._write(*waiting.popleft())
            if self.unsent:
                self.unsent.extend(waiting)
                return

    def _write(self, data: bytes | memoryview, exchange: Exchange | None, last: bool) -> None:
        size = len(data)
        if not size:
            return
        if self.unsent:
            self.unsent.append((data, exchange, last))
            return
        before = clock.monotonic_ns()
        try:
            sent = self.sock.send(data)
        except BlockingIOError:
            sent = 0
        if exchange is not None and sent:
            exchange.unread = self.unread
            if not exchange.t_send:
                exchange.t_send = before
            if last and sent == size:
                exchange.sent_whole = True
                if not exchange.t_submit:
                    exchange.t_submit = before
                    exchange.submit_ns = 0 if self.loopback else clock.monotonic_ns() - before
        if sent < size:
            self.unsent.append((memoryview(data)[sent:], exchange, last))

    def forget(self, exchanges: Set[Exchange]) -> None:
        """What is unsent of these still goes out, for the peer counts on it, but stamps them no more."""
        if self.unsent:
            self.unsent = deque(
                (data, None, False) if owner in exchanges else (data, owner, last)
                for data, owner, last in self.unsent
            )

    def close(self) -> None:
        """Close the socket; more than once does no harm."""
        self.state = CLOSED
        self.feed = _deaf
        self.unsent.clear()
        self.channel.close()
        self.sock.close()


def _deaf(*_: object) -> bool:
    """What the same round read for a transport that has been closed since."""
    return False
