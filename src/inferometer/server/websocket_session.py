"""A WebSocket on one client's socket: each message is a request, and an answer's lines are messages.

Answers write HTTP/1.1: a head, then a body by its length or in chunks (http_reply.py, openai.py). Of that the lines of the body
are sent, a text message each; the head is not. A `send` of an answer is one `send` of the socket, so that a token's stamp means
what it means over HTTP/1.1.

| from the client                                        | becomes                                                       |
| ------------------------------------------------------ | ------------------------------------------------------------- |
| a message                                              | a request, answered behind those before it                    |
| more than MOST_WAITING requests that wait              | close 1008, and the end                                       |
| a ping                                                 | a pong                                                        |
| close                                                  | the same, and the end; what is being generated is given up    |
| frames against RFC 6455, a message above the body limit | close 1002, 1007 or 1009, and the end                         |
"""

from __future__ import annotations

from collections import deque

from inferometer.protocol import websocket_frames as frames
from inferometer.protocol.http_request import Request, RequestDecoder
from inferometer.server import realtime
from inferometer.server.connection import Connection, Outbox, Stamps
from inferometer.server.http_reply import read_head, unchunked
from inferometer.server.options import Options

VERSION = "websocket"
"""In the place of a version of HTTP."""
MOST_WAITING = 16
MOST_UNSAID = 1 << 20
"""Bytes of pongs and the like that a client may leave unread, beyond those of an answer."""
_UNUSED = RequestDecoder()  # every message is a whole request


class WebSocketStream(Connection):
    """The requests of one WebSocket and their answers, one after the other."""

    __slots__ = ("_chunked", "_head", "_session")

    def __init__(self, session: WebSocketSession, outbox: Outbox) -> None:
        self.sock = session.connection.sock
        self._outbox = outbox
        self.decoder = _UNUSED
        self.requests = deque()
        self.answer = None
        self.closing = self.discarding = self.lost = False
        self.discarded = self.interest = 0
        self.session = None
        self.opening = None
        self._session = session
        self._head = True  # the next bytes are a head
        self._chunked = False

    @property
    def carrier(self) -> Connection:
        """See Connection."""
        return self._session.connection

    @property
    def backlog(self) -> int:  # type: ignore[override]
        """See Connection: all that is behind on the socket is of this stream."""
        return self._session.connection.backlog

    def send(self, data: bytes, stamps: Stamps | None = None) -> None:
        """Send now what can be sent now, the rest in order later."""
        connection = self._session.connection
        if self.lost or connection.lost:
            self.lost = True
            return
        if self._head:
            head, _, data = data.partition(b"\r\n\r\n")
            _, _, self._chunked = read_head(head)
            self._head = False
            if not data:
                return
        body, end = unchunked(data)[:2] if self._chunked else (data, True)
        self._head = end
        wire = b"".join(frames.frame(frames.TEXT, line) for line in body.split(b"\n") if line)
        connection.send(wire, stamps)
        self.lost = connection.lost

    def reset(self) -> None:
        """See Connection. What has been sent of an answer cannot be taken back, so that the connection ends with it."""
        if not self._session.broken:
            self._session.connection.lost = True


class WebSocketSession:
    """See Session. `asked`: the client's handshake, whose path and header lines are those of every message."""

    def __init__(self, connection: Connection, asked: Request, outbox: Outbox, options: Options) -> None:
        self.connection = connection
        self.broken = False
        self.stream = WebSocketStream(self, outbox)
        self._asked = asked
        self._reader = frames.MessageReader(options.body_limit, from_client=True)
        self._most = MOST_UNSAID + options.backlog_limit
        if asked.target.partition("?")[0] == realtime.PATH:
            connection.send(frames.frame(frames.TEXT, realtime.greeting(options.model)))

    def receive(self, data: bytes, read_at: int, arrived: int | None) -> list[WebSocketStream]:
        """Take bytes that had been read at one instant and had arrived at another: the streams to be looked after."""
        asked, reader, waiting = self._asked, self._reader, self.stream.requests
        messages = reader.feed(data)
        for message in messages:
            request = Request("POST", asked.target, asked.headers, message, keep_alive=True, version=VERSION)
            waiting.append((request, read_at, arrived))
        if reader.noted:
            self._attend()
        if len(waiting) > MOST_WAITING:
            self._end(frames.POLICY)
        return [self.stream] if messages and not self.broken else []

    def _attend(self) -> None:
        """What the reader has noted: a ping, a close, a fault."""
        reader = self._reader
        reader.noted = False
        if reader.pong is not None:
            pong, reader.pong = reader.pong, None
            self.connection.send(frames.frame(frames.PONG, pong))
            if self.connection.backlog > self._most:
                self.connection.lost = True
        if (end := reader.fault or reader.closed) is not None:
            self._end(end.code)

    def _end(self, code: int) -> None:
        if not self.broken:
            self.broken = True
            self.connection.send(frames.close_frame(code))

    def take_drained(self) -> list[WebSocketStream]:
        """See Session."""
        return [] if self.connection.backlog else [self.stream]

    def carried(self) -> list[WebSocketStream]:
        """See Session."""
        return [self.stream]

    def leave(self) -> None:
        """See Session."""
        self._end(frames.GOING_AWAY)

    def close(self) -> None:
        """See Session: it holds nothing that has to be freed."""
