"""Two toy protocols, each a channel and its server on a loopback port, that share nothing with HTTP/1.1 but the reactor.

`FRAMED` carries many exchanges at once, as HTTP/2 does. A frame is `!IBI`: exchange, kind, length of what follows.

| kind    | from   | means                                                                                    |
| ------- | ------ | ---------------------------------------------------------------------------------------- |
| PLACES  | server | so many exchanges at once, from now on; the first one opens the channel                  |
| CREDIT  | server | so many more bytes of request bodies may be sent                                         |
| OPEN    | client | a request's head                                                                         |
| BODY    | client | a part of its body                                                                       |
| DONE    | both   | the request, or the response, is complete                                                |
| HEAD    | server | the response's head, in JSON: status and headers                                         |
| DATA    | server | a part of its body                                                                       |
| RESET   | both   | this exchange is given up                                                                |
| UNBEGUN | server | this exchange has not been begun, and will not be                                        |
| LEAVE   | server | no more exchanges; those that were opened go on                                          |

`GREETED` carries one exchange at a time, has no head and frames its own messages, as a WebSocket does: the client says `hello`,
the server `welcome`; then a line with a length and the body, and a line for each event up to `.`.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from inferometer.drive.channel import ChannelKind, RequestHead, Write
from inferometer.drive.exchange import Exchange
from inferometer.journal.schema import Outcome

PLACES, CREDIT, OPEN, BODY, DONE, HEAD, DATA, RESET, UNBEGUN, LEAVE = range(10)
_FRAME = struct.Struct("!IBI")
ENOUGH = 1 << 30


def frame(number: int, kind: int, payload: bytes = b"") -> bytes:
    """One frame's bytes."""
    return _FRAME.pack(number, kind, len(payload)) + payload


def frames(buffer: bytes) -> tuple[list[tuple[int, int, bytes]], bytes]:
    """The whole frames in these bytes, and the rest."""
    found = []
    while len(buffer) >= _FRAME.size:
        number, kind, size = _FRAME.unpack_from(buffer)
        if len(buffer) < _FRAME.size + size:
            break
        found.append((number, kind, buffer[_FRAME.size : _FRAME.size + size]))
        buffer = buffer[_FRAME.size + size :]
    return found, buffer


class FramedChannel:
    """See Channel."""

    fault = ""
    refusal = None

    def __init__(self) -> None:
        self.closing = False
        self.outgoing: list[Write] = []
        self.ended: list[Exchange] = []
        self.unprocessed: list[Exchange] = []
        self._carried: dict[int, Exchange] = {}
        self._bodies: deque[tuple[int, Exchange, bytes]] = deque()
        self._most = self._credit = self._number = 0
        self._buffer = b""

    @property
    def capacity(self) -> int:
        """See Channel."""
        return 0 if self.closing else max(0, self._most - len(self._carried))

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """See Channel."""
        return tuple(self._carried.values())

    def opened(self) -> None:
        """The server speaks first."""

    def submit(self, exchange: Exchange) -> None:
        """See Channel. What the server's credit does not cover waits for more."""
        self._number += 1
        self._carried[self._number] = exchange
        self.outgoing.append((frame(self._number, OPEN, exchange.request_head), exchange, False))
        self._bodies.append((self._number, exchange, exchange.request_body))
        self._send_bodies()

    def _send_bodies(self) -> None:
        while self._bodies:
            number, exchange, body = self._bodies.popleft()
            part, rest = body[: self._credit], body[self._credit :]
            self._credit -= len(part)
            if part:
                self.outgoing.append((frame(number, BODY, part), exchange, False))
            if rest:
                self._bodies.appendleft((number, exchange, rest))
                return
            self.outgoing.append((frame(number, DONE), exchange, True))

    def feed(self, data: bytes, at: int, lag: int) -> bool:
        """See Channel. A fault inside one exchange's bytes is that exchange's."""
        found, self._buffer = frames(self._buffer + data)
        before = self.capacity
        for number, kind, payload in found:
            exchange = self._carried.get(number)
            if exchange is not None:
                self._take(number, exchange, kind, payload, at, lag)
            elif kind == PLACES:
                self._most = int(payload)
            elif kind == CREDIT:
                self._credit += int(payload)
                self._send_bodies()
            elif kind == LEAVE:
                self.closing = True
        return bool(
            self.outgoing or self.ended or self.unprocessed or self.closing or self.capacity != before
        )

    def _take(self, number: int, exchange: Exchange, kind: int, payload: bytes, at: int, lag: int) -> None:
        if kind == UNBEGUN:
            self.unprocessed.append(self._carried.pop(number))
            return
        exchange.lag_ns = max(exchange.lag_ns, lag)
        exchange.t_first_byte = exchange.t_first_byte or at
        try:
            if kind == HEAD:
                status, headers = json.loads(payload)
                exchange.head(status, {name.encode(): value.encode() for name, value in headers.items()})
            elif kind == DATA:
                exchange.data(payload, at)
            elif kind == DONE:
                exchange.end(at)
            elif kind == RESET:
                exchange.fail(Outcome.RESET, "the server gave it up")
        except Exception as cause:
            exchange.fail(Outcome.BAD_EVENT, str(cause))
            self.outgoing.append((frame(number, RESET), None, False))
        if exchange.outcome:
            self.ended.append(self._carried.pop(number))

    def cancel(self, exchange: Exchange, /) -> None:
        """See Channel."""
        (number,) = (number for number, one in self._carried.items() if one is exchange)
        del self._carried[number]
        self._bodies = deque(waiting for waiting in self._bodies if waiting[0] != number)
        self.outgoing.append((frame(number, RESET), None, False))

    def peer_closed(self, _at: int, /) -> None:
        """See Channel. No response ends this way."""
        self.closing = True

    def close(self) -> None:
        """See Channel."""
        self._carried.clear()
        self._bodies.clear()


def _head_bytes(head: RequestHead) -> bytes:
    return f"{head.method} {head.path}".encode()


FRAMED = ChannelKind(alpn=("framed",), places=8, open=FramedChannel, prepare=_head_bytes)


class GreetedChannel:
    """See Channel."""

    fault = ""
    refusal = None

    def __init__(self) -> None:
        self.capacity = 0
        self.closing = False
        self.outgoing: list[Write] = []
        self.ended: list[Exchange] = []
        self.unprocessed: list[Exchange] = []
        self._exchange: Exchange | None = None
        self._greeted = False
        self._buffer = b""

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """See Channel."""
        return () if self._exchange is None else (self._exchange,)

    def opened(self) -> None:
        """See Channel."""
        self.outgoing.append((b"hello\n", None, False))

    def submit(self, exchange: Exchange) -> None:
        """See Channel."""
        self.capacity, self._exchange = 0, exchange
        body = exchange.request_body
        self.outgoing.append((b"%d\n%b" % (len(body), body), exchange, True))

    def feed(self, data: bytes, at: int, lag: int) -> bool:
        """See Channel."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        due = False
        for line in lines:
            due = self._line(line, at, lag) or due
        return due

    def _line(self, line: bytes, at: int, lag: int) -> bool:
        exchange = self._exchange
        if not self._greeted:
            self._greeted = line == b"welcome"
            self.capacity, self.closing = int(self._greeted), not self._greeted
            return True
        assert exchange is not None
        exchange.lag_ns = max(exchange.lag_ns, lag)
        exchange.t_first_byte = exchange.t_first_byte or at
        if line != b".":
            exchange.event(line, at)
            return False
        exchange.end(at)
        self.capacity, self._exchange = 1, None
        self.ended.append(exchange)
        return True

    def cancel(self, _exchange: Exchange, /) -> None:
        """See Channel."""
        self._exchange, self.closing = None, True

    def peer_closed(self, _at: int, /) -> None:
        """See Channel."""
        self.capacity, self.closing = 0, True

    def close(self) -> None:
        """See Channel."""
        self._exchange = None


def _no_head(_: RequestHead) -> bytes:
    return b""


GREETED = ChannelKind(alpn=(), places=1, open=GreetedChannel, prepare=_no_head)


# The servers.


@dataclass
class Request:
    """One request as the framed server read it. `connection` counts from 0, `number` is the exchange's."""

    connection: int
    number: int
    head: bytes
    body: bytes = b""


class Conversation:
    """The server's side of one connection. `open` has the requests that are not answered; `most` is the most there were."""

    def __init__(self, sock: socket.socket, index: int) -> None:
        self.sock = sock
        self.index = index
        self.alpn = sock.selected_alpn_protocol() if isinstance(sock, ssl.SSLSocket) else None
        self.open: dict[int, Request] = {}
        self.requests: list[Request] = []
        self.given_up: list[int] = []
        self.most = 0

    def say(self, *sent: bytes) -> None:
        """Send frames in one call."""
        self.sock.sendall(b"".join(sent))

    def places(self, count: int, credit: int = ENOUGH) -> None:
        """Let so many exchanges and so many bytes of bodies in."""
        self.say(frame(0, PLACES, b"%d" % count), frame(0, CREDIT, b"%d" % credit))

    def begin(self, number: int) -> None:
        """The head of a streamed answer."""
        head = json.dumps([200, {"content-type": "text/event-stream"}]).encode()
        self.say(frame(number, HEAD, head))

    def answer(self, number: int, *events: bytes) -> None:
        """A whole streamed answer, or what is missing of it."""
        if number in self.open:
            del self.open[number]
            self.say(*(frame(number, DATA, event) for event in events), frame(number, DONE))

    def reset(self, sock_option: bytes = struct.pack("ii", 1, 0)) -> None:
        """End the connection without a farewell."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, sock_option)
        self.sock.close()


Serve = Callable[[Conversation, Request], None]
"""Called with every complete request, or with each part of one."""


def _welcome(talk: Conversation) -> None:
    talk.places(FRAMED.places)


def _nothing(_talk: Conversation, _request: Request) -> None:
    """Wait for the rest."""


@dataclass
class Framed:
    """The running server of FRAMED."""

    port: int
    conversations: list[Conversation] = field(default_factory=list)

    @property
    def requests(self) -> list[Request]:
        """All that were read to their end, connection by connection."""
        return [request for one in self.conversations for request in one.requests]


@contextlib.contextmanager
def framed(
    serve: Serve,
    greet: Callable[[Conversation], None] = _welcome,
    part: Serve = _nothing,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Framed]:
    """Serve the framed protocol until the block ends. `greet` begins each connection; `part` is called as a body arrives."""

    def carry(sock: socket.socket, index: int, peer: Framed) -> None:
        talk = Conversation(sock, index)
        peer.conversations.append(talk)
        greet(talk)
        buffer = b""
        while data := sock.recv(65536):
            found, buffer = frames(buffer + data)
            for number, kind, payload in found:
                if kind == OPEN:
                    talk.open[number] = Request(index, number, payload)
                    talk.most = max(talk.most, len(talk.open))
                elif kind == BODY:
                    talk.open[number].body += payload
                    part(talk, talk.open[number])
                elif kind == RESET:
                    talk.given_up.append(number)
                elif kind == DONE:
                    talk.requests.append(talk.open[number])
                    serve(talk, talk.open[number])

    with _listening(carry, tls) as peer:
        yield peer


@contextlib.contextmanager
def greeted(events: Sequence[bytes], welcome: bytes = b"welcome\n") -> Iterator[Framed]:
    """Serve the greeted protocol until the block ends: `events` for every request, one send each."""

    def carry(sock: socket.socket, index: int, peer: Framed) -> None:
        talk = Conversation(sock, index)
        peer.conversations.append(talk)
        with sock.makefile("rb") as file:
            if file.readline() != b"hello\n":
                return
            sock.sendall(welcome)
            while line := file.readline():
                talk.requests.append(Request(index, len(talk.requests), b"", file.read(int(line))))
                for event in (*events, b"."):
                    sock.sendall(event + b"\n")

    with _listening(carry, None) as peer:
        yield peer


@contextlib.contextmanager
def _listening(
    carry: Callable[[socket.socket, int, Framed], None], tls: ssl.SSLContext | None
) -> Iterator[Framed]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    peer = Framed(listener.getsockname()[1])
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def run_one(sock: socket.socket, index: int) -> None:
        with contextlib.suppress(OSError), sock:
            carried = sock if tls is None else tls.wrap_socket(sock, server_side=True)
            opened.append(carried)
            with carried:
                carry(carried, index, peer)

    def accept() -> None:
        with contextlib.suppress(OSError):
            for index in range(200):
                sock, _ = listener.accept()
                sock.settimeout(20)
                opened.append(sock)
                threads.append(threading.Thread(target=run_one, args=(sock, index), daemon=True))
                threads[-1].start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield peer
        for thread in threads:  # the client has closed: all that it sent is read, and then its end
            thread.join(5)
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for sock in opened:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
