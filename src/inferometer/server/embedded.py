"""The reference server as a child process, for runs that name no server. It ends with its parent, however that ends."""

from __future__ import annotations

import http.client
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

from inferometer.errors import InstrumentError

MODEL = "reference"
_PATIENCE_S = 60


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
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=_PATIENCE_S)
        try:
            connection.request(method, "/inferometer/truth")
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException) as cause:
            raise InstrumentError(f"the reference server did not tell its truth log: {cause}") from cause
        finally:
            connection.close()
        if answer.status != 200 or answer.headers.get("X-Inferometer-Forgotten", "0") != "0":
            raise InstrumentError("the reference server's truth log is not complete")
        return body

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
