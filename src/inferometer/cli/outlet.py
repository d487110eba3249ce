"""Words on the terminal: all that a command says passes here, and so does what others said in it."""

from __future__ import annotations

import contextlib
import os
import sys

from inferometer.errors import SHORTAGES, MachineError, shortage_of
from inferometer.printable import fitting, fitting_json, json_text, printable_lines


def tell(text: str, end: str = "\n") -> None:
    """Lines on stderr, also when nobody reads on."""
    steer(printable_lines(text) + end)


def steer(text: str) -> None:
    """The same as it is, with what steers a terminal: for a line that renews itself."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            sys.stderr.write(fitting(text, sys.stderr.encoding))
            sys.stderr.flush()


def say(text: str) -> None:
    """A result on stdout, also when nobody reads on. Raises MachineError where the disk under it is full."""
    _write(fitting(printable_lines(text) + "\n", sys.stdout.encoding))


def say_json(*values: object) -> None:
    """Results as JSON on stdout, a line each, likewise: with all that is in them, whatever the encoding of stdout."""
    say_json_text("\n".join(map(json_text, values)))


def say_json_text(text: str) -> None:
    """The same of what is JSON already, as of `json_text`."""
    _write(fitting_json(text + "\n", sys.stdout.encoding))


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
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
