"""What a worker learns of how its server treats a connection between two answers. Pure: times are arguments.

A close that crossed the request. The server closes an idle connection before the request on it has arrived. Its FIN, or the
reset with which its kernel answers the request, is here one round trip after the request was sent, at the latest:

    server   close ----.   .---> request arrives at a closed socket
                        \\ /
                         X
                        / \\
    client   request --'   '--> FIN or RST

Such a request says nothing about the server's service and is sent again. What closes later had the request and dropped it: that
is an error of the server's. The bound is CLOSE_TRIPS round trips and CLOSE_ROOM_NS. The round trip is the shortest wait that
any answer to this address took, be it to a TCP handshake or to a request: no round trip is longer than that.

A server that closes each connection after one answer, without announcing it (cpp-httplib after a stream, for one). Every
request on a kept connection then meets a close. It is taken for such a server after CLOSES connections that were closed within
CLOSED_NS of their first answer, if these are more than those that gave a second one.
"""

from __future__ import annotations

CLOSE_TRIPS = 2
"""One by the argument above; the other because the shortest of several may be below the usual one."""
CLOSE_ROOM_NS = 5_000_000
"""For the server's thread that has decided to close and waits for a core, and for this loop, which may read a few ms late."""
CLOSES = 3
"""By chance two connections may be closed just so, by a server that restarts; each costs a request that is sent twice."""
CLOSED_NS = 1_000_000_000
"""Half the shortest time after which a common server closes an idle connection (gunicorn: 2 s; uvicorn, node, Apache: 5 s)."""


class KeepAlive:
    """What has been learned so far. Times in ns. `room_ns`: in place of CLOSE_ROOM_NS."""

    __slots__ = ("_closed", "_reused", "_room_ns", "_round_trip_ns")

    def __init__(self, room_ns: int = CLOSE_ROOM_NS) -> None:
        self._room_ns = room_ns
        self._round_trip_ns: int | None = None
        self._closed = self._reused = 0

    def waited(self, wait_ns: int) -> None:
        """The server's host took this long to answer a handshake or a request."""
        if self._round_trip_ns is None or wait_ns < self._round_trip_ns:
            self._round_trip_ns = wait_ns

    def crossed(self, wait_ns: int) -> bool:
        """Whether a close so long after a request was sent may have crossed it."""
        return wait_ns <= CLOSE_TRIPS * (self._round_trip_ns or 0) + self._room_ns

    def answered(self, answers: int) -> None:
        """A connection has given so many answers, the latest just now."""
        self._reused += answers == 2

    def closed(self, answers: int, idle_ns: int) -> None:
        """The server has closed a connection without announcing it, `idle_ns` after the latest of its answers."""
        self._closed += answers == 1 and idle_ns <= CLOSED_NS

    @property
    def single_use(self) -> bool:
        """Whether the server closes each connection after one answer."""
        return self._closed >= CLOSES and self._closed > self._reused
