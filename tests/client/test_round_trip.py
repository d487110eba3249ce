"""Round trips of TCP handshakes: timed by the kernel, and never an error of whoever asks for them."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from inferometer.client import round_trip
from inferometer.client.round_trip import Address, Handshakes, Watched, measured, shake


@contextlib.contextmanager
def listening(host: str = "127.0.0.1", backlog: int = 64) -> Iterator[tuple[Address, socket.socket]]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        try:
            sock.bind((host, 0))
        except OSError:
            pytest.skip(f"{host} is no address of this machine")
        sock.listen(backlog)
        yield Address(family, sock.getsockname()), sock


def closed() -> Address:
    """An address at which nothing listens."""
    with listening() as (to, _):
        return to


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_each_handshake_is_a_round_trip(host: str) -> None:
    """As many as asked for, none of them zero; on Linux by the kernel, and so no longer than the call took."""
    with listening(host) as (to, _):
        begun = time.monotonic_ns()
        trips = measured(to, 10, 2.0, 10.0)
        took = time.monotonic_ns() - begun
    assert (len(trips.times_ns), trips.repeated, trips.failed, trips.problem) == (10, 0, 0, None)
    assert trips.by_kernel == (sys.platform == "linux")
    assert all(time_ns > 0 for time_ns in trips.times_ns)
    assert sum(trips.times_ns) <= took


def test_where_the_kernel_does_not_say_the_client_times_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS; the account says so."""
    monkeypatch.setattr(round_trip, "_by_kernel", lambda _: None)
    with listening() as (to, _):
        trips = measured(to, 3, 2.0, 10.0)
    assert (len(trips.times_ns), trips.by_kernel) == (3, False)


def test_nobody_who_refuses_is_asked_again() -> None:
    """One failure in words ends it, and there is no time."""
    trips = measured(closed(), 10, 2.0, 10.0)
    assert (len(trips.times_ns), trips.failed) == (0, 1)
    assert "refused" in (trips.problem or "").lower()


def test_nothing_is_begun_once_patience_is_over() -> None:
    """However many are asked for."""
    with listening() as (to, _):
        assert len(measured(to, 1_000_000, 2.0, 0.05, lambda _: time.sleep(0.01)).times_ns) <= 6


@pytest.mark.skipif(sys.platform != "linux", reason="a full queue of connections lets SYNs drop on Linux")
def test_a_handshake_without_an_answer_is_given_up_and_one_sent_again_has_no_time() -> None:
    """Law: a lost SYN is repeated by the kernel after a second, and which of both was answered nobody knows. It would tell of a
    round trip of a second."""
    with listening(backlog=0) as (to, sock):
        lost = Handshakes()
        for _ in range(4):  # until the queue is full: connections that were closed stay in it
            if not lost.failed:
                shake(to, 0.2, lost)
        assert (lost.failed, lost.problem) == (1, "no connection within 0.2 s")
        queued = len(lost.times_ns)
        emptying = threading.Timer(0.3, lambda: [sock.accept() for _ in range(queued)])
        emptying.start()
        again = Handshakes()
        shake(to, 10.0, again)
        emptying.join()
        assert (len(again.times_ns), again.repeated, again.failed) == (0, 1, 0)


def test_a_watch_goes_on_until_its_block_ends() -> None:
    """At its pace, whether or not anybody answers; and no longer."""
    with listening() as (to, _), Watched(to, 2.0, 0.01) as watched:
        until = time.monotonic() + 30
        while len(watched.trips.times_ns) < 5:
            assert time.monotonic() < until
            time.sleep(0.01)
    seen = len(watched.trips.times_ns)
    time.sleep(0.05)
    assert len(watched.trips.times_ns) == seen
    with Watched(closed(), 2.0, 0.01) as refused:
        until = time.monotonic() + 30
        while refused.trips.failed < 3:
            assert time.monotonic() < until
            time.sleep(0.01)
    assert not refused.trips.times_ns


def test_a_block_that_is_over_at_once_has_no_times() -> None:
    """The first is due after half of the pace."""
    with listening() as (to, _), Watched(to, 2.0, 60.0) as watched:
        pass
    assert (len(watched.trips.times_ns), watched.trips.failed) == (0, 0)


def test_running_out_of_files_is_a_failure_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that the handshakes are beside goes on."""

    def none_left(*_: object) -> socket.socket:
        raise OSError(24, "Too many open files")

    with listening() as (to, _):
        monkeypatch.setattr(socket, "socket", none_left)
        trips = measured(to, 10, 2.0, 10.0)
    assert (trips.failed, trips.problem) == (1, "Too many open files")
