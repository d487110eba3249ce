"""The process and its surroundings: signals that end it, and outputs that nobody reads."""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from inferometer import __version__


def carry_out(arguments: Sequence[str], *, own_outputs: bool) -> int:
    """Carry out one command line; gives the exit code. SIGTERM ends it as Ctrl-C does, from here on, and so does SIGHUP, the
    end of its terminal, unless it was started to outlive that (nohup).

    `own_outputs`: standard output and error are the process's own, to be guarded against readers that leave.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    if own_outputs:
        _outlive_readers()
    # Before the first import of numpy. Its products are too small to gain by threads that wait for each other: these took a
    # third of a report's CPU time; and no sum depends on the number of cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(50_000)  # modules and tables are no garbage: looking for some costs a tenth of the start
    try:
        code = _run(arguments)
    except KeyboardInterrupt:  # before the command's own handling, or after it
        code = 130
    if own_outputs:
        _settle()
        code = _written(code)
    return code


def _run(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--version"]:
        print(f"inferometer {__version__}")  # noqa: T201 - before any heavy import
        return 0
    from inferometer.cli.app import run

    return run(arguments)


def _written(code: int) -> int:
    """The exit code, once all that was said is written: 71 where the disk under standard output takes no more. What standard
    error lacks changes nothing. Otherwise the interpreter would try, and end with a traceback and a code of its own."""
    from inferometer.cli.outlet import tell, without_output
    from inferometer.errors import MachineError

    try:
        sys.stdout.flush()
    except OSError as cause:
        try:
            without_output(cause)
        except MachineError as wrong:
            if code != wrong.exit_code:  # it was not said yet
                tell(str(wrong))
            code = wrong.exit_code
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    return code


def _settle() -> None:
    """From here on no signal changes the exit code: the command is over, and only the interpreter has still to end. While it
    does, it gives signals back to the system, which would end the process by the second of two."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class _Pipe(io.FileIO):
    """An output whose reader may leave: what is written from then on is dropped."""

    terminal = False

    def write(self, data: Any, /) -> int:
        """As FileIO's; a broken pipe takes everything, and so does a terminal that is gone."""
        try:
            return super().write(data)
        except OSError as cause:
            if cause.errno == errno.EPIPE or (self.terminal and cause.errno == errno.EIO):
                return memoryview(data).nbytes
            raise


def _outlive_readers() -> None:
    """Output that nobody reads, closed from the start or left later, changes neither the work nor the exit code."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    sys.stdout = _text(1, sys.stdout, os.isatty(1))
    sys.stderr = _text(2, sys.stderr, lines=True)


def _text(number: int, before: TextIO | None, lines: bool) -> TextIO:
    """Text to a file descriptor, encoded as it was before."""
    encoding, errors = ("utf-8", "replace") if before is None else (before.encoding, before.errors)
    if errors in ("strict", "surrogateescape"):
        # What the encoding cannot hold must not end the work; outlet.py leaves nothing of it in JSON.
        errors = "replace"
    pipe = _Pipe(number, "wb", closefd=False)
    pipe.terminal = os.isatty(number)
    return io.TextIOWrapper(io.BufferedWriter(pipe), encoding, errors, line_buffering=lines)
