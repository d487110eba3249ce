"""gRPC over HTTP/2 without I/O: messages in a body, and the status in the trailers (grpc/grpc, doc/PROTOCOL-HTTP2.md).

    HEADERS   :status 200, content-type application/grpc
    DATA      message = compressed (1 byte), length (4 bytes, big-endian), as many bytes; frames may cut it anywhere
    HEADERS   grpc-status, grpc-message; END_STREAM

A response without messages may be one HEADERS frame with all of it ("trailers-only").

| a response                                      | is                                              |
| ----------------------------------------------- | ----------------------------------------------- |
| `grpc-status: 0`                                | complete                                        |
| another status, behind messages or without      | an error with a name (`Status.name`)            |
| no status                                       | cut short                                       |
| a status that is no number                      | no gRPC                                         |
| a message that is compressed                    | BadMessage: nothing but `identity` is requested |
| a message of more bytes than the limit          | EventTooLarge, before it is read                |

A status that this file does not know is UNKNOWN, as the specification wants it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import unquote_to_bytes

from inferometer.protocol.event_decoder import EventTooLarge

CONTENT_TYPE = "application/grpc"
STATUS, MESSAGE = b"grpc-status", b"grpc-message"
OK_OF_GRPC = 200
"""The one HTTP status of gRPC's own responses: how they ended is said by their trailers."""
PREFIX_BYTES = 5
NAMES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
"""Statuses by their number."""
CODES: Mapping[str, int] = {name: code for code, name in enumerate(NAMES)}
LONGEST_TIMEOUT = 99_999_999
"""The specification allows eight digits."""

_PREFIX = struct.Struct("!BL")
_PLAIN = frozenset(range(0x20, 0x7F)) - {ord("%")}


def speaks_grpc(content_type: str) -> bool:
    """Whether a response of this media type is gRPC's, in whichever encoding; `application/grpc-web`, which puts the trailers
    into the body, is not."""
    kind = content_type.lower().partition(";")[0].strip()
    return kind == CONTENT_TYPE or kind.startswith(f"{CONTENT_TYPE}+")


class BadMessage(ValueError):
    """The bytes are no message of gRPC, or one that was compressed unasked."""


class GrpcDecoder:
    """Feed it a body in any pieces; it gives back the messages that these bytes complete. See EventDecoder."""

    CONTENT_TYPES: ClassVar[tuple[str, ...]] = (CONTENT_TYPE,)
    STARTS: ClassVar[tuple[bytes, ...]] = ()
    LAST: ClassVar[int] = -1

    __slots__ = ("_buffer", "_limit", "_wanted")

    def __init__(self, limit: int = 1 << 20) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._wanted = PREFIX_BYTES  # bytes that it takes to go on with what is held

    @property
    def unfinished(self) -> bool:
        """True if the body would end inside a message, which is then dropped."""
        return bool(self._buffer)

    def feed(self, chunk: bytes) -> Sequence[bytes]:
        """The messages completed by `chunk`, in order. Raises EventTooLarge, BadMessage."""
        if self._buffer:
            self._buffer += chunk
            if len(self._buffer) < self._wanted:
                return ()
            chunk = bytes(self._buffer)
            self._buffer.clear()
        found: list[bytes] = []
        at, size = 0, len(chunk)
        while size - at >= PREFIX_BYTES:
            compressed, length = _PREFIX.unpack_from(chunk, at)
            if compressed:
                raise BadMessage(
                    "a compressed message, which the request did not ask for"
                    if compressed == 1
                    else f"a message begins with {compressed}, not with 0 or 1"
                )
            if length > self._limit:
                raise EventTooLarge(f"a message of {length} bytes, where {self._limit} are allowed")
            end = at + PREFIX_BYTES + length
            if end > size:
                self._wanted = end - at
                break
            found.append(chunk[at + PREFIX_BYTES : end])
            at = end
        else:
            self._wanted = PREFIX_BYTES
        if at < size:
            self._buffer += chunk[at:]
        return found

    def end(self) -> Sequence[bytes]:
        """The body has ended, which completes no message."""
        return ()


def framed(message: bytes) -> bytes:
    """A message as it stands in a body."""
    return _PREFIX.pack(0, len(message)) + message


@dataclass(frozen=True, slots=True)
class Status:
    """How a call has ended."""

    code: int
    message: str = ""

    @property
    def name(self) -> str:
        """As the specification names it."""
        return NAMES[self.code] if self.code < len(NAMES) else "UNKNOWN"

    def __str__(self) -> str:
        """The name and the server's words."""
        return f"grpc {self.name}" + (f": {self.message}" if self.message else "")


def read_status(fields: Mapping[bytes, bytes]) -> Status | None:
    """The status among the header fields of trailers, or of a head that is all of a response; None: there is none. Raises
    BadMessage."""
    code = fields.get(STATUS)
    if code is None:
        return None
    if not code.isdigit() or len(code) > 10:
        raise BadMessage(f"the grpc-status is no number: {code!r}")
    return Status(int(code), decoded(fields.get(MESSAGE, b"")))


def status_fields(status: Status) -> list[tuple[bytes, bytes]]:
    """The header fields that say it."""
    fields = [(STATUS, b"%d" % status.code)]
    return [*fields, (MESSAGE, encoded(status.message))] if status.message else fields


def decoded(message: bytes) -> str:
    """The text of a grpc-message. What is encoded wrongly stays as it is."""
    return unquote_to_bytes(message).decode("utf-8", "replace")


def encoded(text: str) -> bytes:
    """A text as a grpc-message: all but printable ASCII as %XX of its UTF-8."""
    return b"".join(
        bytes((byte,)) if byte in _PLAIN else b"%%%02X" % byte for byte in text.encode("utf-8", "replace")
    )


def timeout(seconds: float) -> str:
    """A deadline as the value of grpc-timeout: milliseconds as far as eight digits hold them, else seconds."""
    thousandths = max(1, round(seconds * 1000))
    return f"{thousandths}m" if thousandths <= LONGEST_TIMEOUT else f"{min(round(seconds), LONGEST_TIMEOUT)}S"
