"""A WebSocket as a channel: one exchange at a time, a message for the request and messages for the answer.

The handshake is a part of connecting: there is no capacity before it is over, and one that fails is a connection that failed.
Messages have no lengths or numbers that join them to a request, so the next request is sent only after the dialect's own end.

| what the server sends                                             | exchange                               | connection |
| ----------------------------------------------------------------- | -------------------------------------- | ---------- |
| the message that ends an answer                                   | `end`                                  | idle       |
| an error, or a message that cannot be read                        | `end`: `error_event`, `bad_event`      | closed     |
| close with 1000, or without a code                                | `end`: `truncated` if there is no end  | closed     |
| close with another code                                           | `reset`, with its name and its reason  | closed     |
| close with 1000, 1001 or 1012 before anything of an answer, on a  | perhaps not begun: if the close may    | closed     |
| connection that has carried another                               | have crossed it, it is sent again      |            |
| frames against RFC 6455, a message that no request asked for      | `bad_http`                             | closed     |
| a message or an answer over a limit, 10,000 frames without one    | `too_large`                            | closed     |
| a ping                                                            | goes on; the latest of a read answered | goes on    |
| a status from 300 on in place of the handshake                    | never submitted: the status' outcome   | closed     |
| anything else but 101 and its lines                               | never submitted: `connect_error`       | closed     |

`greets`: of an interface whose servers say something of their own accord, when they are connected or between two answers. What
came before a request, by the kernel's stamp, is then left out; of other servers it is a fault, as over HTTP/1.1.

Whoever leaves the connection says so with a close, whose answer nobody waits for.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

from inferometer.drive.answer_limits import OverLimit
from inferometer.drive.channel import ChannelKind, Refusal, RequestHead, Write
from inferometer.drive.exchange import EARLY_NS, EVENT_LIMIT, Exchange
from inferometer.journal.schema import Outcome
from inferometer.protocol import websocket_frames as frames
from inferometer.protocol import websocket_handshake as handshake
from inferometer.protocol.websocket_frames import MessageReader

EARLY = "a message before its request was sent"
_NONCE_BYTES, _MASK_BYTES = 16, 4
_ORDERLY = frozenset({frames.NORMAL, frames.GOING_AWAY, frames.RESTART})
_ENDS = frozenset({frames.NORMAL, frames.NO_STATUS})
_LIMITS = frozenset({frames.TOO_BIG, frames.POLICY})


class WebSocketChannel:
    """See Channel. `head`: what the handshake asks for."""

    __slots__ = (
        "_answers",
        "_exchange",
        "_greets",
        "_handshake",
        "_head",
        "_reader",
        "capacity",
        "closing",
        "ended",
        "exchanges",
        "fault",
        "outgoing",
        "refusal",
        "unprocessed",
    )

    def __init__(self, head: RequestHead, *, greets: bool) -> None:
        self.capacity = 0
        self.closing = False
        self.fault = ""
        self.refusal: Refusal | None = None
        self.outgoing: list[Write] = []
        self.ended: list[Exchange] = []
        self.unprocessed: list[Exchange] = []
        self.exchanges: Sequence[Exchange] = ()  # `_exchange` again, as the reactor reads it
        self._exchange: Exchange | None = None
        self._answers = 0
        self._greets = greets
        self._head = head
        self._handshake: handshake.ClientHandshake | None = None
        self._reader = MessageReader(EVENT_LIMIT)

    def opened(self) -> None:
        """See Channel."""
        nonce, lines = os.urandom(_NONCE_BYTES), self._head.headers
        self._handshake = handshake.ClientHandshake(nonce, handshake.offered(lines))
        self.outgoing.append((handshake.request(self._head.path, lines, nonce), None, False))

    def submit(self, exchange: Exchange) -> None:
        """See Channel."""
        self.capacity = 0
        self._exchange, self.exchanges = exchange, (exchange,)
        wire = frames.frame(frames.TEXT, exchange.request_body, os.urandom(_MASK_BYTES))
        self.outgoing.append((wire, exchange, True))

    def feed(self, data: bytes, at: int, lag: int) -> bool:
        """See Channel."""
        exchange = self._exchange
        if exchange is None:
            return self._feed_idle(data)
        if lag > exchange.lag_ns:
            exchange.lag_ns = lag
        reader = self._reader
        messages = reader.feed(data)
        if messages and self._take(exchange, messages, at):
            return True
        if reader.noted:
            self._attend(exchange, at)
        return bool(self.outgoing or self.closing)

    def _take(self, exchange: Exchange, messages: list[bytes], at: int) -> bool:
        """Messages of an answer, all of one read; whether they end it."""
        if not exchange.t_first_byte:
            if exchange.t_submit - at > EARLY_NS:
                if self._greets:
                    return False
                return self._stop(exchange, Outcome.BAD_HTTP, EARLY)
            exchange.t_first_byte = at
        more = False
        try:
            more = exchange.events(messages, at, behind=self._reader.behind)
        except OverLimit as cause:
            return self._stop(exchange, cause.outcome, str(cause))
        except Exception as cause:
            return self._stop(exchange, Outcome.BAD_EVENT, f"{type(cause).__name__}: {cause}")
        answer = exchange.answer
        if answer.done and answer.malformed is None:
            exchange.end(at)
            self._release(exchange)
            if self._reader.noted:
                self._attend(None, at)
            self._refuse_unrequested(begun=more or self._reader.begun)
            if not self.closing:
                self._answers += 1
                self.capacity = 1
        elif answer.error is not None or answer.malformed is not None:
            # Whether more of this answer will come is not known, and it must not be taken for the next one's.
            exchange.end(at)
            self._leave(frames.GOING_AWAY)
            self._release(exchange)
        else:
            return False
        return True

    def _stop(self, exchange: Exchange, outcome: Outcome, words: str) -> bool:
        """This answer cannot be read on."""
        exchange.fail(outcome, words)
        self._leave(frames.GOING_AWAY)
        self._release(exchange)
        return True

    def _attend(self, exchange: Exchange | None, at: int) -> None:
        """What the reader has noted: a ping, a close, a fault."""
        reader = self._reader
        reader.noted = False
        if reader.pong is not None:
            pong, reader.pong = reader.pong, None
            self.outgoing.append((frames.frame(frames.PONG, pong, os.urandom(_MASK_BYTES)), None, False))
        if (fault := reader.fault) is not None:
            self._leave(fault.code)
            self.fault = fault.reason
            if exchange is not None:
                outcome = Outcome.TOO_LARGE if fault.code in _LIMITS else Outcome.BAD_HTTP
                exchange.fail(outcome, fault.reason)
                self._release(exchange)
        elif (close := reader.closed) is not None:
            self._leave(close.code)
            self.fault = str(close)
            if exchange is not None:
                self._closed(exchange, close, at)

    def _closed(self, exchange: Exchange, close: frames.Close, at: int) -> None:
        """The server has closed under a request."""
        if self._answers and not exchange.t_first_byte and close.code in _ORDERLY:
            self._exchange, self.exchanges = None, ()
            self.unprocessed.append(exchange)
            return
        if close.code in _ENDS and exchange.t_first_byte:
            exchange.end(at)
        else:
            exchange.fail(Outcome.RESET, str(close))
        self._release(exchange)

    def _feed_idle(self, data: bytes) -> bool:
        """Bytes without a request: the rest of the handshake, or what a server says of its own accord."""
        opening = self._handshake
        if opening is not None:
            data = opening.feed(data)
            if opening.done:
                self._end_handshake()
                self.capacity = 1
            elif opening.fault:
                self._refused(opening)
                return True
            else:
                return False
        messages = self._reader.feed(data)
        if self._reader.noted:
            self._attend(None, 0)
        self._refuse_unrequested(begun=bool(messages) or self._reader.begun)
        return opening is not None or self.closing or bool(self.outgoing)

    def _refuse_unrequested(self, *, begun: bool) -> None:
        """Without a request no message may begin: it, or what follows it, would be taken for the next one's answer."""
        if begun and not self._greets and not self.closing:
            self._leave(frames.PROTOCOL_ERROR)
            self.fault = "a message that no request asked for"

    def _end_handshake(self) -> None:
        if self._handshake is not None:
            self._handshake.close()
            self._handshake = None

    def _refused(self, opening: handshake.ClientHandshake) -> None:
        self.fault = f"the WebSocket handshake was refused: {opening.fault}"
        if opening.status >= 300:
            self.refusal = Refusal(opening.status, opening.headers)
        self.capacity, self.closing = 0, True
        self._end_handshake()

    def _leave(self, code: int) -> None:
        """Say that this side ends the connection, or has understood that the other does; once."""
        if not self.closing:
            self.capacity, self.closing = 0, True
            self.outgoing.append((frames.close_frame(code, os.urandom(_MASK_BYTES)), None, False))

    def _release(self, exchange: Exchange) -> None:
        self._exchange, self.exchanges = None, ()
        self.ended.append(exchange)

    def cancel(self, _exchange: Exchange, /) -> None:
        """See Channel. The server sees that nobody wants the rest."""
        self._exchange, self.exchanges = None, ()
        self._leave(frames.GOING_AWAY)

    def peer_closed(self, _at: int, /) -> None:
        """See Channel. Without a close frame no answer ends this way."""
        if self._handshake is not None:
            self._handshake.end()
            self._refused(self._handshake)
        self.capacity, self.closing = 0, True

    def close(self) -> None:
        """See Channel."""
        self._exchange, self.exchanges = None, ()
        self._end_handshake()


def _nothing(_: RequestHead) -> bytes:
    """A request is its message alone: what all have in common was sent in the handshake."""
    return b""


def websocket(head: RequestHead, *, greets: bool = False) -> ChannelKind:
    """WebSockets whose handshake is `head`; see the module for `greets`."""
    return ChannelKind(
        alpn=("http/1.1",),
        places=1,
        open=functools.partial(WebSocketChannel, head, greets=greets),
        prepare=_nothing,
        unnumbered=True,
    )
