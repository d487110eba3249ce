"""The other side of WebSockets in tests: `websockets` and `wsproto`, which share no code with ours or with each other, and
frames by hand where neither would write them."""

from __future__ import annotations

from dataclasses import dataclass, field

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import Protocol, Side, State
from websockets.server import ServerProtocol
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Message, Ping, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

FIN, TEXT, BINARY, CLOSE, PING, PONG = 0x80, 1, 2, 8, 9, 10


def raw(
    opcode: int,
    payload: bytes = b"",
    *,
    fin: bool = True,
    bits: int = 0,
    mask: bytes = b"",
    length: bytes = b"",
) -> bytes:
    """A frame, whether it makes sense or not. `length`: the bytes in place of those that say it; the mask's bit is set in
    them by `mask`."""
    size = len(payload)
    if not length:
        length = (
            bytes([size])
            if size < 126
            else b"\x7e" + size.to_bytes(2, "big")
            if size < 1 << 16
            else b"\x7f" + size.to_bytes(8, "big")
        )
    if mask:
        length = bytes([length[0] | 0x80]) + length[1:] + mask
        payload = bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))
    return bytes([(FIN if fin else 0) | bits | opcode]) + length + payload


def closing(code: int | None, reason: bytes = b"") -> bytes:
    """A server's close."""
    return raw(CLOSE, b"" if code is None else code.to_bytes(2, "big") + reason)


@dataclass
class Heard:
    """What an independent reader made of some bytes: messages, pings, the code and reason of a close, whether it failed."""

    messages: list[bytes] = field(default_factory=list)
    pings: list[bytes] = field(default_factory=list)
    close: tuple[int, str] | None = None
    failed: bool = False


def by_websockets(wire: bytes, *, client: bool = True, limit: int = 1 << 20) -> Heard:
    """As `websockets` reads what its peer sent; the reader is a `client`, or a server."""
    protocol = Protocol(Side.CLIENT if client else Side.SERVER, state=State.OPEN, max_size=limit)
    protocol.receive_data(wire)
    heard, parts = Heard(failed=protocol.parser_exc is not None), b""
    for frame in protocol.events_received():
        assert isinstance(frame, Frame)
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            parts = bytes(frame.data) if frame.opcode is not Opcode.CONT else parts + bytes(frame.data)
            if frame.fin:
                heard.messages.append(parts)
        elif frame.opcode is Opcode.PING:
            heard.pings.append(bytes(frame.data))
    if protocol.close_rcvd is not None:
        heard.close = protocol.close_rcvd.code, protocol.close_rcvd.reason
    return heard


def by_wsproto(wire: bytes, *, client: bool = True) -> Heard:
    """As `wsproto` reads it."""
    connection = Connection(ConnectionType.CLIENT if client else ConnectionType.SERVER)
    heard, parts = Heard(), b""
    try:
        connection.receive_data(wire)
        for event in connection.events():
            if isinstance(event, Message):
                assert isinstance(event, TextMessage | BytesMessage)
                data = event.data
                parts += data.encode() if isinstance(data, str) else bytes(data)
                if event.message_finished:
                    heard.messages.append(parts)
                    parts = b""
            elif isinstance(event, Ping):
                heard.pings.append(bytes(event.payload))
            elif isinstance(event, CloseConnection):
                heard.close = event.code, event.reason or ""
                if event.code in (1002, 1006, 1007, 1009):  # what it would answer to a fault
                    heard.failed = True
    except (RemoteProtocolError, LocalProtocolError):
        heard.failed = True
    return heard


class Server:
    """A server's side by `websockets`: it accepts every handshake, and what it is told to send is sent at the next `take`."""

    def __init__(self) -> None:
        self.protocol = ServerProtocol(max_size=1 << 25)
        self.requests: list[bytes] = []
        self.request: Request | None = None

    def receive(self, data: bytes) -> None:
        """What a client sent."""
        self.protocol.receive_data(data)
        for event in self.protocol.events_received():
            if isinstance(event, Request):
                self.request = event
                self.protocol.send_response(self.protocol.accept(event))
            elif isinstance(event, Frame) and event.opcode in (Opcode.TEXT, Opcode.BINARY):
                self.requests.append(bytes(event.data))

    def say(self, *messages: bytes) -> bytes:
        """The bytes of these text messages, behind what was to be sent before."""
        for message in messages:
            self.protocol.send_text(message)
        return self.take()

    def take(self) -> bytes:
        """What it wants sent."""
        return b"".join(self.protocol.data_to_send())
