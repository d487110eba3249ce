"""Who writes to a folder. Each worker, and the command that has them, holds a lock on the journal, together with the others,
for as long as it lives; whoever seals a run that is not its own asks for the journal alone. A campaign's command holds the
campaign's folder in the same way: whoever finds no result there knows by it whether one is still to come.

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

GOING = "the run is under way, or being recovered. Wait for its end; Ctrl-C ends a run, and reports what was measured"


def join(folder: Path) -> int:
    """Hold the folder as one of those who write to it; gives the descriptor, whose end is the lock's."""
    hold = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    with contextlib.suppress(OSError):
        fcntl.flock(hold, fcntl.LOCK_SH)
    return hold


@contextlib.contextmanager
def joined(folder: Path) -> Iterator[None]:
    """The same while the block lasts."""
    hold = join(folder)
    try:
        yield
    finally:
        os.close(hold)


def held(folder: Path) -> bool:
    """Whether somebody holds the folder now; not where there is no such folder."""
    try:
        looked = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        return not _taken(looked)
    finally:
        os.close(looked)


@contextlib.contextmanager
def alone(journal: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """While nobody writes to the folder. Raises RecordError if somebody still does after `patience_s`."""
    hold = os.open(journal, os.O_RDONLY | os.O_DIRECTORY)
    try:
        looks = 0
        while not _taken(hold):
            looks += 1
            if looks * PAUSE_S >= patience_s:
                raise RecordError(f"{journal}: {GOING}")
            time.sleep(PAUSE_S)
        yield
    finally:
        os.close(hold)


def _taken(hold: int) -> bool:
    try:
        fcntl.flock(hold, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
