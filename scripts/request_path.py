"""`python -m scripts.request_path`: how many files of ours one request crosses, from the command line to the report.

Runs `inferometer run --requests 1` against a reference server and notes, in every process but the server's, each file of the
package in which a function is called (`sys.setprofile`; what runs on import does not count).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from inferometer.server.embedded import Embedded

HOOK = """
import atexit, os, sys, threading
_seen = set()
def _note(frame, event, arg):
    if event == "call":
        code = frame.f_code
        if code.co_flags & 1:  # CO_OPTIMIZED: a function, not the body of a module or class
            _seen.add(code.co_filename)
def _write():
    sys.setprofile(None)
    with open(os.path.join(os.environ["REQUEST_PATH"], str(os.getpid())), "w") as file:
        file.write("\\n".join(_seen))
atexit.register(_write)
threading.setprofile(_note)
sys.setprofile(_note)
"""


def files(flags: list[str]) -> set[Path]:
    """The files crossed, relative to the package."""
    with tempfile.TemporaryDirectory() as scratch:
        hook, seen = Path(scratch) / "hook", Path(scratch) / "seen"
        hook.mkdir()
        seen.mkdir()
        (hook / "sitecustomize.py").write_text(HOOK)
        with Embedded(Path(scratch) / "server.txt") as server:
            command = [
                str(Path(sys.executable).parent / "inferometer"),
                "run",
                "--url",
                server.url(),
                "--out",
                scratch,
                *flags,
            ]
            environ = os.environ | {"PYTHONPATH": str(hook), "REQUEST_PATH": str(seen)}
            done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 3, 4):
            raise SystemExit(done.stderr)
        named = {line for file in seen.iterdir() for line in file.read_text().splitlines()}
    return {Path(name.split("/inferometer/", 1)[1]) for name in named if "/src/inferometer/" in name}


def main() -> None:
    """Print the number, then the rooms with theirs, then the files."""
    crossed = files(["--requests", "1", "--warmup", "0", "--no-server-metrics", "--quiet"])
    rooms = Counter(path.parts[0] if len(path.parts) > 1 else "(root)" for path in crossed)
    print(f"{len(crossed)} files")
    for room, count in rooms.most_common():
        named = ", ".join(sorted(str(path.relative_to(room)) for path in crossed if path.parts[0] == room))
        print(f"{count:4}  {room}: {named}")


if __name__ == "__main__":
    main()
