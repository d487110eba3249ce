"""Probes over the loopback interface, where the true offset is 0: what is answered, and what is believed."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from inferometer.cluster.clock_datagrams import MOST_BYTES, ConductorStamps, Kind, key_name, opened, sealed
from inferometer.cluster.clock_fit import ClockProbe, fit
from inferometer.cluster.clock_probe import ClockProber, ClockResponder, probe_bursts
from inferometer.cluster.stamped_datagrams import MonotonicOffset

KEY, OTHER = bytes(range(32)), bytes(32)
SESSION = b"sessions"
WILD = ConductorStamps(1 << 60, 1 << 60, 0)
LIMIT_S = 30.0


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def responder(*keys: bytes, host: str = "127.0.0.1", kernel_stamps: bool = True) -> Iterator[ClockResponder]:
    with contextlib.closing(ClockResponder((host, 0), *keys, kernel_stamps=kernel_stamps)) as one:
        yield one


@contextlib.contextmanager
def client() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.settimeout(LIMIT_S)
        yield one


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether it holds within a generous time."""
    end = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def contains_zero(probe: ClockProbe) -> bool:
    return abs(probe.offset_ns) <= probe.round_trip_ns / 2


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
@pytest.mark.parametrize("theirs", [True, False])
@pytest.mark.parametrize("ours", [True, False])
def test_one_machine_agrees_with_itself(host: str, theirs: bool, ours: bool) -> None:
    """Law: with kernel stamps on either side, both or none, the offset 0 lies in every probe's interval."""
    if host == "::1" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with responder(KEY, host=host, kernel_stamps=theirs) as one:
        began = time.monotonic_ns()
        probes = probe_bursts((host, one.port), KEY, 3, kernel_stamps=ours)
        ended = time.monotonic_ns()
    assert 1 <= len(probes) <= 3
    assert all(contains_zero(probe) for probe in probes)
    assert all(began <= probe.host_ns <= ended for probe in probes)
    found = fit(probes)
    assert abs(found.conductor_ns(ended) - ended) <= found.bound_at(ended)


def test_only_holders_of_a_registered_key_are_answered() -> None:
    """Each key from when it is registered until it is forgotten."""
    with responder(KEY) as one:
        address = "127.0.0.1", one.port
        assert probe_bursts(address, OTHER, 1) == []
        one.register(OTHER)
        assert len(probe_bursts(address, OTHER, 1)) == 1
        one.forget(KEY)
        assert probe_bursts(address, KEY, 1) == []
        assert len(probe_bursts(address, OTHER, 1)) == 1


def test_a_probe_is_answered_once() -> None:
    """The same datagram again, and one with a lower number, get nothing; another session's does. Its follow-up says when."""
    with responder(KEY) as one, client() as ours:

        def ask(session: bytes, number: int) -> None:
            ours.sendto(sealed(Kind.PROBE, KEY, session, number), ("127.0.0.1", one.port))

        def answers() -> tuple[int, int]:
            two = [opened(ours.recv(MOST_BYTES), {key_name(KEY): KEY}) for _ in range(2)]
            reply, follow_up = two
            assert reply is not None
            assert follow_up is not None
            assert (reply.kind, follow_up.kind) == (Kind.REPLY, Kind.FOLLOW_UP)
            assert follow_up.stamps is not None
            assert follow_up.stamps.arrived <= follow_up.stamps.departed + follow_up.stamps.slack_ns
            return reply.number, follow_up.number

        ours.sendto(b"no datagram of ours", ("127.0.0.1", one.port))
        ours.sendto(sealed(Kind.REPLY, KEY, SESSION, 4), ("127.0.0.1", one.port))
        ask(SESSION, 5)
        ask(SESSION, 5)
        ask(SESSION, 3)
        ask(SESSION, 9)
        assert answers() == (5, 5)
        assert answers() == (9, 9)
        ask(b"another!", 3)
        assert answers() == (3, 3)


def test_what_the_conductor_did_not_sign_is_not_believed() -> None:
    """Forged, repeated and foreign answers around the true ones change nothing."""
    ended = threading.Event()
    with client() as partner:
        partner.bind(("127.0.0.1", 0))
        partner.settimeout(0.1)

        def answer() -> None:
            while not ended.is_set():
                with contextlib.suppress(TimeoutError):
                    data, host = partner.recvfrom(MOST_BYTES)
                    taken = time.monotonic_ns()
                    probe = opened(data, {key_name(KEY): KEY})
                    assert probe is not None
                    session, number = probe.session, probe.number
                    stamps = ConductorStamps(taken, time.monotonic_ns(), 0)
                    for each in (
                        b"",
                        data,
                        sealed(Kind.REPLY, OTHER, session, number),
                        sealed(Kind.FOLLOW_UP, OTHER, session, number, WILD),
                        sealed(Kind.FOLLOW_UP, KEY, SESSION, number, WILD),
                        sealed(Kind.FOLLOW_UP, KEY, session, number + 1, WILD),
                        sealed(Kind.REPLY, KEY, session, number),
                        sealed(Kind.REPLY, KEY, session, number),
                        sealed(Kind.FOLLOW_UP, KEY, session, number, stamps),
                        sealed(Kind.FOLLOW_UP, KEY, session, number, WILD),
                    ):
                        partner.sendto(each, host)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            probes = probe_bursts(("127.0.0.1", partner.getsockname()[1]), KEY, 2)
        finally:
            ended.set()
            thread.join()
    assert len(probes) == 2
    assert all(contains_zero(probe) for probe in probes)


def test_a_prober_goes_on_until_it_is_closed_and_notices_silence() -> None:
    """Probes are handed out once each; without a conductor none come, and the silence grows."""
    with (
        responder(KEY) as one,
        contextlib.closing(ClockProber(("127.0.0.1", one.port), KEY, every_s=0.1)) as prober,
    ):
        taken: list[ClockProbe] = []

        def three() -> bool:
            taken.extend(prober.taken())
            return len(taken) >= 3

        assert eventually(three)
        assert len({probe.host_ns for probe in taken}) == len(taken)
        one.close()
        assert eventually(lambda: prober.silent_s(time.monotonic_ns()) > 2.0)
        prober.taken()
        time.sleep(0.3)  # in which several bursts would have been answered
        assert prober.taken() == []
    prober.close()


def test_a_port_is_free_again_and_one_in_use_is_refused() -> None:
    """A responder that is closed listens no more, however often it is closed."""
    with responder(KEY) as one, pytest.raises(OSError, match="in use"):
        ClockResponder(("127.0.0.1", one.port), KEY)
    one.close()
    with contextlib.closing(ClockResponder(("127.0.0.1", one.port), KEY)) as again:
        assert again.port == one.port


def test_a_stepped_wall_clock_leaves_no_offset() -> None:
    """Two samples of its offset that cannot both be true; otherwise both are allowed for."""
    assert MonotonicOffset(100, 200).until(MonotonicOffset(201, 300)) is None
    assert MonotonicOffset(100, 200).until(MonotonicOffset(0, 99)) is None
    offset = MonotonicOffset(100, 200).until(MonotonicOffset(150, 260))
    assert offset == MonotonicOffset(100, 260)
    assert abs(1_000 - 100 - offset.monotonic_ns(1_000)) <= offset.slack_ns
    assert abs(1_000 - 260 - offset.monotonic_ns(1_000)) <= offset.slack_ns
