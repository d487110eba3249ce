"""The one place of this room that reads a clock, and an alarm that wakes a selector at an instant.

A selector's own timeout counts whole milliseconds on Linux. A timerfd on CLOCK_MONOTONIC is a descriptor that becomes readable
at an absolute nanosecond, free of timer slack. `os.timerfd_create` came with Python 3.13; before that the C library is called.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

from inferometer.units import NS_PER_S

now = time.monotonic_ns
"""Nanoseconds on the monotonic clock."""

_BRACKET_NS = 20_000
_CLOCK_MONOTONIC = 1
_TFD_NONBLOCK = os.O_NONBLOCK
_TFD_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_TFD_TIMER_ABSTIME = 1
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def wall_seconds() -> int:
    """Whole seconds of wall-clock time since 1970, for `created` fields."""
    return int(time.time())


def wall_offset() -> int:
    """What the wall clock is ahead of the monotonic clock at this moment, ns."""
    for _ in range(5):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if after - before < _BRACKET_NS:  # else something else ran in between: the offset is off by as much
            break
    return wall - (before + after) // 2


def monotonic_of(wall_ns: int) -> int:
    """An instant of a moment ago on the wall clock, as the kernel stamps with it, on the monotonic clock."""
    return wall_ns - wall_offset()


def http_date() -> bytes:
    """The wall-clock time as HTTP writes it (RFC 9110 section 5.6.7)."""
    t = time.gmtime()
    day, month = _DAYS[t.tm_wday], _MONTHS[t.tm_mon - 1]
    clock = f"{t.tm_hour:02}:{t.tm_min:02}:{t.tm_sec:02}"
    return f"{day}, {t.tm_mday:02} {month} {t.tm_year} {clock} GMT".encode()


class _Itimerspec(ctypes.Structure):
    """struct itimerspec: interval, then value; seconds and nanoseconds each."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("every_s", "every_ns", "at_s", "at_ns"))


class Alarm:
    """A timerfd. `available` is false where there is none (not Linux): use the selector's timeout then."""

    available = sys.platform == "linux"

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._settime = libc.timerfd_settime
        self._spec = _Itimerspec()
        self._ref = ctypes.byref(self._spec)
        self._set_for = 0
        self.fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK | _TFD_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")

    def set(self, at: int) -> None:
        """Become readable at `at` (ns); 0 is never. Setting it again makes it unreadable until then."""
        if at == self._set_for == 0:
            return
        self._set_for = at
        self._spec.at_s, self._spec.at_ns = divmod(at, NS_PER_S)
        self._settime(self.fd, _TFD_TIMER_ABSTIME, self._ref, None)

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)
