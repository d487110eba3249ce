"""Newline-delimited JSON against its specification."""

from __future__ import annotations

import pytest
from feeding import cuts, same_however_cut, split_at
from hypothesis import given
from hypothesis import strategies as st

from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.ndjson import NdjsonDecoder


def decode(pieces: list[bytes]) -> list[bytes | None]:
    decoder = NdjsonDecoder()
    return [line for piece in pieces for line in decoder.feed(piece)]


def by_the_book(stream: bytes) -> list[bytes]:
    """The specification's rules, byte by byte: the independent partner."""
    lines, line = list[bytes](), bytearray()
    for byte in stream:
        if byte != 0x0A:
            line.append(byte)
        elif bytes(line).strip():
            lines.append(bytes(line).strip())
            line = bytearray()
        else:
            line = bytearray()
    return lines


@pytest.mark.parametrize(
    ("stream", "lines"),
    [
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}\r\n{"b":2}\r\n', [b'{"a":1}', b'{"b":2}']),
        (b'\n\n{"a":1}\n\r\n \n', [b'{"a":1}']),
        (b'{"a":"\xc3\xa9"}\n{"b', [b'{"a":"\xc3\xa9"}']),
        (b'{"a":1}', []),
        (b"", []),
        (b"not JSON\n", [b"not JSON"]),
        (b'\xef\xbb\xbf{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
    ],
)
def test_lines_are_given_out_when_they_end(stream: bytes, lines: list[bytes]) -> None:
    """Blank lines are ignored, CRLF is a line's end, and half a line is never given out; however the bytes are cut."""
    assert same_however_cut(stream, decode) == lines


@given(
    st.lists(st.sampled_from([b"{", b"}", b"\n", b"\r\n", b" ", b'{"a":1}\n', b"\xff"])).map(b"".join),
    st.lists(st.integers(0, 400)),
)
def test_any_bytes_cut_anywhere_give_what_the_specification_gives(stream: bytes, places: list[int]) -> None:
    """For all streams and cuts."""
    assert decode(split_at(stream, places)) == by_the_book(stream)


def test_a_tail_is_dropped_and_noticed() -> None:
    """A stream that ends inside a line is unfinished; white space behind the last line is not."""
    decoder = NdjsonDecoder()
    assert decoder.feed(b'{"a":1}\n{"b"') == [b'{"a":1}']
    assert decoder.unfinished
    assert decoder.feed(b":2}\n ") == [b'{"b":2}']
    assert not decoder.unfinished


@pytest.mark.parametrize(
    ("tail", "last"),
    [
        (b'{"b":2}', [b'{"b":2}']),
        (b'\xef\xbb\xbf{"b":2} ', [b'{"b":2}']),
        (b'{"b":2', []),
        (b"", []),
        (b" ", []),
        (b"2", []),
        (b"[2]", []),
        (b'"b', []),
        (b"\xff", []),
        (b"[" * 5000, []),
    ],
)
def test_a_whole_object_without_a_lines_end_is_the_last_line(tail: bytes, last: list[bytes]) -> None:
    """Half of one, or what may be half of a number, never is; however it is cut, and once."""
    for pieces in cuts(tail):
        decoder = NdjsonDecoder()
        assert [line for piece in pieces for line in decoder.feed(piece)] == []
        assert list(decoder.end()) == last
        assert list(decoder.end()) == []


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_line_over_the_limit_is_refused_and_one_at_the_limit_is_not(size: int) -> None:
    """Whole or in pieces, ended or not: a server cannot make the buffer grow."""
    limit, line = 1000, b"x" * 1000
    pieces = [line[at : at + size] for at in range(0, len(line), size)]
    decoder = NdjsonDecoder(limit)
    found = [one for piece in [*pieces, b"\n"] for one in decoder.feed(piece)]
    assert found == [line]
    for tail in (b"x", b"x\n"):
        decoder = NdjsonDecoder(limit)
        with pytest.raises(EventTooLarge):
            for piece in [*pieces, tail]:
                decoder.feed(piece)
