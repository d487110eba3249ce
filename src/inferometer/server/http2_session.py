"""HTTP/2 on one client's socket: a stream is to an answer what a connection is over HTTP/1.1.

Answers write HTTP/1.1: a head, then a body by its length or in chunks (http_reply.py, openai.py). A stream makes frames of it:

    HTTP/1.1 200 OK ... | chunk | chunk chunk | 0                              | 0 and trailers     what an answer sends
    HEADERS             | DATA  | DATA        | DATA with END_STREAM, empty    | HEADERS with END_STREAM

Each `send` of an answer is one `send` of the socket, so that a token's stamp means what it means over HTTP/1.1. What the
client's windows do not admit waits on its stream, within the limits of an answer that a client does not read.
"""

from __future__ import annotations

from collections import deque

from h2.errors import ErrorCodes

from inferometer.protocol.http2_fields import Fields
from inferometer.protocol.http2_frames import PREFACE
from inferometer.protocol.http2_server import GivenUp, Http2Server, Received
from inferometer.protocol.http_request import RequestDecoder
from inferometer.server.connection import Connection, Outbox, Stamps
from inferometer.server.http_reply import read_head, unchunked
from inferometer.server.options import Options

KNOWN_BY = PREFACE[:14]
"""How a client that speaks HTTP/2 begins; no request of HTTP/1.1 does."""
STREAMS_FULL = 16
"""Streams' worth of bytes that a client may leave unread on one connection (`backlog_limit` of each)."""
MOST_UNSAID = 1 << 20
"""Bytes of acknowledgements and the like that a client may leave unread."""
_UNUSED = RequestDecoder()  # every request of a stream is whole when it begins


class _Taken:
    """The kernel has taken what a stream, or the protocol itself, handed over: so many bytes less are behind."""

    __slots__ = ("_size", "_stamps", "_whose")

    def __init__(self, whose: Http2Stream | Http2Session, size: int, stamps: Stamps | None) -> None:
        self._whose = whose
        self._size = size
        self._stamps = stamps

    def append(self, at: int, /) -> None:
        """They have gone at `at`."""
        if self._stamps is not None:
            self._stamps.append(at)
        self._whose.taken(self._size)


class Http2Stream(Connection):
    """One request and its answer. `backlog`: bytes that wait for the client's windows, and those that the kernel has not
    taken."""

    __slots__ = ("_begun", "_behind", "_chunked", "_session", "_trailers", "_waiting", "number", "over")

    def __init__(self, session: Http2Session, number: int, outbox: Outbox) -> None:
        self.sock = session.connection.sock
        self._outbox = outbox
        self.decoder = _UNUSED
        self.requests = deque()
        self.answer = None
        self.closing = self.discarding = self.lost = False
        self.discarded = self.backlog = self.interest = 0
        self.session = None
        self.opening = None
        self.number = number
        self.over = False  # the last of the answer has been made
        self._session = session
        self._begun = self._chunked = self._behind = False
        self._trailers: Fields = ()
        self._waiting: deque[tuple[bytes, bool, Stamps | None]] = deque()

    @property
    def carrier(self) -> Connection:
        """See Connection."""
        return self._session.connection

    def send(self, data: bytes, stamps: Stamps | None = None) -> None:
        """Send now what can be sent now, the rest in order later."""
        if self.lost:
            return
        session = self._session
        wire = b""
        if not self._begun:
            head, _, data = data.partition(b"\r\n\r\n")
            status, fields, self._chunked = read_head(head)
            self._begun = True
            if not data and not self._chunked:
                self.over = True
            wire = session.protocol.head(self.number, status, fields, end=self.over)
            if not data:
                self._hand_over(wire, stamps)
                return
        body, end = data, True
        if self._chunked:
            body, end, self._trailers = unchunked(data)
        self.over = end
        self._waiting.append((body, end, stamps))
        self._count(len(body))
        if self.answer is not None:  # a reply has the size that it has
            session.check()
        self.pump(wire)

    def pump(self, wire: bytes = b"") -> None:
        """Send what the client's windows admit of what waits, behind `wire`."""
        waiting, protocol = self._waiting, self._session.protocol
        while waiting and not self.lost:
            body, end, stamps = waiting[0]
            frames, rest = protocol.body(self.number, body, end=end, trailers=self._trailers if end else ())
            self._count(len(rest) - len(body))
            if rest:
                waiting[0] = rest, end, stamps
                stamps = None
            else:
                waiting.popleft()
            self._hand_over(wire + frames, stamps)
            wire = b""
            if rest:
                return

    @property
    def waits(self) -> bool:
        """Some of it waits for the client's windows."""
        return bool(self._waiting)

    def _count(self, size: int) -> None:
        """So many bytes more wait for a window."""
        self.backlog += size
        self._session.waiting += size

    def _hand_over(self, wire: bytes, stamps: Stamps | None) -> None:
        if not wire:
            return
        connection = self._session.connection
        self.backlog += len(wire)
        connection.send(wire, _Taken(self, len(wire), stamps))
        self.lost = connection.lost
        self._behind = self.backlog > 0

    def taken(self, size: int) -> None:
        """The kernel has so many bytes more of it."""
        self.backlog -= size
        if self.backlog or self._waiting:
            return
        if self.over:
            self._session.forget(self)
        if self._behind:
            self._session.drained.append(self)

    def drop(self) -> int:
        """Send nothing more of what waits; how many bytes that was."""
        size = sum(len(body) for body, _, _ in self._waiting)
        self._waiting.clear()
        self.backlog -= size
        return size

    def reset(self) -> None:
        """The answer is given up on our side, unless it is the client's wish already."""
        if self._session.forget(self) and not self._session.connection.lost:
            self._session.protocol.reset(self.number, ErrorCodes.CANCEL)
            self._session.flush()


class Http2Session:
    """The streams of one connection. `waiting`: bytes on all of them that wait for windows. `drained`: streams of which the
    kernel has all; whoever takes them empties the list."""

    def __init__(self, connection: Connection, outbox: Outbox, body_limit: int, backlog_limit: int) -> None:
        self.connection = connection
        self.protocol = Http2Server(body_limit)
        self.streams: dict[int, Http2Stream] = {}
        self.drained: list[Http2Stream] = []
        self.waiting = self._unsaid = 0
        self._outbox = outbox
        self._most = STREAMS_FULL * backlog_limit

    @property
    def broken(self) -> bool:
        """The client breaks the protocol."""
        return bool(self.protocol.fault)

    def check(self) -> None:
        """If too many bytes of answers wait, or of what the protocol has to say, the connection counts as lost."""
        if self.waiting > self._most or self._unsaid > MOST_UNSAID:
            self.connection.lost = True

    def taken(self, size: int) -> None:
        """The kernel has so many bytes more of what the protocol had to say."""
        self._unsaid -= size

    def receive(self, data: bytes, read_at: int, arrived: int | None) -> list[Http2Stream]:
        """Take bytes that had been read at one instant and had arrived at another: the streams to be looked after."""
        found: list[Http2Stream] = []
        opened = False
        events = self.protocol.receive(data)
        if self.protocol.fault:  # nothing can be answered any more
            events = []
        for event in events:
            if isinstance(event, Received):
                stream = self.streams[event.stream] = Http2Stream(self, event.stream, self._outbox)
                stream.requests.append((event.request, read_at, arrived))
                found.append(stream)
            elif isinstance(event, GivenUp):
                given_up = self.streams.get(event.stream)
                if given_up is not None:
                    self.forget(given_up)
                    given_up.lost = True
                    found.append(given_up)
            else:
                opened = True
        if opened:
            found += self._opened()
        self.flush()
        return found

    def _opened(self) -> list[Http2Stream]:
        """Windows have grown: send what waits."""
        waiting = [stream for stream in self.streams.values() if stream.waits]
        for stream in waiting:
            stream.pump()
        return waiting

    def flush(self) -> None:
        """Send what the protocol itself has to say."""
        if wire := self.protocol.take():
            self._unsaid += len(wire)
            self.connection.send(wire, _Taken(self, len(wire), None))
            self.check()

    def forget(self, stream: Http2Stream) -> bool:
        """This stream is over; whether that is news."""
        if self.streams.pop(stream.number, None) is None:
            return False
        self.waiting -= stream.drop()
        return True

    def take_drained(self) -> list[Http2Stream]:
        """See Session."""
        drained, self.drained = self.drained, []
        return drained

    def carried(self) -> list[Http2Stream]:
        """All streams."""
        return list(self.streams.values())

    def leave(self) -> None:
        """Say that no further request will be answered."""
        if not self.protocol.fault:
            self.connection.send(self.protocol.leave())

    def close(self) -> None:
        """Free everything."""
        self.protocol.close()
        self.drained.clear()


def recognised(connection: Connection, data: bytes, outbox: Outbox, options: Options) -> bytes:
    """What a client has sent so far, once it shows which protocol that is: for HTTP/2 the connection has a session then."""
    data = (connection.opening or b"") + data
    if len(data) < len(KNOWN_BY) and KNOWN_BY.startswith(data):
        connection.opening = data
        return b""
    connection.opening = None
    if data.startswith(KNOWN_BY):
        connection.session = Http2Session(connection, outbox, options.body_limit, options.backlog_limit)
    return data
