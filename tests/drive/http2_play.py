"""An HTTP/2 server on a loopback port, whose every answer a test decides: h2 reads, and h2 or the test writes."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from h2.events import DataReceived, RequestReceived, StreamEnded, StreamReset
from http2_partner import Server
from loopback import loopback


class Conversation:
    """One connection: `open` are its streams that are not answered, `most` the most there were, `given_up` those reset."""

    def __init__(self, sock: socket.socket, index: int, settings: dict[str, int]) -> None:
        self.sock = sock
        self.index = index
        self.alpn = sock.selected_alpn_protocol() if isinstance(sock, ssl.SSLSocket) else None
        self.server = Server(**settings)
        self.open: list[int] = []
        self.requests: list[int] = []
        self.given_up: list[int] = []
        self.most = 0

    def flush(self, *more: bytes) -> None:
        """Send what h2 has, and frames of the test's own."""
        self.sock.sendall(self.server.take() + b"".join(more))

    def answer(self, stream: int, *parts: bytes) -> None:
        """A whole streamed answer."""
        if stream in self.open:
            self.open.remove(stream)
            self.server.answer(stream, *parts)
            self.flush()

    def reset(self) -> None:
        """End the connection without a farewell."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()


Serve = Callable[[Conversation, int], None]
"""Called with every complete request, by its stream."""


@dataclass
class Peer:
    """The running server."""

    port: int
    conversations: list[Conversation] = field(default_factory=list)

    def has_read(self, count: int) -> Callable[[], bool]:
        """Tells whether so many requests have been read to their end."""
        return lambda: sum(len(talk.requests) for talk in self.conversations) == count


@contextlib.contextmanager
def http2_server(
    serve: Serve, tls: ssl.SSLContext | None = None, *, begin: Serve | None = None, **settings: int
) -> Iterator[Peer]:
    """Serve until the block ends. `settings`: of its SETTINGS frame, by name. `begin`: called with every head of a request."""
    conversations: list[Conversation] = []

    def carry(sock: socket.socket, index: int) -> None:
        talk = Conversation(sock, index, settings)
        conversations.append(talk)
        talk.flush()
        while data := sock.recv(65536):
            for event in talk.server.receive(data):
                if isinstance(event, DataReceived):
                    talk.server.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                elif isinstance(event, RequestReceived):
                    talk.open.append(event.stream_id)
                    talk.most = max(talk.most, len(talk.open))
                    if begin is not None:
                        begin(talk, event.stream_id)
                elif isinstance(event, StreamReset):
                    talk.given_up.append(event.stream_id)
                elif isinstance(event, StreamEnded):
                    talk.requests.append(event.stream_id)
                    serve(talk, event.stream_id)
            talk.flush()

    with loopback(carry, tls) as port:
        yield Peer(port, conversations)
