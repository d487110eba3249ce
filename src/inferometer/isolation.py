"""Processes of our own: workers, the scraper, the embedded server, lanes that make prompts. Each is this interpreter with one
of our modules, and is kept apart from two things that are none of its business:

| kept apart from       | by                                                                                            |
| --------------------- | --------------------------------------------------------------------------------------------- |
| the current directory | `-P`: `-m` and `-c` would put it before the standard library, and a folder with a `json.py`, of |
|                       | the user's or of a stranger's download, would be part of the program                          |
| the environment       | a list of the variables that are handed on: API keys and tokens are not on it                 |

PYTHONPATH is handed on, for the package may be installed by it, but only what it names absolutely: an empty or a relative
entry is the current directory once more. One that the package itself was imported from stays.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import inferometer

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


def start(module: str, *arguments: str, stderr: int | IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Start `python -m module`, with pipes as its input and output; None: with this process's stderr. Raises OSError.

    It is in a process group of its own: Ctrl-C is for this process to interpret.
    """
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-P", "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        process_group=0,
        env=environment(os.environ),
    )


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
