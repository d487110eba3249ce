"""h2's connection with a count that is cheap: it refuses what h2 refuses, and forgets what is over."""

from __future__ import annotations

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import TooManyStreamsError
from h2.settings import SettingCodes
from hypothesis import given
from hypothesis import strategies as st

from inferometer.protocol.http2_connection import Connection

FIELDS = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"test")]


def pair(made: type[H2Connection], most: int) -> tuple[H2Connection, H2Connection]:
    """A client and a server that takes so many streams, of this class, and have met."""
    client, server = made(H2Configuration()), made(H2Configuration(client_side=False))
    server.local_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = most
    server.local_settings.acknowledge()
    for one in (client, server):
        one.initiate_connection()
    client.receive_data(server.data_to_send())
    server.receive_data(client.data_to_send())
    return client, server


def begun(made: type[H2Connection], most: int, ends: list[int]) -> list[int]:
    """How many streams could be opened before each of these answers, of streams by their order, and after the last one."""
    client, server = pair(made, most)
    under_way: list[int] = []
    counts: list[int] = []
    for end in [*ends, 0]:
        for place in range(most + 2):
            stream = client.get_next_available_stream_id()
            try:
                client.send_headers(stream, FIELDS, end_stream=True)
            except TooManyStreamsError:
                counts.append(place)
                break
            server.receive_data(client.data_to_send())
            under_way.append(stream)
        over = under_way.pop(end % len(under_way))
        server.send_headers(over, [(b":status", b"200")], end_stream=True)
        client.receive_data(server.data_to_send())
    return counts


@given(st.integers(1, 150), st.lists(st.integers(0, 1000), max_size=20))
def test_the_limit_is_that_of_h2(most: int, ends: list[int]) -> None:
    """Law: a stream is refused exactly where h2, which counts them all, refuses it; so on both sides."""
    assert begun(Connection, most, ends) == begun(H2Connection, most, ends) == [most] + [1] * len(ends)


def test_a_server_refuses_one_too_many() -> None:
    """Law: a client that does not keep to the limit is refused at the first stream beyond it."""
    client, server = pair(Connection, 100)
    client.remote_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = 1000
    client.remote_settings.acknowledge()
    for _ in range(100):
        client.send_headers(client.get_next_available_stream_id(), FIELDS, end_stream=True)
    server.receive_data(client.data_to_send())
    client.send_headers(client.get_next_available_stream_id(), FIELDS, end_stream=True)
    with pytest.raises(TooManyStreamsError):
        server.receive_data(client.data_to_send())


@pytest.mark.parametrize("at_once", [1, 50, 300])
def test_streams_that_are_over_are_forgotten(at_once: int) -> None:
    """Law: after any number of requests no more is kept than twice what was under way, and a little."""
    client, server = pair(Connection, 1000)
    under_way: list[int] = []
    for _ in range(2_000):
        stream = client.get_next_available_stream_id()
        client.send_headers(stream, FIELDS, end_stream=True)
        under_way.append(stream)
        server.receive_data(client.data_to_send())
        if len(under_way) == at_once:
            server.send_headers(under_way.pop(0), [(b":status", b"200")], end_stream=True)
            client.receive_data(server.data_to_send())
        assert max(len(client.streams), len(server.streams)) <= 2 * at_once + 64
