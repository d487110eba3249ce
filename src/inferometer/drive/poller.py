"""How the loop waits: for readiness of descriptors, until an instant, and how long it may pause to read more at once.

Readiness is epoll's on Linux and poll's elsewhere; the two share their masks and differ in the unit of time.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import sys
from collections.abc import Callable
from typing import Any

READABLE = 1
WRITABLE = 4


def _native() -> Any:
    return select.epoll() if sys.platform == "linux" else select.poll()


class Poller:
    """Level-triggered readiness for many descriptors."""

    def __init__(self) -> None:
        self._native: Any = _native()
        self.register = self._native.register
        self.modify = self._native.modify
        self.unregister = self._native.unregister
        self.poll: Callable[[float, int], list[tuple[int, int]]] = (
            self._native.poll if sys.platform == "linux" else self._poll_seconds
        )

    def _poll_seconds(self, timeout: float, most: int) -> list[tuple[int, int]]:
        ready: list[tuple[int, int]] = self._native.poll(None if timeout < 0 else timeout * 1000)
        return ready[:most]

    def close(self) -> None:
        """Give the descriptor back, where there is one."""
        if sys.platform == "linux":
            self._native.close()


# A timer with nanosecond instants that epoll can wait for, since epoll's own timeout counts in milliseconds.
#
# Linux: a timerfd, through ctypes because Python has `os.timerfd_create` only from 3.13 on. Elsewhere: none, and the loop
# polls more often instead.


_TFD_NONBLOCK = 0o4000
_TFD_CLOEXEC = 0o2000000
_TFD_TIMER_ABSTIME = 1
_CLOCK_MONOTONIC = 1


class _Timespec(ctypes.Structure):
    _fields_ = (("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("it_interval", _Timespec), ("it_value", _Timespec))


class Timer:
    """Becomes readable at the instant last given to `arm` (monotonic ns)."""

    available = sys.platform == "linux"

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd: int = self._libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK | _TFD_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._spec = _Itimerspec()
        self._armed = 0

    def arm(self, instant_ns: int) -> None:
        """Fire at `instant_ns`; an instant in the past fires at once."""
        if instant_ns == self._armed:
            return
        self._armed = instant_ns
        value = self._spec.it_value
        value.tv_sec, value.tv_nsec = divmod(instant_ns, 1_000_000_000)
        self._libc.timerfd_settime(self.fd, _TFD_TIMER_ABSTIME, ctypes.byref(self._spec), None)

    def fired(self) -> None:
        """Take the expiry, so that the descriptor is quiet again."""
        self._armed = 0
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 8)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)


# How long the loop may pause between two polls, so that one poll finds several reads.
#
# A poll costs about as much as a token, and so does waking up for it. Where tokens come thick the loop therefore sleeps a
# little between polls. Their times are the kernel's, so reading later changes none of them; without kernel stamps there is no
# pause. What a pause could still do is bounded here:
#
# | bound                                    | because a pause delays                                                 |
# | ---------------------------------------- | ---------------------------------------------------------------------- |
# | MOST_NS                                  | everything, so it stays far below what anybody would call late          |
# | GAP_SHARE of a stream's mean gap         | a read until the stream's next token may have come: the two would merge |
# | TURN_SHARE of a request's mean time      | the end of a request, and so the slot that it frees                     |
# | at least LEAST reads expected in a pause | nothing, but a sleep costs something too                                |
#
# A request that falls due ends no pause: the loop begins none that could reach into its instant (ROOM_NS).


MOST_NS = 250_000
GAP_SHARE = 0.01
TURN_SHARE = 0.0002
LEAST = 2.0
ROOM_NS = 200_000
"""No pause if something falls due so soon after it: a sleep lasts some 60 microseconds longer than asked."""


def pause_ns(elapsed_ns: int, reads: int, ended: int, in_flight: int) -> int:
    """The pause in ns, 0 for none, given what `elapsed_ns` brought: reads, ended requests, and how many were in flight."""
    if reads <= 0:
        return 0
    busy_ns = in_flight * elapsed_ns
    pause = min(MOST_NS, GAP_SHARE * busy_ns / reads)
    if ended:
        pause = min(pause, TURN_SHARE * busy_ns / ended)
    return int(pause) if pause * reads >= LEAST * elapsed_ns else 0
