"""A WebSocket server on a loopback port, whose every byte a test decides: `websockets` shakes hands and reads."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from loopback import loopback
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
    conversations: list[Conversation] = []

    def carry(sock: socket.socket, index: int) -> None:
        talk = Conversation(sock, index)
        conversations.append(talk)
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

    with loopback(carry, tls, patience_s=5) as port:
        yield Peer(port, conversations)
