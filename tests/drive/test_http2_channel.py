"""HTTP/2 as a channel, without a socket: what it writes, what becomes of each exchange, and when it takes more."""

from __future__ import annotations

import gc

import pytest
from h2.events import StreamReset
from http2_partner import (
    DATA,
    END_HEADERS,
    END_STREAM,
    EVENTS,
    GOAWAY,
    GREETING,
    PING,
    RST_STREAM,
    SETTINGS,
    Server,
    head,
    number,
    raw,
)
from hypothesis import given
from hypothesis import strategies as st
from peers import tokens

from inferometer.drive.channel import RequestHead
from inferometer.drive.exchange import EARLY, EARLY_NS, Exchange
from inferometer.drive.http2_channel import Http2Channel, http2
from inferometer.engines.openai import CHAT

KIND = http2(100)
HEAD = RequestHead("POST", "/base/v1/x?y=1", {"Host": "h:1", "X-Name": "a value"}, "https")
GOOD = tokens(" one", " two")
BODY = b"".join(GOOD)
VALUE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20)
NAME = st.text("abcdefghijklmnopqrstuvwxyz-ABC", min_size=1, max_size=12).filter(
    lambda name: (
        name.lower()
        not in ("host", "content-length", "transfer-encoding", "connection", "te", "upgrade", "cookie")
    )
)


def exchange(index: int, body: bytes = b"{}", head: RequestHead = HEAD) -> Exchange:
    return Exchange(index, 0, 0, KIND.prepare(head), body, 0, CHAT)


def carrying(
    count: int, greeting: bytes = GREETING, body: bytes = b"{}"
) -> tuple[Http2Channel, list[Exchange]]:
    """An open channel with so many exchanges, on streams 1, 3 and so on, whose requests have been sent."""
    channel = Http2Channel(100)
    channel.opened()
    channel.feed(greeting, 1, 0)
    carried = [exchange(index, body) for index in range(count)]
    for one in carried:
        channel.submit(one)
    channel.outgoing.clear()
    return channel, carried


def answer(stream: int, body: bytes = BODY) -> bytes:
    return head(stream) + raw(DATA, 0, stream, body) + raw(DATA, END_STREAM, stream)


@given(lines=st.dictionaries(NAME, VALUE, max_size=5), body=st.binary(max_size=200))
def test_another_reader_gets_the_request_that_was_meant(lines: dict[str, str], body: bytes) -> None:
    """h2 reads method, scheme, path, authority, every header line, the length and the body; one write has all of it, the last
    of the request."""
    server, channel = Server(), Http2Channel(10)
    channel.opened()
    channel.feed(server.take(), 1, 0)
    greeting = b"".join(data for data, _, _ in channel.outgoing)
    channel.outgoing.clear()
    lines = {
        name: value
        for name, value in {name.lower(): value for name, value in lines.items()}.items()
        if name.strip("-")
    }
    one = exchange(0, body, RequestHead("POST", "/base/v1/x?y=1", {"Host": "h:1", **lines}, "https"))
    channel.submit(one)
    ((data, owner, last),) = channel.outgoing
    assert (owner, last) == (one, True)
    server.receive(greeting + data)
    expected = {":method": "POST", ":scheme": "https", ":path": "/base/v1/x?y=1", ":authority": "h:1"}
    assert server.heads[1] == {**expected, **lines, "content-length": str(len(body))}
    assert (server.bodies[1], server.whole) == (body, [1])


def test_a_request_that_has_to_wait_for_the_server_is_submitted_with_its_last_frame() -> None:
    """The write that carries the end of the body is marked as the last, and no earlier one, though all are the request's."""
    channel, (one,) = carrying(1, raw(SETTINGS, 0, 0, b"\0\4" + number(4)), b"0123456789")
    marks = []
    for _ in range(2):
        channel.feed(raw(8, 0, 1, number(4)), 2, 0)
        marks += [(owner, last) for _, owner, last in channel.outgoing]
        channel.outgoing.clear()
    assert marks == [(one, False), (one, True)]


def test_an_answer_that_was_there_before_its_request_is_none() -> None:
    """By the kernel's stamp, less what its conversion may err by; the others on the connection go on."""
    channel, (early, other) = carrying(2)
    early.t_submit = other.t_submit = 10**9
    channel.feed(answer(1), 10**9 - EARLY_NS - 1, 0)
    channel.feed(answer(3), 10**9 - EARLY_NS, 0)
    assert (early.outcome, early.detail) == ("bad_http", EARLY)
    assert (other.outcome, channel.closing) == ("ok", False)


HTML = [(":status", "503"), ("content-type", "text/html")]
HUGE = b"data: " + b"x" * (1 << 14)


@pytest.mark.parametrize(
    ("wire", "outcome", "detail"),
    [
        (answer(1), "ok", None),
        (head(1) + raw(DATA, END_STREAM, 1, BODY), "ok", None),
        (head(1, HTML) + raw(DATA, END_STREAM, 1, b"busy"), "http_5xx", "busy"),
        (head(1, HTML, END_HEADERS | END_STREAM), "http_5xx", "status 503"),
        (head(1, EVENTS, END_HEADERS | END_STREAM), "truncated", None),
        (head(1) + raw(DATA, END_STREAM, 1, b"".join(GOOD[:2])), "truncated", None),
        (head(1, [*EVENTS, ("content-encoding", "gzip")]) + raw(DATA, END_STREAM, 1, BODY), "not_json", None),
        (head(1) + raw(RST_STREAM, 0, 1, number(2)), "reset", "RST_STREAM INTERNAL_ERROR"),
        (raw(RST_STREAM, 0, 1, number(8)), "reset", "RST_STREAM CANCEL"),
        (raw(DATA, 0, 1, b"x"), "bad_http", "DATA before HEADERS"),
        (head(1) + raw(DATA, 0, 1, HUGE[: 1 << 14]) * 66, "too_large", None),
    ],
)
def test_what_ends_one_exchange_leaves_the_others_and_the_channel(
    wire: bytes, outcome: str, detail: str | None
) -> None:
    """The table of the module: its outcome by name, and the other exchange is answered all the same."""
    channel, (one, other) = carrying(2)
    assert channel.feed(wire, 7, 3)
    assert (channel.ended, tuple(channel.exchanges), one.outcome) == ([one], (other,), outcome)
    assert detail is None or one.detail == detail
    assert (channel.capacity, channel.closing) == (99, False)
    channel.ended.clear()
    channel.feed(answer(3), 8, 0)
    assert (channel.ended, other.outcome, channel.capacity) == ([other], "ok", 100)
    assert (other.t_first_byte, other.t_end) == (8, 8)


@pytest.mark.parametrize(
    ("wire", "outcome"),
    [
        (raw(DATA, 0, 9, b"x"), "bad_http"),
        (raw(PING, 0, 0, b"12345678") * 11_000, "too_large"),
    ],
)
def test_what_breaks_the_connection_ends_all_of_them(wire: bytes, outcome: str) -> None:
    """By one name, and the channel is closing, with a farewell to be written."""
    channel, carried = carrying(3)
    assert channel.feed(wire, 7, 0)
    assert [one.outcome for one in carried] == [outcome] * 3
    assert (channel.ended, tuple(channel.exchanges), channel.capacity, channel.closing) == (
        carried,
        (),
        0,
        True,
    )
    assert channel.outgoing
    assert channel.fault


def test_what_the_server_has_not_begun_can_be_sent_again() -> None:
    """REFUSED_STREAM, and streams behind the last one of a GOAWAY: no outcome. Those that it has begun go on to their end."""
    channel, (first, second, third) = carrying(3)
    assert channel.feed(raw(RST_STREAM, 0, 3, number(7)), 7, 0)
    assert (channel.unprocessed, channel.closing) == ([second], False)
    assert channel.feed(raw(GOAWAY, 0, 0, number(3) + number(0)), 8, 0)
    assert (channel.unprocessed, tuple(channel.exchanges)) == ([second, third], (first,))
    assert (channel.capacity, channel.closing) == (0, True)
    channel.feed(answer(1), 9, 0)
    assert (channel.ended, first.outcome) == ([first], "ok")
    assert (second.outcome, second.t_first_byte) == ("", 0)


def test_a_server_that_leaves_in_anger_says_why() -> None:
    """The reason of its GOAWAY stands with what it never finished."""
    channel, (one,) = carrying(1)
    channel.feed(head(1) + raw(GOAWAY, 0, 0, number(1) + number(11) + b"too many"), 7, 0)
    channel.peer_closed(8)
    assert (channel.ended, one.outcome, one.detail) == ([one], "reset", "GOAWAY ENHANCE_YOUR_CALM: too many")


def test_tokens_alone_give_the_reactor_nothing_to_do() -> None:
    """Only the read that ends an answer says so, or one that the channel has to answer."""
    channel, _ = carrying(2)
    assert not channel.feed(head(1) + head(3), 2, 0)
    for at, event in enumerate(GOOD, 3):
        assert not channel.feed(raw(DATA, 0, 1, event) + raw(DATA, 0, 3, event), at, 0)
    assert channel.feed(raw(PING, 0, 0, b"12345678"), 50, 0)
    channel.outgoing.clear()
    assert channel.feed(raw(DATA, END_STREAM, 1), 99, 0)


def test_an_event_is_stamped_by_the_read_that_completes_it() -> None:
    """However its frame and the frame's head are cut: the first bytes give no stamp."""
    channel, (one,) = carrying(1)
    channel.feed(head(1), 2, 0)
    wire = b"".join(raw(DATA, 0, 1, event) for event in GOOD[:3])
    completing = [9 + len(GOOD[0]), 18 + len(GOOD[0] + GOOD[1]), len(wire)]
    for place in range(len(wire)):
        channel.feed(wire[place : place + 1], 1000 + place, 0)
    assert list(one.answer.event_ns) == [999 + place for place in completing]


class Waited:
    """An Unread whose every read may have waited for 7 ns."""

    def waited(self, _at: int) -> int:
        """See Unread."""
        return 7


def test_events_of_several_exchanges_in_one_read_may_have_waited_for_each_other() -> None:
    """The read's stamp is that of its last packet, whoever's that is; an exchange that is alone in a read waited for nobody."""
    channel, (one, other) = carrying(2)
    one.unread = other.unread = Waited()
    channel.feed(head(1) + head(3), 2, 0)
    channel.feed(raw(DATA, 0, 1, GOOD[0]), 3, 0)
    channel.feed(raw(DATA, 0, 1, GOOD[1]) + raw(DATA, 0, 3, GOOD[0]), 4, 0)
    channel.feed(raw(DATA, 0, 1, GOOD[2][:9]) + raw(DATA, 0, 3, GOOD[1] + GOOD[2]), 5, 0)
    assert (one.merged, other.merged) == ([1, -7], [0, -7, 1, -7])


BEHIND = {
    "the head of another": head(3),
    "the end of another": raw(DATA, END_STREAM, 3),
    "its own end": raw(DATA, END_STREAM, 1),
    "trailers": head(1, [("a", "b")], END_HEADERS | END_STREAM),
    "a reset of another": raw(RST_STREAM, 0, 3, number(2)),
    "PING": raw(PING, 0, 0, b"12345678"),
    "half a frame's head": raw(DATA, 0, 3, b"x")[:5],
}


@pytest.mark.parametrize("name", BEHIND)
def test_an_event_before_anything_else_in_its_read_may_have_waited_for_it(name: str) -> None:
    """Law: a read's stamp is that of its last packet, whatever that brought; an event is right only at the read's end."""
    channel, (one, _) = carrying(2)
    one.unread = Waited()
    channel.feed(head(1) + (b"" if name.startswith("the head") else head(3)), 2, 0)
    channel.feed(raw(DATA, 0, 1, GOOD[0]) + BEHIND[name], 3, 0)
    assert one.merged == [0, -7]


def test_an_event_behind_anything_else_in_its_read_is_right() -> None:
    """Law: the last packet brought it, so that it waited for nothing."""
    channel, (one, _) = carrying(2)
    one.unread = Waited()
    channel.feed(head(3) + raw(PING, 0, 0, b"12345678") + head(1) + raw(DATA, 0, 1, GOOD[0]), 3, 0)
    channel.feed(raw(DATA, END_STREAM, 3) + raw(DATA, END_STREAM, 1, GOOD[1]), 4, 0)
    assert not one.merged


def test_an_exchange_that_is_cancelled_leaves_the_others() -> None:
    """The server is told by RST_STREAM CANCEL, and what it sends all the same is nobody's."""
    server = Server()
    channel = Http2Channel(10)
    channel.opened()
    channel.feed(server.take(), 1, 0)
    one, other = exchange(0), exchange(1)
    for each in (one, other):
        channel.submit(each)
    channel.cancel(one)
    server.receive(b"".join(data for data, _, _ in channel.outgoing))
    (reset,) = [event for event in server.seen if isinstance(event, StreamReset)]
    assert (reset.stream_id, reset.error_code) == (1, 8)
    channel.feed(answer(1) + answer(3), 5, 0)
    assert (one.outcome, other.outcome, channel.capacity) == ("", "ok", 10)


def test_no_circle_keeps_what_a_channel_carried() -> None:
    """The collector is off while measuring, and would find nothing of ours or of h2's."""
    gc.collect()
    gc.disable()
    try:
        for wire in (answer(1), raw(DATA, 0, 9, b"x"), head(1)):
            channel, carried = carrying(3)
            channel.feed(wire, 7, 0)
            channel.close()
            del channel, carried
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kept = {type(one).__name__ for one in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not {"Exchange", "Http2Channel", "Http2Client", "Stream", "H2Connection", "H2Stream"} & kept
