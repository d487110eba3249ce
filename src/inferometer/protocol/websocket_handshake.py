"""The handshake of a WebSocket over HTTP/1.1 (RFC 6455, section 4), sans-IO, for both sides.

    GET /v1/ws HTTP/1.1                          HTTP/1.1 101 Switching Protocols
    Upgrade: websocket                           Upgrade: websocket
    Connection: Upgrade                          Connection: Upgrade
    Sec-WebSocket-Key: 16 bytes, base64          Sec-WebSocket-Accept: SHA-1 of the key and a UUID, base64
    Sec-WebSocket-Version: 13

| the server answers                                                   | the handshake                          |
| -------------------------------------------------------------------- | -------------------------------------- |
| 101 as above, at most with a subprotocol that was offered (4.1)       | is over: what follows is frames        |
| 101 without these lines, with another Accept or with an extension     | has failed                             |
| any other status, redirects included: none is followed                | has failed, with the body's first bytes |
| no HTTP, or a head above the limit                                    | has failed                             |
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any

import httptools

from inferometer.protocol.http_request import Request
from inferometer.protocol.http_response import HEAD_LIMIT

SWITCHING = 101
VERSION = b"13"
QUOTED = 1 << 10
"""Bytes of a refusal's body that are kept."""
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # section 1.3
_KEY_BYTES = 16
_PROTOCOL = b"sec-websocket-protocol"


def accept(key: bytes) -> bytes:
    """What a server answers to a key (4.2.2)."""
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


def request(path: str, lines: Mapping[str, str], nonce: bytes) -> bytes:
    """The client's request, with these header lines. `nonce`: 16 random bytes."""
    own = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(nonce).decode(),
        "Sec-WebSocket-Version": VERSION.decode(),
    }
    fields = "".join(f"{name}: {value}\r\n" for name, value in {**lines, **own}.items())
    return f"GET {path} HTTP/1.1\r\n{fields}\r\n".encode("latin-1")


def offered(lines: Mapping[str, str]) -> str:
    """The subprotocols that header lines offer, as one line has them."""
    return ",".join(value for name, value in lines.items() if name.lower().encode() == _PROTOCOL)


class ClientHandshake:
    """Reads the server's answer. `nonce`: that of the request; `offered`: the request's subprotocols, as its line has them.

    `done`: it is a WebSocket now. `fault`: why it will never be one, in words. `status`: of a whole head.
    """

    __slots__ = (
        "_accept",
        "_body",
        "_head_bytes",
        "_lines",
        "_offered",
        "_parser",
        "done",
        "fault",
        "status",
    )

    def __init__(self, nonce: bytes, offered: str = "") -> None:
        self._accept = accept(base64.b64encode(nonce))
        self._offered = _tokens(offered.encode("latin-1"), lower=False)
        self._lines: list[tuple[bytes, bytes]] = []
        self._body = b""
        self._head_bytes = 0
        self._parser: Any = httptools.HttpResponseParser(self)
        self.status = 0
        self.done = False
        self.fault = ""

    def feed(self, data: bytes) -> bytes:
        """Take bytes; those that follow the handshake, once it is `done`. Never raises."""
        rest = b""
        if not self.status:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as cause:
            rest = data[cause.args[0] :]
            self._head_bytes -= len(rest)
            self.fault = self.fault or self._first_fault()
            self.done = not self.fault and self._head_bytes <= HEAD_LIMIT
        except httptools.HttpParserError as cause:
            self.fault = self.fault or f"no answer of HTTP: {cause}"
        if self._head_bytes > HEAD_LIMIT and self.status in (0, SWITCHING):
            self.fault = self.fault or f"a header block of more than {HEAD_LIMIT} bytes"
        return rest if self.done else b""

    def end(self) -> None:
        """The server has closed the connection."""
        if not (self.done or self.fault):
            self.fault = self._refusal() if self.status else "the server closed the connection instead"

    @property
    def headers(self) -> dict[bytes, bytes]:
        """The first value of each line of the head, by lower-case name."""
        return dict(reversed(self._lines))

    def close(self) -> None:
        """Break the circle with the parser."""
        self._parser = None

    # Callbacks of llhttp.
    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head."""
        if not self.status:
            self._lines.append((name.lower(), value.strip()))

    def on_headers_complete(self) -> None:
        """The head has ended."""
        status = self._parser.get_status_code()
        if status >= 200 or status == SWITCHING:
            self.status = status

    def on_body(self, data: bytes) -> None:
        """Some of a refusal's words."""
        self._body = (self._body + data)[:QUOTED]
        if len(self._body) == QUOTED:
            self.on_message_complete()

    def on_message_complete(self) -> None:
        """A refusal is whole; an interim response does not count."""
        if self.status == SWITCHING:  # where all is right llhttp stops behind this call
            self.fault = self.fault or self._first_fault()
        elif self.status:
            self.fault = self.fault or self._refusal()
        else:
            self._lines.clear()

    def _refusal(self) -> str:
        words = self._body.decode("utf-8", "replace").strip()
        if 300 <= self.status < 400:
            words = f"a redirect to {self._value(b'location').decode('latin-1')!r}, which is not followed"
        return f"status {self.status}: {words}" if words else f"status {self.status}"

    def _first_fault(self) -> str:
        """What is wrong with a 101, in words (4.1); nothing if it is right."""
        if self.status != SWITCHING:
            return f"status {self.status} that switches protocols"
        for name, token in ((b"upgrade", b"websocket"), (b"connection", b"upgrade")):
            if token not in _tokens(self._value(name)):
                return f"101 without {name.decode().title()}: {token.decode()}"
        if self._value(b"sec-websocket-accept") != self._accept:
            return "101 with a Sec-WebSocket-Accept that does not belong to the key"
        if extensions := self._value(b"sec-websocket-extensions"):
            return f"101 with an extension that was not offered: {extensions.decode('latin-1')!r}"
        chosen = self._value(_PROTOCOL)
        if len(_tokens(chosen)) > 1:
            return f"101 with more than one subprotocol: {chosen.decode('latin-1')[:100]!r}"
        if chosen and chosen not in self._offered:
            return f"101 with a subprotocol that was not offered: {chosen.decode('latin-1')!r}"
        return ""

    def _value(self, name: bytes) -> bytes:
        """The values of all lines of this name, as one (RFC 9110, 5.3)."""
        return b", ".join(value for key, value in self._lines if key == name)


def _tokens(value: bytes, *, lower: bool = True) -> list[bytes]:
    parts = [part.strip() for part in value.split(b",")]
    return [part.lower() if lower else part for part in parts if part]


def asks_to_switch(asked: Request) -> bool:
    """Whether a request is a client's handshake, right or wrong."""
    return b"websocket" in _tokens(asked.header(b"upgrade").encode("latin-1"))


def refused(asked: Request) -> str:
    """What is wrong with a client's handshake (4.2.1), in words; nothing if it is right."""
    header = {name: asked.header(name).encode("latin-1") for name in _OF_A_CLIENT}
    if asked.method != "GET" or asked.version != "1.1":
        return "a WebSocket begins with a GET of HTTP/1.1"
    if b"upgrade" not in _tokens(header[b"connection"]):
        return "Connection does not name Upgrade"
    if header[b"sec-websocket-version"] != VERSION:
        return "Sec-WebSocket-Version is not 13"
    try:
        key = base64.b64decode(header[b"sec-websocket-key"], validate=True)
    except binascii.Error:
        key = b""
    return "" if len(key) == _KEY_BYTES else "Sec-WebSocket-Key is not 16 bytes in base64"


_OF_A_CLIENT = (b"connection", b"sec-websocket-version", b"sec-websocket-key")


UPGRADE = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"))


def switching(asked: Request) -> tuple[tuple[bytes, bytes], ...]:
    """The header lines of the answer to a right one, which has the status SWITCHING and chooses no subprotocol."""
    key = asked.header(b"sec-websocket-key").encode("latin-1")
    return (*UPGRADE, (b"Sec-WebSocket-Accept", accept(key)))
