"""The reference server over a socket: every connection ends, no bytes meet a bug of it, and the next client is served."""

from __future__ import annotations

import atexit
import contextlib
import socket
import threading

from inferometer.protocol.http_response import BadResponse, ResponseDecoder
from inferometer.server.engine.settings import Settings
from inferometer.server.http import Server
from inferometer.server.options import Options
from inferometer.workload.encodings import Cl100k

QUICK = Settings(
    prefill_base_ns=1_000,
    prefill_per_token_ns=0,
    step_base_ns=10_000,
    step_per_request_ns=0,
    token_budget=1_000_000,
    jitter=0,
)
PATIENCE_S = 20.0
MOST = 1 << 20
BUG = b"the server has a bug"
HEALTH = b"GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
_started: list[int] = []


def check(data: bytes) -> None:
    """Send all, close our side, and read to the end."""
    answer = exchanged(data)
    assert BUG not in answer
    if data.startswith((b"GET ", b"POST ", b"PATCH ", b"PUT ", b"DELETE ")) and answer:
        decoder = ResponseDecoder()
        with contextlib.suppress(BadResponse):  # several requests have several responses
            decoder.feed(answer)
        assert 200 <= decoder.status < 600
    assert exchanged(HEALTH).startswith(b"HTTP/1.1 ")


def exchanged(data: bytes) -> bytes:
    """What the server sends until it closes."""
    answer = b""
    with (
        contextlib.suppress(ConnectionError),
        socket.create_connection(("127.0.0.1", _port()), PATIENCE_S) as client,
    ):
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        while len(answer) < MOST and (part := client.recv(1 << 16)):
            answer += part
    return answer


def _port() -> int:
    if not _started:
        server = Server(Options(engine=QUICK, max_model_len=256))
        thread = threading.Thread(target=server.run, args=(Cl100k(),), daemon=True)
        thread.start()
        atexit.register(server.stop)
        _started.append(server.address[1])
    return _started[0]
