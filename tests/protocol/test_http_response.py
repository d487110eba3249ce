"""HTTP/1.1 responses, with h11 as the independent partner."""

from __future__ import annotations

import h11
import pytest
from feeding import same_however_cut, split_at
from hypothesis import given
from hypothesis import strategies as st

from inferometer.protocol.http_response import (
    FRAMING_LIMIT,
    HEAD_LIMIT,
    BadResponse,
    HeadTooLarge,
    ResponseDecoder,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def decode(pieces: list[bytes]) -> tuple[int, bytes, bool, bool]:
    decoder = ResponseDecoder()
    for piece in pieces:
        decoder.feed(piece)
    return decoder.status, b"".join(decoder.body), decoder.complete, decoder.keep_alive


def by_h11(stream: bytes) -> tuple[int, bytes, bool]:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="POST", target="/", headers=[("host", "x"), ("content-length", "0")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(stream)
    status, body = 0, b""
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Response):
            status = event.status_code
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            return status, body, True
        elif event is h11.NEED_DATA or event is h11.PAUSED:
            return status, body, False


@given(
    st.integers(200, 599).filter(lambda code: code not in (204, 304)),
    st.lists(st.binary(min_size=1, max_size=50), max_size=6),
    st.lists(st.integers(0, 2000), max_size=5),
)
def test_chunked_responses_decode_as_h11_decodes_them(
    status: int, chunks: list[bytes], places: list[int]
) -> None:
    """Status, body and end agree with h11 for any chunks and any cut."""
    stream = b"HTTP/1.1 %d X\r\nTransfer-Encoding: chunked\r\n\r\n" % status
    stream += b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    ours = decode(split_at(stream, places))
    assert ours[:3] == by_h11(stream) == (status, b"".join(chunks), True)
    assert ours[3]


@pytest.mark.parametrize(
    ("stream", "status", "body", "complete", "keep_alive"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello", True, True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", True, False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", True, False),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n",
            201,
            b"",
            True,
            True,
        ),
        (CHUNKED + b"3;ext=1\r\nabc\r\n0\r\nTrailer: x\r\n\r\n", 200, b"abc", True, True),
        (CHUNKED + b"3\r\nab", 200, b"ab", False, False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True, True),
        (b"HTTP/1.1 200 OK\r\n\r\nuntil close", 200, b"until close", False, False),
    ],
)
def test_framings_decode_alike_however_cut(
    stream: bytes, status: int, body: bytes, complete: bool, keep_alive: bool
) -> None:
    """Length, chunks, interim responses and connection rules hold at any cut."""
    assert same_however_cut(stream, decode) == (status, body, complete, keep_alive)


def test_a_body_without_a_length_ends_with_the_connection_and_only_such_a_body_does() -> None:
    """RFC 9112, 6.3: close completes a body without framing, and leaves a framed one incomplete."""
    open_ended = ResponseDecoder()
    open_ended.feed(b"HTTP/1.1 200 OK\r\n\r\nabc")
    assert open_ended.eof()
    framed = ResponseDecoder()
    framed.feed(CHUNKED + b"3\r\nab")
    assert not framed.eof()
    silent = ResponseDecoder()
    assert not silent.eof()


@pytest.mark.parametrize(
    "stream",
    [
        b"<html>no status line</html>",
        CHUNKED + b"zz\r\nabc\r\n",
        CHUNKED + b"3\r\nabcd\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokEXTRA",
        b"HTTP/1.1 200 OK\r\nContent-Length: nine\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nx",
    ],
)
def test_bytes_that_break_the_rules_are_a_bad_response_however_cut(stream: bytes) -> None:
    """A fault in the framing is always reported, at whatever cut."""
    for step in (len(stream), 1, 5):
        decoder = ResponseDecoder()
        with pytest.raises(BadResponse):
            for i in range(0, len(stream), step):
                decoder.feed(stream[i : i + step])


FIRST = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    "tail",
    [
        b"EXTRA",
        b"\x00",
        FIRST,
        b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
    ],
)
@pytest.mark.parametrize("step", [1, 2, 5, 1000])
def test_what_follows_a_response_is_a_fault_and_no_part_of_it(tail: bytes, step: int) -> None:
    """Another response, or anything else, in the same read or later: status and body stand, and no other may follow."""
    for first in (FIRST, CHUNKED + b"2\r\nok\r\n0\r\n\r\n"):
        stream, decoder = first + tail, ResponseDecoder()
        with pytest.raises(BadResponse):
            for i in range(0, len(stream), step):
                decoder.feed(stream[i : i + step])
        assert (decoder.status, b"".join(decoder.body), decoder.complete) == (200, b"ok", True)


@pytest.mark.parametrize("coding", [b"gzip", b"identity", b"chunked, gzip", b"gzip, deflate"])
def test_a_transfer_coding_that_is_not_chunked_is_refused(coding: bytes) -> None:
    """Nothing could decode such a body, or tell where it ends."""
    stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: %b\r\n\r\nabc" % coding
    for step in (1, len(stream)):
        decoder = ResponseDecoder()
        with pytest.raises(BadResponse, match="Transfer-Encoding"):
            for i in range(0, len(stream), step):
                decoder.feed(stream[i : i + step])


def test_headers_without_end_are_refused_at_the_limit() -> None:
    """A head that never ends costs no more than HEAD_LIMIT bytes of patience."""
    decoder = ResponseDecoder()
    decoder.feed(b"HTTP/1.1 200 OK\r\n")
    fed = 0
    with pytest.raises(HeadTooLarge):
        for _ in range(2 * HEAD_LIMIT // 16):
            decoder.feed(b"X-Filler: abcde\r\n")
            fed += 17
    assert fed <= HEAD_LIMIT + 34


def test_trailers_without_end_are_refused_at_the_limit() -> None:
    """What a server sends behind the last chunk costs no more than FRAMING_LIMIT bytes."""
    decoder = ResponseDecoder()
    decoder.feed(CHUNKED + b"2\r\nok\r\n0\r\n")
    decoder.body.clear()
    line, fed = b"X-Filler: " + b"x" * 500 + b"\r\n", 0
    with pytest.raises(HeadTooLarge):
        for _ in range(2 * FRAMING_LIMIT // len(line)):
            decoder.feed(line)
            fed += len(line)
    assert fed <= FRAMING_LIMIT


def test_one_connection_carries_many_responses_apart() -> None:
    """After `next` nothing of the response before is left."""
    decoder = ResponseDecoder()
    decoder.feed(b"HTTP/1.1 500 Bad\r\nRetry-After: 7\r\nContent-Length: 3\r\n\r\nbad")
    assert (decoder.status, decoder.header(b"retry-after")) == (500, "7")
    decoder.next()
    decoder.feed(CHUNKED + b"2\r\nok\r\n0\r\n\r\n")
    assert (decoder.status, b"".join(decoder.body), decoder.complete) == (200, b"ok", True)
    assert decoder.header(b"retry-after") == ""
    assert decoder.header(b"content-type") == "text/event-stream"


OK = b"HTTP/1.1 200 OK\r\n"
CODED = b"\r\n5\r\nhello\r\n0\r\n\r\n"
FULL_WIDTH = "\uff15".encode()
"""A digit to `int`, and none to HTTP."""


@pytest.mark.parametrize(
    "stream",
    [
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" + CODED,
        OK + b"Transfer-Encoding: chunked\r\ntransfer-encoding: chunked\r\n" + CODED,
        OK + b"Transfer-Encoding: chunked\r\nX: y\r\nTransfer-Encoding: identity\r\n" + CODED,
        OK + b"Transfer-Encoding: chunked, chunked\r\n" + CODED,
        OK + b"Transfer-Encoding: gzip, chunked\r\n" + CODED,
        OK + b"Content-Length: " + FULL_WIDTH + b"\r\n\r\nhello",
        OK + b"Content-Length: \xb2\r\n\r\nhe",
        OK + b"Content-Length: 0x5\r\n\r\nhello",
        OK + b"Content-Length: 1_0\r\n\r\nhellohello",
        OK + b"Content-Length: -5\r\n\r\nhello",
        CHUNKED + FULL_WIDTH + b"\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"\xb2\r\nhe\r\n0\r\n\r\n",
        CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n",
        CHUNKED + b"0_5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 " + FULL_WIDTH * 3 + b" OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 20\xb2 OK\r\nContent-Length: 5\r\n\r\nhello",
    ],
)
def test_framing_that_h11_refuses_is_refused(stream: bytes) -> None:
    """Law: more than one coding, and digits that only a lenient reader takes for a length or a status, frame nothing, at
    whatever cut: two readers would see two bodies."""
    with pytest.raises(h11.RemoteProtocolError):
        by_h11(stream)
    for step in (len(stream), 1, 5):
        decoder = ResponseDecoder()
        with pytest.raises(BadResponse):
            for i in range(0, len(stream), step):
                decoder.feed(stream[i : i + step])


def test_a_coding_among_the_trailers_is_none_of_the_head() -> None:
    """Law: only the head of a response says how its body is framed."""
    decoder = ResponseDecoder()
    decoder.feed(CHUNKED + b"2\r\nok\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert (b"".join(decoder.body), decoder.complete) == (b"ok", True)


def test_what_frames_a_body_is_bounded_though_every_read_brings_some_of_it() -> None:
    """Extensions of chunks cost no more than FRAMING_LIMIT bytes, and those of an honest size nothing."""
    decoder = ResponseDecoder()
    decoder.feed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
    for _ in range(100_000):
        decoder.body.clear()
        decoder.feed(b"1;ieof=%b\r\na\r\n1;x=y\r\nb\r\n" % (b"y" * 30))
    piece, fed = b"1;%b\r\na\r\n" % (b"x" * 60_000), 0
    with pytest.raises(HeadTooLarge):
        for _ in range(2 * FRAMING_LIMIT // len(piece)):
            decoder.body.clear()
            decoder.feed(piece)
            fed += len(piece)
    assert fed <= FRAMING_LIMIT + len(piece)
