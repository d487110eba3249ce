"""WebSockets on the client's side: the same handshake, messages, close and fault however cut, and nothing raised."""

from __future__ import annotations

from fuzz.pieces import same_however_cut
from inferometer.protocol.websocket_frames import Close, MessageReader
from inferometer.protocol.websocket_handshake import ClientHandshake, accept

LIMIT = 1 << 16
NONCE = bytes(16)
SHAKEN = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: " + accept(b"AAAAAAAAAAAAAAAAAAAAAA==") + b"\r\n\r\n"
)

Outcome = tuple[list[bytes], bytes | None, Close | None, Close | None]


def check(data: bytes) -> None:
    """As an answer to the handshake, as what follows it, and as what a client sends."""
    same_however_cut(data, shaken)
    assert shaken([SHAKEN + data])
    for of_whom in (_of_a_server, _of_a_client):
        messages, _, closed, fault = same_however_cut(data, of_whom)
        assert all(len(message) <= LIMIT for message in messages)
        assert closed is None or fault is None


def shaken(pieces: list[bytes]) -> bool:
    """Whether it is a WebSocket now."""
    opening = ClientHandshake(NONCE)
    for piece in pieces:
        if opening.done or opening.fault:
            break
        opening.feed(piece)
    opening.end()
    assert opening.done is not bool(opening.fault)
    opening.close()
    return opening.done


def _of_a_server(pieces: list[bytes]) -> Outcome:
    return read(pieces, from_client=False)


def _of_a_client(pieces: list[bytes]) -> Outcome:
    return read(pieces, from_client=True)


def read(pieces: list[bytes], *, from_client: bool) -> Outcome:
    """Messages, the latest ping, the close and the fault."""
    reader = MessageReader(LIMIT, from_client=from_client)
    messages = [message for piece in pieces for message in reader.feed(piece)]
    return messages, reader.pong, reader.closed, reader.fault
