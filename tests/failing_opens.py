"""A command in which one file after the other cannot be opened, as on a machine that runs out of something.

    python failing_opens.py ERRNO ARGUMENT...

carries the command out in child processes: in the first no open fails, in child k the k-th. Prints a JSON array of
`[file, exit code, stderr]`, with the untouched one first, whose file is null. What Python itself opens to import is left alone.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from typing import Any

from inferometer.cli.app import run

MOST = 100
_IMPORTED = (".py", ".pyc", ".so")


def _fail(at: int, number: int) -> list[str]:
    """Let open `at` of this process fail from now on; the list gets the name of its file."""
    seen, failed = [0], list[str]()

    def hook(event: str, values: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(values[0], str) or values[0].endswith(_IMPORTED):
            return
        seen[0] += 1
        if seen[0] == at:
            failed.append(values[0])
            raise OSError(number, os.strerror(number), values[0])

    sys.addaudithook(hook)
    return failed


def _child(at: int, number: int, arguments: list[str], said: str) -> None:
    """Carry the command out with open `at` failing, in this process, and end it."""
    code = 255
    try:
        out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        failed = _fail(at, number)
        code = run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(out, f"\0{''.join(failed)}".encode())
    finally:
        os._exit(code)


def main() -> None:
    """See above."""
    number, arguments = int(sys.argv[1]), sys.argv[2:]
    for name in ("cli.terminal", "run.evaluate", "run.simulate", "report.run.html"):
        importlib.import_module(f"inferometer.{name}")  # once, not in each child
    found: list[tuple[str | None, int, str]] = []
    with tempfile.TemporaryDirectory() as place:
        for at in range(MOST):
            said = f"{place}/said"
            pid = os.fork()
            if pid == 0:
                _child(at, number, arguments, said)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            with open(said, encoding="utf-8", errors="replace") as file:
                words, _, name = file.read().rpartition("\0")
            if at and not name:
                break
            found.append((name or None, code, words))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
