"""The seam for protocols: toy channels that carry many exchanges at once, or no HTTP at all, on the reactor as it is."""

from __future__ import annotations

import gc
import socket
import ssl
import time
from collections.abc import Callable

import pytest
import trustme
from driving import PATIENCE_NS, exchange, exchange_all
from framed import (
    CREDIT,
    DATA,
    FRAMED,
    GREETED,
    LEAVE,
    RESET,
    UNBEGUN,
    Conversation,
    Request,
    frame,
    framed,
    greeted,
)
from peers import tokens

from inferometer.client.trust import context
from inferometer.drive.exchange import Exchange
from inferometer.drive.keep_alive import KeepAlive
from inferometer.drive.reactor import Reactor
from inferometer.drive.transport import Peer

GOOD = tokens(" one", " two", " three")


def at_once(talk: Conversation, request: Request) -> None:
    """Answer each request as soon as it is there."""
    talk.begin(request.number)
    talk.answer(request.number, *GOOD)


def once_there_are(count: int, serve: Callable[[Conversation, list[int]], None]) -> Callable[..., None]:
    """Wait until so many requests of a connection are open, then serve them, by number."""

    def wait(talk: Conversation, request: Request) -> None:
        if len(talk.requests) == count and len(talk.open) == count:
            serve(talk, [one.number for one in talk.requests])

    return wait


def test_one_transport_carries_many_exchanges_each_with_its_own_stamps() -> None:
    """Eight answers interleaved on one socket: each exchange has its own text, and for each of its events a stamp, which
    together stand in the order in which the server sent them."""

    def interleaved(talk: Conversation, numbers: list[int]) -> None:
        for number in numbers:
            talk.begin(number)
        for event in range(len(tokens("x"))):
            for number in numbers:
                talk.say(frame(number, DATA, tokens(f" {number}")[event]))
        for number in numbers:
            talk.answer(number)

    with framed(once_there_are(8, interleaved)) as peer:
        ended = exchange_all(peer.port, 8, at_once=8, kind=FRAMED)
    assert len(peer.conversations) == 1
    assert [one.outcome for one in ended] == ["ok"] * 8
    assert ["".join(one.answer.texts) for one in ended] == [f" {number}" for number in range(1, 9)]
    for one in ended:
        times = [one.t_intended, one.t_send, one.t_submit, one.t_first_byte, *one.answer.event_ns, one.t_end]
        assert times == sorted(times)
    sent = [at for event in zip(*(one.answer.event_ns for one in ended), strict=True) for at in event]
    assert sent == sorted(sent)


def test_an_exchange_is_stamped_by_its_own_bytes_while_others_go_on() -> None:
    """The second token of one answer is sent because another request has arrived: that request lies between the stamps of the
    two tokens, and its own answer's behind them."""

    def in_turn(talk: Conversation, request: Request) -> None:
        if request.number == 1:
            talk.begin(1)
            talk.say(frame(1, DATA, b"".join(GOOD[:2])))
        else:
            talk.answer(1, *GOOD[2:])
            at_once(talk, request)

    with framed(in_turn) as peer:
        first, second = exchange(0, 1, kind=FRAMED), exchange(1, 1, kind=FRAMED)
        ended: list[Exchange] = []
        reactor = Reactor(Peer(socket.AF_INET, ("127.0.0.1", peer.port)), FRAMED, ended.append)
        for one in (first, second):
            one.deadline = time.monotonic_ns() + PATIENCE_NS
        reactor.submit(first, time.monotonic_ns())
        carry_on(reactor, lambda: bool(first.answer.texts))
        reactor.submit(second, time.monotonic_ns())
        carry_on(reactor, lambda: len(ended) == 2)
        reactor.close()
    assert [one.outcome for one in ended] == ["ok", "ok"]
    token, next_token, *_ = first.answer.event_ns[1:]
    assert token < second.t_send <= second.t_submit < next_token <= second.t_first_byte


def test_requests_join_the_transport_that_is_being_opened_and_share_its_times() -> None:
    """Sent before the connection stands, as many requests as it is to carry wait for one transport, and say how long."""
    with framed(at_once) as peer:
        ended = exchange_all(peer.port, 12, at_once=6, kind=FRAMED)
    assert len(peer.conversations) == 1
    first, others = ended[:6], ended[6:]
    assert len({(one.t_connect, one.t_connected) for one in first}) == 1
    assert all(0 < one.t_connect < one.t_connected <= one.t_send for one in first)
    assert not any(one.t_connect for one in others)


@pytest.mark.parametrize("places", [1, 3, 8, 20])
def test_no_channel_is_given_more_than_its_capacity(places: int) -> None:
    """Twenty requests at once that nobody answers before all are there: each channel carries what its server allows, and
    nothing waits for a place."""
    held: list[tuple[Conversation, int]] = []

    def hold(talk: Conversation, request: Request) -> None:
        held.append((talk, request.number))
        if len(held) == 20:
            for one, number in held:
                one.begin(number)
                one.answer(number, *GOOD)

    with framed(hold, lambda talk: talk.places(places)) as peer:
        ended = exchange_all(peer.port, 20, at_once=20, kind=FRAMED)
    assert [one.outcome for one in ended] == ["ok"] * 20
    assert max(talk.most for talk in peer.conversations) <= places
    assert len(peer.conversations) >= 20 / max(places, FRAMED.places)


def test_capacity_that_shrinks_and_grows_is_followed() -> None:
    """A server that lowers its places gets no more than that from then on, and more again when it raises them."""

    def narrow(talk: Conversation, request: Request) -> None:
        if len(talk.requests) == 2:
            talk.places(1)
        if len(talk.requests) == 4:
            talk.places(8)
        at_once(talk, request)

    with framed(narrow) as peer:
        ended = exchange_all(peer.port, 12, at_once=2, kind=FRAMED)
    assert [one.outcome for one in ended] == ["ok"] * 12
    assert len(peer.requests) == 12


def test_the_reset_of_one_exchange_leaves_the_others() -> None:
    """One of four is given up by the server: it is a reset, the others succeed, and the transport goes on."""

    def one_fails(talk: Conversation, numbers: list[int]) -> None:
        for number in numbers:
            talk.begin(number)
        talk.say(frame(numbers[2], RESET))
        del talk.open[numbers[2]]
        for number in numbers:
            talk.answer(number, *GOOD)

    with framed(once_there_are(4, one_fails)) as peer:
        ended = exchange_all(peer.port, 4, at_once=4, kind=FRAMED)
    assert sorted((one.outcome, one.attempts) for one in ended) == [("ok", 1)] * 3 + [("reset", 1)]
    assert len(peer.conversations) == 1


def test_a_fault_in_one_exchange_leaves_the_others_and_is_given_up_at_the_server() -> None:
    """An event over the limit ends its own exchange; the server is told, and the transport goes on."""

    def one_is_huge(talk: Conversation, numbers: list[int]) -> None:
        for number in numbers:
            talk.begin(number)
        talk.answer(numbers[0], b"data: " + b"x" * (2 << 20))
        for number in numbers:
            talk.answer(number, *GOOD)

    with framed(once_there_are(3, one_is_huge)) as peer:
        ended = exchange_all(peer.port, 3, at_once=3, kind=FRAMED)
    assert sorted(one.outcome for one in ended) == ["bad_event", "ok", "ok"]
    (talk,) = peer.conversations
    assert len(talk.given_up) == 1


def test_a_deadline_ends_one_exchange_and_leaves_the_others() -> None:
    """One is never answered: it is a timeout, the server is told, and answers go on over the same transport."""

    def all_but_the_first(talk: Conversation, request: Request) -> None:
        if request.number != 1:
            at_once(talk, request)

    with framed(all_but_the_first) as peer:
        ended: list[Exchange] = []
        reactor = Reactor(Peer(socket.AF_INET, ("127.0.0.1", peer.port)), FRAMED, ended.append)
        now = time.monotonic_ns()
        for index in range(3):
            wait = 300_000_000 if index == 0 else PATIENCE_NS
            reactor.submit(exchange(index, now, timeout_ns=wait, kind=FRAMED), now)
        carry_on(reactor, lambda: len(ended) == 3)
        reactor.submit(exchange(3, time.monotonic_ns(), kind=FRAMED), time.monotonic_ns())
        carry_on(reactor, lambda: len(ended) == 4)
        reactor.close()
    assert [(one.index, one.outcome) for one in ended] == [(1, "ok"), (2, "ok"), (0, "timeout"), (3, "ok")]
    (talk,) = peer.conversations
    assert talk.given_up == [1]


def test_what_the_server_has_not_begun_is_sent_once_more() -> None:
    """An exchange that the server names as not begun goes out again on a fresh transport, with two attempts on record; one
    that it refuses twice is a reset."""

    def refuse(talk: Conversation, request: Request) -> None:
        if request.number == 2 and talk.index == 0:
            del talk.open[2]
            talk.say(frame(2, UNBEGUN))
        else:
            at_once(talk, request)

    with framed(refuse) as peer:
        ended = exchange_all(peer.port, 3, at_once=3, kind=FRAMED)
    assert sorted((one.outcome, one.attempts) for one in ended) == [("ok", 1), ("ok", 1), ("ok", 2)]
    with framed(lambda talk, request: talk.say(frame(request.number, UNBEGUN))) as peer:
        (never,) = exchange_all(peer.port, 1, kind=FRAMED)
    assert (never.outcome, never.attempts) == ("reset", 2)


def test_a_server_that_takes_its_leave_is_left_once_all_have_ended() -> None:
    """After the leave new requests go elsewhere, those under way end in peace, and the transport is then closed."""

    def leave(talk: Conversation, numbers: list[int]) -> None:
        if talk.index:
            for number in numbers:
                at_once(talk, talk.open[number])
            return
        for number in numbers:
            talk.begin(number)
        talk.say(frame(0, LEAVE))
        for number in numbers:
            talk.answer(number, *GOOD)

    with framed(once_there_are(2, leave)) as peer:
        ended = exchange_all(peer.port, 4, at_once=2, kind=FRAMED)
    assert [(one.outcome, one.attempts) for one in ended] == [("ok", 1)] * 4
    assert [len(talk.requests) for talk in peer.conversations] == [2, 2]


def test_the_death_of_a_transport_ends_all_it_carries() -> None:
    """Dead in the middle of four answers: four resets, none sent again, since the server was at work; the next go on."""

    def die(talk: Conversation, numbers: list[int]) -> None:
        if talk.index:
            for number in numbers:
                at_once(talk, talk.open[number])
            return
        for number in numbers[:2]:
            talk.begin(number)
        talk.sock.shutdown(socket.SHUT_RDWR)

    with framed(once_there_are(4, die)) as peer:
        ended = exchange_all(peer.port, 8, at_once=4, kind=FRAMED)
    assert [(one.outcome, one.attempts) for one in ended] == [("reset", 1)] * 4 + [("ok", 1)] * 4
    assert all(one.detail == "the server closed the connection" for one in ended[:4])


def test_a_kept_transport_that_is_closed_at_reuse_costs_no_exchange() -> None:
    """The server closes an idle transport just as four requests go out on it: all four go out again on a fresh one."""

    def once(talk: Conversation, request: Request) -> None:
        if talk.index == 0 and request.number > 1:
            if request.number == 5:
                talk.sock.shutdown(socket.SHUT_RDWR)
            return
        at_once(talk, request)

    with framed(once) as peer:
        ended: list[Exchange] = []
        address = Peer(socket.AF_INET, ("127.0.0.1", peer.port))
        # However late a starved machine lets the close happen, it counts as having crossed the requests.
        patient = KeepAlive(PATIENCE_NS)
        reactor = Reactor(address, FRAMED, ended.append, keep_alive=patient)
        for count in (1, 4):
            done = len(ended) + count
            for _ in range(count):
                now = time.monotonic_ns()
                reactor.submit(exchange(0, now, kind=FRAMED), now)
            carry_on(reactor, lambda done=done: len(ended) == done)  # type: ignore[misc]  # mypy: a default of its own type
        reactor.close()
    assert [(one.outcome, one.attempts) for one in ended] == [("ok", 1)] + [("ok", 2)] * 4
    assert len(peer.conversations) == 2


def test_a_body_that_waits_for_credit_is_submitted_with_its_last_byte() -> None:
    """A request that the server lets in piece by piece arrives whole; t_submit is the sending of the last piece, after the
    server has granted it, and the others' stamps are their own."""
    granted: list[int] = []
    body = b"x" * 30_000

    def grant(talk: Conversation, request: Request) -> None:
        if len(request.body) in (10_000, 20_000):
            granted.append(time.monotonic_ns())
            talk.say(frame(0, CREDIT, b"10000"))

    with framed(at_once, lambda talk: talk.places(8, 10_000), grant) as peer:
        (one,) = exchange_all(peer.port, 1, body=body, kind=FRAMED)
    assert peer.requests[0].body == body
    assert one.outcome == "ok"
    assert one.t_send < granted[0] < granted[1] < one.t_submit < one.t_first_byte


def test_a_large_body_is_submitted_when_the_socket_has_taken_it_and_others_keep_their_place() -> None:
    """Eight bodies larger than the socket's buffer: all arrive whole, and are submitted one after the other."""
    body = b"x" * 3_000_000
    with framed(at_once) as peer:
        ended = exchange_all(peer.port, 8, at_once=8, body=body, kind=FRAMED)
    assert [one.outcome for one in ended] == ["ok"] * 8
    assert all(request.body == body for request in peer.requests)
    by_index = sorted(ended, key=lambda one: one.index)
    submitted = [one.t_submit for one in by_index]
    assert submitted == sorted(submitted)
    assert all(one.t_send <= one.t_submit for one in ended)


def test_reuse_switched_off_gives_every_exchange_a_transport() -> None:
    """`new` connections: a channel that could carry many carries one."""
    with framed(at_once) as peer:
        ended = exchange_all(peer.port, 5, at_once=5, reuse=False, kind=FRAMED)
    assert [one.outcome for one in ended] == ["ok"] * 5
    assert [len(talk.requests) for talk in peer.conversations] == [1] * 5
    assert all(one.t_connect for one in ended)


def test_places_are_opened_ahead_of_need() -> None:
    """Twenty places ahead are three transports of eight; requests then find them open, and none is opened for them."""
    with framed(at_once) as peer:
        ended: list[Exchange] = []
        reactor = Reactor(Peer(socket.AF_INET, ("127.0.0.1", peer.port)), FRAMED, ended.append)
        reactor.open(20)
        assert reactor.opening == 3
        carry_on(reactor, lambda: not reactor.opening)
        now = time.monotonic_ns()
        for index in range(20):
            reactor.submit(exchange(index, now, kind=FRAMED), now)
        carry_on(reactor, lambda: len(ended) == 20)
        reactor.close()
    assert [one.outcome for one in ended] == ["ok"] * 20
    assert len(peer.conversations) == 3


def test_a_framed_channel_runs_over_tls(tmp_path_factory: pytest.TempPathFactory) -> None:
    """TLS is the transport's: the protocol's name goes into ALPN and the rest is the same."""
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    server.set_alpn_protocols(["http/1.1", *FRAMED.alpn])
    ca_file = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    with framed(at_once, tls=server) as peer:
        client = context(True, str(ca_file), FRAMED.alpn)
        ended = exchange_all(peer.port, 6, at_once=3, kind=FRAMED, tls=client)
    assert [one.outcome for one in ended] == ["ok"] * 6
    (talk,) = peer.conversations
    assert talk.alpn == "framed"
    assert all(one.t_connect < one.t_connected < one.t_tls <= one.t_send for one in ended if one.t_connect)


EVENTS = [event.removeprefix(b"data: ").strip() for event in GOOD]


def test_a_protocol_without_http_is_greeted_first_and_gives_its_events_itself() -> None:
    """Requests wait for the greeting; each message is one event with its own stamp; there is no status."""
    with greeted(EVENTS) as peer:
        ended = exchange_all(peer.port, 4, at_once=2, kind=GREETED, body=b"question")
    assert [one.outcome for one in ended] == ["ok"] * 4
    assert [request.body for request in peer.requests] == [b"question"] * 4
    assert len(peer.conversations) == 2
    for one in ended:
        assert ("".join(one.answer.texts), one.status) == (" one two three", 0)
        times = [one.t_send, one.t_submit, one.t_first_byte, *one.answer.event_ns, one.t_end]
        assert times == sorted(times)


@pytest.mark.parametrize(("welcome", "outcome"), [(b"go away\n", "connect_error"), (b"", "connect_timeout")])
def test_a_greeting_that_fails_or_does_not_come_is_a_failed_connect(welcome: bytes, outcome: str) -> None:
    """Nothing was sent of the request, so it is no failure of its answer."""
    with greeted(EVENTS, welcome) as peer:
        ended: list[Exchange] = []
        address = Peer(socket.AF_INET, ("127.0.0.1", peer.port))
        reactor = Reactor(address, GREETED, ended.append, connect_timeout_ns=300_000_000)
        now = time.monotonic_ns()
        reactor.submit(exchange(0, now, kind=GREETED), now)
        carry_on(reactor, lambda: bool(ended))
        reactor.close()
    (one,) = ended
    assert (one.outcome, one.t_send) == (outcome, 0)
    assert peer.requests == []


@pytest.mark.parametrize("reset", [False, True])
def test_no_circle_keeps_what_a_channel_carried(reset: bool) -> None:
    """The collector is off while measuring, and would find no exchange and no channel, whether answered or cut off."""

    def serve(talk: Conversation, request: Request) -> None:
        if reset and request.number == 5:
            talk.reset()
        else:
            at_once(talk, request)

    gc.collect()
    gc.disable()
    try:
        with framed(serve) as peer:
            ended = exchange_all(peer.port, 30, at_once=3, kind=FRAMED)
            del ended[:]
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            kept = {type(one).__name__ for one in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not {"Exchange", "Transport", "FramedChannel", "Answer"} & kept


def carry_on(reactor: Reactor, until: Callable[[], bool]) -> None:
    """Turn the loop until this holds."""
    give_up = time.monotonic_ns() + 2 * PATIENCE_NS
    while not until():
        now = time.monotonic_ns()
        assert now < give_up, "the reactor lost a request"
        reactor.wait(now + 5_000_000, exact=False)
        reactor.expire(time.monotonic_ns())
