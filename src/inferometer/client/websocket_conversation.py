"""One message over a WebSocket of its own, and the messages that answer it: for all that is not load (http_client.py)."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping

from inferometer.protocol import websocket_frames as frames
from inferometer.protocol import websocket_handshake as handshake

READ_BYTES = 1 << 16


class NoConversation(Exception):
    """There is no whole answer. `status`: of a handshake that was refused; 0: it was not."""

    def __init__(self, words: str, status: int = 0) -> None:
        super().__init__(words)
        self.status = status


def converse(
    sock: socket.socket,
    path: str,
    lines: Mapping[str, str],
    message: bytes,
    read: Callable[[bytes], bool],
    left: Callable[[], float],
    largest: int,
    stray: Callable[[bytes], object],
    listen_s: float = 0,
) -> None:
    """Shake hands, send the message, and `read` each message that comes, until it returns True or the server closes in order.
    `left`: how many seconds there are; it raises TimeoutError. `stray` gets the messages that come before this one is sent and
    behind the end, for `listen_s` each. Raises NoConversation, OSError."""
    nonce = os.urandom(16)
    opening = handshake.ClientHandshake(nonce, handshake.offered(lines))
    _send(sock, handshake.request(path, lines, nonce), left)
    taken = 0

    def received() -> bytes:
        nonlocal taken
        sock.settimeout(left())
        data = sock.recv(READ_BYTES)
        taken += len(data)
        if taken > largest:
            raise NoConversation(f"the answer has more than {largest} bytes")
        return data

    try:
        rest = b""
        while not opening.done:
            data = received()
            rest = opening.feed(data) if data else b""
            if not data:
                opening.end()
            if opening.fault:
                raise NoConversation(f"the WebSocket handshake was refused: {opening.fault}", opening.status)
    finally:
        opening.close()
    reader = frames.MessageReader(largest)
    for early in reader.feed(rest):
        stray(early)
    listen_s = min(listen_s, left() / 4)  # of a short time most is for the answer
    _listen(sock, reader, stray, time.monotonic() + listen_s)
    if reader.fault is not None:
        raise NoConversation(f"what comes before the answer breaks RFC 6455 ({reader.fault.reason})")
    _send(sock, frames.frame(frames.TEXT, message, os.urandom(4)), left)
    while reader.closed is None:
        data = received()
        if not data:
            raise NoConversation("the connection ended before the answer did")
        ended = False
        for one in reader.feed(data):
            if ended:
                stray(one)
            else:
                ended = read(one)
        if ended:
            _listen(sock, reader, stray, time.monotonic() + listen_s)
            _send(sock, frames.close_frame(frames.NORMAL, os.urandom(4)), left)
            return
        if reader.fault is not None:
            raise NoConversation(f"the answer breaks RFC 6455 ({reader.fault.reason})")
        if reader.pong is not None:
            _send(sock, frames.frame(frames.PONG, reader.pong, os.urandom(4)), left)
            reader.pong = None
    if reader.closed.code not in (frames.NORMAL, frames.NO_STATUS):
        raise NoConversation(f"the server closed the connection: {reader.closed}")


def _listen(
    sock: socket.socket, reader: frames.MessageReader, stray: Callable[[bytes], object], until: float
) -> None:
    """Take what a server says outside of an answer, whatever becomes of the connection."""
    with contextlib.suppress(OSError):
        while reader.closed is None and reader.fault is None and (rest := until - time.monotonic()) > 0:
            sock.settimeout(rest)
            if not (data := sock.recv(READ_BYTES)):
                return
            for one in reader.feed(data):
                stray(one)


def _send(sock: socket.socket, wire: bytes, left: Callable[[], float]) -> None:
    rest = memoryview(wire)
    while rest:
        sock.settimeout(left())
        rest = rest[sock.send(rest) :]
