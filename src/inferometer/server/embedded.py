"""The reference server as a child process, for runs that name no server. It ends with its parent, however that ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from inferometer.client.http_client import Client, Unanswered
from inferometer.errors import InstrumentError

MODEL = "reference"
_PATIENCE_S = 60
_TRUTH = 1 << 40
"""Bytes of a truth log: as many as there are."""


class Embedded:
    """Started by the constructor, ready after `url()`; leaving the context ends it. `flags` are those of `__main__`."""

    def __init__(self, log: Path, *flags: str) -> None:
        self._url: str | None = None
        with open(log, "ab") as sink:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                [
                    sys.executable,
                    "-m",
                    "inferometer.server",
                    "--model",
                    MODEL,
                    "--until-stdin-closes",
                    *flags,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                process_group=0,  # Ctrl-C is for the parent to interpret
                text=True,
            )

    def url(self) -> str:
        """Wait until it listens; its base URL. Raises InstrumentError."""
        if self._url is None:
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            if not line.startswith("listening "):
                raise InstrumentError(
                    "the embedded server did not start; its reason is in log.txt of the run folder"
                )
            self._url = line.split()[1]
        return self._url

    def truth(self) -> bytes:
        """Its truth log so far (truth.py), as JSON Lines. Raises InstrumentError."""
        return self._ask("GET")

    def forget(self) -> None:
        """Empty its truth log. Raises InstrumentError."""
        self._ask("DELETE")

    def _ask(self, method: str) -> bytes:
        where = urlsplit(self.url())
        host, port = where.hostname or "", where.port or 80
        try:
            with Client(host, port, {"Host": where.netloc}, timeout_s=_PATIENCE_S, largest=_TRUTH) as client:
                answer = client.request(method, "/inferometer/truth")
        except Unanswered as cause:
            raise InstrumentError(f"the reference server did not report its truth log: {cause}") from cause
        if answer.status != 200 or answer.header(b"x-inferometer-forgotten") not in ("", "0"):
            raise InstrumentError("the reference server's truth log is not complete")
        return answer.body

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
        assert self._process.stdout is not None
        self._process.stdout.close()
