"""A short time slice for the process that measures, so that it need not wait for others to finish theirs.

Linux' fair scheduler gives the processor to whoever is due first: a process that has just woken up is due once its slice, as if
it were to use it whole, would be over (EEVDF). Slices last a millisecond or several, and a process that works for some
microseconds waits behind one that is due earlier. Since Linux 6.12 a process can choose its slice, of 0.1 ms at least
(sched_setattr(2), `sched_runtime`). That needs no privilege: its share of the processor stays the same, in smaller pieces.

Elsewhere, or under another policy than the usual one, nothing changes.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

SLICE_NS = 100_000
"""The shortest that Linux gives."""

_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}
"""Numbers of the system calls sched_setattr and sched_getattr, which the C library has no functions for."""
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period."""


def shorten() -> None:
    """Ask for the shortest slice for the calling thread. Policy and nice value remain as they are."""
    calls = _CALLS.get(platform.machine()) if sys.platform == "linux" else None
    if calls is None or os.sched_getscheduler(0) != os.SCHED_OTHER:
        return
    wanted = _ATTRIBUTES.pack(
        _ATTRIBUTES.size, os.SCHED_OTHER, 0, os.getpriority(os.PRIO_PROCESS, 0), 0, SLICE_NS, 0, 0
    )
    # An older kernel ignores the slice, and a sandbox may refuse the call: then it stays as long as it was.
    ctypes.CDLL(None).syscall(calls[0], 0, wanted, 0)


def slice_ns() -> int | None:
    """The calling thread's slice; None where the system does not tell."""
    calls = _CALLS.get(platform.machine()) if sys.platform == "linux" else None
    if calls is None:
        return None
    told = ctypes.create_string_buffer(_ATTRIBUTES.size)
    if ctypes.CDLL(None).syscall(calls[1], 0, told, _ATTRIBUTES.size, 0):
        return None
    found: int = _ATTRIBUTES.unpack(told.raw)[5]
    return found or None
