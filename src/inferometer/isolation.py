"""Processes of our own: workers, the scraper, the embedded server, lanes that make prompts. Each is this interpreter with one
of our modules, and is kept apart from two things that are none of its business:

| kept apart from       | by                                                                                            |
| --------------------- | --------------------------------------------------------------------------------------------- |
| the current directory | `-P`: `-m` and `-c` would put it before the standard library, and a folder with a `json.py`, of |
|                       | the user's or of a stranger's download, would be part of the program                          |
| the environment       | a list of the variables that are handed on: API keys and tokens are not on it                 |

`Child` is one of them as its parent sees it, with the same rules for all:

| rule                                                                          | because                                     |
| ----------------------------------------------------------------------------- | ------------------------------------------- |
| it takes no notice of SIGINT, SIGTERM and SIGHUP (`undisturbed`)              | they reach a whole group of processes, and  |
|                                                                               | the parent says what happens                |
| it ends when its input does                                                   | so with its parent, however that ends       |
| ended by a signal it is a `MachineError`, in words, with the signal's name    | no bug of ours: exit code 71, not 70        |
| what stands still is waited for within bounds, and then killed                | it may be stopped, and then takes no orders |
| it is killed before a thread that waits for it is joined                      | the thread would wait on                    |

PYTHONPATH is handed on, for the package may be installed by it, but only what it names absolutely: an empty or a relative
entry is the current directory once more. One that the package itself was imported from stays.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import inferometer
from inferometer.errors import SHORTAGES, MachineError

REAP_S = 5.0
"""From the end of a process's output to its own."""

_HANDED_ON = re.compile(
    r"PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TEMP|TMP"
    # Where the interpreter finds its files, how it encodes text, and where it keeps compiled modules.
    r"|PYTHON(HOME|PLATLIBDIR|USERBASE|NOUSERSITE|UTF8|IOENCODING|COERCECLOCALE|DONTWRITEBYTECODE|PYCACHEPREFIX)"
    # Where the loader finds libraries, and how many threads those of arrays may start.
    r"|LD_LIBRARY_PATH|DYLD_(FALLBACK_)?LIBRARY_PATH|(OMP|OPENBLAS|MKL)_NUM_THREADS"
    # Whom TLS trusts, and how: the same as in the process that started this one.
    r"|SSL_CERT_(FILE|DIR)|OPENSSL_(CONF|MODULES)"
)


def start(
    module: str, *arguments: str, stderr: int | IO[bytes] | None = None, also: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `python -m module`, with pipes as its input and output; None: with this process's stderr. `also`: variables of
    its environment besides those that are handed on. Raises OSError.

    It is in a process group of its own: Ctrl-C is for this process to interpret.
    """
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        process_group=0,
        env={**environment(os.environ), **(also or {})},
    )


def program(text: str, *arguments: str) -> list[str]:
    """The words that run a program of ours by this interpreter, for processes that others start."""
    return [sys.executable, "-P", "-c", text, *arguments]


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What of an environment is handed on."""
    found = {name: value for name, value in environ.items() if _HANDED_ON.fullmatch(name)}
    if folders := _folders(environ.get("PYTHONPATH", "")):
        found["PYTHONPATH"] = os.pathsep.join(folders)
    return found


def _folders(path: str) -> list[str]:
    own = Path(inferometer.__file__).parent.parent
    named = [one for one in path.split(os.pathsep) if one]
    return [
        os.path.abspath(one) for one in named if os.path.isabs(one) or Path(one).resolve() == own.resolve()
    ]


def ended_by(process: subprocess.Popen[bytes]) -> str | None:
    """The signal that ended a process whose output has ended; None: it ended by itself, or lives on."""
    try:
        code = process.wait(timeout=REAP_S)
    except subprocess.TimeoutExpired:
        return None
    names = {one.value: one.name for one in signal.Signals}
    return names.get(-code, f"signal {-code}") if code < 0 else None


def undisturbed() -> None:
    """In the process itself, at its beginning: signals to a whole group of processes do not end it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class Child:
    """One process of our own as its parent sees it: see the head. `called`: what it is in words; `also`: see `start`."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        called: str,
        stderr: int | IO[bytes] | None = None,
        also: Mapping[str, str] | None = None,
    ) -> None:
        self.called = called
        self.process = start(module, *arguments, stderr=stderr, also=also)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid

    def killed(self) -> MachineError | None:
        """The error of one whose output has ended by a signal; None: it ended by itself, or lives on."""
        name = ended_by(self.process)
        if name is None:
            return None
        return MachineError(f"{self.called} was killed ({name}); {SHORTAGES['killed'][1]}", "killed")

    def cpu_s(self) -> float | None:
        """CPU time that it has taken so far; None if it is gone."""
        import psutil

        try:
            times = psutil.Process(self.pid).cpu_times()
        except psutil.Error:
            return None
        return float(times.user + times.system)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()

    def end(self, patience_s: float) -> None:
        """End it: politely, then not. What it said last is still to be read, until `close`."""
        with contextlib.suppress(OSError):
            self.stdin.close()
        try:
            self.process.wait(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait()

    def close(self) -> None:
        """Leave what it said."""
        self.stdout.close()
