"""Laws of the heads of requests over HTTP/2, with h2 as the server that reads them."""

from __future__ import annotations

from http2_partner import Server
from hypothesis import example, given
from hypothesis import strategies as st

from inferometer.protocol.http2_client import Http2Client
from inferometer.protocol.http2_fields import Fields

COMMON = [(b":method", b"POST"), (b":scheme", b"https"), (b":path", b"/v1/x"), (b":authority", b"test")]
CLASSES: list[Fields] = [
    [*COMMON, (b"authorization", b"Bearer one")],
    [*COMMON, (b"authorization", b"Bearer another"), (b"x-class", b"b" * 70)],
    [*COMMON, *((b"x-%d" % number, b"v" * 60) for number in range(6))],
    [*COMMON, (b"x-large", b"l" * 5000)],
]
REQUESTS = st.tuples(st.sampled_from(range(len(CLASSES))), st.integers(0, 120) | st.just(16_000))
SIZES = st.sampled_from([0, 40, 120, 400, 4096])
"""Of the table of the compression, in bytes, where an entry takes 32 more than it is long."""


def sent(client: Http2Client) -> bytes:
    data = b"".join(data for data, _, _ in client.outgoing)
    client.outgoing.clear()
    return data


@example(steps=[(0, 16_000)] * 6, size=4096, window=65535)
@given(
    steps=st.lists(REQUESTS | SIZES, min_size=1, max_size=30),
    size=SIZES,
    window=st.sampled_from([0, 60, 65535]),
)
def test_the_server_reads_each_request_whatever_was_sent_before(
    steps: list[tuple[int, int] | int], size: int, window: int
) -> None:
    """Requests of several classes in any order, while the server changes the size of its table as it likes. h2 as the server
    refuses what exceeds a window; what does not fit waits until the end."""
    server, client = Server(header_table_size=size, initial_window_size=window), Http2Client(100)
    client.open()
    client.receive(server.take())
    client.request(CLASSES[0], b"", None)
    server.receive(sent(client))
    wanted: dict[int, dict[str, str]] = {}
    for step in steps:
        if isinstance(step, int):
            server.h2.update_settings({1: step})
            client.receive(server.take())
            server.receive(sent(client))
            step = 0, 7  # a request between: hpack's encoder forgets one of two changes
        which, length = step
        stream = client.request(CLASSES[which], b"x" * length, None)
        server.receive(sent(client))
        fields = {name.decode(): value.decode() for name, value in CLASSES[which]}
        wanted[stream.number] = {**fields, "content-length": str(length)}
    for number in [one for one in server.bodies if one not in server.whole]:
        server.h2.increment_flow_control_window(20_000, number)
        server.h2.increment_flow_control_window(20_000)
        client.receive(server.take())
        server.receive(sent(client))
    del server.heads[1]
    assert server.heads == wanted
    assert {number: len(server.bodies[number]) for number in wanted} == {
        number: int(one["content-length"]) for number, one in wanted.items()
    }


@given(st.lists(st.tuples(st.sampled_from(range(3)), st.integers(0, 300), st.integers(1, 300)), max_size=12))
def test_a_field_of_its_own_is_read_and_leaves_the_others_as_they_are(
    requests: list[tuple[int, int, int]],
) -> None:
    """Law: whatever its lengths, and whether or not the rest of the head was sent before."""
    server, client = Server(), Http2Client(100)
    client.open()
    client.receive(server.take())
    for number, (which, value, name) in enumerate(requests):
        own = b"X-" + b"n" * name, b"%d" % number + b"v" * value
        stream = client.request(CLASSES[which], b"x", None, own)
        server.receive(sent(client))
        fields = {key.decode(): text.decode() for key, text in CLASSES[which]}
        extra = {own[0].lower().decode(): own[1].decode()}
        assert server.heads[stream.number] == {**fields, "content-length": "1"} | extra


def test_a_head_that_was_sent_before_is_short() -> None:
    """The point of the table: what it holds is not spelled out again."""
    server, client = Server(), Http2Client(100)
    client.open()
    client.receive(server.take())
    sizes = []
    sent(client)
    for _ in range(3):
        client.request(CLASSES[0], b"", None)
        sizes.append(len(sent(client)))
    assert sizes[1] == sizes[2] < sizes[0] - 15
