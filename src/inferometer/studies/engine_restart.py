"""Restarting an engine by a command of the user's, before the first phase of the agentic benchmark.

A command may return before the old server is gone, and then the old one, with its cache full, is still healthy. So a server
counts as restarted only if it was seen away (nothing listened, or it said that it was loading), or if another process has its
port afterwards; and then it has to be healthy.

| ended                       | `restarted` | `why`              |
| --------------------------- | ----------- | ------------------ |
| healthy after a change      | yes         |                    |
| the command failed          | no          | `command_failed`   |
| the command does not return | no          | `command_hangs`    |
| no change after STAYS_S     | no          | `old_server_stays` |
| never healthy               | no          | `not_healthy`      |
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

from inferometer.client.http_client import Unanswered
from inferometer.documents.agentic import Restart
from inferometer.engines.adapters.adapter import Ask
from inferometer.errors import PlanError, Problem
from inferometer.studies.bench_gate import Clock
from inferometer.studies.engine_client import EngineClient
from inferometer.telemetry.processes import listening, process_of_port, processes

Health = Literal["healthy", "away", "unknown"]
Identity = tuple[int, float | None]
"""A process: its number, and when it started."""

POLL_S = 0.1
STAYS_S = 30.0
PATIENCE_S = 600.0
"""For the command, and for the new server after it: a large model takes minutes to load."""
ANSWER_S = 5.0


class Server(Protocol):
    """The server that is restarted."""

    def health(self) -> Health:
        """Now. away: nothing listens, or it says that it is not ready; unknown: no answer in time."""

    def identity(self) -> Identity | None:
        """The process that listens on its port; None: hidden, or on another machine."""


Started = Callable[[], int | None]
"""The exit status of a command; None while it runs."""


def restart(begin: Callable[[], Started], server: Server, clock: Clock) -> Restart:
    """Run the command and wait for a new, healthy server. `begin` starts the command; OSError where it cannot."""
    before, since = server.identity(), clock.now_ns()
    changed = server.health() == "away"

    def ended(why: str | None) -> Restart:
        return Restart(why is None, (clock.now_ns() - since) / 1e9, why)

    try:
        poll = begin()
    except OSError:
        return ended("command_failed")
    returned: int | None = None
    while True:
        health = server.health()
        changed = changed or health == "away" or _another(before, server.identity())
        exit_status = poll()
        now = clock.now_ns()
        if exit_status not in (None, 0):
            return ended("command_failed")
        if returned is None:
            if exit_status is None:
                if now - since > PATIENCE_S * 1e9:
                    return ended("command_hangs")
                clock.sleep(POLL_S)
                continue
            returned = now
        # Asked after the change was seen: the answer before may have been the old server's last.
        if changed and server.health() == "healthy":
            return ended(None)
        if not changed and now - returned > STAYS_S * 1e9:
            return ended("old_server_stays")
        if now - returned > PATIENCE_S * 1e9:
            return ended("not_healthy")
        clock.sleep(POLL_S)


def _another(before: Identity | None, now: Identity | None) -> bool:
    return before is not None and now is not None and before != now


def command(words: str, log: Path) -> Callable[[], Started]:
    """How to start a command, without a shell, its output into `log`. It outlives this program: it may be the server.

    Raises PlanError for words that cannot be parted.
    """
    try:
        parts = shlex.split(words)
    except ValueError as cause:
        raise PlanError([Problem("--restart", f"{words[:60]!r}: {cause}")]) from cause
    if not parts:
        raise PlanError([Problem("--restart", "needs a command: for example vllm='systemctl restart vllm'")])

    def begin() -> Started:
        with log.open("wb") as file:
            running = subprocess.Popen(  # noqa: S603 - the user's own command
                parts, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
            )
        return running.poll

    return begin


class LiveServer:
    """See Server. `local`: on this machine. Its `/health`, or where it has none its list of models."""

    def __init__(self, url: str, *, local: bool) -> None:
        self._url, self._local = url, local

    def health(self) -> Health:
        """See Server."""
        with EngineClient(self._url, timeout_s=ANSWER_S) as client:
            try:
                status = client.call(Ask("/health")).status
                if status in (404, 405):
                    status = client.call(Ask("/v1/models")).status
            except Unanswered as cause:
                return "away" if cause.reason in ("refused", "closed") else "unknown"
        return "away" if status in (502, 503, 504) else "healthy" if status < 500 else "unknown"

    def identity(self) -> Identity | None:
        """See Server."""
        if not self._local:
            return None
        with EngineClient(self._url) as client:
            port = client.endpoint.port
        pid = process_of_port(port, listening())
        if pid is None:
            return None
        return next(((pid, one.started) for one in processes() if one.pid == pid), None)
