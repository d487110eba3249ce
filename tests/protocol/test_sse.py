"""Server-sent events against the rules of the WHATWG."""

from __future__ import annotations

import pytest
from feeding import same_however_cut, split_at
from hypothesis import given
from hypothesis import strategies as st

from inferometer.protocol.event_decoder import EventTooLarge, NamedEvent
from inferometer.protocol.sse import SseDecoder

Named = tuple[bytes, bytes]
"""An event that is given out with its name: the name, and its data."""


def decode(pieces: list[bytes]) -> list[bytes | Named | None]:
    decoder = SseDecoder()
    found = [event for piece in pieces for event in decoder.feed(piece)]
    return [(event.name, bytes(event)) if isinstance(event, NamedEvent) else event for event in found]


def by_the_book(stream: bytes) -> list[bytes | Named | None]:
    """The standard's algorithm, as slow and literal as can be: the independent partner. A name is given out unless it is
    `message`, or stands in the data in quotes."""
    if stream.startswith(b"\xef\xbb\xbf"):
        stream = stream[3:]
    lines, line, i = [], b"", 0
    while i < len(stream):
        byte = stream[i : i + 1]
        if byte in (b"\r", b"\n"):
            lines.append(line)
            line = b""
            if stream[i : i + 2] == b"\r\n":
                i += 1
        else:
            line += byte
        i += 1
    events: list[bytes | Named | None] = []
    data: bytes | None = None
    name = b""
    for line in lines:  # an unfinished last line is not a line
        if line == b"":
            if data is not None:
                repeated = name in (b"", b"message") or b'"' + name + b'"' in data
                events.append(data if repeated else (name, data))
            data, name = None, b""
        elif line.startswith(b":"):
            events.append(None)
        else:
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"event":
                name = value
            elif field == b"data":
                data = value if data is None else data + b"\n" + value
    return events


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\r\n\r\ndata:  b\r\r", [b"a", b" b"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data\n\ndata\ndata\n\n", [b"", b"\n"]),
        (b": keep-alive\n\ndata: a\n\n:\n", [None, b"a", None]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"event: x\nid: 1\nretry: 3\ndata: a\nnonsense\n\n", [(b"x", b"a")]),
        (b"\n\n\ndata: a\n\n\n\n", [b"a"]),
        (b"event: x\ndata: a\n\n", [(b"x", b"a")]),
        (b"event: x\n\ndata: a\n\n", [b"a"]),
        (b'event: x\ndata: {"type":"x"}\n\n', [b'{"type":"x"}']),
        (b"event: message\ndata: a\n\nevent\ndata: b\n\n", [b"a", b"b"]),
        (b"data: a\nevent:x\nevent:  y\n\ndata: b\n\n", [(b" y", b"a"), b"b"]),
        (b"event: x\ndata: a\ndata: b\n\n", [(b"x", b"a\nb")]),
        (b"event: x\ndata: a\n\nevent: y\ndata: b\n\n", [(b"x", b"a"), (b"y", b"b")]),
        (b"data: a\n\ndata: never dispatched\n", [b"a"]),
        (b"data: a\n\ndata: cut", [b"a"]),
        (b"database: x\ndata : y\n\n", []),
        ("data: hé ↯\n\n".encode(), ["hé ↯".encode()]),
    ],
)
def test_the_standards_cases_decode_alike_however_cut(
    stream: bytes, events: list[bytes | Named | None]
) -> None:
    """Line ends, comments, multi-line data, byte order mark and unfinished ends follow the standard at any cut."""
    assert same_however_cut(stream, decode) == events


pieces = st.sampled_from(
    [
        b"data: ",
        b"data:",
        b"data",
        b"x",
        b"{}",
        b"\n",
        b"\n\n",
        b"\r",
        b"\r\n",
        b":",
        b" ",
        b"event: e",
        b'data: "e"\n\n',
        b"event: e\ndata: {}\n\n",
        b"\xef\xbb\xbf",
    ]
)


@given(st.lists(pieces, max_size=40).map(b"".join), st.lists(st.integers(0, 1000), max_size=6))
def test_any_stream_cut_anywhere_decodes_as_by_the_standards_own_algorithm(
    stream: bytes, places: list[int]
) -> None:
    """decoder(cut(s)) == the literal algorithm(s), for all streams s and all cuts."""
    assert decode(split_at(stream, places)) == by_the_book(stream)


events = st.sampled_from(
    [
        b"data: a\n\n",
        b"event: e\ndata: b\n\n",
        b'event: e\ndata: {"type": "e"}\n\n',
        b"event: message\ndata: b\n\n",
        b"event: e\n\n",
        b"event: e\ndata: c",
        b"\n",
        b": x\n\n",
        b"\xef\xbb\xbf",
    ]
)


@given(st.lists(st.lists(events, max_size=3).map(b"".join), max_size=12))
def test_reads_that_end_with_events_decode_as_by_the_standards_own_algorithm(reads: list[bytes]) -> None:
    """The same for the cuts that servers make, at or near the borders of events, where the quick ways are taken."""
    assert decode(reads) == by_the_book(b"".join(reads))


def test_an_event_over_the_limit_is_refused_and_never_held() -> None:
    """However an oversized event comes, in one line, many lines or many reads, memory stays bounded."""
    for stream in (
        b"data: " + b"x" * 2000 + b"\n\n",
        b"data: xxxxxxxx\n" * 200 + b"\n",
        b"data\n" * 1002 + b"\n",
        b"data:\n" * 1002 + b"\n",
        b"data: \r" * 1002 + b"\r",
        b"data: a\n\ndata: " + b"x" * 2000 + b"\n\n",
        b"event: e\ndata: " + b"x" * 2000 + b"\n\n",
    ):
        for step in (1, 100, len(stream)):
            decoder = SseDecoder(limit=1000)
            with pytest.raises(EventTooLarge):
                for i in range(0, len(stream), step):
                    decoder.feed(stream[i : i + step])


@pytest.mark.parametrize("line", [b"data\n", b"data:\n", b"data: \n"])
def test_an_event_of_empty_lines_has_the_size_of_what_they_are_joined_to(line: bytes) -> None:
    """1,001 empty lines are 1,000 line ends, and as much as the limit; one more is too much."""
    assert SseDecoder(limit=1000).feed(line * 1001 + b"\n") == [b"\n" * 1000]
    with pytest.raises(EventTooLarge):
        SseDecoder(limit=1000).feed(line * 1002 + b"\n")


def test_an_unfinished_event_is_known_to_be_unfinished() -> None:
    """What the standard drops at the end of a stream can be seen to have been dropped."""
    decoder = SseDecoder()
    assert decoder.feed(b"data: a\n\ndata: b\n") == [b"a"]
    assert decoder.unfinished
    assert decoder.feed(b"\n") == [b"b"]
    assert not decoder.unfinished
