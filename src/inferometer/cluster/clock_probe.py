"""Four-stamp probes of a host's clock against the conductor's, over UDP.

    host                              conductor
    t1  probe  n  ------------------>  t2
    t4  <---------------  reply  n     t3
        <-------  follow-up  n: t2, t3

The reply carries nothing, so that it leaves at once; t2 and t3 come behind it, when the kernel has reported t3. A stamp that
the kernel does not give is the program's own, which lies outside of it, so that the probe's interval is wider and as true.

| what                                           | becomes of it                                            |
| ---------------------------------------------- | -------------------------------------------------------- |
| not signed with the run's key                  | no answer; not counted as heard                          |
| a probe that comes twice, late, or is replayed | no answer: numbers of a session only go up               |
| an answer to no probe that is out, or a second | not used                                                 |
| the wall clock was stepped on either side      | the probe is dropped: kernel stamps are the wall clock's |
| lost                                           | the burst has one probe less                             |

The host sends a burst of 8 each second and keeps the one of the least round trip.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from inferometer.cluster.clock_datagrams import (
    MOST_BYTES,
    SESSION_BYTES,
    ConductorStamps,
    Datagram,
    Kind,
    key_name,
    opened,
    sealed,
)
from inferometer.cluster.clock_fit import ClockProbe, four_stamps
from inferometer.cluster.stamped_datagrams import (
    Address,
    MonotonicOffset,
    Received,
    StampedSocket,
    monotonic_offset,
)

BURST = 8
BURST_EVERY_S = 1.0
SPACING_NS = 8_000_000
"""From one probe of a burst to the next: long enough that none waits behind another's answer on a quiet network."""
REPLY_NS = 600_000_000
"""So long after its last probe a burst waits for answers: more than any round trip on Earth."""
STAMP_NS = 20_000_000
"""So long the conductor waits for the kernel's stamp of a reply; a driver gives it within a fraction of a millisecond."""
SESSIONS = 4096
"""Of so many the responder knows the last number. A replay of an older one's is answered, to the replaying party's loss."""
_IDLE_S = 1.0
_POLL_MS = 50
_MILLION = 1_000_000


def _resolved(address: tuple[str, int], *, passive: bool) -> tuple[int, Address]:
    """The family and the socket's form of an address. Raises OSError for a name that is unknown."""
    flags = socket.AI_PASSIVE if passive else 0
    found = socket.getaddrinfo(*address, type=socket.SOCK_DGRAM, flags=flags)
    family, _, _, _, resolved = found[0]
    return family, resolved


def _arrival(taken: Received, offset: MonotonicOffset) -> int:
    """When a datagram arrived, on the monotonic clock, or later."""
    if not taken.kernel_ns:
        return taken.after_ns
    return min(taken.after_ns, offset.monotonic_ns(taken.kernel_ns))


def _departure(before_ns: int, kernel_ns: int, offset: MonotonicOffset) -> int:
    """When a datagram left, on the monotonic clock, or earlier. `kernel_ns`: 0 without a stamp."""
    return max(before_ns, offset.monotonic_ns(kernel_ns)) if kernel_ns else before_ns


# The conductor's side.


@dataclass(frozen=True, slots=True)
class _Reply:
    """One that was sent, and whose follow-up is due: when the kernel's stamp comes, else at `due_ns`."""

    probe: Datagram
    taken: Received
    before_ns: int
    offset: MonotonicOffset
    due_ns: int


class ClockResponder:
    """Answers the probes of hosts that hold a registered key, in a thread of its own, until it is closed."""

    def __init__(self, address: tuple[str, int], *keys: bytes, kernel_stamps: bool = True) -> None:
        """Listen at `address`, port 0 for any free one. Raises OSError if that cannot be."""
        family, resolved = _resolved(address, passive=True)
        self._socket = StampedSocket(family, kernel_stamps=kernel_stamps)
        try:
            self._socket.socket.bind(resolved)
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.socket.getsockname()[1]
        self._keys: dict[bytes, bytes] = {}
        for key in keys:
            self.register(key)
        self._last: OrderedDict[tuple[bytes, bytes], int] = OrderedDict()
        self._replies: dict[int, _Reply] = {}
        self._offset = monotonic_offset()
        self._wake, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="clock-responder", daemon=True)
        self._thread.start()

    def register(self, key: bytes) -> None:
        """Answer the holders of this key from now on. Raises ValueError for one of another length than 32 bytes."""
        self._keys = {**self._keys, key_name(key): key}

    def forget(self, key: bytes) -> None:
        """Answer them no more."""
        name = key_name(key)
        self._keys = {other: kept for other, kept in self._keys.items() if other != name}

    def close(self) -> None:
        """End the thread and free the port."""
        if self._thread.is_alive():
            self._waker.send(b"x")
            self._thread.join()
        for one in (self._socket, self._wake, self._waker):
            one.close()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._socket.socket, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while True:
            waiting_ms = 2 if self._replies else int(_IDLE_S * 1000)
            if any(fd == self._wake.fileno() for fd, _ in poll.poll(waiting_ms)):
                return
            offset = monotonic_offset()
            while (taken := self._socket.receive(MOST_BYTES)) is not None:
                self._answer(taken)
            self._follow_up()
            # What arrives from here on arrives after this sample; what was read above did after the one before.
            self._offset = offset

    def _answer(self, taken: Received) -> None:
        probe = opened(taken.data, self._keys)
        if probe is None or probe.kind is not Kind.PROBE or not self._newer(probe):
            return
        text = sealed(Kind.REPLY, probe.key, probe.session, probe.number)
        sent = self._socket.send(text, taken.sender)
        if sent is None:
            return
        due = sent.before_ns + (STAMP_NS if sent.count is not None else 0)
        reply = _Reply(probe, taken, sent.before_ns, self._offset, due)
        if sent.count is None:
            self._tell(reply, 0)
        else:
            self._replies[sent.count] = reply
            self._follow_up()

    def _newer(self, probe: Datagram) -> bool:
        """Whether the probe's number is above all before it in its session."""
        session = key_name(probe.key), probe.session
        if probe.number <= self._last.get(session, -1):
            return False
        self._last[session] = probe.number
        self._last.move_to_end(session)
        if len(self._last) > SESSIONS:
            self._last.popitem(last=False)
        return True

    def _follow_up(self) -> None:
        """Report the stamps of replies that the kernel has given, and of those that it does not give."""
        for count, stamp in self._socket.sent_stamps().items():
            reply = self._replies.pop(count, None)
            if reply is not None:
                self._tell(reply, stamp)
        now = time.monotonic_ns()
        for count in [count for count, reply in self._replies.items() if reply.due_ns <= now]:
            self._tell(self._replies.pop(count), 0)

    def _tell(self, reply: _Reply, departed: int) -> None:
        offset = reply.offset.until(monotonic_offset())
        if offset is None:  # the wall clock was stepped
            return
        stamps = ConductorStamps(
            _arrival(reply.taken, offset),
            _departure(reply.before_ns, departed, offset),
            offset.slack_ns,
        )
        probe = reply.probe
        self._socket.send(
            sealed(Kind.FOLLOW_UP, probe.key, probe.session, probe.number, stamps), reply.taken.sender
        )


# The host's side.


@dataclass(slots=True)
class _Exchange:
    """A probe that is out, and what has come of it."""

    before_ns: int
    departed: int = 0
    reply: Received | None = None
    stamps: ConductorStamps | None = None

    @property
    def whole(self) -> bool:
        """Whether all has come, except perhaps the kernel's stamp of the probe itself, which is there long before."""
        return self.reply is not None and self.stamps is not None

    def probe(self, offset: MonotonicOffset) -> ClockProbe | None:
        """The probe; None if it is not whole, or no clocks give such stamps."""
        if self.reply is None or self.stamps is None:
            return None
        t1 = _departure(self.before_ns, self.departed, offset)
        t4 = _arrival(self.reply, offset)
        t2, t3, slack = self.stamps
        return four_stamps(t1, t2, t3, t4, slack + offset.slack_ns)


class _Asker:
    """Sends bursts to one conductor. `heard_ns`: when its last answer came, on the monotonic clock."""

    def __init__(self, address: tuple[str, int], key: bytes, *, kernel_stamps: bool) -> None:
        family, self._to = _resolved(address, passive=False)
        self._key, self._keys = key, {key_name(key): key}
        self._session = os.urandom(SESSION_BYTES)
        self._number = 0
        self._socket = StampedSocket(family, kernel_stamps=kernel_stamps)
        self._poll = select.poll()
        self._poll.register(self._socket.socket, select.POLLIN)
        self._out: dict[int, _Exchange] = {}
        self._counts: dict[int, int] = {}
        self.heard_ns = time.monotonic_ns()

    def close(self) -> None:
        """Free the port."""
        self._socket.close()

    def burst(self, closing: threading.Event) -> ClockProbe | None:
        """The probe with the least round trip of a burst; None if none came back, or the wall clock was stepped."""
        before = monotonic_offset()
        self._out, self._counts = {}, {}
        for _ in range(BURST):
            self._send()
            self._listen(time.monotonic_ns() + SPACING_NS, closing, whole=False)
        self._listen(time.monotonic_ns() + REPLY_NS, closing, whole=True)
        offset = before.until(monotonic_offset())
        if offset is None:
            return None
        probes = [one for each in self._out.values() if (one := each.probe(offset)) is not None]
        return min(probes, key=lambda one: one.round_trip_ns, default=None)

    def _send(self) -> None:
        self._number += 1
        sent = self._socket.send(sealed(Kind.PROBE, self._key, self._session, self._number), self._to)
        if sent is None:
            return
        self._out[self._number] = _Exchange(sent.before_ns)
        if sent.count is not None:
            self._counts[sent.count] = self._number

    def _listen(self, until_ns: int, closing: threading.Event, *, whole: bool) -> None:
        """Take in what comes until then. `whole`: or until every probe that is out is answered."""
        while not closing.is_set():
            if whole and all(one.whole for one in self._out.values()):
                return
            left_ms = math.ceil((until_ns - time.monotonic_ns()) / _MILLION)
            if left_ms <= 0:
                return
            self._poll.poll(min(left_ms, _POLL_MS))
            for count, stamp in self._socket.sent_stamps().items():
                exchange = self._out.get(self._counts.get(count, 0))
                if exchange is not None:
                    exchange.departed = stamp
            for taken in self._received():
                self._take(taken)

    def _received(self) -> Iterator[Received]:
        while (taken := self._socket.receive(MOST_BYTES)) is not None:
            yield taken

    def _take(self, taken: Received) -> None:
        answer = opened(taken.data, self._keys)
        if answer is None or answer.session != self._session or answer.kind is Kind.PROBE:
            return
        exchange = self._out.get(answer.number)
        if exchange is None:
            return
        if answer.kind is Kind.REPLY and exchange.reply is None:
            exchange.reply = taken
        elif answer.stamps is not None and exchange.stamps is None:
            exchange.stamps = answer.stamps
        else:
            return
        self.heard_ns = taken.after_ns


class ClockProber:
    """Probes the conductor's clock from a host each second, in a thread of its own, until it is closed."""

    def __init__(
        self,
        address: tuple[str, int],
        key: bytes,
        *,
        every_s: float = BURST_EVERY_S,
        kernel_stamps: bool = True,
    ) -> None:
        """Begin at once. Raises OSError for an address that is unknown, ValueError for a key that is none."""
        self._asker = _Asker(address, key, kernel_stamps=kernel_stamps)
        self._every_s = every_s
        self._taken: list[ClockProbe] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clock-prober", daemon=True)
        self._thread.start()

    def silent_s(self, now_ns: int) -> float:
        """How long no answer has come, since the start at most."""
        return (now_ns - self._asker.heard_ns) / 1e9

    def taken(self) -> list[ClockProbe]:
        """The probes since the last call, one a burst at most."""
        with self._lock:
            probes, self._taken = self._taken, []
        return probes

    def close(self) -> None:
        """End the thread and free the port; probes that were taken stay."""
        self._closing.set()
        self._thread.join()
        self._asker.close()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._closing.wait(max(0.0, due - time.monotonic())):
            probe = self._asker.burst(self._closing)
            if probe is not None:
                with self._lock:
                    self._taken.append(probe)
            due = max(due + self._every_s, time.monotonic())


def probe_bursts(
    address: tuple[str, int],
    key: bytes,
    bursts: int,
    *,
    pause_s: float = 0.0,
    kernel_stamps: bool = True,
) -> list[ClockProbe]:
    """The best probe of each of several bursts, one after another, `pause_s` apart; of a burst without an answer none.

    Raises OSError for an address that is unknown, ValueError for a key that is none.
    """
    never = threading.Event()
    with contextlib.closing(_Asker(address, key, kernel_stamps=kernel_stamps)) as asker:
        probes = []
        for number in range(bursts):
            if number:
                time.sleep(pause_s)
            probe = asker.burst(never)
            if probe is not None:
                probes.append(probe)
        return probes
