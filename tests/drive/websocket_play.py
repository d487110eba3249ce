"""A WebSocket server on a loopback port, whose every byte a test decides: `websockets` shakes hands and reads."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from websocket_partner import Server


@dataclass
class Conversation:
    """One connection, the `index`th. `requests`: the messages that were read on it; `ended`: the client has closed it."""

    sock: socket.socket
    index: int
    server: Server = field(default_factory=Server)
    ended: bool = False

    @property
    def requests(self) -> list[bytes]:
        """The messages read so far."""
        return self.server.requests

    def say(self, *messages: bytes) -> None:
        """Send text messages, one `send` each."""
        for message in messages:
            self.sock.sendall(self.server.say(message))


@dataclass
class Peer:
    """The running server."""

    port: int
    conversations: list[Conversation] = field(default_factory=list)


Serve = Callable[[Conversation], bool | None]
"""Called with every complete request. False: the connection is left by this side, without a word."""


@contextlib.contextmanager
def websocket_server(
    serve: Serve, tls: ssl.SSLContext | None = None, greeting: bytes | None = None, behind: bytes = b""
) -> Iterator[Peer]:
    """Serve until the block ends. `greeting`: sent in place of an answer to the handshake; `behind`: with it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    peer = Peer(listener.getsockname()[1])
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def carry(sock: socket.socket, index: int) -> None:
        talk = Conversation(sock, index)
        peer.conversations.append(talk)
        if greeting is not None:
            sock.recv(65536)
            sock.sendall(greeting)
            return
        served, first = 0, behind
        while data := sock.recv(65536):
            talk.server.receive(data)
            sock.sendall(talk.server.take() + first)
            first = b""
            while served < len(talk.requests):
                served += 1
                if serve(talk) is False:
                    return
        talk.ended = True

    def run_one(sock: socket.socket, index: int) -> None:
        with contextlib.suppress(OSError), sock:
            carried = sock if tls is None else tls.wrap_socket(sock, server_side=True)
            opened.append(carried)
            with carried:
                carry(carried, index)

    def accept() -> None:
        with contextlib.suppress(OSError):
            for index in range(200):
                sock, _ = listener.accept()
                sock.settimeout(20)
                opened.append(sock)
                thread = threading.Thread(target=run_one, args=(sock, index), daemon=True)
                thread.start()
                threads.append(thread)  # only now may it be joined

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield peer
        for thread in list(threads):
            thread.join(5)
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for sock in opened:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        acceptor.join(10)
