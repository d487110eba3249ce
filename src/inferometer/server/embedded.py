"""The reference server as a child process, for runs that name no server. It ends with its parent, however that ends.

It keeps to the first core, and the workers that measure it to the others, as in a calibration: on a core that both share, a
request that falls due waits for the engine's iteration to end. Where there is one core they share it.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from inferometer.client.http_client import Client, Unanswered
from inferometer.errors import InstrumentError
from inferometer.isolation import Child

MODEL = "reference"
_OPTIONS = ("--model", MODEL, "--until-stdin-closes")
_PATIENCE_S = 60
_LEAVE_S = 10
_TRUTH = 1 << 40
"""Bytes of a truth log: as many as there are."""


class Embedded:
    """Started by the constructor, ready after `url()`; leaving the context ends it. `flags` are those of `__main__`; `trust`:
    for a client of one that speaks TLS."""

    def __init__(self, log: Path, *flags: str, trust: Callable[[], ssl.SSLContext] | None = None) -> None:
        self._trust = trust
        self._url: str | None = None
        cores = _cores()
        self.other_cores = cores[1:]
        """For what measures it; none: any."""
        with open(log, "ab") as sink, on_cores(cores[:1]):
            self._process = Child(
                "inferometer.server", *_OPTIONS, *flags, called="the embedded server", stderr=sink
            )

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def url(self) -> str:
        """Wait until it listens; its base URL. Raises InstrumentError, as MachineError where it was killed."""
        if self._url is None:
            line = self._process.stdout.readline().decode()
            if not line.startswith("listening "):
                raise self._process.killed() or InstrumentError(
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
        client = Client(
            host, port, {"Host": where.netloc}, timeout_s=_PATIENCE_S, tls=self._trust, largest=_TRUTH
        )
        try:
            with client:
                answer = client.request(method, "/inferometer/truth")
        except Unanswered as cause:
            gone = self._process.killed() if cause.reason in ("refused", "closed") else None
            raise (
                gone or InstrumentError(f"the reference server did not report its truth log: {cause}")
            ) from cause
        if answer.status != 200 or answer.header(b"x-inferometer-forgotten") not in ("", "0"):
            raise InstrumentError("the reference server's truth log is not complete")
        return answer.body

    def __enter__(self) -> Embedded:
        """Use as a context manager."""
        return self

    def __exit__(self, *exc: object) -> None:
        """End it: politely, then not."""
        self._process.end(_LEAVE_S)
        self._process.close()


def _cores() -> list[int]:
    """The cores of this process, where there are several and a process can be kept to some."""
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
    return allowed if len(allowed) > 1 else []


def beside(embedded: Embedded | None, workers: int) -> list[int]:
    """The cores for so many workers that measure it; none: all, since they are measuring something else, or are too many."""
    others = embedded.other_cores if embedded is not None else []
    return others if workers <= len(others) else []


@contextmanager
def on_cores(cores: list[int]) -> Iterator[None]:
    """Processes started inside the block stay on these cores: a child takes over its parent's mask. With none: on all."""
    if not cores:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
