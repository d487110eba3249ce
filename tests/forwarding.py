"""A server before other servers, which passes requests on and answers back as they come, or changed: an engine that lies."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Port = Callable[[str], int]
"""The port to pass a request on to, by its method."""
Change = Callable[[str, bytes], bytes | None]
"""What is answered to a GET of a path, for the content of the answer behind it; None: 404."""


class Handler(BaseHTTPRequestHandler):
    """See `forwarding`."""

    port: Port
    change: Change

    def do_GET(self) -> None:
        """Whole, and changed."""
        with contextlib.closing(HTTPConnection("127.0.0.1", self.port("GET"))) as connection:
            connection.request("GET", self.path)
            reply = connection.getresponse()
            content = type(self).change(self.path, reply.read())
            self.send_response(404 if content is None else reply.status)
            self.send_header("Content-Type", reply.headers["Content-Type"])
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

    def do_POST(self) -> None:
        """As it comes."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with contextlib.closing(HTTPConnection("127.0.0.1", type(self).port("POST"))) as connection:
            connection.request("POST", self.path, body, {"Content-Type": "application/json"})
            reply = connection.getresponse()
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.headers["Content-Type"])
            self.end_headers()
            while data := reply.read1(65_536):
                self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextlib.contextmanager
def forwarding(port: Port, change: Change = lambda _, content: content) -> Iterator[str]:
    """Its base URL, as long as the block lasts."""
    handler = type("OfThis", (Handler,), {"port": staticmethod(port), "change": staticmethod(change)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
