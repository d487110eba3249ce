"""An HTTP server with a thread for each connection, of which slow and silent clients take neither all threads nor one for ever.

| of a connection                           | bound                                                                         |
| ----------------------------------------- | ----------------------------------------------------------------------------- |
| until what it sends is whole              | an instant that its reader sets, however its bytes come                       |
| beyond as many as the server has room for | the one that has waited longest for its client gives its place to the next    |

So whoever sends a whole request at once is served, however many do not.
"""

from __future__ import annotations

import contextlib
import io
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

LEAVING_S = 1.0
"""How long a thread may take to leave a connection that was closed under it."""


class BoundedServer(ThreadingHTTPServer):
    """Listens from the constructor on, at `most` connections at a time. Raises OSError."""

    daemon_threads = True

    def __init__(self, host: str, port: int, most: int, handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        self._places = threading.BoundedSemaphore(most)
        self._waiting: dict[Any, None] = {}
        """Connections whose next request is not whole, in the order in which they began to wait."""
        self._lock = threading.Lock()
        super().__init__((host, port), handler)

    def server_bind(self) -> None:
        """As HTTPServer's, without asking the resolver for this machine's name."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Where there is no room, the one that has waited longest is closed; if all are being answered, the new one."""
        if not self._places.acquire(blocking=False) and not self._vacated():
            self.shutdown_request(request)
            return
        self.waits(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """In a thread of its own."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.is_answered(request)
            self._places.release()

    def waits(self, connection: Any) -> None:
        """A connection waits for its client from here on."""
        with self._lock:
            self._waiting.pop(connection, None)
            self._waiting[connection] = None

    def is_answered(self, connection: Any) -> None:
        """Its request is whole, or it has ended: it gives its place to no other."""
        with self._lock:
            self._waiting.pop(connection, None)

    def _vacated(self) -> bool:
        """Whether a connection that waits has left its place to us."""
        with self._lock:
            oldest = next(iter(self._waiting), None)
            if oldest is None:
                return False
            del self._waiting[oldest]
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)  # wakes its thread, which closes it
        return self._places.acquire(timeout=LEAVING_S)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves in the middle is none of our matter."""


class BoundedRequest(BaseHTTPRequestHandler):
    """A request of a BoundedServer: `timeout` seconds until what its client sends is whole. Nothing is logged: what clients
    send reaches no terminal, and may hold what a user asked."""

    server: BoundedServer
    protocol_version = "HTTP/1.1"
    timeout: ClassVar[float]

    def setup(self) -> None:
        """See StreamRequestHandler."""
        super().setup()
        self._reader = TimedReader(self.connection, self.timeout)
        self.rfile = io.BufferedReader(self._reader)

    def handle_one_request(self) -> None:
        """See BaseHTTPRequestHandler. Until the first line, it is a connection that may be idle."""
        self._reader.begin()
        self.server.waits(self.connection)
        super().handle_one_request()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


class TimedReader(io.RawIOBase):
    """A connection's bytes, until an instant that `begin` sets: a timeout of each read would be that of none.

    Raises TimeoutError."""

    def __init__(
        self, connection: socket.socket, timeout_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection, self._timeout_s, self._clock = connection, timeout_s, clock
        self._until = 0.0

    def begin(self) -> None:
        """What is awaited has `timeout_s` from now on."""
        self._until = self._clock() + self._timeout_s

    def readable(self) -> bool:
        """See io.RawIOBase."""
        return True

    def readinto(self, buffer: Any) -> int:
        """See io.RawIOBase."""
        left = self._until - self._clock()
        if left <= 0:
            raise TimeoutError("not whole in time")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)
