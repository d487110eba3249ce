"""A lane that is a process: `python -m inferometer.workload.lane`, and that process as who starts it sees it.

Over its pipes pass pickles: to it what is to be done with each thing, then lists of things; from it the results of each list,
or what was raised. It ends when its input does, so with the process that started it, however that ends, and takes no notice
of Ctrl-C and SIGTERM: those are for that process to interpret, which would take a lane that is gone for one that broke.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

from inferometer.errors import InstrumentError
from inferometer.isolation import start

PATIENCE_S = 10.0
"""For a process whose input has ended."""


class Lane:
    """One process and its pipes. Use as a context manager: leaving it ends the process."""

    def __init__(self, do: Callable[[Any], Any]) -> None:
        self._process = start("inferometer.workload.lane")
        self._order: list[object] = [
            do
        ]  # goes out with the first things: a process that starts up reads nothing yet

    def __enter__(self) -> Lane:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """End it: politely, then not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def results(self, things: list[Any]) -> list[Any]:
        """What is to be done, done with each. Raises what that raises, and InstrumentError for a process that is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._order.append(things)
        with contextlib.suppress(BrokenPipeError):  # a process that is gone shows when it is listened to
            while self._order:
                self._process.stdin.write(pickle.dumps(self._order.pop(0)))
            self._process.stdin.flush()
        try:
            done, found = pickle.load(self._process.stdout)  # noqa: S301 - of our own process
        except (EOFError, pickle.UnpicklingError) as cause:
            raise InstrumentError("a process that makes prompts ended before its time") from cause
        if not done:
            raise found
        results: list[Any] = found
        return results


def _answer(do: Callable[[Any], Any], things: list[Any]) -> bytes:
    """The results, or what was raised, with the lines where it was."""
    try:
        return pickle.dumps((True, [do(thing) for thing in things]))
    except Exception as error:
        error.add_note(traceback.format_exc())
        try:
            return pickle.dumps((False, error))
        except (pickle.PicklingError, TypeError, AttributeError):  # it holds what cannot leave the process
            return pickle.dumps((False, InstrumentError(traceback.format_exc())))


def main() -> None:
    """The process, until its input ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    given, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints would be taken for a result
    try:
        do = pickle.load(given)  # noqa: S301 - of the process that started this one
        while True:
            out.write(_answer(do, pickle.load(given)))  # noqa: S301 - the same
            out.flush()
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):  # in the middle of a message: it was killed
        os._exit(0)


if __name__ == "__main__":
    main()
