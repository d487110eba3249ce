"""What a server may do wrong over HTTP/2, with requests on streams 1 and 3: its bytes, and how these streams end."""

from __future__ import annotations

from hpack import Encoder
from http2_partner import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    EVENTS,
    GOAWAY,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    head,
    number,
    raw,
)

from inferometer.protocol.http2_frames import MOST_FRAME, MOST_WINDOW

BOTH_MALFORMED = {1: "malformed", 3: "malformed"}
BOTH_TOO_LARGE = {1: "too_large", 3: "too_large"}
LONG = [(":status", "200"), ("x", "y" * 70_000)]


def bomb() -> bytes:
    """A block of headers that is short, and by its table long: one field of 4,000 bytes, named 100 times."""
    encoder = Encoder()
    first = encoder.encode([(":status", "200"), ("x-bomb", "b" * 3_900)], huffman=False)
    again = encoder.encode([("x-bomb", "b" * 3_900)] * 100, huffman=False)
    assert len(again) == 100
    return raw(HEADERS, END_HEADERS, 1, bytes(first + again))


def pieces_of(stream: int, fields: list[tuple[str, str]]) -> bytes:
    """A header block of any size, in frames of the largest size."""
    data = Encoder().encode(fields, huffman=False)
    parts = [data[at : at + MOST_FRAME] for at in range(0, len(data), MOST_FRAME)]
    first, *others = [
        raw(CONTINUATION if place else HEADERS, END_HEADERS if place == len(parts) - 1 else 0, stream, part)
        for place, part in enumerate(parts)
    ]
    return b"".join([first, *others])


HEADED = head(1) + head(3)
FAULTS = {
    "one stream is reset": (HEADED + raw(RST_STREAM, 0, 1, number(2)), {1: "reset"}),
    "an unknown reason": (HEADED + raw(RST_STREAM, 0, 1, number(99)), {1: "reset"}),
    "refused": (raw(RST_STREAM, 0, 1, number(7)), {1: "unbegun"}),
    "refused after it has begun": (HEADED + raw(RST_STREAM, 0, 1, number(7)), {1: "reset"}),
    "leaves, one begun": (raw(GOAWAY, 0, 0, number(1) + number(0)), {3: "unbegun"}),
    "leaves, none begun": (raw(GOAWAY, 0, 0, number(0) + number(2)), {1: "unbegun", 3: "unbegun"}),
    "leaves, though it has begun": (HEADED + raw(GOAWAY, 0, 0, number(1) + number(0)), {3: "reset"}),
    "a GOAWAY without its end": (raw(GOAWAY, 0, 0, number(1)), BOTH_MALFORMED),
    "a GOAWAY on a stream": (raw(GOAWAY, 0, 1, number(1) + number(0)), BOTH_MALFORMED),
    "DATA before HEADERS": (raw(DATA, 0, 1, b"x"), {1: "malformed"}),
    "no :status": (head(1, [("a", "b")]), {1: "malformed"}),
    "two :status": (head(1, [(":status", "200"), (":status", "200")]), {1: "malformed"}),
    ":status that is none": (head(1, [(":status", "2x0")]), {1: "malformed"}),
    ":path in a response": (head(1, [(":status", "200"), (":path", "/")]), {1: "malformed"}),
    "a field in capitals": (head(1, [(":status", "200"), ("X", "y")]), {1: "malformed"}),
    "a field of the connection": (head(1, [(":status", "200"), ("transfer-encoding", "chunked")]), {1: "malformed"}),
    "a line end in a value": (head(1, [(":status", "200"), ("a", "b\r\nc: d")]), {1: "malformed"}),
    "less than Content-Length": (
        head(1, [*EVENTS, ("content-length", "5")]) + raw(DATA, END_STREAM, 1, b"four"), {1: "malformed"},
    ),
    "more than Content-Length": (head(1, [*EVENTS, ("content-length", "3")]) + raw(DATA, 0, 1, b"four"), {1: "malformed"}),
    "nothing of Content-Length": (
        head(1, [*EVENTS, ("content-length", "3")], END_HEADERS | END_STREAM), {1: "malformed"},
    ),
    **{f"Content-Length {value!r}": (head(1, [*EVENTS, ("content-length", value)]), {1: "malformed"})
       for value in ("many", "+4", "-4", " 4", "0_4", "", "9" * 5000)},
    "two Content-Lengths": (
        head(1, [*EVENTS, ("content-length", "4"), ("content-length", "5")]), {1: "malformed"},
    ),
    ":status behind a field": (head(1, [("a", "b"), (":status", "200")]), {1: "malformed"}),
    "an interim :status that is none": (head(1, [(":status", "1x0")]), {1: "malformed"}),
    "a :status of one digit": (head(1, [(":status", "1")]), {1: "malformed"}),
    "a switch of protocols": (head(1, [(":status", "101")]), {1: "malformed"}),
    "an interim head that ends its stream": (
        head(1, [(":status", "103")], END_HEADERS | END_STREAM), {1: "malformed"},
    ),
    "an interim head with a bad field": (head(1, [(":status", "103"), ("X", "y")]), {1: "malformed"}),
    "an interim head behind the head": (head(1) + head(1, [(":status", "103")]), {1: "malformed"}),
    "a second head": (head(1) + head(1), {1: "malformed"}),
    "trailers that do not end the stream": (head(1) + head(1, [("a", "b")]), {1: "malformed"}),
    "trailers with :status": (
        head(1) + head(1, [(":status", "500")], END_HEADERS | END_STREAM), {1: "malformed"},
    ),
    "trailers with a line end": (
        head(1) + head(1, [("a", "b\nc")], END_HEADERS | END_STREAM), {1: "malformed"},
    ),
    "trailers before Content-Length is reached": (
        head(1, [*EVENTS, ("content-length", "3")]) + head(1, [("a", "b")], END_HEADERS | END_STREAM),
        {1: "malformed"},
    ),
    **{f"a field named {name!r}": (head(1, [(":status", "200"), (name, "b")]), {1: "malformed"})
       for name in ("a b", "a:b", "", "\xe9", "a\x7f", "connection")},
    "padding of a head longer than its frame": (raw(HEADERS, PADDED | END_HEADERS, 1, b"\x09\x88"), BOTH_MALFORMED),
    "a padded head without a length": (raw(HEADERS, PADDED | END_HEADERS, 1), BOTH_MALFORMED),
    "a head with half a priority": (raw(HEADERS, END_HEADERS | 0x20, 1, b"\0\0\0"), BOTH_MALFORMED),
    "HEADERS on stream 0": (head(0), BOTH_MALFORMED),
    "CONTINUATION on stream 0": (raw(CONTINUATION, END_HEADERS, 0, b"\x88"), BOTH_MALFORMED),
    "a table larger than allowed": (raw(HEADERS, END_HEADERS, 1, b"\x3f\xe9\x26\x88"), BOTH_MALFORMED),
    "a table resized behind a field": (raw(HEADERS, END_HEADERS, 1, b"\x88\x20"), BOTH_MALFORMED),
    "an entry that no table has": (raw(HEADERS, END_HEADERS, 1, b"\xe3"), BOTH_MALFORMED),
    "padding longer than the frame": (HEADED + raw(DATA, PADDED, 1, b"\x09abc"), BOTH_MALFORMED),
    "a padded frame without a length": (HEADED + raw(DATA, PADDED, 1), BOTH_MALFORMED),
    "DATA on stream 0": (HEADED + raw(DATA, 0, 0, b"x"), BOTH_MALFORMED),
    "DATA on a stream of the server's": (HEADED + raw(DATA, 0, 2, b"x"), BOTH_MALFORMED),
    "DATA on a stream to come": (HEADED + raw(DATA, 0, 9, b"x"), BOTH_MALFORMED),
    "HEADERS on a stream to come": (head(9), BOTH_MALFORMED),
    "HEADERS on a stream of the server's": (head(2), BOTH_MALFORMED),
    "RST_STREAM on a stream to come": (raw(RST_STREAM, 0, 9, number(0)), BOTH_MALFORMED),
    "RST_STREAM of another size": (raw(RST_STREAM, 0, 1, b"abc"), BOTH_MALFORMED),
    "WINDOW_UPDATE on a stream to come": (raw(WINDOW_UPDATE, 0, 9, number(1)), BOTH_MALFORMED),
    "WINDOW_UPDATE of nothing": (raw(WINDOW_UPDATE, 0, 0, number(0)), BOTH_MALFORMED),
    "WINDOW_UPDATE of nothing on a stream": (raw(WINDOW_UPDATE, 0, 1, number(0)), {1: "malformed"}),
    "WINDOW_UPDATE of nothing but the reserved bit": (
        raw(WINDOW_UPDATE, 0, 1, number(1 << 31)), {1: "malformed"},
    ),
    "a window of the connection that overflows": (raw(WINDOW_UPDATE, 0, 0, number(MOST_WINDOW)), BOTH_MALFORMED),
    "a window of a stream that overflows": (raw(WINDOW_UPDATE, 0, 1, number(MOST_WINDOW)), {1: "malformed"}),
    "an initial window that is too large": (raw(SETTINGS, 0, 0, b"\0\4" + number(1 << 31)), BOTH_MALFORMED),
    "a frame size that is too small": (raw(SETTINGS, 0, 0, b"\0\5" + number(100)), BOTH_MALFORMED),
    "SETTINGS of another size": (raw(SETTINGS, 0, 0, b"\0\4abc"), BOTH_MALFORMED),
    "SETTINGS on a stream": (raw(SETTINGS, 0, 1), BOTH_MALFORMED),
    "an acknowledgement with settings": (raw(SETTINGS, ACK, 0, b"\0\4" + number(5)), BOTH_MALFORMED),
    "PING of another size": (raw(PING, 0, 0, b"1234"), BOTH_MALFORMED),
    "PING on a stream": (raw(PING, 0, 1, b"12345678"), BOTH_MALFORMED),
    "a push": (raw(PUSH_PROMISE, END_HEADERS, 1, number(2) + b"\x82"), BOTH_MALFORMED),
    "CONTINUATION of nothing": (raw(CONTINUATION, END_HEADERS, 1, b"\x88"), BOTH_MALFORMED),
    "another frame inside a header block": (
        raw(HEADERS, 0, 1, b"\x88") + raw(DATA, 0, 1, b"x"), BOTH_MALFORMED,
    ),
    "GOAWAY inside a header block": (
        raw(HEADERS, 0, 1, b"\x88") + raw(GOAWAY, 0, 0, number(1) + number(0)), BOTH_MALFORMED,
    ),
    "CONTINUATION of another stream": (
        raw(HEADERS, 0, 1, b"\x88") + raw(CONTINUATION, END_HEADERS, 3, b"\x88"), BOTH_MALFORMED,
    ),
    "a header block that does not decode": (raw(HEADERS, END_HEADERS, 1, b"\xff\xff\xff\xff\xff"), BOTH_MALFORMED),
    "PRIORITY of another size": (raw(PRIORITY, 0, 1, b"x"), BOTH_MALFORMED),
    "a frame over the limit": (HEADED + raw(DATA, 0, 1, length=MOST_FRAME + 1), BOTH_MALFORMED),
    "a header list over the limit": (pieces_of(1, LONG), BOTH_TOO_LARGE),
    "a bomb": (bomb(), BOTH_TOO_LARGE),
}  # fmt: skip
