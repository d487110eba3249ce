"""Who writes to a journal. Each worker holds a lock on its folder, together with the others, for as long as it lives; whoever
seals a run that is not its own asks for the folder alone.

The kernel gives a lock back when its process ends, however that ends. Where a file system has no locks, nobody holds any.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from inferometer.errors import RecordError

PATIENCE_S = 5.0
"""Workers whose command was killed need a moment to write what they have."""
PAUSE_S = 0.05


def join(journal: Path) -> int:
    """Hold the folder as one of those who write to it; gives the descriptor, whose end is the lock's."""
    held = os.open(journal, os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.suppress(OSError):
        fcntl.flock(held, fcntl.LOCK_SH)
    return held


@contextlib.contextmanager
def alone(journal: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """While nobody writes to the folder. Raises RecordError if somebody still does after `patience_s`."""
    held = os.open(journal, os.O_RDONLY | os.O_DIRECTORY)
    try:
        looks = 0
        while not _taken(held):
            looks += 1
            if looks * PAUSE_S >= patience_s:
                raise RecordError(
                    f"{journal}: the run is still going: its workers write to this folder. Wait for its end, or end it with "
                    "Ctrl-C, which reports what was measured"
                )
            time.sleep(PAUSE_S)
        yield
    finally:
        os.close(held)


def _taken(held: int) -> bool:
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
