"""What reading one input may take of memory. libFuzzer looks at the process once a second, which a short peak escapes; the time
is its own to watch (LONGEST_S)."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager

MOST_MIB = 1024
"""The limit of a batch of a table (inferometer/foreign_tables/limits.py), far above what any other input of this size needs."""
_UNIT = 1 if sys.platform == "darwin" else 1024


@contextmanager
def bounded_memory(most_mib: int = MOST_MIB) -> Iterator[None]:
    """That the peak of the process does not grow by more meanwhile."""
    before = _peak()
    yield
    grown = (_peak() - before) >> 20
    assert grown <= most_mib, f"took {grown:,} MiB: at most {most_mib:,}"


def _peak() -> int:
    """Bytes in memory, at the most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
