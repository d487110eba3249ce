"""HTTP/2 on the real reactor, against servers of h2 and servers that speak something else."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from driving import PATIENCE_NS, exchange, exchange_all
from http2_partner import EVENTS, GOAWAY, RST_STREAM, number, raw
from http2_play import Conversation, http2_server
from peers import tokens

from inferometer.client.trust import context
from inferometer.drive.exchange import EARLY, Exchange
from inferometer.drive.http2_channel import http2
from inferometer.drive.reactor import Reactor
from inferometer.drive.transport import Peer

GOOD = tokens(" one", " two", " three")
KIND = http2(8)


def at_once(talk: Conversation, stream: int) -> None:
    """Answer each request as soon as it is there."""
    talk.answer(stream, *GOOD)


def once_there_are(
    count: int, serve: Callable[[Conversation, list[int]], None]
) -> Callable[[Conversation, int], None]:
    """Wait until so many requests of a connection are open, then serve them."""

    def wait(talk: Conversation, _stream: int) -> None:
        if len(talk.requests) == len(talk.open) == count:
            serve(talk, list(talk.requests))

    return wait


def carry_on(reactor: Reactor, until: Callable[[], bool]) -> None:
    """Turn the loop until this holds."""
    give_up = time.monotonic_ns() + 2 * PATIENCE_NS
    while not until():
        now = time.monotonic_ns()
        assert now < give_up, "the reactor lost a request"
        reactor.wait(now + 5_000_000, exact=False)
        reactor.expire(time.monotonic_ns())


def test_one_connection_carries_many_requests_each_with_its_own_stamps() -> None:
    """Eight answers interleaved on one socket: each has its own text, and its times are in order."""

    def interleaved(talk: Conversation, streams: list[int]) -> None:
        for stream in streams:
            talk.server.answer(stream, end=False)
        for place in range(len(tokens("x"))):
            for stream in streams:
                talk.server.h2.send_data(stream, tokens(f" {stream}")[place])
                talk.flush()
        for stream in streams:
            talk.open.remove(stream)
            talk.server.h2.end_stream(stream)
        talk.flush()

    with http2_server(once_there_are(8, interleaved)) as peer:
        ended = exchange_all(peer.port, 8, at_once=8, kind=KIND)
    assert len(peer.conversations) == 1
    assert [(one.outcome, one.attempts) for one in ended] == [("ok", 1)] * 8
    assert {"".join(one.answer.texts) for one in ended} == {f" {2 * place + 1}" for place in range(8)}
    for one in ended:
        times = [one.t_intended, one.t_send, one.t_submit, one.t_first_byte, *one.answer.event_ns, one.t_end]
        assert times == sorted(times)


@pytest.mark.parametrize(("allowed", "wanted"), [(1, 8), (3, 8), (100, 8), (100, 2)])
def test_no_connection_carries_more_than_both_sides_allow(allowed: int, wanted: int) -> None:
    """Twelve at once that nobody answers before all are there: none waits for another's place."""
    held: list[tuple[Conversation, int]] = []

    def hold(talk: Conversation, stream: int) -> None:
        held.append((talk, stream))
        if len(held) == 12:
            for one, number_ in held:
                one.answer(number_, *GOOD)

    with http2_server(hold, max_concurrent_streams=allowed) as peer:
        ended = exchange_all(peer.port, 12, at_once=12, kind=http2(wanted))
    assert [one.outcome for one in ended] == ["ok"] * 12
    assert max(talk.most for talk in peer.conversations) == min(allowed, wanted)


def test_a_connection_is_used_again_and_not_at_all_where_that_is_wanted() -> None:
    """`reuse` and `new`."""
    with http2_server(at_once) as peer:
        exchange_all(peer.port, 6, at_once=2, kind=KIND)
        assert len(peer.conversations) == 1
        ended = exchange_all(peer.port, 4, at_once=4, reuse=False, kind=KIND)
    assert [one.outcome for one in ended] == ["ok"] * 4
    assert [len(talk.requests) for talk in peer.conversations] == [6, 1, 1, 1, 1]


def test_a_deadline_ends_one_request_and_leaves_the_others() -> None:
    """It is a timeout, the server is told, and answers go on over the same connection."""

    def all_but_the_first(talk: Conversation, stream: int) -> None:
        if stream != 1:
            at_once(talk, stream)

    with http2_server(all_but_the_first) as peer:
        ended: list[Exchange] = []
        reactor = Reactor(Peer(socket.AF_INET, ("127.0.0.1", peer.port)), KIND, ended.append)
        now = time.monotonic_ns()
        for index in range(3):
            wait = 300_000_000 if index == 0 else PATIENCE_NS
            reactor.submit(exchange(index, now, timeout_ns=wait, kind=KIND), now)
        carry_on(reactor, lambda: len(ended) == 3)
        reactor.submit(exchange(3, time.monotonic_ns(), kind=KIND), time.monotonic_ns())
        carry_on(reactor, lambda: len(ended) == 4)
        reactor.close()
    assert [(one.index, one.outcome) for one in ended] == [(1, "ok"), (2, "ok"), (0, "timeout"), (3, "ok")]
    (talk,) = peer.conversations
    assert talk.given_up == [1]


def test_what_a_leaving_server_has_not_begun_goes_elsewhere() -> None:
    """GOAWAY after the second of four: two end in peace, two are sent once more on a new connection."""

    def leave(talk: Conversation, streams: list[int]) -> None:
        if talk.index == 0:
            talk.flush(raw(GOAWAY, 0, 0, number(streams[1]) + number(0)))
            streams = streams[:2]
        for stream in streams:
            at_once(talk, stream)

    def serve(talk: Conversation, stream: int) -> None:
        once_there_are(4 if talk.index == 0 else 2, leave)(talk, stream)

    with http2_server(serve) as peer:
        ended = exchange_all(peer.port, 4, at_once=4, kind=KIND)
    assert sorted((one.outcome, one.attempts) for one in ended) == [("ok", 1)] * 2 + [("ok", 2)] * 2
    assert len(peer.conversations) == 2


def test_what_is_refused_twice_is_a_reset() -> None:
    """REFUSED_STREAM says that nothing was begun; a server that says so each time serves nobody."""
    with http2_server(lambda talk, stream: talk.flush(raw(RST_STREAM, 0, stream, number(7)))) as peer:
        (one,) = exchange_all(peer.port, 1, kind=KIND)
    assert (one.outcome, one.attempts) == ("reset", 2)


def test_the_death_of_a_connection_ends_all_it_carries() -> None:
    """Four resets, none sent again, since the server was at work."""

    def die(talk: Conversation, streams: list[int]) -> None:
        for stream in streams[:2]:
            talk.server.answer(stream, end=False)
        talk.flush()
        talk.sock.shutdown(socket.SHUT_RDWR)

    with http2_server(once_there_are(4, die)) as peer:
        ended = exchange_all(peer.port, 4, at_once=4, kind=KIND)
    assert [(one.outcome, one.attempts) for one in ended] == [("reset", 1)] * 4


def test_large_bodies_go_out_as_the_server_opens_its_windows() -> None:
    """Four bodies of 300 kB through windows of 64 KiB: each arrives whole, and is submitted when its last byte is."""
    body = b"x" * 300_000
    with http2_server(at_once) as peer:
        ended = exchange_all(peer.port, 4, at_once=4, body=body, kind=KIND)
    (talk,) = peer.conversations
    assert [one.outcome for one in ended] == ["ok"] * 4
    assert [talk.server.bodies[2 * place + 1] for place in range(4)] == [body] * 4
    assert all(one.t_send < one.t_submit <= one.t_first_byte for one in ended)


BUSY = [(":status", "503"), ("content-type", "text/plain")]


@pytest.mark.parametrize(
    ("fields", "admitted", "outcome"),
    [(EVENTS, 0, "bad_http"), (EVENTS, 1_000_000, "bad_http"), (BUSY, 0, "http_5xx")],
)
def test_an_answer_that_does_not_wait_for_its_request_is_no_success(
    fields: list[tuple[str, str]], admitted: int, outcome: str
) -> None:
    """Law: tokens sent before the server has the last byte of the request give no TTFT, above or below zero. An error may come
    so early."""

    def too_soon(talk: Conversation, stream: int) -> None:
        ended = not admitted
        talk.server.h2.send_headers(stream, fields)
        for event in GOOD:
            talk.server.h2.send_data(stream, event)
        if ended:
            talk.server.h2.end_stream(stream)
        else:
            talk.server.h2.increment_flow_control_window(admitted, stream)
        talk.flush()

    def end(talk: Conversation, stream: int) -> None:
        talk.server.h2.end_stream(stream)

    with http2_server(end, begin=too_soon, initial_window_size=0) as peer:
        (one,) = exchange_all(peer.port, 1, kind=KIND)
    assert one.outcome == outcome
    assert one.detail == EARLY or outcome != "bad_http"
    assert bool(one.t_submit) == bool(admitted)


def test_over_http1_neither() -> None:
    """Law: the same, of a body that the sockets do not hold."""
    wire = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n"
    answer = b"".join(GOOD)
    over = threading.Event()
    (one,) = exchange_all(_answering(wire % len(answer) + answer, over), 1, body=b"x" * (64 << 20))
    over.set()
    assert (one.outcome, one.detail, one.t_submit) == ("bad_http", EARLY, 0)


def test_a_server_of_http1_is_told_from_one_of_http2() -> None:
    """Nothing was sent of the request: it failed to connect, and the words say why."""
    port = _answering(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    ended: list[Exchange] = []
    reactor = Reactor(Peer(socket.AF_INET, ("127.0.0.1", port)), KIND, ended.append)
    now = time.monotonic_ns()
    reactor.submit(exchange(0, now, kind=KIND), now)
    carry_on(reactor, lambda: bool(ended))
    reactor.close()
    (one,) = ended
    assert (one.outcome, one.t_send) == ("connect_error", 0)
    assert (one.detail or "").startswith(
        "the server does not speak HTTP/2: what it sends begins b'HTTP/1.1 '"
    )


def _answering(reply: bytes, over: threading.Event | None = None) -> int:
    """A port where one connection is answered with these bytes, whatever it says. `over`: read no more before this is set."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener:
            sock, _ = listener.accept()
            with sock:
                sock.recv(1000)
                sock.sendall(reply)
                if over is not None:
                    over.wait(30)
                sock.recv(1000)

    threading.Thread(target=serve, daemon=True).start()
    return int(listener.getsockname()[1])


@pytest.fixture
def authority() -> trustme.CA:
    """A certificate authority of this test's own."""
    return trustme.CA()


@pytest.mark.parametrize(
    ("offered", "outcome"), [(["h2", "http/1.1"], "ok"), (["http/1.1"], "tls_error"), ([], "tls_error")]
)
def test_over_tls_the_server_has_to_choose_http2(
    authority: trustme.CA, tmp_path: Path, offered: list[str], outcome: str
) -> None:
    """By ALPN. One that does not is no server to send requests to, and the outcome says so."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    if offered:
        server.set_alpn_protocols(offered)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    trusted = context(True, str(tmp_path / "ca.pem"), KIND.alpn)
    with http2_server(at_once, tls=server) as peer:
        ended: list[Exchange] = []
        address = Peer(socket.AF_INET, ("127.0.0.1", peer.port), trusted, "localhost", KIND.alpn)
        reactor = Reactor(address, KIND, ended.append)
        now = time.monotonic_ns()
        for index in range(3):
            reactor.submit(exchange(index, now, kind=KIND), now)
        carry_on(reactor, lambda: len(ended) == 3)
        reactor.close()
    assert [one.outcome for one in ended] == [outcome] * 3
    if outcome == "ok":
        assert all(one.t_connect < one.t_connected < one.t_tls <= one.t_send for one in ended)
    else:
        assert all(one.t_send == 0 for one in ended)
        assert offered or "does not choose h2 by ALPN" in (ended[0].detail or "")


def test_all_is_over_at_once_though_the_connection_breaks_as_it_is_cancelled() -> None:
    """Eight under way, and a socket that is gone when the first is given up: each ends exactly once."""

    def silent(talk: Conversation, _stream: int) -> None:
        if len(talk.requests) == 8:
            talk.reset()
            gone.set()

    for end in ("cancel", "expire"):
        gone = threading.Event()
        with http2_server(silent) as peer:
            ended: list[Exchange] = []
            reactor = Reactor(Peer(socket.AF_INET, ("127.0.0.1", peer.port)), KIND, ended.append)
            now = time.monotonic_ns()
            for index in range(8):
                reactor.submit(exchange(index, now, kind=KIND), now)
            carry_on(reactor, peer.has_read(8))
            assert gone.wait(PATIENCE_NS / 1e9)
            if end == "cancel":
                reactor.cancel(time.monotonic_ns(), "over")
            else:
                reactor.expire(now + 2 * PATIENCE_NS)
            assert len(ended) == 8
            assert reactor.vitals.in_flight == 0
            assert sorted(one.index for one in ended) == list(range(8))
            reactor.close()
