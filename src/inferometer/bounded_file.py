"""Files of somebody else's, read whole: a device, a pipe or a file without end is refused, not read or waited for."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MOST = 256 << 20
"""Bytes. The largest documents, of campaigns with many runs, are a tenth of it."""


def read(path: Path, most: int = MOST) -> bytes:
    """The bytes of a regular file of so many at most. Raises OSError, which names what is wrong with it in `strerror`."""
    with open(path, "rb", opener=_without_waiting) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            kind = errno.EISDIR if stat.S_ISDIR(about.st_mode) else errno.EINVAL
            raise OSError(kind, "is no regular file", str(path))
        found = b"" if about.st_size > most else file.read(most + 1)
        if about.st_size > most or len(found) > most:
            raise OSError(errno.EFBIG, f"is larger than {most / (1 << 20):,.0f} MiB", str(path))
        return found


def _without_waiting(path: str, flags: int) -> int:
    """A pipe that nobody writes to would keep the process waiting before it could be seen for what it is."""
    return os.open(path, flags | os.O_NONBLOCK)
