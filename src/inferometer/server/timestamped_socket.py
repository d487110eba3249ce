"""A plain socket that also says when the kernel received what was read: how long it waited to be read is known then."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys

from inferometer.server.clock import monotonic_of
from inferometer.units import NS_PER_S

# <asm-generic/socket.h>; Python names the constant on no version we support. The cmsg has the same number as the option.
_SO_TIMESTAMPNS = 35
_ANCILLARY = 64
_timespec = struct.Struct("qq")


class StampedSocket:
    """A non-blocking socket. When several packets are read at once, `arrived_ns` is that of the last."""

    def __init__(self, sock: socket.socket) -> None:
        self.arrived_ns: int | None = None
        self._sock = sock
        # Bound here: one call less for each token sent.
        self.fileno, self.send, self.shutdown, self.close = sock.fileno, sock.send, sock.shutdown, sock.close
        self._stamps = False
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
                self._stamps = True

    def recv(self, size: int, /) -> bytes:
        """Up to `size` bytes; empty at the end."""
        if not self._stamps:
            return self._sock.recv(size)
        data, ancillary, _, _ = self._sock.recvmsg(size, _ANCILLARY)
        self.arrived_ns = None
        for _, kind, value in ancillary:
            if kind == _SO_TIMESTAMPNS and len(value) == _timespec.size:
                seconds, nanoseconds = _timespec.unpack(value)
                self.arrived_ns = monotonic_of(seconds * NS_PER_S + nanoseconds)
        return data
