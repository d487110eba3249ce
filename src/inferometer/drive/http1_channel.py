"""HTTP/1.1 as a channel: one exchange at a time, the next one once a response has ended that keeps the connection alive.

| what the server sends                              | exchange                          | connection |
| -------------------------------------------------- | --------------------------------- | ---------- |
| a whole response, which keeps the connection alive | `end`                             | idle       |
| a whole response, which does not                   | `end`                             | closed     |
| a response before it has the whole request         | `end`; a success is `bad_http`    | closed     |
| a response without a length, then its FIN          | `end`                             | closed     |
| bytes against RFC 9112                             | `bad_http`, with what came before | closed     |
| a head, trailers, an event or a body over a limit  | `too_large`                       | closed     |
| more events than a stream may have                 | `too_many_events`                 | closed     |
| bytes after a response, in its last read or later  | `end`, as without them            | closed     |
| bytes before a request                             | none                              | closed     |
| the same, read after the request was sent          | `bad_http`                        | closed     |

The last row is by the kernel's stamps: what had arrived before the request was sent answers no request. Stamps are moved over
from another clock, and may be EARLY_NS off.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from inferometer.drive.answer_limits import OverLimit
from inferometer.drive.channel import ChannelKind, RequestHead, Write
from inferometer.drive.exchange import EARLY, EARLY_NS, Exchange
from inferometer.journal.schema import Outcome
from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.http_response import BadResponse, HeadTooLarge, ResponseDecoder


class Http1Channel:
    """See Channel."""

    __slots__ = (
        "_decoder",
        "_exchange",
        "capacity",
        "closing",
        "ended",
        "exchanges",
        "outgoing",
        "unprocessed",
    )

    fault = ""
    refusal = None
    """See Channel."""

    def __init__(self) -> None:
        self.capacity = 0
        self.closing = False
        self.outgoing: list[Write] = []
        self.ended: list[Exchange] = []
        self.unprocessed: list[Exchange] = []
        self._decoder = ResponseDecoder()
        self._exchange: Exchange | None = None
        self.exchanges: Sequence[Exchange] = ()  # `_exchange` again, as the reactor reads it

    def opened(self) -> None:
        """See Channel."""
        self.capacity = 1

    def submit(self, exchange: Exchange) -> None:
        """See Channel."""
        self.capacity = 0
        self._exchange = exchange
        self.exchanges = (exchange,)
        body, own = exchange.request_body, exchange.own_field
        line = b"" if own is None else b"%b: %b\r\n" % own
        wire = b"%b%d\r\n%b\r\n%b" % (exchange.request_head, len(body), line, body)
        self.outgoing.append((wire, exchange, True))

    def feed(self, data: bytes, at: int, lag: int) -> bool:
        """See Channel. The hottest lines of the program are here, in `Reactor._round` and in `Exchange.data`."""
        exchange = self._exchange
        if exchange is None:
            self.capacity, self.closing = 0, True  # such a connection cannot be trusted
            return True
        if lag > exchange.lag_ns:
            exchange.lag_ns = lag
        if not exchange.t_first_byte:
            exchange.t_first_byte = at
            if exchange.t_submit - at > EARLY_NS:
                exchange.fail(Outcome.BAD_HTTP, EARLY)
                self._release(exchange, False)
                return True
        decoder, alive = self._decoder, False
        try:
            decoder.feed(data)
            self._deliver(exchange, at)
            if not decoder.complete:
                return False
            exchange.end(at)
            alive = decoder.keep_alive and exchange.sent_whole
        except BadResponse as cause:
            # What the same read held before the fault counts.
            with contextlib.suppress(Exception):
                self._deliver(exchange, at)
            if decoder.complete:  # the fault is behind the response, which stands
                exchange.end(at)
            else:
                exchange.fail(Outcome.BAD_HTTP, str(cause))
        except (HeadTooLarge, EventTooLarge) as cause:
            exchange.fail(Outcome.TOO_LARGE, str(cause))
        except OverLimit as cause:
            exchange.fail(cause.outcome, str(cause))
        except Exception as cause:
            exchange.fail(Outcome.BAD_EVENT, f"{type(cause).__name__}: {cause}")
        self._release(exchange, alive)
        return True

    def _deliver(self, exchange: Exchange, at: int) -> None:
        decoder = self._decoder
        if not exchange.status:
            if not decoder.status:
                return
            exchange.head(decoder.status, decoder.headers)
        parts = decoder.body
        if parts:
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            parts.clear()
            exchange.data(data, at)

    def _release(self, exchange: Exchange, alive: bool) -> None:
        self._exchange, self.exchanges = None, ()
        self.ended.append(exchange)
        if alive:
            self.capacity = 1
            self._decoder.next()
        else:
            self.closing = True

    def cancel(self, _exchange: Exchange, /) -> None:
        """See Channel. Only its end ends a response."""
        self._exchange, self.exchanges = None, ()
        self.closing = True

    def peer_closed(self, at: int) -> None:
        """See Channel."""
        exchange = self._exchange
        self.capacity, self.closing = 0, True
        if exchange is not None and self._decoder.eof():
            exchange.end(at)
            self._release(exchange, False)

    def close(self) -> None:
        """See Channel."""
        self._exchange, self.exchanges = None, ()
        self._decoder.close()


def prepare(head: RequestHead) -> bytes:
    """The head up to the value of Content-Length, its last field: a request is this, the length and the body."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.headers.items())
    return f"{head.method} {head.path} HTTP/1.1\r\n{lines}Content-Length: ".encode("latin-1")


HTTP1 = ChannelKind(alpn=("http/1.1",), places=1, open=Http1Channel, prepare=prepare)
