"""HTTP/2 on the server's side, sans-IO: requests in, frames of answers out (RFC 9113).

h2 keeps the state and makes heads. DATA frames of answers are made here: each token's is one, and h2 would take 10 us for it.
What they take of the client's windows is taken from h2's counts, which so stay right.

| what the client does                                         | becomes                                                      |
| ------------------------------------------------------------ | ------------------------------------------------------------ |
| a whole request                                              | `Received`, with a Request as HTTP/1.1 would give it          |
| a body over the limit                                        | `Received`, with a BadRequest; the rest is read and dropped   |
| RST_STREAM                                                   | `GivenUp`; ten frames of the client's patience                |
| WINDOW_UPDATE, SETTINGS                                      | `Opened`: there may be more room                              |
| GOAWAY                                                       | nothing: it will open no more streams, and those go on        |
| frames that break the protocol; a block of headers or bodies | `fault`, and GOAWAY with its code                            |
| under way over the limit; too many frames that bring nothing |                                                              |
"""

from __future__ import annotations

from dataclasses import dataclass, field

from h2 import events as h2_events
from h2.config import H2Configuration
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from inferometer.protocol.http2_connection import Connection
from inferometer.protocol.http2_fields import Fields
from inferometer.protocol.http2_frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEAD_BYTES,
    HEADERS,
    MOST_BLOCK,
    MOST_FRAME,
    MOST_HEADERS,
    PREFACE,
    STREAM_BITS,
    Patience,
    PeerFault,
    frame,
    goaway,
    read_goaway,
    read_head,
    words_of,
)
from inferometer.protocol.http_request import BODY_LIMIT, BadRequest, Request

MOST_STREAMS = 1000
WINDOW = 1 << 20
"""Bytes of a request's body that may be on their way, and sixteen times as many on the connection."""
BODIES = 4
"""Bodies of the largest size that may be incomplete on one connection."""
RESET_COST = 10
"""Frames of patience that a request costs which is given up: it has been read, and its answer begun."""


@dataclass(slots=True)
class _Incoming:
    """A request that is not complete."""

    fields: list[tuple[bytes, bytes]]
    body: list[bytes] = field(default_factory=list)
    size: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    """A request is to be answered on this stream."""

    stream: int
    request: Request | BadRequest


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The client wants no answer on this stream any more."""

    stream: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A window of the client's has grown."""


Event = Received | GivenUp | Opened


class Http2Server:
    """One connection. `fault`: why it is over, if the client broke it."""

    def __init__(self, body_limit: int = BODY_LIMIT) -> None:
        self.fault = ""
        self._body_limit = body_limit
        self._held = bytearray()
        self._goaway = b""  # ours, where h2 has not made one
        self._prefaced = False
        self._block = self._block_bytes = 0
        self._incoming: dict[int, _Incoming] = {}
        self._incoming_bytes = 0
        self._open: set[int] = set()  # streams whose request is not complete, though it may be answered
        self._patience = Patience()
        self._h2 = connection = Connection(
            H2Configuration(client_side=False, validate_outbound_headers=False)
        )
        connection.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: MOST_STREAMS,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW,
                SettingCodes.MAX_HEADER_LIST_SIZE: MOST_HEADERS,
            },
        )
        connection.initiate_connection()
        connection.increment_flow_control_window(16 * WINDOW - connection.inbound_flow_control_window)

    def receive(self, data: bytes) -> list[Event]:
        """Take bytes as they came. Never raises."""
        events: list[Event] = []
        if self.fault:
            return events
        try:
            self._cut(data, events)
        except PeerFault as cause:
            self._break(f"{cause} ({cause.code.name})", cause.code)
        except ProtocolError as cause:
            self._break(words_of(cause), None)
        except Exception as cause:
            self._break(f"{type(cause).__name__}: {cause}", ErrorCodes.PROTOCOL_ERROR)
        return events

    def _break(self, words: str, code: ErrorCodes | None) -> None:
        """`code`: to be told to the client; None: h2 has done so."""
        self.fault = words
        self._incoming.clear()
        self._held.clear()
        self._goaway = b"" if code is None else goaway(self._h2.highest_inbound_stream_id, code)

    def _cut(self, data: bytes, events: list[Event]) -> None:
        """Cut bytes into whole frames."""
        held = self._held
        held += data
        at = 0
        if not self._prefaced:
            if not PREFACE.startswith(held[: len(PREFACE)]):
                raise PeerFault(ErrorCodes.PROTOCOL_ERROR, "no HTTP/2 preface")
            if len(held) < len(PREFACE):
                return
            self._prefaced = True
            self._h2.receive_data(PREFACE)
            at = len(PREFACE)
        while len(held) - at >= HEAD_BYTES:
            high, low, kind, flags, stream = read_head(held, at)
            length = high << 16 | low
            if length > MOST_FRAME:
                words = f"a frame of {length} bytes, where {MOST_FRAME} are allowed"
                raise PeerFault(ErrorCodes.FRAME_SIZE_ERROR, words)
            end = at + HEAD_BYTES + length
            if end > len(held):
                break
            self._whole(kind, flags, stream & STREAM_BITS, bytes(held[at:end]), events)
            at = end
        del held[:at]

    def _whole(self, kind: int, flags: int, stream: int, data: bytes, events: list[Event]) -> None:
        if not self._block and kind == GOAWAY:
            read_goaway(stream, data[HEAD_BYTES:])
            self._patience.spend()
            return
        if kind in (HEADERS, CONTINUATION):
            self._block_bytes += len(data)
            if self._block_bytes > MOST_BLOCK:
                words = f"a header block of more than {MOST_BLOCK} bytes"
                raise PeerFault(ErrorCodes.ENHANCE_YOUR_CALM, words)
            self._block = not flags & END_HEADERS
            if not self._block:
                self._block_bytes = 0
        found = self._h2.receive_data(data)
        if kind not in (DATA, HEADERS) or not found or (len(data) == HEAD_BYTES and not flags & END_STREAM):
            self._patience.spend()
        for event in found:
            self._on(event, events)

    def _on(self, event: h2_events.Event, events: list[Event]) -> None:
        if isinstance(event, h2_events.RequestReceived):
            self._open.add(event.stream_id)
            self._incoming[event.stream_id] = _Incoming(
                [(bytes(n), bytes(v)) for n, v in event.headers or []]
            )
        elif isinstance(event, h2_events.DataReceived):
            self._data(event, events)
        elif isinstance(event, h2_events.StreamEnded):
            self._open.discard(event.stream_id)
            incoming = self._incoming.pop(event.stream_id, None)
            if incoming is not None:
                self._incoming_bytes -= incoming.size
                self._patience.gain()
                events.append(Received(event.stream_id, _request(incoming)))
        elif isinstance(event, h2_events.StreamReset):
            self._forget(event.stream_id)
            self._patience.spend(RESET_COST)
            events.append(GivenUp(event.stream_id))
        elif isinstance(event, h2_events.WindowUpdated | h2_events.RemoteSettingsChanged):
            events.append(Opened())

    def _data(self, event: h2_events.DataReceived, events: list[Event]) -> None:
        """Some of a request's body."""
        if event.flow_controlled_length:
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        incoming = self._incoming.get(event.stream_id)
        if incoming is None or not event.data:
            return
        incoming.body.append(event.data)
        incoming.size += len(event.data)
        self._incoming_bytes += len(event.data)
        if incoming.size > self._body_limit:
            self._incoming.pop(event.stream_id)
            self._incoming_bytes -= incoming.size
            words = f"a body of more than {self._body_limit} bytes"
            events.append(Received(event.stream_id, BadRequest(413, words)))
        elif self._incoming_bytes > BODIES * self._body_limit:
            raise PeerFault(ErrorCodes.ENHANCE_YOUR_CALM, "too many bodies that are not complete")

    def _forget(self, stream: int) -> None:
        self._open.discard(stream)
        incoming = self._incoming.pop(stream, None)
        if incoming is not None:
            self._incoming_bytes -= incoming.size

    # What goes.

    def take(self) -> bytes:
        """What is to be sent of the protocol's own, and heads."""
        data, self._goaway = self._h2.data_to_send() + self._goaway, b""
        return data

    def head(self, stream: int, status: int, fields: list[tuple[bytes, bytes]], *, end: bool) -> bytes:
        """The head of an answer, with what was to be sent before it. `end`: it has no body."""
        self._h2.send_headers(stream, [(b":status", b"%d" % status), *fields], end_stream=end)
        if end:
            self._complete(stream)
        return self.take()

    def body(self, stream: int, data: bytes, *, end: bool, trailers: Fields = ()) -> tuple[bytes, bytes]:
        """DATA frames with as much as the client's windows admit, and the rest. `end`: the answer ends with this data, or with
        `trailers` behind it."""
        connection = self._h2
        room = max(0, connection.local_flow_control_window(stream))
        if len(data) > room:
            data, rest = data[:room], data[room:]
        else:
            rest = b""
        frames = [self.take()]
        most = connection.max_outbound_frame_size
        for at in range(0, len(data), most):
            frames.append(frame(DATA, 0, stream, data[at : at + most]))
        if data:
            connection.outbound_flow_control_window -= len(data)
            connection.streams[stream].outbound_flow_control_window -= len(data)
            self._patience.gain()
        if end and not rest:
            if trailers:
                connection.send_headers(stream, trailers, end_stream=True)
            else:
                connection.end_stream(stream)
            self._complete(stream)
            frames.append(self.take())
        return b"".join(frames), rest

    def _complete(self, stream: int) -> None:
        """Its answer is. A client that is still sending the request need not go on (8.1)."""
        if stream in self._open:
            self.reset(stream, ErrorCodes.NO_ERROR)

    def reset(self, stream: int, code: ErrorCodes) -> None:
        """Break off this answer."""
        if self.fault:
            return
        self._forget(stream)
        try:
            self._h2.reset_stream(stream, code)
        except ProtocolError:
            return  # it was closed already

    def leave(self) -> bytes:
        """GOAWAY: no further request will be answered."""
        return self.take() + goaway(self._h2.highest_inbound_stream_id, ErrorCodes.NO_ERROR)

    def close(self) -> None:
        """Free everything: h2's connection refers to methods of its own."""
        self.fault = self.fault or "closed"
        self._incoming.clear()
        vars(self._h2).clear()


def _request(incoming: _Incoming) -> Request:
    """As HTTP/1.1 would give it: `:authority` is Host. h2 has checked the fields."""
    pseudo = {name: value for name, value in incoming.fields if name[:1] == b":"}
    headers = [(name, value) for name, value in incoming.fields if name[:1] != b":"]
    if (authority := pseudo.get(b":authority")) is not None and all(name != b"host" for name, _ in headers):
        headers.insert(0, (b"host", authority))
    return Request(
        method=pseudo.get(b":method", b"").decode("latin-1"),
        target=pseudo.get(b":path", b"").decode("latin-1"),
        headers=headers,
        body=b"".join(incoming.body),
        keep_alive=True,
        version="2",
    )
