"""The command `inferometer`: finds the command's file, and turns every error into words and an exit code.

| exit | meaning                                        |
| ---- | ---------------------------------------------- |
| 0    | done, and the result is VALID                  |
| 2    | the command line or the plan cannot be carried out |
| 3    | the result is INVALID                          |
| 4    | the result is INCONCLUSIVE                     |
| 5    | the server cannot be reached, or failed at everything |
| 6    | compare: a regression                          |
| 70   | our bug                                        |
| 130  | interrupted; what was measured is saved        |
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import inferometer


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point; never returns and never shows a traceback for a user's or a server's fault."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if argv is None:
        _outlive_readers()
    try:
        sys.exit(_main(list(sys.argv[1:] if argv is None else argv)))
    except KeyboardInterrupt:  # before the command's own handling, or after it
        sys.exit(130)


class _Pipe(io.FileIO):
    """An output whose reader may leave: what is written from then on is dropped."""

    def write(self, data: Any, /) -> int:
        """As FileIO's; a broken pipe takes everything."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


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
    out = io.BufferedWriter(_Pipe(number, "wb", closefd=False))
    return io.TextIOWrapper(out, encoding, errors, line_buffering=lines)


def _main(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print(f"inferometer {inferometer.__version__}")  # noqa: T201 - before any heavy import
        return 0
    gc.set_threshold(50_000)  # modules and tables are no garbage: looking for some costs a tenth of the start
    from inferometer.cli.app import run

    return run(arguments)
