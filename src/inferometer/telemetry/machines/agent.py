"""The readings of this machine for a run on another one: an HTTP server with one page, `/metrics`.

| request                         | answer                                                          |
| ------------------------------- | ---------------------------------------------------------------- |
| GET or HEAD /metrics            | 200, the text; its `clock` is this machine's time                |
| without the token, if there is one | 401                                                           |
| another path, another method    | 404, 501                                                          |

It shows what an administrator's monitoring shows: loads, memory, heat, power; no command lines, users or host names, nor what
failed meters said (meters.py). Requests that come within FRESH_S of a reading get that one, so that a storm of them is not
itself the load that is read.

MOST_REQUESTS connections are served at a time. A request has TIMEOUT_S until the end of its head, however its bytes come, and
the answer as long again. Where all places are taken, the connection that has waited longest for a head gives its own to the
next: whoever sends a whole request at once is served, however many do not.
"""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable
from http import HTTPStatus

from inferometer.telemetry.bounded_server import BoundedRequest, BoundedServer
from inferometer.telemetry.machines.exposition_text import Text

TIMEOUT_S = 5.0
MOST_REQUESTS = 16
FRESH_S = 0.1
PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Fresh:
    """A reading that is made anew when it is asked for and older than FRESH_S. One at a time is made."""

    def __init__(self, read: Callable[[], str]) -> None:
        self._read, self._lock = read, threading.Lock()
        self._text, self._at = "", float("-inf")

    def text(self) -> str:
        """The reading."""
        with self._lock:
            if time.monotonic() - self._at > FRESH_S:
                self._text = self._read()
                self._at = time.monotonic()
            return self._text


class Agent(BoundedServer):
    """Listens from the constructor on. `read` gives the text; `token`: to be presented, None: none.

    Raises OSError."""

    def __init__(self, host: str, port: int, read: Callable[[], str], token: str | None) -> None:
        self.readings, self.token = Fresh(read), token
        super().__init__(host, port, MOST_REQUESTS, _Request)


class _Request(BoundedRequest):
    server: Agent
    timeout = TIMEOUT_S
    server_version, sys_version = "inferometer-telemetry", ""

    def parse_request(self) -> bool:
        """See BaseHTTPRequestHandler: the head is whole behind it."""
        whole = super().parse_request()
        self.server.is_answered(self.connection)
        self.connection.settimeout(TIMEOUT_S)
        return whole

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        """See the table above."""
        if self.path.partition("?")[0] != PATH:
            self.send_error(HTTPStatus.NOT_FOUND, f"the readings are at {PATH}")
            return
        if not self._allowed():
            self.send_error(HTTPStatus.UNAUTHORIZED, "a bearer token is needed")
            return
        now = Text()
        text = self.server.readings.text()
        now.add("clock", time.time())  # of this answer, however fresh the readings are
        body = f"{now}{text}".encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the library's name

    def _allowed(self) -> bool:
        if self.server.token is None:
            return True
        given = self.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {self.server.token}".encode())
