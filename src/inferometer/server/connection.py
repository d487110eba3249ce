"""One client's socket: what it has asked, what is still to be sent, and when the kernel took it.

`send` tries the socket at once and keeps what the kernel would not take, so that a client that does not read costs memory and
not other clients' time. Whoever sends can hand over an array: the instant after the `send` that took the last byte is appended.
`post` puts bytes into the server's outbox: they are sent, by `send`, at the instant they are meant for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from inferometer.protocol.http_request import BadRequest, Request, RequestDecoder
from inferometer.server.clock import now


class Generation(Protocol):
    """What is under way on a connection: an answer (answers.py). `done`: all its bytes are with the connection."""

    done: bool


class Socket(Protocol):
    """What is used of a socket. Non-blocking: `recv` and `send` raise BlockingIOError where they would wait.

    `arrived_ns`: when the kernel received what `recv` gave last (ns, monotonic); None where that is not known.
    """

    arrived_ns: int | None

    def fileno(self) -> int:
        """The descriptor."""

    def recv(self, size: int, /) -> bytes:
        """Up to `size` bytes; empty at the end."""

    def send(self, data: bytes | memoryview, /) -> int:
        """The number of bytes taken."""

    def shutdown(self, how: int, /) -> None:
        """End one direction."""

    def close(self) -> None:
        """Give the descriptor back."""


class Session(Protocol):
    """What is asked of another protocol on a connection (http2_session.py, websocket_session.py)."""

    @property
    def broken(self) -> bool:
        """The connection has to be closed."""

    def receive(self, data: bytes, read_at: int, arrived: int | None) -> Sequence[Connection]:
        """Take bytes; the streams to be looked after."""

    def take_drained(self) -> Sequence[Connection]:
        """Streams of which the kernel has all that it had not, since this was last asked."""

    def carried(self) -> Sequence[Connection]:
        """All streams."""

    def leave(self) -> None:
        """Say that no further request will be answered."""

    def close(self) -> None:
        """Free everything."""


class Stamps(Protocol):
    """Where instants go: an array, for one."""

    def append(self, at: int, /) -> None:
        """Bytes have gone at `at`."""


class All:
    """Notes one instant in several places."""

    __slots__ = ("_stamps",)

    def __init__(self, *stamps: Stamps | None) -> None:
        self._stamps = [one for one in stamps if one is not None]

    def append(self, at: int, /) -> None:
        """They have all gone at `at`."""
        for one in self._stamps:
            one.append(at)


class Outbox:
    """What is to leave at one instant, made ready before it: connection, bytes, and where the instant is noted.

    What one connection posts in a row leaves with one `send`, where its `glues` allows it: on a virtual machine, waking a
    client that slept costs the `send` that does it 0.1 ms or more, and a chat's first token would be late for its role.
    """

    __slots__ = ("_posts",)

    def __init__(self) -> None:
        self._posts: list[tuple[Connection, bytes, Stamps | None]] = []

    def add(self, connection: Connection, data: bytes, stamps: Stamps | None) -> None:
        """Behind what is there."""
        posts = self._posts
        if posts and posts[-1][0] is connection and connection.glues:
            _, before, earlier = posts[-1]
            posts[-1] = connection, before + data, All(earlier, stamps)
        else:
            posts.append((connection, data, stamps))

    def send(self) -> None:
        """Everything, in its order."""
        posts, self._posts = self._posts, []
        for connection, data, stamps in posts:
            connection.send(data, stamps)


class Connection:
    """A client. `answer` is the generation under way, `requests` what was read behind it, with the instants at
    which it had been read and had arrived.
    """

    __slots__ = (
        "_outbox",
        "_queue",
        "answer",
        "backlog",
        "closing",
        "decoder",
        "discarded",
        "discarding",
        "interest",
        "lost",
        "opening",
        "requests",
        "session",
        "sock",
    )

    def __init__(self, sock: Socket, body_limit: int, outbox: Outbox) -> None:
        self.sock = sock
        self._outbox = outbox
        self.decoder = RequestDecoder(body_limit=body_limit)
        self.requests: deque[tuple[Request | BadRequest, int, int | None]] = deque()
        self.answer: Generation | None = None
        self.closing = False  # nothing more is answered: close when everything is sent
        self.discarding = False  # our side is shut: read to the end, so that the client gets what was sent
        self.discarded = 0  # bytes read since
        self.lost = False  # the socket is broken
        self.backlog = 0  # bytes the kernel has not taken
        self.interest = 0  # what the selector watches for
        self.opening: bytes | None = b""  # what has come, until it shows which protocol the client speaks
        self.session: Session | None = None  # of HTTP/2, of a WebSocket
        self._queue: deque[tuple[bytes | memoryview, Stamps | None]] = deque()

    glues = True
    """What is posted in a row may leave with one `send`."""

    @property
    def carrier(self) -> Connection:
        """Whose socket it is: this one, but for what a session carries."""
        return self

    def reset(self) -> None:
        """Of what a session carries: its answer is given up on our side."""

    @property
    def held(self) -> bool:
        """Some of what was handed over waits for its time (fault_injection.py)."""
        return False

    def post(self, data: bytes, stamps: Stamps | None = None) -> None:
        """Have it sent at the instant under preparation, behind what was posted for that."""
        self._outbox.add(self, data, stamps)

    def send(self, data: bytes, stamps: Stamps | None = None) -> None:
        """Send now what can be sent now, the rest in order later."""
        rest: bytes | memoryview = data
        if not self._queue:
            try:
                sent = self.sock.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.lost = True
                return
            if sent == len(data):
                if stamps is not None:
                    stamps.append(now())
                return
            rest = memoryview(data)[sent:]
        self._queue.append((rest, stamps))
        self.backlog += len(rest)

    def flush(self) -> None:
        """The socket takes bytes again: go on with the backlog."""
        queue = self._queue
        while queue:
            data, stamps = queue[0]
            try:
                sent = self.sock.send(data)
            except BlockingIOError:
                return
            except OSError:
                self.lost = True
                return
            self.backlog -= sent
            if sent < len(data):
                queue[0] = (memoryview(data)[sent:], stamps)
                continue
            queue.popleft()
            if stamps is not None:
                stamps.append(now())
