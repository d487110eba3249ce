"""The readings of this machine for a run on another one: an HTTP server with one page, `/metrics`.

| request                         | answer                                                          |
| ------------------------------- | ---------------------------------------------------------------- |
| GET or HEAD /metrics            | 200, the text; its `clock` is this machine's time                |
| without the token, if there is one | 401                                                           |
| another path, another method    | 404, 501                                                          |

It shows what an administrator's monitoring shows: loads, memory, heat, power; no command lines, users or host names. A request
has TIMEOUT_S, of which MOST_REQUESTS are served at a time. Requests that come within FRESH_S of a reading get that one, so
that a storm of them is not itself the load that is read.
"""

from __future__ import annotations

import hmac
import socket
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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


class Agent(ThreadingHTTPServer):
    """Listens from the constructor on. `read` gives the text; `token`: to be presented, None: none.

    Raises OSError."""

    daemon_threads = True

    def __init__(self, host: str, port: int, read: Callable[[], str], token: str | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.readings, self.token = Fresh(read), token
        self._places = threading.BoundedSemaphore(MOST_REQUESTS)
        super().__init__((host, port), _Request)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Beyond MOST_REQUESTS a connection is closed at once."""
        if not self._places.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In a thread of its own."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves in the middle is none of our matter."""


class _Request(BaseHTTPRequestHandler):
    server: Agent
    timeout = TIMEOUT_S
    server_version, sys_version = "inferometer-telemetry", ""
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
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

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: what clients send reaches no terminal."""
