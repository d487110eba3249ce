"""What a server does with a connection between two answers: learned from its closings, and never at the price of a wait."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trustme
from driving import exchange
from hypothesis import given
from hypothesis import strategies as st
from peers import Peer as Scripted
from peers import Script, Seen, chunked, scripted, tokens

from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import HTTP1
from inferometer.drive.keep_alive import CLOSE_ROOM_NS, CLOSE_TRIPS, CLOSED_NS, CLOSES, KeepAlive
from inferometer.drive.reactor import Reactor
from inferometer.drive.transport import Peer

GOOD = chunked(*tokens(" one", " two", " three"))
GIVE_UP_NS = 20_000_000_000


def closing(seen: Seen) -> Script:
    """A server that closes each connection after one answer, which does not announce it."""
    return Script(GOOD, "close")


class Client:
    """A reactor, and a load of so many requests at a time over it."""

    def __init__(
        self,
        port: int,
        tls: ssl.SSLContext | None = None,
        most_ready: int = 4,
        room_ns: int = GIVE_UP_NS,  # or a busy machine's server would close too late
    ) -> None:
        self.ended: list[Exchange] = []
        peer = Peer(2, ("127.0.0.1", port), tls, "localhost")
        habit = KeepAlive(room_ns)
        self.reactor = Reactor(peer, HTTP1, self.ended.append, most_ready=most_ready, keep_alive=habit)

    def wait(self, until: int) -> None:
        """Go on until so many have ended and nothing is being opened."""
        give_up = time.monotonic_ns() + GIVE_UP_NS
        while len(self.ended) < until or self.reactor.opening:
            now = time.monotonic_ns()
            assert now < give_up, "the reactor lost a request or a connection"
            self.reactor.wait(now + 5_000_000, exact=False)
            self.reactor.expire(now)

    def send(self, rounds: int, at_once: int = 1) -> list[Exchange]:
        """So many rounds, each sent when the one before has ended."""
        for _ in range(rounds):
            for _ in range(at_once):
                now = time.monotonic_ns()
                self.reactor.submit(exchange(len(self.ended), now), now)
            self.wait(len(self.ended) + at_once)
        return self.ended


@contextmanager
def client(server: Scripted, **how: ssl.SSLContext | int) -> Iterator[Client]:
    """A client of this server."""
    made = Client(server.port, **how)  # type: ignore[arg-type]  # its own keywords
    try:
        yield made
    finally:
        made.reactor.close()


@given(st.lists(st.integers(1, 10**10), min_size=1), st.integers(0, 10**11))
def test_a_close_is_the_clients_matter_for_a_few_round_trips_alone(waits: list[int], close: int) -> None:
    """Law: a close crosses a request within CLOSE_TRIPS of the shortest wait for any answer and CLOSE_ROOM, and never later."""
    habit = KeepAlive()
    for wait in waits:
        habit.waited(wait)
    assert habit.crossed(close) == (close <= CLOSE_TRIPS * min(waits) + CLOSE_ROOM_NS)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2 * CLOSED_NS))), st.integers(0, 20))
def test_only_prompt_closings_after_one_answer_tell_of_a_server_that_closes_each(
    closings: list[tuple[int, int]], reused: int
) -> None:
    """Law: it takes CLOSES of them, and more than the connections that gave a second answer; idle ones count for nothing."""
    habit = KeepAlive()
    for answers in [1, 2] * reused:
        habit.answered(answers)
    for answers, idle in closings:
        habit.closed(answers, idle)
    prompt = sum(answers == 1 and idle <= CLOSED_NS for answers, idle in closings)
    assert habit.single_use == (prompt >= CLOSES and prompt > reused)


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("secured", [False, True])
def test_a_server_that_closes_after_each_answer_is_learned_after_a_few(at_once: int, secured: bool) -> None:
    """Law: it costs at most CLOSES second attempts and those in flight; then each request has a fresh connection that was
    there before it, and no connection carries two."""
    server, own = None, None
    if secured:
        authority = trustme.CA()
        server, own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
        authority.issue_cert("localhost").configure_cert(server)
        authority.configure_trust(own)
    with scripted(closing, tls=server) as peer, client(peer, **({"tls": own} if own else {})) as made:
        ended = made.send(40 // at_once, at_once)
        assert made.reactor.single_use
    assert {one.outcome for one in ended} == {"ok"}
    assert sum(one.attempts > 1 for one in ended) <= CLOSES + at_once
    learned = ended[len(ended) // 2 :]
    assert all(one.attempts == 1 and one.t_connected and one.t_connect < one.t_taken for one in learned)
    assert {seen.place for seen in peer.seen} == {0}


def test_a_server_that_keeps_connections_is_believed() -> None:
    """Law: a few closings among connections that are reused change nothing: the others go on being reused."""

    def answer(seen: Seen) -> Script:
        return Script(GOOD, "close" if seen.place == 4 else "keep")

    with scripted(answer) as peer, client(peer) as made:
        ended = made.send(30)
        assert not made.reactor.single_use
    assert {one.outcome for one in ended} == {"ok"}
    assert max(seen.place for seen in peer.seen) == 4


def test_as_many_fresh_connections_are_ready_as_were_needed_at_once() -> None:
    """Law: whenever none was ready one more is held from then on, up to the most allowed: a burst finds them the next time."""
    with scripted(closing) as peer, client(peer, most_ready=12) as made:
        made.send(4)
        assert made.reactor.single_use
        first = made.send(1, 12)[-12:]
        second = made.send(1, 12)[-12:]
        beyond = made.send(1, 14)[-14:]
    ready = [sum(one.t_connect < one.t_taken for one in burst) for burst in (first, second, beyond)]
    assert ready == [8, 12, 12]


def test_a_request_sent_again_has_waited_since_it_was_first_sent() -> None:
    """Law: the times of sending are the first attempt's, which the server had received by then, so a TTFT holds the wait."""
    received: list[int] = []

    def answer(seen: Seen) -> Script:
        received.append(time.monotonic_ns())
        return Script([], "close") if seen.place == 1 else Script(GOOD)

    with scripted(answer) as peer, client(peer) as made:
        ended = made.send(2)
    assert [one.attempts for one in ended] == [1, 2]
    again = ended[1]
    assert again.t_send <= again.t_submit <= received[1] < received[2] <= again.t_first_byte
    assert not again.t_connect, "it went out over a kept connection first"


def test_a_request_that_the_server_had_and_dropped_is_an_error() -> None:
    """Law: a server that sits on a request for many round trips and then closes has reset it; the request is not sent again,
    so that no answer to a second attempt passes for the first one's."""
    sitting = threading.Event()

    def answer(seen: Seen) -> Script:
        if seen.place != 1:
            return Script(GOOD)
        sitting.wait(0.4)
        return Script([], "close")

    with scripted(answer) as peer, client(peer, room_ns=CLOSE_ROOM_NS) as made:
        ended = made.send(2)
    assert [(one.outcome, one.attempts) for one in ended] == [("ok", 1), ("reset", 1)]
    assert ended[1].t_end - ended[1].t_submit > 0.3e9
