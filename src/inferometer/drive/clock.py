"""The one place where the load generator reads a clock.

Durations are taken on CLOCK_MONOTONIC. The kernel stamps received packets with CLOCK_REALTIME, which may be slewed or
stepped, so the offset between the two is sampled again and again and a stamp is moved over with the latest one:

    t_monotonic = t_kernel - offset,   offset = CLOCK_REALTIME - CLOCK_MONOTONIC
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import sys
import time
from functools import lru_cache

monotonic_ns = time.monotonic_ns
cpu_ns = time.process_time_ns

# <asm-generic/socket.h>; Python names the constant on no version we support. The cmsg has the same number as the option.
SO_TIMESTAMPNS = 35
KERNEL_STAMPS = sys.platform == "linux"
ANCILLARY_BYTES = 64

_SCHEDSTAT = "/proc/self/schedstat"

_timespec = struct.Struct("qq").unpack


def realtime_offset_ns() -> int:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, in ns: of five tries the one with the narrowest bracket."""
    lowest, highest = realtime_offset_bracket()
    return (lowest + highest) // 2


def realtime_offset_bracket() -> tuple[int, int]:
    """The least and the greatest that the offset can be, by the narrowest of five tries: the wall clock was read between two
    readings of the monotonic one."""
    best = -(1 << 62), 1 << 62
    for _ in range(5):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if after - before < best[1] - best[0]:
            best = wall - after, wall - before
    return best


def run_delay_ns() -> int | None:
    """Time so far in which this process was ready to run and another had its core; None where nobody counts it.

    Linux counts it for each thread: "CPU time, time on a run queue, times run" (Documentation/scheduler/sched-stats.rst).
    """
    try:
        _, waited, runs = map(int, os.pread(_schedstat(), 128, 0).split())
    except (OSError, ValueError):
        return None
    return waited if runs else None  # a kernel that was told not to count says three zeros


@lru_cache(maxsize=1)
def _schedstat() -> int:
    """The file's descriptor, kept open: opening it costs ten times as much as reading it. Raises OSError without one."""
    return os.open(_SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC)


def kernel_stamp_ns(ancillary: list[tuple[int, int, bytes]]) -> int:
    """The receive time (CLOCK_REALTIME, ns) among the ancillary data of one recvmsg; 0 if there is none.

    When one read takes in several packets, the kernel gives the stamp of the last: the bytes that complete the event.
    """
    for _, kind, value in ancillary:
        if kind == SO_TIMESTAMPNS and len(value) == 16:
            seconds, nanoseconds = _timespec(value)
            return seconds * 1_000_000_000 + nanoseconds  # type: ignore[no-any-return]  # struct gives Any
    return 0


def ask_for_stamps(sock: socket.socket) -> None:
    """Switch kernel receive stamps on for this socket, where there are such; reads show whether they come."""
    if KERNEL_STAMPS:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
