"""Files read whole and written whole, in folders that may be somebody else's.

| done        | so that                                                                                          |
| ----------- | ------------------------------------------------------------------------------------------------ |
| `read`      | a device, a pipe or a file without end is refused, not read or waited for                        |
| `replacing` | a reader sees the old file or the new one, whole; a link in its place is replaced, not followed  |
| `append`    | the same of a log, whose lines are added to: a link is not followed, nor a hard link written to  |
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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
            raise OSError(errno.EINVAL, f"is larger than {most / (1 << 20):,.0f} MiB", str(path))
        return found


def check_regular(path: Path) -> None:
    """That this is a file, and no folder, device or pipe, for a reader that is not ours. Raises OSError."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "is no regular file", str(path))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path` to write to; it takes that place when it is whole, and is removed where writing fails.

    Its name is nobody's to foresee: what lies there already, as a link to elsewhere, would be written to. Raises OSError, which
    names the file that was wanted.
    """
    part = path
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        part = Path(name)
        # mkstemp makes the file private; this one is for everyone who may read the folder.
        umask = os.umask(0)
        os.umask(umask)
        os.fchmod(handle, 0o666 & ~umask)
        os.close(handle)
        yield part
        os.replace(part, path)
    except BaseException as cause:
        if part != path:
            part.unlink(missing_ok=True)
        ours = part == path or (isinstance(cause, OSError) and cause.filename in (None, str(part)))
        if ours and isinstance(cause, OSError) and cause.errno is not None:
            raise OSError(cause.errno, os.strerror(cause.errno), str(path)) from cause
        raise


def write(path: Path, data: bytes) -> None:
    """Write a file by `replacing`, and have it on the disk. Raises OSError."""
    with replacing(path) as part, part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def append(path: Path, text: str) -> None:
    """Add to a file, which need not be there. Raises OSError, also where it is a link, soft or hard, or a pipe that
    nobody reads."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        handle = os.open(path, flags, 0o666)
    except OSError as cause:
        if cause.errno == errno.ELOOP and path.is_symlink():
            raise OSError(errno.ELOOP, "is a link", str(path)) from cause
        raise
    with open(handle, "a", encoding="utf-8", errors="replace") as file:
        about = os.fstat(file.fileno())
        if stat.S_ISREG(about.st_mode) and about.st_nlink > 1:
            raise OSError(errno.EMLINK, "is a file elsewhere too, by a hard link", str(path))
        file.write(text)


def _without_waiting(path: str, flags: int) -> int:
    """A pipe that nobody writes to would keep the process waiting before it could be seen for what it is. Raises OSError."""
    try:
        return os.open(path, flags | os.O_NONBLOCK)
    except OSError as cause:
        if cause.errno in (errno.ENOENT, errno.ELOOP) and os.path.islink(path):
            raise OSError(cause.errno, "is a link to nothing", path) from cause
        raise
