"""HTTP/2 as a channel: many exchanges at once, each on a stream of its own. The protocol is protocol/http2_client.py's.

| what the server sends                                            | exchange                                | the others      |
| ---------------------------------------------------------------- | --------------------------------------- | --------------- |
| a whole response                                                 | `end`                                   | go on           |
| a whole response of gRPC                                         | by its status (grpc_outcomes.py)        | go on           |
| a whole response before it has the whole request                 | `end`; a success is `bad_http`          | go on           |
| RST_STREAM                                                       | `reset`, with the name of its code      | go on           |
| RST_STREAM with REFUSED_STREAM, before anything of a response    | not begun: it is sent again             | go on           |
| GOAWAY                                                           | above its last stream: not begun        | go on; no more  |
| frames of one stream that break RFC 9113                         | `bad_http`                              | go on           |
| frames that break the connection                                 | `bad_http`                              | `bad_http`      |
| a header list over the limit; frames that bring nothing, endless | `too_large`                             | `too_large`     |
| an event or a body over a limit                                  | as over HTTP/1.1; the stream is reset   | go on           |
| a head that was there before its request, by the kernel's stamp  | `bad_http`                              | go on           |
| no SETTINGS first                                                | `connect_error`: it was never submitted |                 |

A channel has no capacity before the server's SETTINGS have come, which say how many streams it takes: some round trips after
its own connect, and before any request of ours. `t_first_byte` is the arrival of what completes the head of the response.

Events of several exchanges may come with one read, and frames of other kinds. Its stamp is that of its last packet, so that all
events may have waited (unread.py), whosever they are, unless the read ends with the body of the only stream in it.
"""

from __future__ import annotations

import functools
from collections.abc import Collection

from inferometer.drive.answer_limits import OverLimit
from inferometer.drive.channel import ChannelKind, RequestHead, Write
from inferometer.drive.exchange import EARLY, EARLY_NS, Exchange
from inferometer.journal.schema import Outcome
from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.http2_client import Http2Client
from inferometer.protocol.http2_events import End, Event, Failed, Head, Stream
from inferometer.protocol.http2_fields import Fields
from inferometer.protocol.http2_frames import HEAD_BYTES

_OUTCOMES = {"reset": Outcome.RESET, "malformed": Outcome.BAD_HTTP, "too_large": Outcome.TOO_LARGE}
_END_OF_FIELD = b"\n"


class Http2Channel:
    """See Channel. `most`: streams at once, if the server takes as many."""

    __slots__ = ("_carried", "_client", "ended", "outgoing", "unprocessed")
    refusal = None

    def __init__(self, most: int) -> None:
        self._client = Http2Client(most)
        self.outgoing: list[Write] = self._client.outgoing
        self.ended: list[Exchange] = []
        self.unprocessed: list[Exchange] = []
        self._carried: dict[Exchange, Stream] = {}

    @property
    def capacity(self) -> int:
        """See Channel."""
        return self._client.places

    @property
    def closing(self) -> bool:
        """See Channel."""
        return self._client.closing

    @property
    def fault(self) -> str:
        """See Channel."""
        return self._client.fault or self._client.leave

    @property
    def exchanges(self) -> Collection[Exchange]:
        """See Channel."""
        return self._carried.keys()

    def opened(self) -> None:
        """See Channel."""
        self._client.open()

    def submit(self, exchange: Exchange) -> None:
        """See Channel. What the server's windows do not admit of a body is sent as they grow."""
        body, own = exchange.request_body, exchange.own_field
        fields = _fields(exchange.request_head)
        self._carried[exchange] = self._client.request(fields, body, exchange, own)

    def feed(self, data: bytes, at: int, lag: int) -> bool:
        """See Channel."""
        client = self._client
        stream = client.sole(data)
        if stream is not None:
            self._deliver(stream, data[HEAD_BYTES:], at, lag, shared=False)
            return bool(self.ended)
        events = client.receive(data)
        shared = len(events) > 1 and sum(event.__class__ is Stream for event in events) > 1
        for event in events:
            if isinstance(event, Stream):
                self._deliver(event, event.take(), at, lag, shared=shared or event is not client.tail)
            else:
                self._note(event, at, lag)
        if client.changed:
            client.changed = False
            return True
        return bool(self.outgoing or self.ended)

    def _deliver(self, stream: Stream, data: bytes, at: int, lag: int, *, shared: bool) -> None:
        """More of a body."""
        exchange: Exchange | None = stream.owner
        if exchange is None:  # given up within this read
            return
        if lag > exchange.lag_ns:
            exchange.lag_ns = lag
        try:
            if shared:
                exchange.data_among(data, at)
            else:
                exchange.data(data, at)
        except EventTooLarge as cause:
            self._stop(exchange, Outcome.TOO_LARGE, str(cause))
        except OverLimit as cause:
            self._stop(exchange, cause.outcome, str(cause))
        except Exception as cause:
            self._stop(exchange, Outcome.BAD_EVENT, f"{type(cause).__name__}: {cause}")

    def _note(self, event: Event, at: int, lag: int) -> None:
        """A head, or the end of one exchange."""
        stream = event if isinstance(event, Stream) else event.stream
        exchange: Exchange | None = stream.owner
        if exchange is None:
            return
        if lag > exchange.lag_ns:
            exchange.lag_ns = lag
        if isinstance(event, Failed) and event.why == "unbegun":
            self._release(exchange)
            self.unprocessed.append(exchange)
            return
        if isinstance(event, Head):
            exchange.t_first_byte = at
            if exchange.t_submit - at > EARLY_NS:
                self._stop(exchange, Outcome.BAD_HTTP, EARLY)
                return
            exchange.head(event.status, event.headers)
        elif isinstance(event, End):
            exchange.trailers(event.stream.trailers)
            exchange.end(at)
            self._release(exchange)
            self.ended.append(exchange)
        elif isinstance(event, Failed):
            exchange.fail(_OUTCOMES[event.why], event.words)
            self._release(exchange)
            self.ended.append(exchange)

    def _stop(self, exchange: Exchange, outcome: Outcome, words: str) -> None:
        """What this exchange has been sent is no answer that can be read on."""
        exchange.fail(outcome, words)
        self.cancel(exchange)
        self.ended.append(exchange)

    def _release(self, exchange: Exchange) -> None:
        self._carried.pop(exchange).owner = None

    def cancel(self, exchange: Exchange, /) -> None:
        """See Channel. The stream is reset, the connection goes on."""
        stream = self._carried.pop(exchange)
        stream.owner = None
        self._client.cancel(stream)

    def peer_closed(self, _at: int, /) -> None:
        """See Channel. No response ends this way; a GOAWAY that came before says why."""
        self._client.closing = True
        if self._client.leave and not self._client.leave.startswith("GOAWAY NO_ERROR"):
            for exchange in tuple(self._carried):
                exchange.fail(Outcome.RESET, self._client.leave)
                self._release(exchange)
                self.ended.append(exchange)

    def close(self) -> None:
        """See Channel."""
        for stream in self._carried.values():
            stream.owner = None
        self._carried.clear()
        self._client.close()


def prepare(head: RequestHead) -> bytes:
    """The header fields that all requests of a class have, a line each: name, a colon and a blank, value."""
    fields = {":method": head.method, ":scheme": head.scheme, ":path": head.path}
    lines = {name.lower(): value.strip() for name, value in head.headers.items()}
    if (host := lines.pop("host", None)) is not None:
        fields[":authority"] = host
    return _END_OF_FIELD.join(
        f"{name}: {value}".encode("latin-1") for name, value in (fields | lines).items()
    )


@functools.lru_cache(maxsize=64)
def _fields(head: bytes) -> Fields:
    """What `prepare` made, as fields: the same bytes for thousands of requests."""
    found = []
    for line in head.split(_END_OF_FIELD):
        name, _, value = line[1:].partition(b": ")
        found.append((line[:1] + name, value))
    return found


def http2(streams: int) -> ChannelKind:
    """HTTP/2 with so many streams on each connection, if the server takes as many."""
    return ChannelKind(
        alpn=("h2",),
        places=streams,
        open=functools.partial(Http2Channel, streams),
        prepare=prepare,
        agreed=True,
    )
