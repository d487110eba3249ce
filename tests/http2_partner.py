"""The other side of HTTP/2 in tests: h2 itself as a server or a client, and frames by hand where h2 would not write them."""

from __future__ import annotations

from collections.abc import Sequence

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, RequestReceived, StreamEnded
from h2.settings import SettingCodes, Settings
from hpack import Encoder

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

EVENTS = [(":status", "200"), ("content-type", "text/event-stream")]
REQUEST = [(":method", "POST"), (":scheme", "http"), (":path", "/x"), (":authority", "test")]

GREETING = bytes([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
"""The shortest SETTINGS frame: all as the RFC has it."""


def raw(kind: int, flags: int, stream: int, payload: bytes = b"", length: int | None = None) -> bytes:
    """A frame, whether it makes sense or not; with a `length` it lies about its own."""
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def number(value: int) -> bytes:
    """Four bytes."""
    return value.to_bytes(4, "big")


def block(fields: Sequence[tuple[str, str]]) -> bytes:
    """A block of headers that needs no earlier one and leaves nothing for later ones."""
    return bytes(Encoder().encode([(name, value, True) for name, value in fields], huffman=False))


def head(stream: int, fields: Sequence[tuple[str, str]] = EVENTS, flags: int = END_HEADERS) -> bytes:
    """A HEADERS frame."""
    return raw(HEADERS, flags, stream, block(fields))


class Server:
    """A server's side by h2: requests by stream as far as they have come, and frames that it writes."""

    def __init__(self, **settings: int) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        codes = {SettingCodes[name.upper()]: value for name, value in settings.items()}
        self.h2.local_settings = Settings(client=False, initial_values=dict(codes))
        self.h2.initiate_connection()
        self.heads: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytes] = {}
        self.whole: list[int] = []
        self.seen: list[Event] = []

    def receive(self, data: bytes) -> list[Event]:
        """What a client sent. Windows are not opened again: a test does that."""
        found = self.h2.receive_data(data)
        for event in found:
            if isinstance(event, RequestReceived):
                self.heads[event.stream_id] = {str(name): str(value) for name, value in event.headers or []}
                self.bodies[event.stream_id] = b""
            elif isinstance(event, DataReceived):
                self.bodies[event.stream_id] += event.data
            elif isinstance(event, StreamEnded):
                self.whole.append(event.stream_id)
        self.seen += found
        return found

    def answer(self, stream: int, *parts: bytes, end: bool = True) -> None:
        """A streamed 200, a DATA frame for each part."""
        self.h2.send_headers(stream, EVENTS)
        for part in parts:
            self.h2.send_data(stream, part)
        if end:
            self.h2.end_stream(stream)

    def take(self) -> bytes:
        """What it wants sent."""
        return self.h2.data_to_send()
