"""The outbox: what is posted for an instant leaves in order, and every stamp is told."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from inferometer.server.connection import Connection, Outbox, Stamps

POSTS = st.lists(st.tuples(st.integers(0, 2), st.binary(min_size=1, max_size=4), st.booleans()), max_size=30)


class Collecting(Connection):
    """Keeps what it is asked to send."""

    def __init__(self, outbox: Outbox, glues: bool) -> None:
        self._outbox = outbox
        self.sent: list[bytes] = []
        self.glues = glues

    def send(self, data: bytes, stamps: Stamps | None = None) -> None:
        """One more, at an instant that is its number."""
        self.sent.append(data)
        if stamps is not None:
            stamps.append(len(self.sent))


@given(POSTS, st.booleans())
def test_every_byte_leaves_in_order_and_every_stamp_is_told_once(
    posts: list[tuple[int, bytes, bool]], glues: bool
) -> None:
    """With one `send` for what a connection posts in a row, or one for each where that is asked for."""
    outbox = Outbox()
    connections = [Collecting(outbox, glues) for _ in range(3)]
    stamps: list[array[int]] = []
    for number, data, stamped in posts:
        stamps.append(array("q"))
        connections[number].post(data, stamps[-1] if stamped else None)
    outbox.send()
    for number, connection in enumerate(connections):
        mine = [data for which, data, _ in posts if which == number]
        assert b"".join(connection.sent) == b"".join(mine)
        if not glues:
            assert connection.sent == mine
    assert [len(one) for one in stamps] == [int(stamped) for _, _, stamped in posts]
    before = [list(connection.sent) for connection in connections]
    outbox.send()
    assert [connection.sent for connection in connections] == before


def test_neighbours_of_one_connection_share_a_send() -> None:
    """A chat's role and its first token, a last token and the end."""
    outbox = Outbox()
    one, other = Collecting(outbox, True), Collecting(outbox, True)
    for connection, data in ((one, b"a"), (one, b"b"), (other, b"c"), (one, b"d")):
        connection.post(data)
    outbox.send()
    assert (one.sent, other.sent) == ([b"ab", b"d"], [b"c"])
