"""How long the first bytes of a read may have waited before its stamp.

The kernel stamps a read with the time of its last packet. What came in packets before it, and was read with it, came earlier:
after the instant at which the socket was last known to be empty, which is what is worked out here.

| the poll that named the socket           | the socket was last known to be empty                                       |
| ---------------------------------------- | --------------------------------------------------------------------------- |
| found it ready at once                   | when the poll before began, if that one did not name it and named fewer      |
|                                          | sockets than it may; else as in the round before                            |
| found nothing at first, and waited       | when the first packet woke us: at its end less the time that waking took,    |
|                                          | and at its beginning at the earliest                                        |

Waking takes WAKE_NS at most, and beyond that the time that this process was ready to run and had no core, which the kernel
counts. A process that was stopped by a signal (SIGSTOP) cannot say when it was woken: then the poll's beginning holds.
What stops a whole machine, or a group of processes, is not seen from here.

How many packets a read holds the kernel counts too, on Linux: data segments received by the connection (TCP_INFO). As many as
there were reads means that each read held one, and nothing in it waited for anything. The count is asked for where it matters,
when a read holds several events.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable
from typing import Protocol

from inferometer.drive import clock

WAKE_NS = 100_000
"""From the interrupt to the loop, on an idle core: the processor's sleep, the interrupt and the switch. Measured 20 to 60
microseconds; a virtual machine's idle core takes longer."""

_SEGMENTS_AT = 152
"""Offset of tcpi_data_segs_in in struct tcp_info (<linux/tcp.h>, since 4.6)."""
_INFO_BYTES = _SEGMENTS_AT + 4
_unsigned = struct.Struct("I").unpack_from


class _Woken:
    """A poll that waited and was woken: sockets were empty at its `end` less the time that waking took, and at its `begin` for
    sure. `empty`: once that is worked out."""

    __slots__ = ("begin", "empty", "end")

    def __init__(self, begin: int, end: int) -> None:
        self.begin = begin
        self.end = end
        self.empty: int | None = None


class RoundClock:
    """When sockets were last known to be empty, of all transports of a reactor. Times in monotonic ns.

    `polled` is called after every poll, `stopped` when this process goes on after it was stopped. `run_delay_ns`: the time so
    far in which this process was ready and had no core; None: not known.
    """

    __slots__ = ("_delay", "_halted", "_next", "_now", "_run_delay_ns")

    def __init__(self, now: int, run_delay_ns: Callable[[], int | None] = clock.run_delay_ns) -> None:
        self._run_delay_ns = run_delay_ns
        self._delay = run_delay_ns()
        self._halted = False
        self._now: int | _Woken = now
        self._next: int | _Woken | None = now  # of a round that does not wait; None: as of the one before it

    def polled(self, begun: int, ended: int, *, waited: bool, all_named: bool) -> None:
        """A poll lasted from `begun` to `ended`. `waited`: it found nothing when it began; `all_named`: it named every socket
        that was ready."""
        if waited:
            self._now = begun if self._halted else _Woken(begun, ended)
            self._halted = False
            self._next = self._now if all_named else None
            return
        if self._next is not None:
            self._now = self._next
        self._next = begun if all_named else None

    def stopped(self) -> None:
        """This process was stopped and goes on. It cannot say when it would have been woken, or how long ago it was."""
        self._halted = True
        if isinstance(self._now, _Woken):
            self._now = self._now.begin
        if isinstance(self._next, _Woken):
            self._next = self._next.begin

    def catch_up(self) -> None:
        """Count the time without a core up to now, so that no later waking is taken to have lasted for it. A few times a
        second."""
        self.empty()
        self._delay = self._run_delay_ns()

    @property
    def empty_at(self) -> int:
        """The instant up to which every socket that is read in this round was empty, as far as waking took no time."""
        return self._now.end if isinstance(self._now, _Woken) else self._now

    def empty(self) -> int:
        """The instant up to which every socket that is read in this round was surely empty."""
        known = self._now
        if not isinstance(known, _Woken):
            return known
        if known.empty is None:
            # What waking took is counted by whoever asks first, and holds for the rounds that go on reading.
            delay, before = self._run_delay_ns(), self._delay
            self._delay = delay
            waking = WAKE_NS + delay - before if delay is not None and before is not None else None
            known.empty = known.begin if waking is None else max(known.begin, known.end - waking)
        return known.empty


class Unread(Protocol):
    """What an exchange asks of the transport that it is on."""

    def waited(self, at: int) -> int:
        """How long the first bytes of the read that is stamped `at` may have waited before then, in ns."""


class SocketUnread:
    """Of one socket. `reads`: how many there were that held something, as the reactor counts them. Several exchanges may ask
    about one read: they are told the same."""

    __slots__ = ("_clock", "_reads", "_segments", "_sock", "_waited", "reads")

    def __init__(self, sock: socket.socket, clock: RoundClock) -> None:
        self._sock = sock
        self._clock = clock
        self.reads = self._reads = self._segments = self._waited = 0

    def waited(self, at: int) -> int:
        """See Unread. 0 if the kernel counted one packet a read since the last call."""
        reads = self.reads
        if reads == self._reads:
            return self._waited
        segments = _segments(self._sock)
        single = segments is not None and segments - self._segments == reads - self._reads
        self._segments, self._reads = segments or 0, reads
        self._waited = 0 if single else max(0, at - self._clock.empty())
        return self._waited


def _segments(sock: socket.socket) -> int | None:
    """Data segments that the connection has received; None where nobody counts them."""
    if sys.platform != "linux":
        return None
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    except OSError:
        return None
    if len(info) < _INFO_BYTES:
        return None
    (segments,) = _unsigned(info, _SEGMENTS_AT)
    return int(segments) or None
