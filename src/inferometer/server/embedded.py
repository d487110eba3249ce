"""The reference server as a child process, for runs that name no server. It ends with its parent, however that ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from inferometer.errors import InstrumentError

MODEL = "reference"


class Embedded:
    """Started by the constructor, ready after `url()`; leaving the context ends it."""

    def __init__(self, log: Path) -> None:
        with open(log, "ab") as sink:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [sys.executable, "-m", "inferometer.server", "--model", MODEL, "--until-stdin-closes"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                process_group=0,  # Ctrl-C is for the parent to interpret
                text=True,
            )

    def url(self) -> str:
        """Wait until it listens; its base URL. Raises InstrumentError."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening "):
            raise InstrumentError(
                "the embedded server did not start; its reason is in log.txt of the run folder"
            )
        return line.split()[1]

    def __enter__(self) -> Embedded:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """End it: politely, then not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
