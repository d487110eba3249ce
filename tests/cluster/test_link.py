"""The link: what one side says the other hears, however the bytes are cut; who has no token is told nothing and stops
nobody."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer import __version__
from inferometer.cluster.admission import ConductorLink, Listener, join, new_token
from inferometer.cluster.join_token import JoinToken
from inferometer.cluster.link import LinkLost
from inferometer.cluster.member import Member
from inferometer.cluster.messages import PROTOCOL, FilePart, FromHost, Hello, Probes, StreamPart, Welcome
from inferometer.errors import PeerError, PlanError
from inferometer.telemetry.host import environment

HERE = "127.0.0.1"


def hello(token: JoinToken, **changed: object) -> Hello:
    said = Hello(PROTOCOL, __version__, token.secret, None, environment())
    return msgspec.structs.replace(said, **changed)


@contextlib.contextmanager
def listening() -> Iterator[tuple[Listener, str]]:
    listener = Listener(f"{HERE}:0")
    try:
        yield listener, f"{HERE}:{listener.address[1]}"
    finally:
        listener.close()


def admitted(listener: Listener, patience_s: float = 20.0) -> Member | None:
    """The next host that joins, welcomed; None: none did."""
    waited = threading.Event()
    for _ in range(int(patience_s / 0.02)):
        for link, said in listener.admitted():
            return Member.joined(0, link, said, 9)
        waited.wait(0.02)
    return None


@contextlib.contextmanager
def joined() -> Iterator[tuple[Member, ConductorLink]]:
    """A conductor's member and the host's own link."""
    with listening() as (listener, address):
        found: list[tuple[ConductorLink, Welcome]] = []
        there = threading.Thread(
            target=lambda: found.append(join(address, listener.token, hello(listener.token), 20))
        )
        there.start()
        member = admitted(listener)
        there.join(20)
        assert member is not None
        link, welcome = found[0]
        assert (welcome.name, welcome.clock_port) == ("host-1", 9)
        try:
            yield member, link
        finally:
            member.link.close()
            link.close()


@settings(max_examples=10, deadline=None)
@given(st.lists(st.binary(max_size=200_000), min_size=1, max_size=8))
def test_messages_arrive_whole_and_in_order(parts: list[bytes]) -> None:
    with joined() as (member, link):
        for data in parts:
            link.send(StreamPart("run", "worker-0.arrows", data))
        heard: list[FromHost] = []
        while len(heard) < len(parts):
            heard += member.link.wait(10.0)
        assert [one.data for one in heard if isinstance(one, StreamPart)] == parts


def test_two_sides_that_send_at_once_do_not_stop_each_other() -> None:
    """Each sends far more than the kernel holds, and neither reads before it has sent."""
    part, times = b"x" * 1_000_000, 30
    with joined() as (member, link):

        def there() -> None:
            for _ in range(times):
                link.send(StreamPart("run", "worker-0.arrows", part))
            taken = 0
            while taken < times:  # who is through first has the rest of the other's still to read
                taken += len(link.wait(10.0))

        other = threading.Thread(target=there)
        other.start()
        for _ in range(times):
            member.link.send(FilePart("requests.arrow", part, len(part)))
        heard: list[FromHost] = []
        while len(heard) < times:
            heard += member.link.wait(10.0)
        other.join(60)
        assert (len(heard), other.is_alive()) == (times, False)


def test_a_link_that_ends_says_so_once_all_is_read() -> None:
    with joined() as (member, link):
        link.send(Probes([]))
        link.close()
        assert member.link.wait(10.0) == [Probes([])]
        with pytest.raises(LinkLost, match="connection was lost"):
            while True:
                member.link.wait(0.1)


def test_the_wrong_secret_is_refused_and_the_right_one_still_gets_in() -> None:
    with listening() as (listener, address):
        with pytest.raises(PlanError, match="token"):
            join(address, listener.token, hello(listener.token, secret=b"guess"), 10)
        assert admitted(listener, 0.1) is None


def test_another_conductor_than_the_tokens_is_told_nothing() -> None:
    with listening() as (listener, address):
        token = new_token()
        with pytest.raises(PlanError, match="not of the conductor"):
            join(address, token, hello(token), 10)
        assert admitted(listener, 0.1) is None


def test_another_version_is_named() -> None:
    with listening() as (listener, address), pytest.raises(PlanError, match=r"0\.0\.1.*install the same"):
        join(address, listener.token, hello(listener.token, version="0.0.1"), 10)


def test_nobody_there_is_told_within_the_patience() -> None:
    with socket.create_server((HERE, 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(PeerError, match="no conductor is there"):
        join(f"{HERE}:{port}", new_token(), hello(new_token()), 0.0)


@pytest.mark.parametrize(
    "said", [b"", b"GET / HTTP/1.1\r\n\r\n", bytes(5000), b"\x16\x03\x01\xff\xff" + bytes(300)]
)
def test_strangers_keep_nobody_out(said: bytes) -> None:
    """Connections that say nothing, or something else, stay open while a host joins."""
    with listening() as (listener, address), contextlib.ExitStack() as stack:
        host, port = listener.address
        for _ in range(10):
            stranger = stack.enter_context(socket.create_connection((host, port), timeout=5))
            with contextlib.suppress(OSError):
                stranger.sendall(said)
        there = threading.Thread(
            target=lambda: join(address, listener.token, hello(listener.token), 20)[0].close()
        )
        there.start()
        assert admitted(listener) is not None
        there.join(20)


def test_a_stranger_is_held_to_a_small_first_message() -> None:
    """Before the token is shown a message of a mebibyte ends the connection, and is not held."""
    with listening() as (listener, _):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with (
            socket.create_connection(listener.address, timeout=10) as plain,
            context.wrap_socket(plain) as sealed,
            contextlib.suppress(OSError),
        ):
            sealed.sendall((1 << 20).to_bytes(4, "big") + bytes(1 << 20))
            assert sealed.recv(100) == b""
        assert admitted(listener, 0.1) is None
