"""One connection between a conductor and a load host: messages over TLS, each behind its length (4 bytes, big-endian).

Both sides wait for many things at once, so a link never blocks to read: `receive` takes what is there. `send` waits for as long
as the other side takes, within its patience, and meanwhile takes in what comes: two sides that send at once do not stop each
other."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from inferometer.drive.tls import TlsLayer
from inferometer.errors import PeerError

MOST_BYTES = 4 << 20
"""Of a message: a part of a file has 1 MiB."""
MOST_UNKNOWN = 64 << 10
"""Of the first message of somebody who has not yet shown the token."""
PATIENCE_S = 30.0
"""A peer that takes nothing for so long is gone."""

_LENGTH = struct.Struct("!I")

M = TypeVar("M")


class LinkLost(PeerError):
    """The connection to the other side has ended, or is of no use any more."""


class Link(Generic[M]):
    """A connected socket with its TLS session, and a decoder of what the other side says. Handshake first."""

    def __init__(
        self, sock: socket.socket, tls: TlsLayer, decoder: msgspec.msgpack.Decoder[M], name: str
    ) -> None:
        self.sock, self.name = sock, name
        self._tls, self._decoder = tls, decoder
        self._encoder = msgspec.msgpack.Encoder()
        self._plain = bytearray()
        self._inbox: deque[M] = deque()
        self.most_bytes = MOST_UNKNOWN
        self.open = True
        self._established = False
        self._reason = "closed"
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def fileno(self) -> int:
        """For selectors."""
        return self.sock.fileno()

    def handshake(self, patience_s: float) -> None:
        """Agree on the session. Raises LinkLost."""
        until = time.monotonic() + patience_s
        try:
            while not self._tls.handshake():
                self._write(self._tls.pending_output(), until)
                self._poll(select.POLLIN, until)
                self._read()
            self._write(self._tls.pending_output(), until)
            self._established = True
            self._plain += self._tls.decrypt()  # of what came with the last of the handshake
            self._decode()
        except (ssl.SSLError, OSError, msgspec.DecodeError) as cause:
            self._end(_said(cause))
            raise LinkLost(f"{self.name}: no TLS session ({_said(cause)})") from cause

    @property
    def peer_certificate(self) -> bytes | None:
        """The other side's certificate in DER, once the session stands."""
        return self._tls.peer_certificate

    def send(self, message: object, patience_s: float = PATIENCE_S) -> None:
        """Hand one message to the kernel. Raises LinkLost, also where the connection has ended and what it brought before is
        still to be received."""
        if not self.open:
            raise LinkLost(f"{self.name}: the connection was lost ({self._reason})")
        data = self._encoder.encode(message)
        try:
            sealed = self._tls.encrypt(_LENGTH.pack(len(data)) + data)
            self._write(sealed, time.monotonic() + patience_s)
        except (ssl.SSLError, OSError, msgspec.DecodeError) as cause:
            self._end(_said(cause))
            raise LinkLost(f"{self.name}: the connection was lost ({_said(cause)})") from cause

    def receive(self) -> list[M]:
        """The messages that have come since the last call. Raises LinkLost once there are no more and the connection has
        ended."""
        if self.open:
            try:
                while self._read():
                    pass
            except BlockingIOError:
                pass
            except (ssl.SSLError, OSError, msgspec.DecodeError) as cause:
                self._end(_said(cause))
        messages = list(self._inbox)
        self._inbox.clear()
        if not messages and not self.open:
            raise LinkLost(f"{self.name}: the connection was lost ({self._reason})")
        return messages

    def wait(self, timeout_s: float) -> list[M]:
        """The messages that come within so long; as soon as there are any. Raises LinkLost."""
        until = time.monotonic() + timeout_s
        while not (messages := self.receive()) and time.monotonic() < until:
            with contextlib.suppress(TimeoutError):
                self._poll(select.POLLIN, until)
        return messages

    def put_back(self, messages: Iterable[M]) -> None:
        """Have these received once more, before all others."""
        self._inbox.extendleft(reversed(list(messages)))

    def close(self) -> None:
        """End it, with what has been received still to be read."""
        self._end("closed by this side")

    def _end(self, reason: str) -> None:
        if self.open:
            self._reason = reason
            self.open = False
            self.sock.close()

    def _read(self) -> bool:
        """Take in what the kernel holds, up to 256 KiB; whether there was any. Raises OSError, ssl.SSLError, DecodeError."""
        data = self.sock.recv(1 << 18)
        if not data:
            raise ConnectionResetError("the other side has ended it")
        self._tls.received(data)
        if self._established:
            self._plain += self._tls.decrypt()
            self._decode()
        return True

    def _decode(self) -> None:
        at = 0
        while len(self._plain) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._plain, at)
            if length > self.most_bytes:
                raise msgspec.DecodeError(f"a message of {length:,} bytes")
            begin = at + _LENGTH.size
            if len(self._plain) < begin + length:
                break
            self._inbox.append(self._decoder.decode(bytes(self._plain[begin : begin + length])))
            at = begin + length
        del self._plain[:at]

    def _write(self, data: bytes, until: float) -> None:
        """Hand bytes to the kernel, and take in meanwhile what comes."""
        rest = memoryview(data)
        while rest:
            events = self._poll(select.POLLOUT | select.POLLIN, until)
            if events & select.POLLIN and self._established:
                self._read()
            if events & (select.POLLOUT | select.POLLERR | select.POLLHUP):
                rest = rest[self.sock.send(rest) :]

    def _poll(self, events: int, until: float) -> int:
        """Wait for one of these events. Raises TimeoutError."""
        poll = select.poll()
        poll.register(self.sock, events)
        left = until - time.monotonic()
        found = poll.poll(max(0.0, left) * 1000)
        if not found:
            raise TimeoutError("it takes nothing" if events & select.POLLOUT else "it says nothing")
        return found[0][1]


def _said(cause: BaseException) -> str:
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message
    if isinstance(cause, ssl.SSLError):
        return cause.reason or "TLS failed"
    if isinstance(cause, OSError):
        return cause.strerror or str(cause)
    return str(cause)
