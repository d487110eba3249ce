"""Words on the terminal: all that a command says passes here, and so does what others said in it."""

from __future__ import annotations

import contextlib
import os
import sys

from inferometer.errors import SHORTAGES, MachineError, shortage_of
from inferometer.printable import printable_lines


def tell(text: str, end: str = "\n") -> None:
    """Lines on stderr, also when nobody reads on."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(printable_lines(text) + end)
            sys.stderr.flush()


def say(text: str) -> None:
    """A result on stdout, also when nobody reads on. Raises MachineError where the disk under it is full."""
    try:
        sys.stdout.write(printable_lines(text) + "\n")
        sys.stdout.flush()
    except OSError as cause:
        without_output(cause)


def without_output(cause: OSError) -> None:
    """Go on without standard output, which `cause` closed. Raises MachineError if that is a disk's fault: then someone does
    read it, and lacks the end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter complains once more at exit
    shortage = shortage_of(cause)
    if shortage in ("disk", "disk_quota", "disk_error", "file_size"):
        raise MachineError(f"standard output: {'; '.join(SHORTAGES[shortage])}", shortage) from cause
