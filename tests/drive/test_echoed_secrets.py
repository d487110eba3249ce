"""Servers that repeat a key where no words of theirs are expected: what is quoted of it is struck out, however long it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from http2_partner import (
    END_HEADERS,
    END_STREAM,
    EVENTS,
    GOAWAY,
    GREETING,
    REQUEST,
    head,
    number,
    raw,
)

from inferometer.client.http_client import Unanswered
from inferometer.drive.grpc_outcomes import failure
from inferometer.journal.redact import LEAST_PART, Redactor
from inferometer.protocol.http2_client import Http2Client
from inferometer.protocol.http2_events import Failed
from inferometer.protocol.websocket_handshake import ClientHandshake

KEY = "sk-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
KEPT = 200
"""Characters of a detail on record."""


def of_http2(wire: bytes) -> str:
    """The words of what comes of a request that is answered so."""
    client = Http2Client(1)
    client.open()
    client.receive(GREETING)
    client.request([(name.encode(), value.encode()) for name, value in REQUEST], b"", object())
    (failed,) = [event for event in client.receive(wire) if isinstance(event, Failed)]
    return failed.words


def of_goaway(said: str) -> str:
    """As the probe words the end of a connection that was announced."""
    words = of_http2(raw(GOAWAY, 0, 0, number(0) + number(11) + said.encode()))
    return str(Unanswered("closed", f"the connection ended before the answer did ({words})"))


def of_handshake(line: str, status: str = "101 Switching Protocols") -> str:
    """What is wrong with a handshake that has this line too."""
    opening = ClientHandshake(bytes(16))
    accept = opening._accept.decode()
    lines = ("Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {accept}", line, "", "")
    opening.feed("\r\n".join((f"HTTP/1.1 {status}", *lines)).encode())
    opening.end()
    return opening.fault


PLACES: dict[str, Callable[[str], str]] = {
    "a grpc-status": lambda said: (failure({b"grpc-status": said.encode()}, unfinished=False) or ("", ""))[1],
    "a :status": lambda said: of_http2(head(1, [(":status", said)])),
    "a name": lambda said: of_http2(head(1, [*EVENTS, (f"{said}:", "x")])),
    "a name whose value is none": lambda said: of_http2(head(1, [*EVENTS, (said.lower(), "\0")])),
    "a Content-Length": lambda said: of_http2(head(1, [*EVENTS, ("content-length", said)])),
    "a trailer": lambda said: of_http2(head(1) + head(1, [(f"{said}:", "x")], END_HEADERS | END_STREAM)),
    "a GOAWAY": of_goaway,
    "a WebSocket extension": lambda said: of_handshake(f"Sec-WebSocket-Extensions: {said}"),
    "a WebSocket subprotocol": lambda said: of_handshake(f"Sec-WebSocket-Protocol: {said}"),
    "a redirect of a WebSocket": lambda said: of_handshake(f"Location: {said}", "302 Found"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_key_that_a_server_repeats_is_struck_out_wherever_it_stands(place: str) -> None:
    """Law: whatever stands before the key, no part of it that says something is on record. A text that is cut before it is
    struck out, and goes on behind the cut, would keep one."""
    for before in range(0, 2 * KEPT, 7):
        key = KEY.lower() if place == "a name whose value is none" else KEY
        words = PLACES[place]("x" * before + key)
        assert "x" * min(before, 20) in words
        assert key[:LEAST_PART] in words, "the place is quoted"
        assert key[:LEAST_PART] not in Redactor([key]).short(words, KEPT)
