"""A server of scripted bytes on a loopback port: what the instrument meets in the wild, byte for byte.

Requests are read with h11, an implementation that shares no code with ours; answers are raw bytes.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import h11


@dataclass
class Seen:
    """One request as h11 read it, and which connection (from 0) and place on it (from 0) it had."""

    connection: int
    place: int
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Script:
    """What to do for one request: send `pieces` one `send` each, then `then`: keep, close, reset or hang."""

    pieces: Sequence[bytes] = ()
    then: str = "keep"


Answer = Callable[[Seen], Script]


@dataclass
class Peer:
    """The running server. `seen` grows with every request."""

    port: int
    seen: list[Seen] = field(default_factory=list)


class _Server(threading.Thread):
    def __init__(
        self, answer: Answer, tls: ssl.SSLContext | None, limit: int, port: int, *, tokenize: bool
    ) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self.peer = Peer(self.listener.getsockname()[1])
        self.answer = answer
        self.tls = tls
        self.limit = limit
        self.tokenize = tokenize
        self.over = threading.Event()
        self.open: list[socket.socket] = []

    def run(self) -> None:
        for number in range(self.limit):
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.settimeout(20)
            self.open.append(sock)
            threading.Thread(target=self.serve, args=(sock, number), daemon=True).start()

    def serve(self, sock: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError, h11.RemoteProtocolError):
            if self.tls is not None:
                sock = self.tls.wrap_socket(sock, server_side=True)
                self.open.append(sock)
            place = 0
            while (seen := _read(sock, number, place)) is not None:
                if seen.target.endswith("tokenize") and not self.tokenize:
                    script = Script(whole(404, b'{"detail":"Not Found"}'))
                else:
                    self.peer.seen.append(seen)
                    script = self.answer(seen)
                for piece in script.pieces:
                    sock.sendall(piece)
                if script.then == "hang":
                    self.over.wait(20)
                if script.then == "reset":
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                if script.then != "keep":
                    break
                place += 1
            sock.close()

    def stop(self) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for sock in self.open:
            with contextlib.suppress(OSError):
                sock.close()


def _read(sock: socket.socket, number: int, place: int) -> Seen | None:
    reader = h11.Connection(h11.SERVER)
    body = b""
    request: h11.Request | None = None
    while True:
        event = reader.next_event()
        if event is h11.NEED_DATA:
            data = sock.recv(65536)
            if not data and request is None:
                return None
            reader.receive_data(data)
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            assert request is not None
            headers = {name.decode(): value.decode() for name, value in request.headers}
            return Seen(number, place, request.method.decode(), request.target.decode(), headers, body)
        else:
            return None


@contextlib.contextmanager
def scripted(
    answer: Answer,
    *,
    tls: ssl.SSLContext | None = None,
    limit: int = 200,
    port: int = 0,
    tokenize: bool = False,
) -> Iterator[Peer]:
    """Serve `answer` until the block ends, for `limit` connections at most; on a free port unless one is given.

    Without `tokenize` there is no such interface: it is answered with 404, and `answer` does not see it.
    """
    server = _Server(answer, tls, limit, port, tokenize=tokenize)
    server.start()
    try:
        yield server.peer
    finally:
        server.stop()


def chunked(*events: bytes, end: bool = True) -> list[bytes]:
    """Head and chunks of a streamed 200, one event a chunk."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = [b"%x\r\n%b\r\n" % (len(event), event) for event in events]
    return [head, *pieces, *([b"0\r\n\r\n"] if end else [])]


def tokens(*words: str, finish: str | None = "length", done: bool = True) -> list[bytes]:
    """Chat events: a role, one event a word, a finish reason, usage and [DONE]."""
    import json

    def event(delta: dict[str, str], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"

    usage = {"prompt_tokens": 7, "completion_tokens": len(words)}
    return [
        event({"role": "assistant", "content": ""}),
        *(event({"content": word}) for word in words),
        *([event({}, finish)] if finish else []),
        b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n",
        *([b"data: [DONE]\n\n"] if done else []),
    ]


def whole(status: int, body: bytes, *headers: bytes, kind: bytes = b"application/json") -> list[bytes]:
    """A response with a length."""
    lines = [b"HTTP/1.1 %d X" % status, b"Content-Type: " + kind, b"Content-Length: %d" % len(body), *headers]
    return [b"\r\n".join(lines) + b"\r\n\r\n" + body]
