"""What a fault does to the bytes of one answer: pieces in, steps out. Pure; time is a number of ns to wait.

An answer hands over pieces in this order, and a filter says for each what is really to be done:

| place | is                                                                         |
| ----- | -------------------------------------------------------------------------- |
| HEAD  | status line and headers of a stream                                        |
| EVENT | an event without a token of its own: a chat's role                         |
| TOKEN | the event of a token, or of several that came out together, one chunk      |
| END   | usage, terminator and last chunk of a stream                               |
| WHOLE | head and body of an answer that is not streamed                            |

Stamps travel with the bytes: the instant at which a step's last byte leaves belongs to every piece in it.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from inferometer.server.connection import Stamps
from inferometer.server.fault_specs import Met
from inferometer.server.http_reply import Reply, chunk

_LAST_CHUNK = b"0\r\n\r\n"
_DONE = b"data: [DONE]\n\n"
_PING = chunk(b": ping\n\n")
_TEXT = re.compile(rb'"(?:content|reasoning_content|text|response)":"[^"\\]')
_CREATED = re.compile(rb'"created":(\d{10})(?!\d)')
_DATE = re.compile(rb"\r\nDate: ([^\r]*)\r\n")
_LENGTH = re.compile(rb"\r\nContent-Length: \d+\r\n")
_OUTPUT_COUNTS = ("completion_tokens", "output_tokens", "eval_count", "total_tokens")
_PAGE = b"<!DOCTYPE html>\n<html><head><title>Error</title></head><body><h1>Something went wrong</h1></body></html>\n"


class Place(enum.Enum):
    """What a piece is to its answer; the table above."""

    HEAD = enum.auto()
    EVENT = enum.auto()
    TOKEN = enum.auto()
    END = enum.auto()
    WHOLE = enum.auto()


class Then(enum.Enum):
    """What follows a step's bytes."""

    GO_ON = enum.auto()
    RESET = enum.auto()
    CLOSE = enum.auto()
    HANG = enum.auto()


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that an answer wants sent, where the instant of their leaving is to be noted, and how many tokens they hold."""

    place: Place
    data: bytes
    stamps: Stamps | None = None
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """Wait `wait_ns` after the step before, send `data` with one `send`, then do `then`."""

    data: bytes = b""
    stamps: tuple[Stamps, ...] = ()
    wait_ns: int = 0
    then: Then = Then.GO_ON


class Filter:
    """Lets everything pass. `every_ns`: `tick` is called so often between the head and the end; 0: never."""

    every_ns = 0

    def take(self, piece: Piece) -> Iterator[Step]:
        """What to do in the place of sending this piece."""
        yield _as_is(piece)

    def tick(self) -> Iterator[Step]:
        """What to do now that `every_ns` have passed."""
        yield from ()


class Cut(Filter):
    """Ends the answer with `then` behind the event of token number `after`, from 1, and an answer shorter than that before its
    end; `wait_ns` later. 0: before anything; so too where nothing is streamed.
    """

    def __init__(self, after: int, then: Then, wait_ns: int = 0) -> None:
        self._left = after
        self._wait_ns = wait_ns
        self._then = then
        self._over = False

    def take(self, piece: Piece) -> Iterator[Step]:
        """Nothing after the cut."""
        if self._over:
            return
        if piece.place in (Place.END, Place.WHOLE):
            self._left = 0
        if self._left > 0:
            yield _as_is(piece)
        self._left -= piece.tokens
        if self._left <= 0:
            self._over = True
            yield Step(wait_ns=self._wait_ns, then=self._then)


class Closing(Filter):
    """Closes the connection behind the answer."""

    def take(self, piece: Piece) -> Iterator[Step]:
        """All of it first."""
        yield _as_is(piece)
        if piece.place in (Place.END, Place.WHOLE):
            yield Step(then=Then.CLOSE)


class Late(Filter):
    """Holds the first piece, and with it all others, for `wait_ns`."""

    def __init__(self, wait_ns: int) -> None:
        self._wait_ns = wait_ns

    def take(self, piece: Piece) -> Iterator[Step]:
        """The first piece waits."""
        wait_ns, self._wait_ns = self._wait_ns, 0
        yield Step(piece.data, _stamps(piece), wait_ns)


class Pieces(Filter):
    """Cuts every piece into parts of `size` bytes, each sent by itself after `wait_ns`."""

    def __init__(self, size: int, wait_ns: int = 0) -> None:
        self._size = size
        self._wait_ns = wait_ns

    def take(self, piece: Piece) -> Iterator[Step]:
        """The stamp belongs to the last part."""
        data, size = piece.data, self._size
        for at in range(0, len(data), size):
            last = at + size >= len(data)
            yield Step(data[at : at + size], _stamps(piece) if last else (), self._wait_ns)


class Glue(Filter):
    """Collects `count` events and sends them at once; the end brings the rest with it."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._held: list[Piece] = []

    def take(self, piece: Piece) -> Iterator[Step]:
        """Nothing, until there are enough."""
        if piece.place is Place.HEAD:
            yield _as_is(piece)
            return
        self._held.append(piece)
        if len(self._held) == self._count or piece.place is Place.END:
            yield _together(self._held, b"".join(one.data for one in self._held))
            self._held = []


class Merge(Filter):
    """Collects events until they have `count` tokens or more, and sends their texts in one."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._held: list[Piece] = []

    def take(self, piece: Piece) -> Iterator[Step]:
        """What is no token is preceded by the tokens held."""
        if piece.place is Place.TOKEN:
            self._held.append(piece)
        enough = sum(one.tokens for one in self._held) >= self._count
        if self._held and (enough or piece.place is not Place.TOKEN):
            yield _together(self._held, _merged([one.data for one in self._held]))
            self._held = []
        if piece.place is not Place.TOKEN:
            yield _as_is(piece)


class Comments(Filter):
    """A comment every `every_ns` while the answer lasts."""

    def __init__(self, every_ns: int) -> None:
        self.every_ns = every_ns

    def tick(self) -> Iterator[Step]:
        """One comment, a chunk of its own."""
        yield Step(_PING)


class Damage(Filter):
    """Changes the event that has token number `after`, from 0."""

    def __init__(self, after: int, change: Callable[[bytes], bytes]) -> None:
        self._left = after
        self._change = change

    def take(self, piece: Piece) -> Iterator[Step]:
        """Every other piece passes."""
        data = piece.data
        if 0 <= self._left < piece.tokens:
            data = self._change(data)
        self._left -= piece.tokens
        yield Step(data, _stamps(piece))


class Change(Filter):
    """Changes the pieces at some places."""

    def __init__(self, change: Callable[[bytes], bytes], *places: Place) -> None:
        self._change = change
        self._places = places

    def take(self, piece: Piece) -> Iterator[Step]:
        """Every other piece passes."""
        yield Step(self._change(piece.data) if piece.place in self._places else piece.data, _stamps(piece))


def reply(met: Met) -> Reply | None:
    """The answer in the place of a generation, if this fault gives one."""
    fault = met.fault
    if fault.name == "html":
        return Reply(fault.whole_number("status"), _PAGE, b"text/html; charset=utf-8")
    if fault.name != "status":
        return None
    kind = "server_error" if met.status >= 500 else "invalid_request_error"
    error = {"message": f"a fault that was asked for: {met.label}", "type": kind, "param": None, "code": None}
    wait = ((b"Retry-After", b"%d" % fault.whole_number("retry-after")),)
    body = msgspec.json.encode({"error": error})
    return Reply(met.status, body, headers=wait if met.status in (429, 503) else ())


def filter_of(met: Met, max_tokens: int) -> Filter:
    """What turns a good answer of `max_tokens` tokens into this fault. An answer too short for `after` meets it at its end."""
    fault = met.fault
    number = fault.whole_number
    match fault.name:
        case "reset":
            return Cut(number("after"), Then.RESET)
        case "sit":
            return Cut(0, Then.RESET, fault.ns())
        case "hang":
            return Cut(number("after"), Then.HANG)
        case "close":
            return Closing()
        case "slow-headers":
            return Late(fault.ns())
        case "trickle":
            return Pieces(number("bytes"), fault.ns())
        case "split":
            return Pieces(number("bytes"))
        case "glue":
            return Glue(number("events"))
        case "tokens-per-event":
            return Merge(number("tokens"))
        case "comments":
            return Comments(fault.ns())
        case "no-done":
            return Change(without_done, Place.END)
        case "double-done":
            return Change(done_twice, Place.END)
        case "wrong-usage":
            by = number("by")
            return Change(lambda data: miscounted(data, by), Place.END, Place.WHOLE)
        case "clock-skew":
            seconds = int(fault.values["ms"] // 1000)
            return Change(lambda data: skewed(data, seconds), *Place)
    changes: dict[str, Callable[[bytes], bytes]] = {
        "malformed-json": unclosed,
        "broken-chunk": lambda data: b"zz" + data,
        "invalid-utf8": undecodable,
        "huge-event": lambda data: padded(data, number("bytes")),
    }
    return Damage(min(number("after"), max_tokens - 1), changes[fault.name])


# What is done to bytes. `data` is whole chunks, or a head with its body.


def payloads(data: bytes) -> Iterator[bytes]:
    """The payload of each chunk; empty for the last."""
    at = 0
    while at < len(data):
        start = data.index(b"\r\n", at) + 2
        size = int(data[at : start - 2], 16)
        yield data[start : start + size]
        at = start + size + 2


def _rewritten(data: bytes, change: Callable[[bytes], list[bytes]]) -> bytes:
    """Chunks with other payloads."""
    made = []
    for payload in payloads(data):
        made += [chunk(one) for one in change(payload)] if payload else [_LAST_CHUNK]
    return b"".join(made)


def without_done(data: bytes) -> bytes:
    """No terminator."""
    return _rewritten(data, lambda payload: [] if payload == _DONE else [payload])


def done_twice(data: bytes) -> bytes:
    """The terminator a second time."""
    return _rewritten(data, lambda payload: [payload] * (2 if payload == _DONE else 1))


def unclosed(data: bytes) -> bytes:
    """Payloads without their last brace."""

    def change(payload: bytes) -> list[bytes]:
        at = payload.rindex(b"}")
        return [payload[:at] + payload[at + 1 :]]

    return _rewritten(data, change)


def undecodable(data: bytes) -> bytes:
    """The first byte of the text is one that UTF-8 has no use for; the length stays."""
    found = _TEXT.search(data)
    at = found.end() - 1 if found else data.index(b"{") + 1
    return data[:at] + b"\xff" + data[at + 1 :]


def padded(data: bytes, size: int) -> bytes:
    """The payload with a member more, so long that it has `size` bytes; unchanged if it is as long already."""

    def change(payload: bytes) -> list[bytes]:
        at = payload.rindex(b"}")
        extra = b',"padding":"%b"'
        room = size - len(payload) - len(extra) + 2
        return [payload[:at] + extra % (b"x" * room) + payload[at:]] if room >= 0 else [payload]

    return _rewritten(data, change)


def miscounted(data: bytes, by: int) -> bytes:
    """Output tokens in every `usage` are off by `by`, never below 0."""

    def count(node: Any) -> None:
        if isinstance(node, dict):
            for key, value in node.items():
                if key in _OUTPUT_COUNTS and isinstance(value, int):
                    node[key] = max(0, value + by)
                else:
                    count(value)

    def change(payload: bytes) -> list[bytes]:
        before, found, after = _json(payload)
        count(found)
        return [before + msgspec.json.encode(found) + after] if found is not None else [payload]

    if not data.startswith(b"HTTP/"):
        return _rewritten(data, change)
    head, _, body = data.partition(b"\r\n\r\n")
    (body,) = change(body)
    return _LENGTH.sub(b"\r\nContent-Length: %d\r\n" % len(body), head + b"\r\n\r\n", count=1) + body


def skewed(data: bytes, seconds: int) -> bytes:
    """`created` and `Date` moved; lengths stay."""
    moved = _CREATED.sub(lambda found: b'"created":%010d' % max(0, int(found[1]) + seconds), data)
    return _DATE.sub(lambda found: b"\r\nDate: %b\r\n" % _later(found[1], seconds), moved, count=1)


def _later(date: bytes, seconds: int) -> bytes:
    """An HTTP date so many seconds on."""
    from email.utils import formatdate, mktime_tz, parsedate_tz  # 10 ms that other servers need not pay

    parsed = parsedate_tz(date.decode("latin-1"))
    return date if parsed is None else formatdate(mktime_tz(parsed) + seconds, usegmt=True).encode()


def _merged(pieces: list[bytes]) -> bytes:
    """One chunk with the last event, and the text of all in it; what has no text we know of is only joined."""
    texts = []
    for piece in pieces:
        before, found, after = _json(b"".join(payloads(piece)))
        slot = _text_slot(found)
        if slot is None:
            return b"".join(pieces)
        inner, key = slot
        texts.append(inner[key])
    inner[key] = "".join(texts)
    return chunk(before + msgspec.json.encode(found) + after)


def _text_slot(event: Any) -> tuple[dict[str, Any], str] | None:
    """Where an event has its text: the object, and the key in it."""
    if not isinstance(event, dict):
        return None
    choices = event.get("choices")
    if isinstance(choices, list) and choices:
        event = choices[0]
    for inner in (event.get("delta"), event.get("message"), event):
        if isinstance(inner, dict):
            for key in ("content", "text", "response", "reasoning_content", "delta"):
                if isinstance(inner.get(key), str):
                    return inner, key
    return None


def _json(payload: bytes) -> tuple[bytes, Any, bytes]:
    """What stands before the JSON object of a payload, the object (None without one), and what stands after."""
    start, end = payload.find(b"{"), payload.rfind(b"}") + 1
    if start < 0 or not end:
        return payload, None, b""
    return payload[:start], msgspec.json.decode(payload[start:end]), payload[end:]


def _as_is(piece: Piece) -> Step:
    return Step(piece.data, _stamps(piece))


def _stamps(piece: Piece) -> tuple[Stamps, ...]:
    return () if piece.stamps is None else (piece.stamps,)


def _together(pieces: list[Piece], data: bytes) -> Step:
    return Step(data, tuple(stamp for piece in pieces for stamp in _stamps(piece)))
