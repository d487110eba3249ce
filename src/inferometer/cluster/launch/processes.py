"""Load hosts that are, or are reached by, one process of this machine each: here by a shell, elsewhere by ssh."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from inferometer.cluster.launch.guard import END_S
from inferometer.cluster.launch.interface import Ended, Join, failure, last_line

MOST = 8192
"""Bytes of a process's output that are kept."""
DRAINED_S = 1.0
"""From a process's end to that of its output, which others may hold open."""


class LastWords:
    """Reads a process's output to its end, so that it never waits to write, and keeps the last of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._kept = stream, b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # closed meanwhile
            while data := os.read(self._stream.fileno(), 65_536):
                self._kept = (self._kept + data)[-MOST:]

    def text(self) -> bytes:
        """What is kept, of a process that has ended."""
        self._thread.join(DRAINED_S)
        return self._kept

    def so_far(self) -> bytes:
        """What is kept by now, of a process that goes on."""
        return self._kept

    def close(self) -> None:
        """Leave the output, unless others hold it open: the number of an open file must not change under a reader."""
        self._thread.join(DRAINED_S)
        if not self._thread.is_alive():
            self._stream.close()


class HostProcess:
    """One process, which gets the token as the first line of its input and ends when its input does."""

    def __init__(self, name: str, argv: Sequence[str], token: str, environ: Mapping[str, str]) -> None:
        self.name, self._token = name, token
        self._process = subprocess.Popen(  # noqa: S603 - the user's launcher and hosts
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,  # Ctrl-C is for this process to interpret
            env=dict(environ),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._words = LastWords(self._process.stdout)
        self._end: Ended | None = None
        with contextlib.suppress(OSError):  # it has ended already: its exit code says why
            self._process.stdin.write(token.encode() + b"\n")
            self._process.stdin.flush()

    def ended(self) -> Ended | None:
        """How it ended, if it has."""
        if self._end is None and (code := self._process.poll()) is not None:
            self._end = Ended(self.name, code, last_line(self._words.text(), self._token))
        return self._end

    def said(self) -> str:
        """The last line that it has written so far."""
        return last_line(self._words.so_far(), self._token)

    def dismiss(self) -> None:
        """End its input."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def wait(self, patience_s: float) -> bool:
        """Whether it ended by itself within this time. One that has not is killed. Its output is left."""
        try:
            self._process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False
        finally:
            self._words.close()
        return True


Argv = Callable[[Join, str], Sequence[str]]
"""The command line that starts, or reaches, the host of this name."""


class Processes:
    """A launcher with a process for each host. `meanings`: of exit codes, beside those of interface.py."""

    def __init__(
        self,
        names: Sequence[str],
        argv: Argv,
        environ: Mapping[str, str],
        meanings: Mapping[int, str] | None = None,
    ) -> None:
        self._names, self._argv, self._environ = list(names), argv, environ
        self._meanings = meanings
        self._processes: list[HostProcess] = []
        self._failures: list[str] | None = None

    @property
    def hosts(self) -> int:
        """As many as names."""
        return len(self._names)

    def launch(self, join: Join) -> None:
        """See Launcher."""
        for name in self._names:
            self._processes.append(HostProcess(name, self._argv(join, name), join.token, self._environ))

    def failures(self) -> list[str]:
        """See Launcher. What `close` ended is none."""
        if self._failures is not None:
            return self._failures
        ends = [one.ended() for one in self._processes]
        words = [failure(end, self._meanings) for end in ends if end is not None]
        return [one for one in words if one is not None]

    def said(self) -> dict[str, str]:
        """See Launcher."""
        return {one.name: line for one in self._processes if (line := one.said())}

    def close(self) -> None:
        """See Launcher: at most END_S for all together."""
        self._failures = self.failures()
        for one in self._processes:
            one.dismiss()
        patience_s = END_S
        for one in self._processes:
            if not one.wait(patience_s):
                patience_s = 0.0  # the others have had as long
