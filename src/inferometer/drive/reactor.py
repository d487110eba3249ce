"""The loop that sends and receives: one thread, epoll, no event-loop framework.

Every round waits, reads *all* ready sockets with their kernel stamps, and only then decodes. So the time spent decoding one
stream is not added to the next, and where there are no kernel stamps it still is not.

Theory of the connection pool: a request never waits for another's connection. Idle connections are kept and reused, the
latest first; `spare` of them are held ready beyond those in use; when none is idle at the due instant, one is opened for
that request and its lateness shows it.

A kept-alive connection may be closed by the server at the very moment of its reuse. That says nothing about the server's
service, so the request goes out once more on a fresh connection and the record says `attempts` = 2.
"""

from __future__ import annotations

import contextlib
import errno
import ssl
import time
from collections.abc import Callable

from inferometer.drive import clock
from inferometer.drive.clock import ANCILLARY_BYTES
from inferometer.drive.connection import (
    BUSY,
    CLOSED,
    CONNECTING,
    HANDSHAKE,
    IDLE,
    Connection,
    Peer,
)
from inferometer.drive.exchange import Exchange, TooLarge
from inferometer.drive.poll_pause import ROOM_NS, pause_ns
from inferometer.drive.poller import READABLE, WRITABLE, Poller
from inferometer.drive.timer import Timer
from inferometer.journal.schema import Outcome
from inferometer.protocol.event_decoder import EventTooLarge
from inferometer.protocol.http_response import BadResponse, HeadTooLarge

SPIN_NS = 80_000
"""The timer is set this much early and the rest is spun away: a wake-up through the scheduler takes tens of microseconds."""
STALE_NS = 1_000_000_000
"""A kept connection found closed this soon after the request went out was closed before it arrived."""
WAITED_NS = 50_000
"""A poll that took longer than this did not find its first socket ready at once."""
MOST_READS = 32
"""Sockets read in one round: a bound on how old the first of them is when it is decoded, and on what must stay in the nearer
caches from the reading to the decoding. Measured with 1,000 streams: 1,024 cost some 9 % more a token."""
READ_BYTES = 1 << 16
"""Most that one read takes in."""

_OUR_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})

Read = tuple[Connection, bytes | OSError, int]


class Vitals:
    """The loop's own health; `reset` begins a new pulse, the totals stay. Times in ns."""

    __slots__ = (
        "finished",
        "in_flight",
        "lag_max",
        "lag_sum",
        "reads",
        "sent",
        "stall_max",
        "stamped",
        "unstamped",
    )

    def __init__(self) -> None:
        self.sent = self.finished = self.in_flight = 0
        self.stamped = self.unstamped = 0  # reads with and without the kernel's time, of this phase
        self.reads = self.lag_sum = self.lag_max = self.stall_max = 0

    def count(self, reads: int, lag_sum: int, lag_max: int) -> None:
        """Add what one round saw."""
        self.reads += reads
        self.stamped += reads
        self.lag_sum += lag_sum
        if lag_max > self.lag_max:
            self.lag_max = lag_max

    def reset(self) -> None:
        """Begin a new pulse."""
        self.reads = self.lag_sum = self.lag_max = self.stall_max = 0


class Reactor:
    """All connections of one worker. `on_end` is called with every exchange that has ended, however it ended."""

    def __init__(
        self,
        peer: Peer,
        on_end: Callable[[Exchange], None],
        *,
        reuse: bool = True,
        spare: int = 0,
        connect_timeout_ns: int = 10_000_000_000,
    ) -> None:
        self._peer = peer
        self._on_end = on_end
        self._reuse = reuse
        self._spare = spare if reuse else 0
        self._connect_timeout_ns = connect_timeout_ns
        self._poller = Poller()
        self._connections: dict[int, Connection] = {}
        self._watched: dict[int, Callable[[], None]] = {}
        self._idle: list[Connection] = []
        self._opening = 0
        self._timer = Timer() if Timer.available else None
        if self._timer is not None:
            self.watch(self._timer.fd, self._timer.fired)
        # One buffer for all sockets stays in the cache; a new one for each read would not.
        self._view = memoryview(bytearray(READ_BYTES))
        self._buffers = [self._view]
        self.offset_ns = clock.realtime_offset_ns()
        self.vitals = Vitals()
        self._pause_ns = 0
        self._adapted = (clock.monotonic_ns(), 0, 0)
        self._polled_at = self._empty_at = clock.monotonic_ns()

    def watch(self, fd: int, readable: Callable[[], None]) -> None:
        """Call `readable` whenever `fd` is."""
        self._watched[fd] = readable
        self._poller.register(fd, READABLE)

    def unwatch(self, fd: int) -> None:
        """Stop watching."""
        if self._watched.pop(fd, None) is not None:
            self._poller.unregister(fd)

    @property
    def opening(self) -> int:
        """How many connections are on their way without a request waiting for them."""
        return self._opening

    def open(self, count: int) -> None:
        """Begin to open `count` connections ahead of need."""
        for _ in range(count):
            try:
                self._connect(clock.monotonic_ns())
            except OSError:
                return  # the request that needs it will find out and say so
            self._opening += 1

    def submit(self, exchange: Exchange, now: int) -> None:
        """Send this request as soon as can be: at once if a connection is idle."""
        exchange.t_taken = now
        self.vitals.sent += 1
        self.vitals.in_flight += 1
        if self._idle:
            connection = self._idle.pop()
            connection.state = BUSY
            try:
                connection.begin(exchange)
            except (OSError, ssl.SSLError) as cause:
                self._lost(connection, str(cause), now)
                return
            if connection.wants_write:
                self._poller.modify(connection.fd, READABLE | WRITABLE)
            if len(self._idle) + self._opening < self._spare:
                self.open(1)
        else:
            self._send_on_new(exchange, now)

    def _send_on_new(self, exchange: Exchange, now: int) -> None:
        try:
            connection = self._connect(now)
        except OSError as cause:
            exchange.t_connect = now
            exchange.fail(_connect_outcome(cause), str(cause))
            self._end(exchange, now)
            return
        connection.waiting = exchange

    def _connect(self, now: int) -> Connection:
        connection = Connection(self._peer, now)
        self._connections[connection.fd] = connection
        self._poller.register(connection.fd, READABLE | WRITABLE)
        return connection

    def wait(self, until_ns: int, *, exact: bool) -> None:
        """One round: wait until `until_ns` at most, then read and decode all that is there.

        `exact` asks for the instant to be met to the microsecond: timer first, then a short spin.
        """
        now = clock.monotonic_ns()
        left = until_ns - now
        if left <= 0 or (exact and left <= SPIN_NS):
            timeout = 0.0
        elif exact and self._timer is not None:
            self._timer.arm(until_ns - SPIN_NS)
            timeout = -1.0
        else:
            timeout = left / 1e9
        stall = now - self._polled_at
        if stall > self.vitals.stall_max:
            self.vitals.stall_max = stall
        before = self._polled_at
        if self._pause_ns:
            pause = before + self._pause_ns - now
            if pause > 0 and left > pause + ROOM_NS:
                time.sleep(pause / 1e9)
        ready = self._poller.poll(timeout, MOST_READS)
        self._polled_at = clock.monotonic_ns()
        # If the poll had to wait, nothing was there when it began; else what it found may have come since the one before.
        self._empty_at = self._polled_at if self._polled_at - now > WAITED_NS else before
        if ready:
            self._round(ready, self._polled_at)

    def _round(self, ready: list[tuple[int, int]], now: int) -> None:
        """Read all that is ready with its stamps, then decode it. The hottest lines of the program are here."""
        reads: list[Read] = []
        writable: list[Connection] = []
        connections = self._connections
        view, buffers = self._view, self._buffers
        offset, stamp_of = self.offset_ns, clock.kernel_stamp_ns
        lag_sum = lag_max = stamped = 0
        for fd, mask in ready:
            connection = connections.get(fd)
            if connection is None:
                if fd in self._watched:
                    self._watched[fd]()
                continue
            if mask != READABLE:
                connecting = connection.state == CONNECTING
                if mask & WRITABLE or connecting:
                    writable.append(connection)
                if mask == WRITABLE or connecting:  # a read here would eat the error that says why it failed
                    continue
            try:
                size, ancillary, _, _ = connection.recvmsg_into(buffers, ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                continue
            except OSError as cause:
                # Less its traceback, which holds this frame and with it all that was read: nobody collects circles.
                reads.append((connection, cause.with_traceback(None), now))
                continue
            data = view[:size].tobytes()
            if ancillary and (stamp := stamp_of(ancillary)):
                at = stamp - offset
                lag = now - at
                stamped += 1
                lag_sum += lag
                if lag > lag_max:
                    lag_max = lag
                exchange = connection.exchange
                if exchange is not None and lag > exchange.lag_ns:
                    exchange.lag_ns = lag
            else:
                at = self._stamp_ourselves(connection, data)
            reads.append((connection, data, at))
        self.vitals.count(stamped, lag_sum, lag_max)
        for connection in writable:
            self._writable(connection, now)
        for connection, read, at in reads:
            self._received(connection, read, at)

    def _stamp_ourselves(self, connection: Connection, data: bytes) -> int:
        """The time of a read that the kernel did not stamp; its lag is at most the time since the socket was known empty."""
        at = clock.monotonic_ns()
        if data:
            self.vitals.unstamped += 1
            exchange = connection.exchange
            if exchange is not None:
                exchange.lag_ns = max(exchange.lag_ns, at - self._empty_at)
        return at

    def _received(self, connection: Connection, data: bytes | OSError, at: int) -> None:
        exchange = connection.exchange
        if exchange is None or connection.tls is not None or not data or not isinstance(data, bytes):
            plain = self._received_otherwise(connection, data, at)
            exchange = connection.exchange
            if not plain or exchange is None:
                return
            data = plain
        if not exchange.t_first_byte:
            exchange.t_first_byte = at
        http = connection.http
        try:
            http.feed(data)
            exchange.take(http, at)
        except BadResponse as cause:
            # What the same read held before the fault has been seen and counts.
            with contextlib.suppress(EventTooLarge, TooLarge):
                exchange.take(http, at)
            self._fault(connection, Outcome.BAD_HTTP, str(cause), at)
        except (HeadTooLarge, EventTooLarge, TooLarge) as cause:
            self._fault(connection, Outcome.TOO_LARGE, str(cause), at)
        except (
            Exception
        ) as cause:  # whatever a server can make a decoder do, it costs one request and no worker
            self._fault(connection, Outcome.BAD_EVENT, f"{type(cause).__name__}: {cause}", at)
        else:
            if http.complete:
                self._complete(connection)

    def _received_otherwise(self, connection: Connection, data: bytes | OSError, at: int) -> bytes:
        """All but the common case: errors, ends, TLS, and bytes nobody asked for. Gives the plain bytes there are."""
        if connection.state == CLOSED:
            return b""
        if not isinstance(data, bytes):
            self._lost(connection, str(data), at, data)
            return b""
        if not data:
            self._closed_by_peer(connection, at)
            return b""
        if connection.tls is not None:
            try:
                data = self._through_tls(connection, data, at)
            except (OSError, ssl.SSLError) as cause:
                self._lost(connection, str(cause), at, cause)
                return b""
        if data and connection.exchange is None:
            self._drop(connection)  # bytes nobody asked for: this connection cannot be trusted
            return b""
        return data

    def _through_tls(self, connection: Connection, data: bytes, at: int) -> bytes:
        if connection.state == HANDSHAKE:
            connection.shake(data, at)
            if connection.state == IDLE:
                self._ready(connection)
            data = b""  # what came with the last flight waits inside the session
        plain = connection.decrypt(data)
        if connection.wants_write:
            self._poller.modify(connection.fd, READABLE | WRITABLE)
        return plain

    def _writable(self, connection: Connection, now: int) -> None:
        if connection.state == CLOSED:
            return
        try:
            if connection.state == CONNECTING:
                connection.connected(now)
                if connection.state == IDLE:
                    self._ready(connection)
            else:
                connection.flush()
        except (OSError, ssl.SSLError) as cause:
            self._lost(connection, str(cause), now, cause)
            return
        if connection.state != CLOSED and not connection.wants_write:
            self._poller.modify(connection.fd, READABLE)

    def _ready(self, connection: Connection) -> None:
        """The connection stands; give it the request that waits for it, or keep it."""
        exchange, connection.waiting = connection.waiting, None
        if exchange is None:
            self._opening -= 1
            connection.kept = True
            self._idle.append(connection)
        else:
            connection.begin(exchange)

    def _complete(self, connection: Connection) -> None:
        keep = self._reuse and connection.http.keep_alive and not connection.wants_write
        exchange = connection.release()
        if keep:
            connection.state = IDLE
            connection.kept = True
            self._idle.append(connection)
        else:
            self._drop(connection)
        exchange.conclude()
        self._end(exchange, exchange.t_end)

    def _closed_by_peer(self, connection: Connection, at: int) -> None:
        exchange = connection.exchange
        if exchange is not None and connection.http.eof():
            exchange.t_end = at
            self._complete(connection)
        else:
            self._lost(connection, "the server closed the connection", at)

    def _fault(self, connection: Connection, outcome: Outcome, detail: str, at: int) -> None:
        exchange = connection.release()
        self._drop(connection)
        exchange.fail(outcome, detail)
        self._end(exchange, at)

    def _lost(self, connection: Connection, detail: str, at: int, cause: Exception | None = None) -> None:
        """The connection is gone before its work was done."""
        exchange = connection.exchange or connection.waiting
        if exchange is None:
            if connection.state in (CONNECTING, HANDSHAKE):
                self._opening -= 1
            self._drop(connection)
            return
        standing = connection.exchange is not None
        # Closed at reuse shows at once; a server that took the request and died over it shows later.
        prompt = not exchange.t_send or at - exchange.t_send < STALE_NS
        stale = (
            standing and connection.kept and prompt and not exchange.t_first_byte and exchange.attempts == 1
        )
        if not standing:
            exchange.t_connect, exchange.t_connected = connection.t_connect, connection.t_connected
        self._drop(connection)
        if stale:
            exchange.restart()
            self._send_on_new(exchange, clock.monotonic_ns())
            return
        if standing:
            exchange.fail(Outcome.TLS_ERROR if isinstance(cause, ssl.SSLError) else Outcome.RESET, detail)
        else:
            exchange.fail(_connect_outcome(cause), detail)
        self._end(exchange, at)

    def _drop(self, connection: Connection) -> None:
        if connection.state == CLOSED:
            return
        if connection.state == IDLE and connection in self._idle:
            self._idle.remove(connection)
        del self._connections[connection.fd]
        self._poller.unregister(connection.fd)
        connection.exchange = connection.waiting = None
        connection.close()

    def _end(self, exchange: Exchange, at: int) -> None:
        exchange.t_end = at
        self.vitals.in_flight -= 1
        self.vitals.finished += 1
        self._on_end(exchange)

    def adapt(self, now: int) -> None:
        """Choose the pause between polls from what came since the last call; call it a few times a second."""
        vitals, (then, stamped, finished) = self.vitals, self._adapted
        self._adapted = now, vitals.stamped, vitals.finished
        self._pause_ns = (
            0
            if vitals.unstamped * 100 > vitals.stamped
            else pause_ns(now - then, vitals.stamped - stamped, vitals.finished - finished, vitals.in_flight)
        )

    def expire(self, now: int) -> None:
        """End what has outlived its deadline; call it a few times a second."""
        for connection in list(self._connections.values()):
            exchange = connection.exchange or connection.waiting
            unfinished = connection.state in (CONNECTING, HANDSHAKE)
            if unfinished and now - connection.t_connect > self._connect_timeout_ns:
                self._give_up(connection, Outcome.CONNECT_TIMEOUT, "no connection in time", now)
            elif exchange is not None and exchange.deadline <= now:
                self._give_up(connection, Outcome.TIMEOUT, "no complete response in time", now)

    def cancel(self, now: int, detail: str) -> None:
        """End everything in flight."""
        for connection in list(self._connections.values()):
            if connection.exchange is not None or connection.waiting is not None:
                self._give_up(connection, Outcome.CANCELLED, detail, now)

    def _give_up(self, connection: Connection, outcome: Outcome, detail: str, now: int) -> None:
        exchange = connection.exchange or connection.waiting
        if exchange is None:
            self._opening -= 1
        self._drop(connection)
        if exchange is not None:
            exchange.fail(outcome, detail)
            self._end(exchange, now)

    def close(self) -> None:
        """Close all sockets and the timer."""
        for connection in list(self._connections.values()):
            self._drop(connection)
        if self._timer is not None:
            self._timer.close()
        self._poller.close()


def _connect_outcome(cause: Exception | None) -> Outcome:
    if isinstance(cause, ssl.SSLError):
        return Outcome.TLS_ERROR
    if isinstance(cause, ConnectionRefusedError):
        return Outcome.CONNECT_REFUSED
    if isinstance(cause, OSError) and cause.errno in _OUR_LIMITS:
        return Outcome.CLIENT_LIMIT
    return Outcome.CONNECT_ERROR
