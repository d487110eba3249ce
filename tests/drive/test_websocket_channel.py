"""WebSockets as a channel, without a socket: what it writes, what becomes of each exchange, and when it takes more."""

from __future__ import annotations

import gc

import pytest
from feeding import cuts
from hypothesis import given
from hypothesis import strategies as st
from peers import tokens
from websocket_partner import BINARY, CLOSE, PING, PONG, TEXT, Server, by_websockets, closing, raw

from inferometer.drive.answer_limits import AnswerLimits
from inferometer.drive.channel import RequestHead
from inferometer.drive.exchange import EARLY_NS, Exchange
from inferometer.drive.websocket_channel import EARLY, WebSocketChannel
from inferometer.engines.openai import CHAT
from inferometer.protocol.websocket_frames import MOST_IDLE

HEAD = RequestHead("GET", "/base/v1/ws?y=1", {"Host": "h:1", "X-Name": "a value"})
GOOD = [event.removeprefix(b"data: ").strip() for event in tokens(" one", " two")]
ANSWER = b"".join(raw(TEXT, message) for message in GOOD)
VALUE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20)
NAME = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12).map("X-{}".format)


def exchange(index: int = 0, body: bytes = b"{}", limits: AnswerLimits | None = None) -> Exchange:
    return Exchange(index, 0, 0, b"", body, 0, CHAT, limits=limits or AnswerLimits())


def written(channel: WebSocketChannel) -> bytes:
    """All that it has to say, which it then has said."""
    wire = b"".join(data for data, _, _ in channel.outgoing)
    channel.outgoing.clear()
    return wire


def opened(head: RequestHead = HEAD, *, greets: bool = False) -> tuple[WebSocketChannel, Server]:
    """A channel whose handshake is over, and the server that shook hands."""
    channel, server = WebSocketChannel(head, greets=greets), Server()
    channel.opened()
    server.receive(written(channel))
    assert channel.capacity == 0
    assert channel.feed(server.take(), 1, 0)
    assert (channel.capacity, channel.closing, channel.outgoing) == (1, False, [])
    return channel, server


def carrying(*, greets: bool = False, answered: int = 0) -> tuple[WebSocketChannel, Exchange]:
    """A channel with one exchange, whose request has been sent at 1, behind so many that were answered."""
    channel, _ = opened(greets=greets)
    for index in range(answered + 1):
        one = exchange(index)
        channel.submit(one)
        one.t_send = one.t_submit = 1
        one.sent_whole = True
        written(channel)
        if index < answered:
            channel.feed(ANSWER, 2, 0)
            channel.ended.clear()
    return channel, one


def answer_to(wire: bytes, change: tuple[bytes, bytes] = (b"", b"")) -> bytes:
    """The right answer to this handshake, by `websockets`, with one change."""
    server = Server()
    server.receive(wire)
    return server.take().replace(*change, 1)


@given(lines=st.dictionaries(NAME, VALUE, max_size=5), body=st.text(max_size=200).map(str.encode))
def test_another_reader_gets_the_handshake_and_the_request_that_were_meant(
    lines: dict[str, str], body: bytes
) -> None:
    """`websockets` reads path and every header line, offers of extensions are none, and the body is one message; one write has
    all of it, the last of the request."""
    channel, server = opened(RequestHead("GET", "/base/v1/ws?y=1", {"Host": "h:1", **lines}))
    assert server.request is not None
    assert server.request.path == "/base/v1/ws?y=1"
    assert {name: server.request.headers[name] for name in lines} == lines
    assert "Sec-WebSocket-Extensions" not in server.request.headers
    one = exchange(body=body)
    channel.submit(one)
    ((data, owner, last),) = channel.outgoing
    assert (owner, last, channel.capacity) == (one, True, 0)
    server.receive(data)
    assert server.requests == [body]


REFUSALS = [
    ((b"Switching", b"OK"), None),
    ((b"Sec-WebSocket-Accept: ", b"Sec-WebSocket-Accept: x"), "101 with a Sec-WebSocket-Accept"),
    ((b"Sec-WebSocket-Accept", b"X-Nothing"), "101 with a Sec-WebSocket-Accept"),
    ((b"Upgrade: websocket", b"Upgrade: h2c"), "101 without Upgrade: websocket"),
    ((b"Upgrade: websocket\r\n", b""), "101 without Upgrade: websocket"),
    ((b"Connection: Upgrade", b"Connection: close"), "101 without Connection: upgrade"),
    (
        (b"Upgrade: websocket", b"Upgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate"),
        "an extension that was not offered: 'permessage-deflate'",
    ),
    (
        (b"Upgrade: websocket", b"Upgrade: websocket\r\nSec-WebSocket-Protocol: chat"),
        "a subprotocol that was not offered: 'chat'",
    ),
    ((b"HTTP/1.1", b"SSH-2.0"), "no answer of HTTP"),
    ((b"HTTP/1.1 101 Switching Protocols", b"HTTP/1.1 101 " + b"x" * 70_000), "a header block of more than"),
]


@pytest.mark.parametrize(("change", "words"), REFUSALS, ids=range(len(REFUSALS)))
def test_only_the_right_answer_opens_it(change: tuple[bytes, bytes], words: str | None) -> None:
    """Each line that RFC 6455, 4.1, asks for, however the answer is cut; the reason phrase is none of them."""
    for number in range(6):
        channel = WebSocketChannel(HEAD, greets=False)
        channel.opened()
        pieces = list(cuts(answer_to(written(channel), change)))[number]
        for piece in pieces:
            if channel.feed(piece, 1, 0):
                break
        assert (channel.capacity, channel.closing) == ((1, False) if words is None else (0, True))
        assert words is None or words in channel.fault


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "status 200: hello"),
        (b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\n\r\nbusy", "status 429: busy"),
        (b"HTTP/1.1 503 Busy\r\n\r\nlater", "status 503: later"),
        (b"HTTP/1.1 503 Busy\r\n\r\n" + b"x" * 2000, "status 503: " + "x" * 1024),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "status 404"),
        (
            b"HTTP/1.1 301 Moved\r\nLocation: ws://other/\r\nContent-Length: 0\r\n\r\n",
            "status 301: a redirect to 'ws://other/', which is not followed",
        ),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", "status 401"),
        (b"", "the server closed the connection instead"),
        (b"HTTP/1.1 101 Sw", "the server closed the connection instead"),
        (b"SSH-2.0-OpenSSH\r\n", "no answer of HTTP"),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nContent-Length: 5\r\n\r\nhello",
            "101 without Upgrade: websocket",
        ),
    ],
)
def test_a_refusal_is_in_the_servers_words(answer: bytes, words: str) -> None:
    """However cut, and ended by its length or by the end of the connection: status and what the body begins with."""
    for pieces in cuts(answer):
        channel = WebSocketChannel(HEAD, greets=False)
        channel.opened()
        due = False
        for piece in pieces:
            due = due or (bool(piece) and channel.feed(piece, 1, 0))
        if not due:
            channel.peer_closed(2)
        assert channel.fault.startswith(f"the WebSocket handshake was refused: {words}")
        assert (channel.capacity, channel.closing, channel.exchanges) == (0, True, ())


LINE = b"Sec-WebSocket-Protocol: %b\r\n"


@pytest.mark.parametrize(
    ("chosen", "fault"),
    [
        (b"", ""),
        (LINE % b"b", ""),
        (LINE % b"c", "a subprotocol that was not offered: 'c'"),
        (LINE % b"a, b", "more than one subprotocol: 'a, b'"),
        (LINE % b"a" + LINE % b"b", "more than one subprotocol: 'a, b'"),
    ],
)
def test_one_subprotocol_that_was_offered_may_be_chosen(chosen: bytes, fault: str) -> None:
    """Or none; no two (RFC 6455, 11.3.4), each of which was offered."""
    channel = WebSocketChannel(
        RequestHead("GET", "/", {"Host": "h", "Sec-WebSocket-Protocol": "a, b"}), greets=False
    )
    channel.opened()
    line = b"Upgrade: websocket\r\n"
    channel.feed(answer_to(written(channel), (line, line + chosen)), 1, 0)
    assert channel.capacity == (not fault)
    assert channel.fault.endswith(fault)


def test_each_message_is_stamped_by_the_read_that_completes_it() -> None:
    """However it is cut: the first message sets `t_first_byte`, each event has the time of its last byte, the last one ends it,
    and the next exchange may follow."""
    for pieces in cuts(ANSWER):
        channel, one = carrying()
        edges, offset = [], 0
        for message in GOOD:
            offset += len(raw(TEXT, message))
            edges.append(offset)
        read, instants = 0, []
        for at, piece in enumerate(pieces, 10):
            read += len(piece)
            instants += [at for edge in edges if read - len(piece) < edge <= read]
            channel.feed(piece, at, 3)
        assert list(one.answer.event_ns) == instants
        assert (one.outcome, one.t_first_byte, one.t_end, one.lag_ns) == (
            "ok",
            instants[0],
            instants[-1],
            3,
        )
        assert (channel.ended, channel.capacity, channel.closing) == ([one], 1, False)
        assert "".join(one.answer.texts) == " one two"


class _Unread:
    """A read of several packets, of which the first may have waited for so long."""

    def waited(self, at: int) -> int:
        return 500 if at else 0


def test_messages_of_one_read_may_have_waited() -> None:
    """As events of HTTP/1.1: the index of the first of several, and for how long; a read of one message says nothing."""
    channel, one = carrying()
    one.unread = _Unread()
    channel.feed(raw(TEXT, GOOD[0]), 5, 0)
    channel.feed(b"".join(raw(TEXT, message) for message in GOOD[1:3]), 6, 0)
    assert one.merged == [1, 500]
    channel.feed(raw(TEXT, GOOD[1]) + raw(PING), 7, 0)  # the ping is the end of the read, not the message
    channel.feed(raw(TEXT, GOOD[1]) + raw(TEXT, GOOD[1])[:4], 8, 0)
    assert one.merged == [1, 500, 3, -500, 4, -500]


LONG = raw(TEXT, b"", length=b"\x7f" + (1 << 40).to_bytes(8, "big"))
ONE = raw(TEXT, GOOD[1])


@pytest.mark.parametrize(
    ("wire", "outcome", "detail"),
    [
        (ONE + closing(1000), "truncated", "neither a finish reason nor"),
        (ONE + closing(None), "truncated", "neither a finish reason nor"),
        (ANSWER[: -len(raw(TEXT, GOOD[-1]))] + closing(1000), "ok", None),
        (closing(1000), "reset", "close 1000 normal closure"),
        (ONE + closing(1001), "reset", "close 1001 going away"),
        (ONE + closing(1011, b"no memory"), "reset", "close 1011 internal error: no memory"),
        (closing(1013, b"later"), "reset", "close 1013 try again later: later"),
        (ONE + raw(TEXT, b"x", bits=0x40), "bad_http", "a reserved bit"),
        (ONE + raw(TEXT, b"x", mask=b"1234"), "bad_http", "a masked frame of a server"),
        (ONE + raw(PING, b"x", fin=False), "bad_http", "a control frame in fragments"),
        (ONE + raw(3, b""), "bad_http", "the reserved opcode 3"),
        (ONE + raw(CLOSE, b"\x03"), "bad_http", "half a code"),
        (ONE + raw(TEXT, b"\xff"), "bad_http", "text that is no UTF-8"),
        (ONE + LONG, "too_large", "a message of more than 1048576 bytes"),
        (ONE + raw(PING) * (MOST_IDLE + 1), "too_large", "more than 10000 frames without a message"),
        (ONE + raw(TEXT, b"{"), "bad_event", "truncated"),
        (ONE + raw(TEXT, b""), "bad_event", None),
        (ONE + raw(TEXT, b'{"error": "no"}') + ONE, "error_event", "no"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "bad_http", "a reserved bit"),
    ],
)
def test_what_ends_an_exchange_otherwise_ends_the_connection(
    wire: bytes, outcome: str, detail: str | None
) -> None:
    """The table of the module, however cut: one outcome by name, and a close of ours that another reader understands."""
    for pieces in list(cuts(wire))[:: len(wire) // 1000 + 1]:
        channel, one = carrying()
        due = [channel.feed(piece, 7, 3) for piece in pieces]
        assert any(due)
        assert (channel.ended, channel.exchanges, one.outcome) == ([one], (), outcome)
        assert (channel.capacity, channel.closing, channel.unprocessed) == (0, True, [])
        assert detail is None or detail in (one.detail or "")
        assert by_websockets(written(channel), client=False).close is not None


@pytest.mark.parametrize("code", [1000, 1001, 1012])
def test_an_orderly_close_between_two_answers_costs_no_request(code: int) -> None:
    """Nothing of its answer came, and the connection has carried another: it was not begun, and can be sent again."""
    channel, one = carrying(answered=1)
    assert channel.feed(closing(code), 7, 3)
    assert (channel.unprocessed, channel.ended, channel.exchanges) == ([one], [], ())
    assert (channel.closing, one.outcome) == (True, "")


def test_a_close_of_an_idle_connection_is_answered_and_ends_it() -> None:
    """With its code, and the words say why."""
    channel, _ = opened()
    assert channel.feed(closing(1001, b"restart"), 5, 0)
    assert (channel.capacity, channel.closing, channel.fault) == (0, True, "close 1001 going away: restart")
    assert by_websockets(written(channel), client=False).close == (1001, "")


def test_pings_are_answered_the_latest_of_a_read() -> None:
    """Idle, amid an answer, and behind its end; the pong has the ping's bytes."""
    channel, one = carrying()
    assert channel.feed(raw(PING, b"1") + ONE + raw(PING, b"2"), 5, 0)
    assert written(channel)[:2] == b"\x8a\x81"
    channel.feed(ANSWER + raw(PING, b"3"), 6, 0)
    assert (one.outcome, channel.capacity) == ("ok", 1)
    assert len(written(channel)) == 7
    assert channel.feed(raw(PING, b""), 7, 0)
    assert (written(channel)[:2], channel.capacity) == (b"\x8a\x80", 1)


@pytest.mark.parametrize(
    "behind",
    [ONE, ANSWER, raw(TEXT, b"{}"), ONE[:2], ONE[:9], raw(TEXT, b"x", fin=False), raw(BINARY, b"x")[:2]],
)
def test_a_message_behind_the_end_of_an_answer_is_not_the_next_ones(behind: bytes) -> None:
    """Law: the answer stands, and its connection carries no other, whether the rest came with the end, in part or after it."""
    channel, one = carrying()
    channel.feed(ANSWER + behind, 6, 0)
    assert (one.outcome, channel.capacity, channel.closing) == ("ok", 0, True)
    channel, one = carrying()
    channel.feed(ANSWER, 6, 0)
    assert (one.outcome, channel.capacity) == ("ok", 1)
    assert channel.feed(behind, 7, 0)
    assert (channel.capacity, channel.fault) == (0, "a message that no request asked for")


@pytest.mark.parametrize("behind", [raw(PING, b"x"), raw(PING, b"x")[:2], raw(PONG)])
def test_control_frames_behind_an_answer_are_no_message(behind: bytes) -> None:
    """Law: whole or in part, they cost no connection."""
    channel, one = carrying()
    channel.feed(ANSWER + behind, 6, 0)
    assert (one.outcome, channel.capacity, channel.closing) == ("ok", 1, False)


def test_a_message_that_no_request_asked_for_ends_a_connection_that_is_not_greeted() -> None:
    """Between two answers, or before a request by the kernel's stamp, less what its conversion may err by."""
    channel, _ = opened()
    assert channel.feed(ONE, 5, 0)
    assert (channel.closing, channel.fault) == (True, "a message that no request asked for")
    channel, one = carrying()
    one.t_submit = 10**9
    assert channel.feed(ANSWER, 10**9 - EARLY_NS - 1, 0)
    assert (one.outcome, one.detail) == ("bad_http", EARLY)
    channel, one = carrying()
    one.t_submit = 10**9
    assert channel.feed(ANSWER, 10**9 - EARLY_NS, 0)
    assert one.outcome == "ok"


def test_servers_that_greet_may_speak_between_two_answers() -> None:
    """What came before a request is left out of its answer, also what came with the handshake."""
    channel, server = WebSocketChannel(HEAD, greets=True), Server()
    channel.opened()
    server.receive(written(channel))
    assert channel.feed(server.take() + ONE, 1, 0)
    assert (channel.capacity, channel.closing) == (1, False)
    channel.feed(ONE, 2, 0)
    one = exchange()
    channel.submit(one)
    one.t_submit = 10**9
    channel.feed(ONE, 10**9 - EARLY_NS - 1, 0)
    channel.feed(ANSWER, 10**9 + 1, 0)
    assert (one.outcome, "".join(one.answer.texts), channel.capacity) == ("ok", " one two", 1)


def test_binary_messages_and_fragments_are_events_too() -> None:
    """How a server frames its messages changes nothing."""
    channel, one = carrying()
    for message in GOOD:
        channel.feed(raw(BINARY, message[:5], fin=False) + raw(PING) + raw(0, message[5:]), 5, 0)
    assert (one.outcome, "".join(one.answer.texts)) == ("ok", " one two")


def test_an_answer_over_its_limits_has_their_outcome() -> None:
    """Its bytes, which end it and the connection, and its events, which are counted at its end."""
    for limits, outcome, closing_ in (
        (AnswerLimits(bytes=300), "too_large", True),
        (AnswerLimits(events=2), "too_many_events", False),
    ):
        channel, _ = opened()
        one = exchange(limits=limits)
        channel.submit(one)
        channel.feed(ANSWER, 5, 0)
        assert (one.outcome, channel.closing) == (outcome, closing_)


def test_giving_up_says_good_bye() -> None:
    """So that the server stops; the exchange is the reactor's to end."""
    channel, one = carrying()
    channel.cancel(one)
    assert (channel.exchanges, channel.ended, channel.closing) == ((), [], True)
    assert by_websockets(written(channel), client=False).close == (1001, "")


def test_nothing_is_left_to_collect() -> None:
    """Reference counting frees a channel, opened, refused or in use: nobody collects garbage while measuring."""
    gc.collect()
    gc.disable()
    try:
        for make in (carrying, opened):
            channel = make()[0]
            channel.close()
            del channel
        refused = WebSocketChannel(HEAD, greets=False)
        refused.opened()
        refused.feed(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n", 1, 0)
        refused.close()
        del refused
        left = [one for one in gc.get_objects() if isinstance(one, WebSocketChannel)]
    finally:
        gc.enable()
    assert left == []
