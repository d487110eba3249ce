"""HTTP/1.1 as a channel, without a socket: what it writes, and when it takes the next exchange."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from peers import chunked, tokens, whole

from inferometer.drive.channel import RequestHead
from inferometer.drive.exchange import EARLY, EARLY_NS, Exchange
from inferometer.drive.http1_channel import HTTP1, Http1Channel
from inferometer.engines.openai import CHAT

OK = b"".join(chunked(*tokens(" one")))
VALUE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20)
NAME = st.text("abcdefghijklmnopqrstuvwxyz-ABC", min_size=1, max_size=12).filter(
    lambda name: name.lower() not in ("host", "content-length", "transfer-encoding", "connection", "expect")
)


def carrying(head: RequestHead | None = None, body: bytes = b"{}") -> tuple[Http1Channel, Exchange]:
    """An open channel with one exchange, whose request has been sent."""
    prepared = b"" if head is None else HTTP1.prepare(head)
    channel, exchange = Http1Channel(), Exchange(0, 0, 0, prepared, body, 0, CHAT)
    channel.opened()
    channel.submit(exchange)
    exchange.t_send = exchange.t_submit = 1
    exchange.sent_whole = True
    return channel, exchange


@given(lines=st.dictionaries(NAME, VALUE, max_size=5), body=st.binary(max_size=200))
def test_another_reader_gets_the_request_that_was_meant(lines: dict[str, str], body: bytes) -> None:
    """h11 reads method, path, every header line, the length and the body; one write has all of it, the last of the request."""
    channel, exchange = carrying(RequestHead("POST", "/base/v1/x?y=1", {"Host": "h", **lines}), body)
    ((data, owner, last),) = channel.outgoing
    assert (owner, last) == (exchange, True)
    reader = h11.Connection(h11.SERVER)
    reader.receive_data(data)
    request, *content = iter(reader.next_event, h11.NEED_DATA)
    assert isinstance(request, h11.Request)
    assert (request.method, request.target) == (b"POST", b"/base/v1/x?y=1")
    expected = {"Host": "h", **lines, "Content-Length": str(len(body))}
    assert [value.decode() for _, value in request.headers] == list(expected.values())
    assert b"".join(bytes(event.data) for event in content if isinstance(event, h11.Data)) == body
    assert isinstance(content[-1], h11.EndOfMessage)


@pytest.mark.parametrize(
    ("data", "outcome", "goes_on"),
    [
        (OK, "ok", True),
        (OK.replace(b"200 OK\r\n", b"200 OK\r\nConnection: close\r\n"), "ok", False),
        (b"".join(whole(503, b"busy")), "http_5xx", True),
        (b"SSH-2.0\r\n", "bad_http", False),
        (OK[:-5] + b"zz\r\n", "bad_http", False),
        (b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * (1 << 17), "too_large", False),
        (b"".join(chunked(b"data: " + b"x" * (2 << 20))), "too_large", False),
    ],
)
def test_a_response_leaves_the_channel_open_for_the_next_or_closing(
    data: bytes, outcome: str, goes_on: bool
) -> None:
    """The table of the module: what ended the exchange, and whether another may follow."""
    channel, exchange = carrying()
    assert channel.feed(data, 7, 3)
    assert (channel.ended, channel.exchanges, exchange.outcome) == ([exchange], (), outcome)
    assert (channel.capacity, channel.closing) == ((1, False) if goes_on else (0, True))
    assert (exchange.t_first_byte, exchange.lag_ns) == (7, 3)


@pytest.mark.parametrize(
    ("coding", "outcome"), [(b"gzip", "not_json"), (b"BR", "not_json"), (b"utf-8", "ok")]
)
def test_an_answer_that_is_compressed_unasked_says_so(coding: bytes, outcome: str) -> None:
    """Its events cannot be read, which is no truncation; the connection goes on. A name that is no compression is ignored."""
    channel, exchange = carrying()
    assert channel.feed(OK.replace(b"200 OK\r\n", b"200 OK\r\nContent-Encoding: %b\r\n" % coding), 7, 3)
    assert (exchange.outcome, channel.capacity) == (outcome, 1)
    assert outcome == "ok" or coding.decode().lower() in (exchange.detail or "")


TAILS = [
    b"garbage",
    b"\x00",
    OK,
    b"".join(whole(503, b"busy")),
    OK[:20],
    OK[:-9],
    b"HTTP/1.1 100 Continue\r\n\r\n",
]


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_what_follows_a_response_changes_nothing_but_the_channel(tail: bytes, step: int) -> None:
    """Another response or garbage, in the last read or behind it: the answer stands, and no other request goes this way."""
    quiet, alone = carrying()
    channel, exchange = carrying()
    for one, data in ((quiet, OK), (channel, OK + tail)):
        for start in range(0, len(data), step):
            one.feed(data[start : start + step], 7, 0)
    assert (exchange.outcome, exchange.status, exchange.detail) == ("ok", 200, None)
    assert exchange.answer.texts == alone.answer.texts
    assert exchange.answer.event_class == alone.answer.event_class
    assert (channel.ended, channel.capacity, channel.closing) == ([exchange], 0, True)


def test_tokens_alone_give_the_reactor_nothing_to_do() -> None:
    """Only the read that completes the response says so."""
    channel, _ = carrying()
    *pieces, end = chunked(*tokens(" one", " two"))
    assert [channel.feed(piece, at, 0) for at, piece in enumerate(pieces, 1)] == [False] * len(pieces)
    assert channel.feed(end, 99, 0)


def test_a_response_to_a_request_that_is_still_being_sent_is_the_last() -> None:
    """Its rest would be read as the next request's beginning."""
    channel, exchange = carrying()
    exchange.sent_whole = False
    channel.feed(OK, 1, 0)
    assert (exchange.outcome, channel.capacity, channel.closing) == ("ok", 0, True)


@pytest.mark.parametrize("carried", [False, True])
def test_bytes_that_belong_to_no_exchange_close_the_channel(carried: bool) -> None:
    """Before a request, or behind a response, nothing is expected."""
    channel = Http1Channel()
    channel.opened()
    if carried:
        channel, _ = carrying()
        channel.feed(OK, 1, 0)
    assert channel.feed(OK, 2, 0)
    assert (channel.capacity, channel.closing, channel.exchanges) == (0, True, ())


def test_an_exchange_that_is_cancelled_takes_its_channel_with_it() -> None:
    """There is no way but the end of the connection to stop a response."""
    channel, exchange = carrying()
    channel.cancel(exchange)
    assert (channel.exchanges, channel.ended, channel.capacity, channel.closing) == ((), [], 0, True)


@pytest.mark.parametrize("before", [1, EARLY_NS, EARLY_NS + 1, 10**9])
def test_what_arrived_before_its_request_was_sent_is_no_answer(before: int) -> None:
    """By the kernel's stamp, less what its clock may be off; a request that is not sent whole yet has no instant."""
    channel, exchange = carrying()
    exchange.t_submit = 2 * 10**9
    assert channel.feed(OK, exchange.t_submit - before, 0)
    early = before > EARLY_NS
    assert (exchange.outcome, exchange.detail) == (("bad_http", EARLY) if early else ("ok", None))
    assert (channel.ended, channel.closing) == ([exchange], early)
    assert early == (not exchange.answer.texts)
    channel, exchange = carrying()
    exchange.t_submit, exchange.sent_whole = 0, False
    assert channel.feed(OK, 10**9, 0)
    assert (exchange.outcome, channel.closing) == ("ok", True)
