"""What a report is going to take of memory, estimated before the record is read, and whether that is there.

What a report holds lies in files (measure/large_arrays.py), which the kernel writes out where memory is wanted. What has to be
in memory is the program, and of each request what one figure is worked out from.
"""

from __future__ import annotations

import math
import resource

import psutil

from inferometer.errors import MachineError
from inferometer.journal.folder import RunFolder
from inferometer.journal.seal import rows_of
from inferometer.report.figures import size

PROGRAM = 256 << 20
REQUEST = 120
"""Bytes, measured with answers of 8 tokens (docs/performance.md). Longer ones need more, which the number of requests does not
tell."""

LIBRARIES = 256 << 20
"""Addresses of what is loaded while a report is made: scipy, and the buffers of its own BLAS."""


def check_memory(folder: RunFolder) -> None:
    """Raises MachineError where a report of this run needs more memory than there is."""
    refuse(rows_of(folder.record), min(psutil.virtual_memory().available, addresses_left()))


def addresses_left() -> float:
    """Bytes of addresses that this process may still take (ulimit -v); infinite without a limit. What runs out of them inside
    of BLAS is tried again for ever, or ends the process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return (
        math.inf
        if limit == resource.RLIM_INFINITY
        else limit - psutil.Process().memory_info().vms - LIBRARIES
    )


def refuse(rows: int, available: float) -> None:
    """The same, of a record of so many rows."""
    need = PROGRAM + REQUEST * rows
    if need > available:
        raise MachineError(
            f"a report of {rows:,} requests needs about {size(need)} of memory, and {size(max(available, 0))} are free: end "
            "other programs, or copy the run's folder to a machine with more and use `inferometer report` there",
            "memory",
        )
