"""A timer with nanosecond instants that epoll can wait for, since epoll's own timeout counts in milliseconds.

Linux: a timerfd, through ctypes because Python has `os.timerfd_create` only from 3.13 on. Elsewhere: none, and the loop
polls more often instead.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

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
