"""What comes of the requests on an HTTP/2 connection, as its client side reports it (http2_client.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Why = Literal["unbegun", "reset", "malformed", "too_large"]


class Stream:
    """One request and its answer. `owner`: whose it is. As an event it means: there is more of the body, see `take`.

    `plain`: its DATA frames bypass h2. `answered`: its final head has come. `expected`: its Content-Length, of which `got` have
    come. `rest`: of the request's body, what is not sent. `taken`: bytes that are not given back to its window. `trailers`: the
    value of each field behind the body, or the first of each of the head that ended the answer.
    """

    __slots__ = (
        "answered",
        "expected",
        "got",
        "number",
        "owner",
        "parts",
        "plain",
        "rest",
        "taken",
        "trailers",
    )

    def __init__(self, number: int, owner: Any, body: bytes) -> None:
        self.number = number
        self.owner = owner
        self.parts: list[bytes] = []
        self.plain = self.answered = False
        self.expected: int | None = None
        self.got = self.taken = 0
        self.rest = memoryview(body)
        self.trailers: Mapping[bytes, bytes] | None = None

    def take(self) -> bytes:
        """What one call of `receive` has brought of the body."""
        parts = self.parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        return data


@dataclass(frozen=True, slots=True)
class Head:
    """The final head: its status, and the first value of each header."""

    stream: Stream
    status: int
    headers: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class End:
    """The answer is complete."""

    stream: Stream


@dataclass(frozen=True, slots=True)
class Failed:
    """There will be no more of it."""

    stream: Stream
    why: Why
    words: str


Event = Stream | Head | End | Failed
