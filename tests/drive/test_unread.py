"""How long what a read holds may have waited: no earlier packet came before the instant that is given."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

import pytest

from inferometer.drive import clock
from inferometer.drive.exchange import Exchange
from inferometer.drive.poller import READABLE, Poller
from inferometer.drive.unread import WAKE_NS, RoundClock, SocketUnread
from inferometer.engines import dialect

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="counts packets by Linux's TCP_INFO")
MS = 1_000_000


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a TCP connection over loopback; what the second sends goes out at once."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    theirs.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with ours, theirs:
        yield ours, theirs


def test_what_a_poll_did_not_name_was_empty_when_it_began() -> None:
    """Law: a poll that finds a socket at once says nothing of how long it was ready, but the one before does, unless it named
    as many as it may and so left some out."""
    rounds = RoundClock(0)
    rounds.polled(100, 110, waited=False, all_named=True)
    assert rounds.empty() == 0
    rounds.polled(200, 210, waited=False, all_named=True)
    assert rounds.empty() == 100
    rounds.polled(300, 310, waited=False, all_named=False)
    assert rounds.empty() == 200
    rounds.polled(400, 410, waited=False, all_named=False)
    rounds.polled(500, 510, waited=False, all_named=True)
    assert rounds.empty() == 200
    rounds.polled(600, 610, waited=False, all_named=True)
    assert rounds.empty() == 500


def test_a_poll_that_waited_was_woken_by_the_first_packet() -> None:
    """Law: it came as long before the poll's end as waking takes and the process had no core, and not before the poll's begin;
    where nobody counts the latter, or the process was stopped meanwhile, only that is known."""
    waited = iter((0, 0, 3 * MS, 50 * MS))
    rounds = RoundClock(0, lambda: next(waited, None))
    end = 100 * MS
    rounds.polled(80 * MS, end, waited=True, all_named=True)
    assert rounds.empty() == end - WAKE_NS
    rounds.polled(80 * MS, end, waited=True, all_named=True)
    assert rounds.empty() == end - WAKE_NS - 3 * MS
    rounds.stopped()
    assert rounds.empty() == 80 * MS
    rounds.polled(80 * MS, end, waited=True, all_named=True)
    assert rounds.empty() == 80 * MS
    rounds.polled(90 * MS, end, waited=True, all_named=True)
    assert rounds.empty() == 90 * MS


def test_what_waking_took_counts_in_every_round_that_it_delayed() -> None:
    """Law: a poll that was woken late may name more sockets than one round reads; those of the later rounds were empty no later
    than those of the first."""
    waited = iter((0, 25 * MS, 25 * MS, 25 * MS))
    rounds = RoundClock(0, lambda: next(waited))
    end = 100 * MS
    rounds.polled(10 * MS, end, waited=True, all_named=False)
    first = rounds.empty()
    assert first == end - WAKE_NS - 25 * MS
    rounds.polled(101 * MS, 101 * MS, waited=False, all_named=False)
    assert rounds.empty() == first
    rounds.polled(102 * MS, 102 * MS, waited=False, all_named=True)
    assert rounds.empty() == first
    rounds.polled(103 * MS, 103 * MS, waited=False, all_named=True)
    assert rounds.empty() == 102 * MS


def test_time_without_a_core_before_a_poll_does_not_count_for_its_waking() -> None:
    """Law: what is caught up with is no part of a later waking, but of the one before."""
    waited = iter((0, 40 * MS, 40 * MS, 41 * MS))
    rounds = RoundClock(0, lambda: next(waited))
    rounds.polled(10 * MS, 100 * MS, waited=True, all_named=True)
    rounds.catch_up()
    assert rounds.empty() == 100 * MS - WAKE_NS - 40 * MS
    rounds.polled(150 * MS, 200 * MS, waited=True, all_named=True)
    assert rounds.empty() == 200 * MS - WAKE_NS - 1 * MS


@LINUX
def test_a_packet_a_read_has_not_waited(pair: tuple[socket.socket, socket.socket]) -> None:
    """Law: as many packets as reads: 0, however late; more packets than reads: since the socket was last known to be empty."""
    ours, theirs = pair
    rounds = RoundClock(clock.monotonic_ns())
    mine = SocketUnread(ours, rounds)
    for _ in range(3):
        theirs.send(b"data: x\n\n" * 9)
        ours.recv(1000)
        mine.reads += 1
    assert mine.waited(clock.monotonic_ns()) == 0
    before = clock.monotonic_ns()
    for _ in range(2):
        theirs.send(b"data: x\n\n")
    ours.recv(1000)
    mine.reads += 1
    at = clock.monotonic_ns()
    assert mine.waited(at) >= at - before
    theirs.send(b"data: x\n\n")
    ours.recv(1000)
    mine.reads += 1
    assert mine.waited(clock.monotonic_ns()) == 0


def test_a_packet_never_came_before_the_instant_given(pair: tuple[socket.socket, socket.socket]) -> None:
    """Law, on the machine's own clock: packets sent at any time around polls came after `empty()` of the round that reads
    them."""
    ours, theirs = pair
    poller = Poller()
    poller.register(ours.fileno(), READABLE)
    rounds = RoundClock(clock.monotonic_ns())
    for turn in range(200):
        sent = clock.monotonic_ns()
        for _ in range(1 + turn % 3):
            theirs.send(b"data: x\n\n")
        begun = clock.monotonic_ns()
        ready = poller.poll(0.0, 32)
        waited = not ready
        if waited:
            ready = poller.poll(1.0, 32)
        rounds.polled(begun, clock.monotonic_ns(), waited=waited, all_named=True)
        assert ready
        ours.recv(1000)
        assert rounds.empty() <= sent
        if turn % 2:
            rounds.polled(clock.monotonic_ns(), clock.monotonic_ns(), waited=False, all_named=True)
    poller.close()


class Waited:
    """An Unread whose reads may have waited since 7 ns before the start."""

    def waited(self, at: int) -> int:
        """See Unread."""
        return at + 7


def test_an_exchange_keeps_what_reads_of_several_events_may_have_waited() -> None:
    """The index of the first event of each such read, and the wait; reads of one event keep nothing, and a request that is sent
    again forgets."""
    token = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
    one = Exchange(0, 0, 0, b"", b"", 10**18, dialect.load("chat"))
    one.unread = Waited()
    one.head(200, {b"content-type": b"text/event-stream"})
    for at, count in enumerate((1, 2, 1, 3)):
        one.data(token * count, at)
    assert (one.merged, list(one.answer.event_ns)) == ([1, 8, 4, 10], [0, 1, 1, 2, 3, 3, 3])
    one.restart()
    assert one.merged == []


def test_an_event_behind_which_a_part_of_the_next_came_may_have_waited_too() -> None:
    """Law: the kernel stamps a read with its last packet, which brought that part: the last whole event is none of it."""
    token = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
    one = Exchange(0, 0, 0, b"", b"", 10**18, dialect.load("chat"))
    one.unread = Waited()
    one.head(200, {b"content-type": b"text/event-stream"})
    for at, data in enumerate((token + token[:9], token[9:], token * 2 + token[:1], token[1:])):
        one.data(data, at)
    assert (one.merged, list(one.answer.event_ns)) == ([0, -7, 2, -9], [0, 1, 2, 2, 3])


def test_all_that_share_a_read_are_told_the_same(pair: tuple[socket.socket, socket.socket]) -> None:
    """Over HTTP/2 several exchanges ask about one read, and packets are counted once."""
    ours, theirs = pair
    mine = SocketUnread(ours, RoundClock(clock.monotonic_ns()))
    for _ in range(2):
        theirs.send(b"data: x\n\n")
    ours.recv(1000)
    mine.reads += 1
    at = clock.monotonic_ns()
    first = mine.waited(at)
    assert first > 0
    assert [mine.waited(at) for _ in range(3)] == [first] * 3


def test_where_nobody_counts_packets_several_events_may_have_waited() -> None:
    """As on systems other than Linux, and of sockets that have no such count."""
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        mine = SocketUnread(sock, RoundClock(100))
        mine.reads = 1
        assert mine.waited(350) == 250
