"""The loop that sends and receives: one thread, epoll, no event-loop framework.

Every round waits, reads *all* ready sockets with their kernel stamps, and only then decodes. So the time spent decoding one
stream is not added to the next, and where there are no kernel stamps it still is not.

Theory of the pool: a request never waits for another's place. Channels with capacity are kept and reused, the latest first;
`spare` places are held ready beyond those in use. When there is none at the due instant, the request joins a transport that is
being opened, if its channel is to carry several, or else one is opened for it; its lateness shows it.

A kept transport may be closed by the server at the very moment of its reuse (keep_alive.py). That says nothing about the
server's service, so a request of which nothing was answered goes out once more on a fresh transport, and the record says
`attempts` = 2. The same holds of a request that the peer says it has not begun. Either keeps the instants of its first attempt.

A server that closes every transport after one answer, without announcing it, gets fresh ones: opened ahead of need, as many as
were needed at once so far, and used in the order in which the server accepted them, since it may serve them in that order.
"""

from __future__ import annotations

import errno
import ssl
import sys
import time
from collections.abc import Callable

from inferometer.drive import clock
from inferometer.drive.channel import ChannelKind
from inferometer.drive.clock import ANCILLARY_BYTES
from inferometer.drive.exchange import Exchange
from inferometer.drive.keep_alive import KeepAlive
from inferometer.drive.poller import READABLE, ROOM_NS, WRITABLE, Poller, Timer, pause_ns
from inferometer.drive.transport import (
    CLOSED,
    CONNECTING,
    HANDSHAKE,
    OPEN,
    OPENING,
    Peer,
    Transport,
)
from inferometer.drive.unread import RoundClock
from inferometer.drive.vitals import Vitals
from inferometer.journal.schema import Outcome

SPIN_NS = 80_000
"""The timer is set this much early and the rest is spun away: a wake-up through the scheduler takes tens of microseconds."""
READY = 8
"""Fresh transports held ready at first for a server that closes each after one answer; one more whenever there was none."""
REFILL_NS = 1_000_000_000
"""One held ready that the server closed is replaced if it stood this long: a server that closes each at once gets no more."""
MOST_READS = 32
"""Sockets read in one round: a bound on how old the first of them is when it is decoded, and on what must stay in the nearer
caches from the reading to the decoding. Measured with 1,000 streams: 1,024 cost some 9 % more a token."""
READ_BYTES = 1 << 16
"""Most that one read takes in."""
CLOSED_BY_SERVER = "the server closed the connection"
NOT_READY = "connected, but the server allowed no request in time"

_OUR_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})

Read = tuple[Transport, bytes | OSError, int, int]
"""A transport, what was read, when it arrived, and how much later it was read (ns)."""


class Reactor:
    """All transports of one worker, with channels of one kind. `on_end` is called with every exchange that has ended.

    `single_use`: the server was found to close each transport after one answer; then at most `most_ready` are held ready.
    `most_open`: transports at once, whatever they are for.
    """

    def __init__(
        self,
        peer: Peer,
        kind: ChannelKind,
        on_end: Callable[[Exchange], None],
        *,
        reuse: bool = True,
        spare: int = 0,
        most_ready: int = READY,
        keep_alive: KeepAlive | None = None,
        connect_timeout_ns: int = 10_000_000_000,
        most_open: int = sys.maxsize,
    ) -> None:
        self._peer = peer
        self._kind = kind
        self._on_end = on_end
        self._reuse = reuse
        self._spare = spare if reuse else 0
        self._shared = reuse and kind.places > 1
        self._keep_alive = keep_alive or KeepAlive()
        self._most_ready = most_ready
        self.single_use = False
        self._expected = kind.places  # that a channel will carry: as many as the latest one did
        self._connect_timeout_ns, self._most_open = connect_timeout_ns, most_open
        self._poller = Poller()
        self._transports: dict[int, Transport] = {}
        self._watched: dict[int, Callable[[], None]] = {}
        self._free: list[Transport] = []  # open, with capacity: `_places` in all
        self._places = 0
        self._unopened: list[Transport] = []  # that others may join
        self._opening = 0
        # Left until what falls due now has been sent: opening and closing a socket takes as long as a send each.
        self._to_open = 0
        self._retired: list[Transport] = []
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
        self._polled_at = clock.monotonic_ns()
        self.rounds = RoundClock(self._polled_at)

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
        """How many transports are on their way that were opened ahead of need."""
        return self._opening

    def open(self, places: int) -> None:
        """Begin to open transports ahead of need, for so many exchanges; none if it is not above 0."""
        for _ in range(-(-places // self._expected)):
            try:
                transport = self._connect(clock.monotonic_ns())
            except OSError:
                return  # the request that needs it will find out and say so
            transport.ahead = True
            self._opening += 1

    def submit(self, exchange: Exchange, now: int) -> None:
        """Send this request as soon as can be: at once if a channel has capacity."""
        exchange.t_taken = now
        self.vitals.sent += 1
        self.vitals.in_flight += 1
        if self._free:
            self._carry(exchange, now)
            return
        self._open_for(exchange, now)
        if self.single_use:
            self._spare = min(self._spare + 1, self._most_ready)
            self._open_spare()

    def _carry(self, exchange: Exchange, now: int) -> None:
        """Send it on a transport with capacity; there is one."""
        transport = self._free[0 if self.single_use else -1]
        if not transport.used:
            transport.used = True
            transport.introduce(exchange)
        transport.channel.submit(exchange)
        self._count(transport)
        self._send(transport, now)
        self._open_spare()

    def _open_spare(self) -> None:
        """Open one transport ahead of need if fewer than wanted are ready: at the next wait."""
        if self._places + (self._opening + self._to_open) * self._expected < self._spare:
            self._to_open += 1

    def _send(self, transport: Transport, now: int) -> None:
        """Write what the channel has for the peer."""
        try:
            transport.send()
        except (OSError, ssl.SSLError) as cause:
            self._broken(transport, cause, now)
            return
        if transport.unsent:
            self._poller.modify(transport.fd, READABLE | WRITABLE)

    def _count(self, transport: Transport) -> None:
        """Bring the pool up to date with what this transport's channel takes now."""
        takes = transport.state == OPEN and (self._reuse or not transport.used)
        places = transport.channel.capacity if takes else 0
        before, transport.places = transport.places, places
        self._places += places - before
        if places and not before:
            self._free.append(transport)
        elif before and not places:
            if self._free[-1] is transport:
                self._free.pop()
            else:
                self._free.remove(transport)

    def _open_for(self, exchange: Exchange, now: int) -> None:
        """Let it wait for a transport: one that is being opened and has room, or its own."""
        if self._unopened:
            transport = self._unopened[-1]
        else:
            try:
                transport = self._connect(now)
            except OSError as cause:
                exchange.t_connect = now
                exchange.fail(_connect_outcome(cause), str(cause))
                self._end(exchange, now)
                return
        transport.waiting.append(exchange)
        if self._shared and len(transport.waiting) >= self._expected:
            self._unopened.remove(transport)

    def _connect(self, now: int) -> Transport:
        if len(self._transports) >= self._most_open:
            raise OSError(errno.EMFILE, "the limit of open files is reached (ulimit -n)")
        transport = Transport(self._peer, self._kind.open(), now, self.rounds)
        self._transports[transport.fd] = transport
        self._poller.register(transport.fd, READABLE | WRITABLE)
        if self._shared:
            self._unopened.append(transport)
        return transport

    def wait(self, until_ns: int, *, exact: bool) -> None:
        """One round: wait until `until_ns` at most, then read and decode all that is there.

        `exact` asks for the instant to be met to the microsecond: timer first, then a short spin.
        """
        if self._to_open or self._retired:
            self._tidy()
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
        if self._pause_ns:
            pause = self._polled_at + self._pause_ns - now
            if pause > 0 and left > pause + ROOM_NS:
                time.sleep(pause / 1e9)
                now = clock.monotonic_ns()
        # Only what a poll did not find at once is known to have come while it waited.
        ready = self._poller.poll(0.0, MOST_READS)
        waited = not ready and timeout != 0
        if waited:
            ready = self._poller.poll(timeout, MOST_READS)
        self._polled_at = clock.monotonic_ns()
        self.rounds.polled(now, self._polled_at, waited=waited, all_named=len(ready) < MOST_READS)
        if ready:
            self._round(ready, self._polled_at)

    def _tidy(self) -> None:
        """Open and close what was left until now."""
        count, self._to_open = self._to_open, 0
        self.open(count * self._expected)
        retired, self._retired = self._retired, []
        for transport in retired:
            self._drop(transport)

    def _round(self, ready: list[tuple[int, int]], now: int) -> None:
        """Read all that is ready with its stamps, then decode it. The hottest lines of the program are here."""
        reads: list[Read] = []
        writable: list[Transport] = []
        transports = self._transports
        view, buffers = self._view, self._buffers
        offset, stamp_of = self.offset_ns, clock.kernel_stamp_ns
        lag_sum = lag_max = stamped = 0
        for fd, mask in ready:
            transport = transports.get(fd)
            if transport is None:
                if fd in self._watched:
                    self._watched[fd]()
                continue
            if mask != READABLE:
                connecting = transport.state == CONNECTING
                if mask & WRITABLE or connecting:
                    writable.append(transport)
                if mask == WRITABLE or connecting:  # a read here would eat the error that says why it failed
                    continue
            try:
                size, ancillary, _, _ = transport.recvmsg_into(buffers, ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                continue
            except OSError as cause:
                # Less its traceback, which holds this frame and with it all that was read: nobody collects circles.
                reads.append((transport, cause.with_traceback(None), now, 0))
                continue
            data = view[:size].tobytes()
            transport.unread.reads += 1
            if ancillary and (stamp := stamp_of(ancillary)):
                at = stamp - offset
                lag = now - at
                stamped += 1
                lag_sum += lag
                if lag > lag_max:
                    lag_max = lag
            else:
                at, lag = self._stamp_ourselves(data)
            reads.append((transport, data, at, lag))
        self.vitals.count(stamped, lag_sum, lag_max)
        for transport in writable:
            self._writable(transport, now)
        for transport, read, at, lag in reads:
            if transport.tls is not None or not read or not isinstance(read, bytes):
                read = self._received_otherwise(transport, read, at)
                if not read:
                    continue
            if transport.feed(read, at, lag):
                self._attend(transport, at)

    def _stamp_ourselves(self, data: bytes) -> tuple[int, int]:
        """The time of a read that the kernel did not stamp; its lag is at most the time since the socket was known empty."""
        at = clock.monotonic_ns()
        if not data:
            return at, 0
        self.vitals.unstamped += 1
        return at, at - self.rounds.empty_at

    def _received_otherwise(self, transport: Transport, data: bytes | OSError, at: int) -> bytes:
        """All but the common case: errors, ends and TLS. Gives the plain bytes there are for the channel."""
        if transport.state == CLOSED:
            return b""
        if not isinstance(data, bytes):
            self._broken(transport, data, at)
            return b""
        if not data:
            self._closed_by_peer(transport, at)
            return b""
        try:
            return self._through_tls(transport, data, at)
        except (OSError, ssl.SSLError) as cause:
            self._lost(transport, str(cause), at, cause)
            return b""

    def _through_tls(self, transport: Transport, data: bytes, at: int) -> bytes:
        if transport.state == HANDSHAKE:
            transport.shake(data, at)
            if transport.state == OPENING:
                self._stands(transport, at)
            data = b""  # what came with the last flight waits inside the session
        plain = transport.decrypt(data)
        if transport.wants_write:
            self._poller.modify(transport.fd, READABLE | WRITABLE)
        return plain

    def _writable(self, transport: Transport, now: int) -> None:
        if transport.state == CLOSED:
            return
        try:
            if transport.state == CONNECTING:
                transport.connected(now)
                self._keep_alive.waited(now - transport.t_connect)
                if transport.state == OPENING:
                    self._stands(transport, now)
            else:
                transport.flush()
        except (OSError, ssl.SSLError) as cause:
            self._lost(transport, str(cause), now, cause)
            return
        if transport.state != CLOSED and not transport.wants_write:
            self._poller.modify(transport.fd, READABLE)

    def _stands(self, transport: Transport, now: int) -> None:
        """Bytes can go both ways; the channel may have a greeting of its own."""
        transport.channel.opened()
        self._attend(transport, now)

    def _opened(self, transport: Transport, now: int) -> None:
        """The channel has capacity for the first time: give it the requests that wait for it."""
        self._arrive(transport)
        transport.greeted(now)
        transport.state = OPEN
        self._expected = transport.channel.capacity
        waiting, transport.waiting = transport.waiting, []
        count = min(len(waiting), transport.channel.capacity)
        for exchange in waiting[:count]:
            transport.introduce(exchange)
            transport.channel.submit(exchange)
        transport.used = count > 0
        for exchange in waiting[count:]:  # it takes fewer than expected
            self._open_for(exchange, now)

    def _arrive(self, transport: Transport) -> None:
        """It is no longer on its way, for better or worse."""
        if transport.ahead:
            self._opening -= 1
        if self._shared and transport in self._unopened:
            self._unopened.remove(transport)

    def _attend(self, transport: Transport, at: int) -> None:
        """Take up what the channel has to say: what has ended, what is to be written, what it takes now."""
        channel = transport.channel
        if transport.state == OPENING and channel.capacity:
            self._opened(transport, at)
        if ended := channel.ended:
            channel.ended = []
        if unprocessed := channel.unprocessed:
            channel.unprocessed = []
        if ended:
            self._answered(transport, ended, at)
        if transport.unsent:
            transport.forget({*ended, *unprocessed})
        if channel.outgoing:
            self._send(transport, at)
        if not channel.exchanges:
            if channel.closing:
                before = transport.answers, at - transport.t_answered
                self._lost(transport, channel.fault or CLOSED_BY_SERVER, at)
                if channel.fault:  # it was not announced by an answer
                    self._learn(*before)
            elif transport.used and not self._reuse:
                self._retired.append(transport)
            elif transport.state == OPEN:
                transport.kept = True
        if channel.capacity != transport.places:
            self._count(transport)
        for exchange in unprocessed:
            if exchange.attempts == 2:
                exchange.fail(Outcome.RESET, "the server did not begin this request, twice")
            elif (
                self._kind.unnumbered
                and exchange.t_send
                and not self._keep_alive.crossed(at - exchange.t_send)
            ):
                exchange.fail(Outcome.RESET, channel.fault)
            else:
                self._again(exchange)
                continue
            self._end(exchange, at)
        for exchange in ended:
            exchange.settle()
            self._end(exchange, at)

    def _answered(self, transport: Transport, ended: list[Exchange], at: int) -> None:
        for exchange in ended:
            if exchange.attempts == 1 and exchange.t_first_byte > exchange.t_submit > 0:
                self._keep_alive.waited(exchange.t_first_byte - exchange.t_submit)
        transport.answers += len(ended)
        transport.t_answered = at
        self._keep_alive.answered(transport.answers)

    def _closed_by_peer(self, transport: Transport, at: int) -> None:
        before = (
            transport.answers,
            at - transport.t_answered,
        )  # an answer that ends with its connection was announced
        transport.channel.peer_closed(at)
        self._attend(transport, at)
        self._lost(transport, CLOSED_BY_SERVER, at)
        self._learn(*before)
        if self.single_use and not transport.used and at - transport.t_connect > REFILL_NS:
            self._open_spare()

    def _broken(self, transport: Transport, cause: OSError, at: int) -> None:
        """The kernel knows of no connection any more, or TLS of no session."""
        self._lost(transport, str(cause), at, cause)
        self._learn(transport.answers, at - transport.t_answered)

    def _learn(self, answers: int, idle_ns: int) -> None:
        """The server has closed a transport unannounced, `idle_ns` after the latest of its answers."""
        self._keep_alive.closed(answers, idle_ns)
        if not self._reuse or self._shared or not self._keep_alive.single_use:
            return
        self.single_use, self._reuse = True, False
        for transport in [one for one in self._free if one.used]:
            self._drop(transport)
        self._spare = max(self._spare, min(READY, self._most_ready))
        self.open(self._spare - self._places - self._opening * self._expected)

    def _lost(self, transport: Transport, detail: str, at: int, cause: Exception | None = None) -> None:
        """The transport is of no more use: let it go, and end or send again what it was to carry."""
        if transport.state == CLOSED:
            return
        carried, waiting = tuple(transport.channel.exchanges), transport.waiting
        unanswered = transport.kept and not any(exchange.t_first_byte for exchange in carried)
        self._drop(transport)
        for exchange in carried:
            # A close carries no stamp of the kernel's: it may have come as early as this socket was last known empty.
            crossed = not exchange.t_send or self._keep_alive.crossed(
                min(at, self.rounds.empty_at) - exchange.t_send
            )
            if unanswered and crossed and exchange.attempts == 1:
                self._again(exchange)
            else:
                exchange.fail(Outcome.TLS_ERROR if isinstance(cause, ssl.SSLError) else Outcome.RESET, detail)
                self._end(exchange, at)
        for exchange in waiting:
            transport.introduce(exchange)
            if (refusal := transport.channel.refusal) is not None:
                exchange.refused(refusal.status, refusal.headers, detail)
            else:
                exchange.fail(_connect_outcome(cause), detail)
            self._end(exchange, at)

    def _again(self, exchange: Exchange) -> None:
        exchange.restart()
        now = clock.monotonic_ns()
        if self.single_use and self._free:
            self._carry(exchange, now)
        else:
            self._open_for(exchange, now)

    def _drop(self, transport: Transport) -> None:
        if transport.state == CLOSED:
            return
        if transport.state != OPEN:
            self._arrive(transport)
        del self._transports[transport.fd]
        self._poller.unregister(transport.fd)
        transport.close()
        transport.waiting = []
        self._count(transport)

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
        """End what has outlived its deadline or overrun its tokens; call it a few times a second."""
        for transport in list(self._transports.values()):
            if transport.state != OPEN and now - transport.t_connect > self._connect_timeout_ns:
                waiting, opening = transport.waiting, transport.state == OPENING
                self._drop(transport)
                words = NOT_READY if opening else "no connection in time"
                for exchange in waiting:
                    exchange.fail(Outcome.CONNECT_TIMEOUT, words)
                    self._end(exchange, now)
                continue
            for exchange in (*transport.channel.exchanges, *transport.waiting):
                if transport.state == CLOSED:
                    break  # it broke as one of them was given up, which ended the others
                if (late := exchange.outlived(now)) is not None:
                    self._give_up(transport, exchange, *late, now)

    def cancel(self, now: int, detail: str) -> None:
        """End everything in flight: in two turns, since what is given up may break its transport, and others be sent again."""
        for _ in range(2):
            for transport in list(self._transports.values()):
                for exchange in (*transport.channel.exchanges, *transport.waiting):
                    if transport.state == CLOSED:
                        break
                    self._give_up(transport, exchange, Outcome.CANCELLED, detail, now)

    def _give_up(
        self, transport: Transport, exchange: Exchange, outcome: Outcome, detail: str, now: int
    ) -> None:
        if transport.state == OPEN:
            transport.channel.cancel(exchange)
            transport.forget({exchange})
            self._attend(transport, now)
        else:
            transport.waiting.remove(exchange)
            if not transport.waiting and not transport.ahead:
                self._drop(transport)
        exchange.fail(outcome, detail)
        self._end(exchange, now)

    def close(self) -> None:
        """Close all sockets and the timer."""
        for transport in list(self._transports.values()):
            self._drop(transport)
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
