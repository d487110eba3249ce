"""A lane that is a process: `python -m inferometer.workload.lane`, and that process as who starts it sees it.

Over its pipes pass pickles: to it what is to be done with each thing, then lists of things; from it, behind their size in 8
bytes, the results of each list, or what was raised. It keeps the rules of all children (isolation.py). How long a list takes
nobody knows, so its CPU time is looked at: one that takes none for HANG_S is stopped, or waits for a disk that does not answer.
"""

from __future__ import annotations

import os
import pickle
import select
import sys
import traceback
from collections.abc import Callable
from typing import Any

from inferometer.errors import SHORTAGES, InstrumentError, MachineError
from inferometer.isolation import Child, undisturbed

PATIENCE_S = 10.0
"""For a process whose input has ended."""
HANG_S = 120.0
"""Without any CPU time, as for a worker whose loop stands still."""
SLICE_S = 0.25
_SIZE = 8


class Lane:
    """One process and its pipes. Use as a context manager: leaving it ends the process."""

    def __init__(self, do: Callable[[Any], Any], hang_s: float = HANG_S) -> None:
        self._child = Child("inferometer.workload.lane", called="a process that makes prompts")
        self._hang_s = hang_s
        os.set_blocking(self._child.stdin.fileno(), False)
        os.set_blocking(self._child.stdout.fileno(), False)
        self._order: list[object] = [
            do
        ]  # goes out with the first things: a process that starts up reads nothing yet

    def __enter__(self) -> Lane:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """End it: politely, then not."""
        self._child.end(min(PATIENCE_S, self._hang_s))
        self._child.close()

    def kill(self) -> None:
        """End it at once, from any thread: one that waits for its results goes on with an error."""
        self._child.kill()

    def results(self, things: list[Any]) -> list[Any]:
        """What is to be done, done with each. Raises what that raises; MachineError for a process that was killed or hangs, and
        InstrumentError for one that ended otherwise."""
        self._order.append(things)
        try:
            while self._order:
                self._send(pickle.dumps(self._order.pop(0)))
            size = int.from_bytes(self._received(_SIZE), "little")
            done, found = pickle.loads(self._received(size))  # noqa: S301 - of our own process
        except (EOFError, BrokenPipeError) as cause:
            ended = InstrumentError(f"{self._child.called} ended before its time")
            raise self._child.killed() or ended from cause
        if not done:
            raise found
        results: list[Any] = found
        return results

    def _send(self, data: bytes) -> None:
        """Raises BrokenPipeError, and MachineError where it takes no more."""
        pipe, left = self._child.stdin.fileno(), memoryview(data)
        while left:
            self._wait(pipe, select.POLLOUT)
            left = left[os.write(pipe, left) :]

    def _received(self, size: int) -> bytes:
        """So many bytes. Raises EOFError, and MachineError where none come."""
        pipe, found = self._child.stdout.fileno(), bytearray()
        while len(found) < size:
            self._wait(pipe, select.POLLIN)
            if not (data := os.read(pipe, min(size - len(found), 1 << 20))):
                raise EOFError
            found += data
        return bytes(found)

    def _wait(self, pipe: int, event: int) -> None:
        """Until the pipe is ready, or its other end gone. Raises MachineError for a process that stands still."""
        poll = select.poll()
        poll.register(pipe, event)
        still_s, before = 0.0, None
        while not poll.poll(SLICE_S * 1e3):
            spent = self._child.cpu_s()
            # Slices are counted, and no clock read: time that this process was stopped itself is not the lane's.
            still_s = still_s + SLICE_S if spent == before else 0.0
            before = spent
            if still_s > self._hang_s:
                self._child.kill()
                said = f"{self._child.called} stood still for {still_s:.0f} s, and was ended"
                raise MachineError(f"{said}; {SHORTAGES['killed'][1]}", "killed")


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
    undisturbed()
    given, out = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library that prints would be taken for a result
    try:
        do = pickle.load(given)  # noqa: S301 - of the process that started this one
        while True:
            answer = _answer(do, pickle.load(given))  # noqa: S301 - the same
            out.write(len(answer).to_bytes(_SIZE, "little"))
            out.write(answer)
            out.flush()
    except (EOFError, BrokenPipeError, pickle.UnpicklingError):  # in the middle of a message: it was killed
        os._exit(0)


if __name__ == "__main__":
    main()
