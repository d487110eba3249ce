"""WebSockets on the real reactor, over sockets: reuse, repeats, TLS, and peers that break RFC 6455."""

from __future__ import annotations

import ssl
import time

import pytest
import trustme
from driving import exchange_all
from peers import tokens
from websocket_partner import CLOSE, PING, TEXT, closing, raw
from websocket_play import Conversation, websocket_server

from inferometer.client.trust import context
from inferometer.drive.channel import RequestHead
from inferometer.drive.keep_alive import KeepAlive
from inferometer.drive.websocket_channel import websocket

KIND = websocket(RequestHead("GET", "/v1/ws", {"Host": "test"}))
GOOD = [event.removeprefix(b"data: ").strip() for event in tokens(" one", " two", " three")]


def answer(talk: Conversation) -> None:
    talk.say(*GOOD)


def test_connections_are_reused_and_each_event_has_its_stamp() -> None:
    """One answer after the other on as many connections as there are at once; instants stand in their order, and the handshake
    is a part of connecting: three requests waited for one."""
    with websocket_server(answer) as peer:
        ended = exchange_all(peer.port, 12, at_once=3, kind=KIND, body=b'{"n": 1}')
    assert sum(one.t_connected > one.t_connect > 0 for one in ended) == 3
    assert [one.outcome for one in ended] == ["ok"] * 12
    assert len(peer.conversations) == 3
    assert [talk.requests for talk in peer.conversations if set(talk.requests) != {b'{"n": 1}'}] == []
    for one in ended:
        times = [one.t_send, one.t_submit, one.t_first_byte, *one.answer.event_ns, one.t_end]
        assert times == sorted(times)
        assert one.t_connect <= one.t_connected <= one.t_send
        assert (len(one.answer.event_ns), one.attempts) == (len(GOOD), 1)


def test_tls_carries_it() -> None:
    """With the name verified."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(tls)
    trusted = context(verify=True, ca_file=None)
    authority.configure_trust(trusted)
    with websocket_server(answer, tls) as peer:
        ended = exchange_all(peer.port, 4, at_once=2, kind=KIND, tls=trusted)
    assert [one.outcome for one in ended] == ["ok"] * 4
    assert all(one.t_tls >= one.t_connected for one in ended)


def test_a_connection_of_its_own_for_each_request() -> None:
    """`--connection new`."""
    with websocket_server(answer) as peer:
        ended = exchange_all(peer.port, 4, reuse=False, kind=KIND)
    assert [one.outcome for one in ended] == ["ok"] * 4
    assert [len(talk.requests) for talk in peer.conversations] == [1] * 4


def test_a_server_that_closes_after_each_answer_is_learnt_and_costs_no_request() -> None:
    """Its orderly close may cross the next request, which is sent once more; fresh connections are then held ready."""

    def once(talk: Conversation) -> bool:
        talk.say(*GOOD)
        talk.sock.sendall(closing(1000))
        return False

    with websocket_server(once) as peer:
        ended = exchange_all(peer.port, 20, kind=KIND)
    assert [one.outcome for one in ended] == ["ok"] * 20
    assert sum(one.attempts - 1 for one in ended) < 10


@pytest.mark.parametrize("code", [1000, 1001, 1012])
def test_a_request_that_an_orderly_close_cannot_have_crossed_has_failed(code: int) -> None:
    """Law: as over HTTP/1.1, what a server held for longer than a close may have been under way it had, and dropped."""

    def drops(talk: Conversation) -> bool | None:
        if len(talk.requests) == 1:
            talk.say(*GOOD)
            return None
        time.sleep(0.2)
        talk.sock.sendall(closing(code, b"no room"))
        return False

    with websocket_server(drops) as peer:
        ended = exchange_all(peer.port, 3, kind=KIND, keep_alive=KeepAlive(0))
    assert [(one.outcome, one.attempts) for one in ended] == [("ok", 1), ("reset", 1), ("ok", 1)]
    assert ended[1].detail is not None
    assert ended[1].detail.startswith(f"close {code} ")


LONG = raw(TEXT, b"", length=b"\x7f" + (1 << 40).to_bytes(8, "big"))


@pytest.mark.parametrize(
    ("wire", "outcome", "detail"),
    [
        (closing(1011, b"no memory"), "reset", "close 1011 internal error: no memory"),
        (raw(TEXT, GOOD[1]) + raw(CLOSE, b"\x03"), "bad_http", "half a code"),
        (raw(TEXT, b"x", bits=0x40), "bad_http", "a reserved bit, of an extension that was not offered"),
        (raw(TEXT, b"x", mask=b"1234"), "bad_http", "a masked frame of a server"),
        (raw(9, b"x", fin=False), "bad_http", "a control frame in fragments"),
        (raw(TEXT, b"\xff\xfe"), "bad_http", "text that is no UTF-8"),
        (raw(12), "bad_http", "the reserved opcode 12"),
        (LONG, "too_large", "a message of more than 1048576 bytes"),
        (raw(TEXT, b"", fin=False) + raw(0, b"", fin=False) * 20_000, "too_large", "more than 10000 frames"),
        (b"HTTP/1.1 500 No\r\n\r\n", "bad_http", "a reserved bit, of an extension that was not offered"),
    ],
)
@pytest.mark.parametrize("stays", [True, False])
def test_one_request_of_a_hostile_server_has_one_outcome(
    wire: bytes, outcome: str, detail: str, stays: bool
) -> None:
    """And no hang, whether the server then closes or holds the connection, and never answers our close; others are served."""
    bad: list[int] = []

    def serve(talk: Conversation) -> bool | None:
        if not bad:
            bad.append(talk.index)
            talk.sock.sendall(wire)
            return stays or False
        talk.say(*GOOD)
        return None

    with websocket_server(serve) as peer:
        ended = exchange_all(peer.port, 4, kind=KIND)
    assert [one.outcome for one in ended] == [outcome, "ok", "ok", "ok"]
    assert (ended[0].detail or "").startswith(detail)


def test_endless_pings_end_their_request() -> None:
    """And not this process's memory: of each read the latest is answered, whether the server reads that or not."""
    with websocket_server(lambda talk: talk.sock.sendall(raw(PING, b"x" * 125) * 20_000)) as peer:
        (one,) = exchange_all(peer.port, 1, kind=KIND)
    assert (one.outcome, one.detail) == ("too_large", "more than 10000 frames without a message")


@pytest.mark.parametrize(
    "part", [b"", raw(TEXT, GOOD[1]), raw(TEXT, GOOD[1])[:9], raw(TEXT, GOOD[1], fin=False)]
)
def test_a_connection_that_ends_without_a_close_loses_its_request(part: bytes) -> None:
    """Whatever had come of the answer."""

    def serve(talk: Conversation) -> bool:
        talk.sock.sendall(part)
        return False

    with websocket_server(serve) as peer:
        (one,) = exchange_all(peer.port, 1, kind=KIND)
    assert (one.outcome, one.detail) == ("reset", "the server closed the connection")


@pytest.mark.parametrize("wire", [b"", raw(TEXT, GOOD[1])[:9], raw(TEXT, b"x" * 100)[:50]])
def test_a_server_that_falls_silent_costs_its_request_the_time_limit(wire: bytes) -> None:
    """A length that lies is waited for no longer than any answer; the server is told that nobody wants the rest."""

    def serve(talk: Conversation) -> None:
        talk.sock.sendall(wire)

    with websocket_server(serve) as peer:
        (one,) = exchange_all(peer.port, 1, kind=KIND, timeout_ns=200_000_000)
    assert one.outcome == "timeout"
    close = peer.conversations[0].server.protocol.close_rcvd
    assert close is not None
    assert close.code == 1001


@pytest.mark.parametrize(
    ("greeting", "detail"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno", "status 200: no"),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: xxxx\r\n\r\n",
            "101 with a Sec-WebSocket-Accept that does not belong to the key",
        ),
        (b"", "the server closed the connection instead"),
        (b"220 mail\r\n", "no answer of HTTP"),
    ],
)
def test_a_handshake_that_fails_is_a_connection_that_failed(greeting: bytes, detail: str) -> None:
    """The request was never sent, and says why."""
    with websocket_server(answer, greeting=greeting) as peer:
        ended = exchange_all(peer.port, 2, kind=KIND)
    for one in ended:
        assert (one.outcome, one.t_submit) == ("connect_error", 0)
        assert (one.detail or "").startswith(f"the WebSocket handshake was refused: {detail}")


@pytest.mark.parametrize(
    "status", [300, 301, 307, 400, 401, 403, 404, 426, 429, 500, 502, 503, 504, 599, 600]
)
@pytest.mark.parametrize("line", [b"", b"Retry-After: 7\r\n", b"Location: /elsewhere\r\n"])
def test_a_status_in_place_of_the_handshake_has_the_outcome_that_it_has_over_http(
    status: int, line: bytes
) -> None:
    """Law: outcome, status and Retry-After are those that HTTP/1.1 makes of the same bytes; the request was never sent."""
    response = b"HTTP/1.1 %d No\r\n%bContent-Length: 5\r\n\r\nlater" % (status, line)
    with websocket_server(answer, greeting=response) as peer:
        (plain,) = exchange_all(peer.port, 1)
        (one,) = exchange_all(peer.port, 1, kind=KIND)
    assert (one.outcome, one.status, one.retry_after_s) == (plain.outcome, status, plain.retry_after_s)
    assert (one.t_send, one.t_submit, one.t_first_byte, one.attempts) == (0, 0, 0, 1)
    assert (one.detail or "").startswith(f"the WebSocket handshake was refused: status {status}: ")


def test_a_refusal_that_is_not_whole_is_no_status() -> None:
    """Law: half a head is a connection that failed; a body that its connection ends is whole as far as it came."""
    for greeting, outcome in (
        (b"HTTP/1.1 429 No\r\nRetry-", "connect_error"),
        (b"HTTP/1.1 503 Busy\r\n\r\nlater", "http_5xx"),
        (b"HTTP/1.1 429 No\r\nContent-Length: 9\r\n\r\nlater", "http_429"),
    ):
        with websocket_server(answer, greeting=greeting) as peer:
            (one,) = exchange_all(peer.port, 1, kind=KIND)
        assert one.outcome == outcome
