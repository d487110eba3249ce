"""A UDP socket whose datagrams the kernel stamps as they leave and as they arrive (Linux: SO_TIMESTAMPING, timestamping.rst).

| stamp    | taken                                                    | read from                                        |
| -------- | -------------------------------------------------------- | ------------------------------------------------ |
| sent     | by the driver, when it is given the datagram             | the socket's error queue, by the datagram's count |
| received | when the datagram comes up from the driver               | the ancillary data of its read                   |

Kernel stamps are CLOCK_REALTIME; `MonotonicOffset` moves them over to CLOCK_MONOTONIC. Beside each there is the program's own
stamp, taken before sending and after reading: so it can only lie outside of the kernel's, and a probe with it is only wider.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import time
from dataclasses import dataclass
from typing import Any

from inferometer.drive.clock import realtime_offset_bracket

_SO_TIMESTAMPING = 37
"""<asm-generic/socket.h>; the ancillary data has the same number."""
_TX_SOFTWARE, _RX_SOFTWARE, _SOFTWARE, _OPT_ID, _OPT_TSONLY = 1 << 1, 1 << 3, 1 << 4, 1 << 7, 1 << 11
"""<linux/net_tstamp.h>: stamp what leaves and what arrives, report software stamps, count what leaves, return no payload."""
_FLAGS = _TX_SOFTWARE | _RX_SOFTWARE | _SOFTWARE | _OPT_ID | _OPT_TSONLY
_ERRORS = {(socket.IPPROTO_IP, 11), (socket.IPPROTO_IPV6, 25)}
"""IP_RECVERR and IPV6_RECVERR: with which `sock_extended_err` comes."""
_ORIGIN_TIMESTAMPING = 4
_ANCILLARY_BYTES = 512
_extended_err = struct.Struct("=IBBBBII").unpack_from
_timespec = struct.Struct("qq").unpack_from
Address = Any
"""As the socket module has it: a tuple that depends on the family."""


@dataclass(frozen=True, slots=True)
class Sent:
    """`count`: by which the kernel's stamp will be named; None where the kernel gives none. `before_ns`: monotonic."""

    count: int | None
    before_ns: int


@dataclass(frozen=True, slots=True)
class Received:
    """A datagram. `kernel_ns`: CLOCK_REALTIME, 0 without a stamp; `after_ns`: monotonic, when it had been read."""

    data: bytes
    sender: Address
    kernel_ns: int
    after_ns: int


class StampedSocket:
    """A datagram socket, non-blocking. `kernel_stamps` False: as on a system without."""

    def __init__(self, family: int, *, kernel_stamps: bool = True) -> None:
        self.socket = socket.socket(family, socket.SOCK_DGRAM)
        self.socket.setblocking(False)
        self._first = self._count = 0
        self.stamped = kernel_stamps and sys.platform == "linux" and self._switch_on()

    def _switch_on(self) -> bool:
        """Also makes the kernel count from 0 again; ours goes on, from `_first`."""
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, 0)
            self.socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _FLAGS)
        except OSError:
            return False
        self._first = self._count
        return True

    def send(self, data: bytes, to: Address) -> Sent | None:
        """Send a datagram; None if it could not be: it is lost, as it may be anywhere on the way."""
        before = time.monotonic_ns()
        try:
            self.socket.sendto(data, to)
        except OSError:
            if self.stamped:  # it may have been counted or not
                self._count += 1
                self.stamped = self._switch_on()
            return None
        count = self._count if self.stamped else None
        self._count += 1
        return Sent(count, before)

    def receive(self, most: int) -> Received | None:
        """The next datagram, of which `most` bytes are read; None if there is none."""
        try:
            data, ancillary, _, sender = self.socket.recvmsg(most + 1, _ANCILLARY_BYTES)
        except OSError:
            return None
        after = time.monotonic_ns()
        return Received(data, sender, _software_stamp(ancillary), after)

    def sent_stamps(self) -> dict[int, int]:
        """When datagrams left (CLOCK_REALTIME, ns), by their counts: those reported since the last call."""
        stamps: dict[int, int] = {}
        if sys.platform == "linux" and self.stamped:
            with contextlib.suppress(OSError):  # BlockingIOError: that was all
                while True:
                    _, ancillary, _, _ = self.socket.recvmsg(0, _ANCILLARY_BYTES, socket.MSG_ERRQUEUE)
                    count, at = _count(ancillary), _software_stamp(ancillary)
                    if count is not None and at:
                        stamps[self._first + count] = at
        return stamps

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


def _software_stamp(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The first of scm_timestamping's three stamps; 0 without one."""
    for level, kind, value in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPING) and len(value) >= 16:
            seconds, nanoseconds = _timespec(value)
            return int(seconds * 1_000_000_000 + nanoseconds)
    return 0


def _count(ancillary: list[tuple[int, int, bytes]]) -> int | None:
    """`ee_data` of sock_extended_err, if that is about a stamp: how many datagrams left before this one."""
    for level, kind, value in ancillary:
        if (level, kind) in _ERRORS and len(value) >= 16:
            _, origin, _, _, _, _, data = _extended_err(value)
            return int(data) if origin == _ORIGIN_TIMESTAMPING else None
    return None


@dataclass(frozen=True, slots=True)
class MonotonicOffset:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC over a while: between `low` and `high`, in ns."""

    low: int
    high: int

    @property
    def slack_ns(self) -> int:
        """By how much a stamp may be wrong that was moved over with the middle."""
        return -(-(self.high - self.low) // 2) + 1

    def monotonic_ns(self, realtime_ns: int) -> int:
        """A kernel stamp on the monotonic clock."""
        return realtime_ns - (self.low + self.high) // 2

    def until(self, later: MonotonicOffset) -> MonotonicOffset | None:
        """Over the whole time between two samples; None if the wall clock was stepped in between: they have nothing in common.

        A step that is less than the samples tell apart is within `slack_ns`.
        """
        if later.low > self.high or later.high < self.low:
            return None
        return MonotonicOffset(min(self.low, later.low), max(self.high, later.high))


def monotonic_offset() -> MonotonicOffset:
    """The offset now."""
    return MonotonicOffset(*realtime_offset_bracket())
