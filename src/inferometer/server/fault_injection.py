"""Faults carried out: connections that do the steps of a filter, each at its time, without holding up any other.

Nothing here sleeps. A step that has to wait stands in its connection's line, and the server's loop is told when to look.
"""

from __future__ import annotations

import heapq
import os
import socket
import struct
from collections import deque
from collections.abc import Iterable

from inferometer.server.answers import Each
from inferometer.server.clock import now
from inferometer.server.connection import All, Connection, Outbox, Socket, Stamps
from inferometer.server.fault_specs import Fault, Faults
from inferometer.server.filters import Filter, Piece, Place, Step, Then, filter_of, reply
from inferometer.server.http_reply import Reply
from inferometer.server.openai import Ask
from inferometer.server.truth_log import Entry

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER, zero seconds: closing sends a reset


class _Alarms:
    """When which connection wants to be woken. An alarm that is no longer wanted does no harm."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, FaultyConnection]] = []
        self._count = 0

    def set(self, at: int, connection: FaultyConnection) -> None:
        self._count += 1  # connections have no order
        heapq.heappush(self._heap, (at, self._count, connection))

    def next(self) -> int | None:
        return self._heap[0][0] if self._heap else None

    def due(self, at: int) -> list[FaultyConnection]:
        found = []
        while self._heap and self._heap[0][0] <= at:
            found.append(heapq.heappop(self._heap)[2])
        return found


class FaultyConnection(Connection):
    """A connection whose answer may be under a filter."""

    __slots__ = ("_alarms", "_begun", "_entry", "_filter", "_hung", "_line", "_stream", "_tick_at")

    def __init__(self, sock: Socket, body_limit: int, outbox: Outbox, alarms: _Alarms) -> None:
        super().__init__(sock, body_limit, outbox)
        self.opening = None  # faults know HTTP/1.1 alone
        self._alarms = alarms
        self._filter: Filter | None = None
        self._entry: Entry | None = None
        self._begun = False
        self._stream = False
        self._hung = False
        self._tick_at = 0
        self._line: deque[tuple[int, Step]] = deque()

    glues = False  # a filter is told of each event

    @property
    def held(self) -> bool:
        """Some of what was handed over waits for its time, or for ever."""
        return self._hung or bool(self._line)

    def suffer(self, filter_: Filter, entry: Entry, stream: bool) -> None:
        """The answer that begins now goes through this filter."""
        self._filter = filter_
        self._entry = entry
        self._begun = False
        self._stream = stream

    def send(self, data: bytes, stamps: Stamps | None = None) -> None:
        """Have the filter say what becomes of it."""
        if self._filter is None:
            super().send(data, stamps)
            return
        place = self._place(stamps)
        tokens = stamps.count if isinstance(stamps, Each) else int(place is Place.TOKEN)
        self._do(self._filter.take(Piece(place, data, stamps, tokens)))
        if place in (Place.END, Place.WHOLE):
            self._filter = None
            self._tick_at = 0
        elif place is Place.HEAD and self._filter.every_ns:
            self._tick_at = now() + self._filter.every_ns
            self._alarms.set(self._tick_at, self)

    def _place(self, stamps: Stamps | None) -> Place:
        assert self._entry is not None
        begun, self._begun = self._begun, True
        if stamps is self._entry.ended:
            return Place.END if self._stream else Place.WHOLE
        if stamps is self._entry.sent_ns or isinstance(stamps, Each):
            return Place.TOKEN
        return Place.EVENT if begun else Place.HEAD

    def _do(self, steps: Iterable[Step]) -> None:
        line = self._line
        for step in steps:
            if self.lost or self._hung:
                return
            if line or step.wait_ns:
                at = now()
                line.append((max(at, line[-1][0] if line else at) + step.wait_ns, step))
                if len(line) == 1:
                    self._alarms.set(line[0][0], self)
            else:
                self._carry_out(step)

    def _carry_out(self, step: Step) -> None:
        if step.data:
            super().send(step.data, All(*step.stamps) if step.stamps else None)
        if step.then is Then.HANG:
            self._hung = True
        elif step.then is Then.CLOSE:
            self.closing = True
        elif step.then is Then.RESET:
            _reset_on_close(self.sock.fileno())
            self.lost = True

    def wake(self, at: int) -> None:
        """Do what is due by `at`."""
        if self.lost:
            return
        line = self._line
        if line and line[0][0] <= at:
            while line and line[0][0] <= at and not self.lost:
                self._carry_out(line.popleft()[1])
            if line:
                self._alarms.set(line[0][0], self)
        if self._filter is not None and 0 < self._tick_at <= at:
            self._do(self._filter.tick())
            self._tick_at = at + self._filter.every_ns
            self._alarms.set(self._tick_at, self)


class Trouble:
    """The faults of one server: who meets which, and what still waits for its time."""

    def __init__(self, faults: tuple[Fault, ...], seed: int, body_limit: int) -> None:
        self._faults = Faults(faults, seed)
        self._refuse_after = self._faults.refuse_after
        self._body_limit = body_limit
        self._accepted = 0
        self._alarms = _Alarms()

    @property
    def refuses(self) -> bool:
        """No further connection is to be taken."""
        return self._refuse_after is not None and self._accepted >= self._refuse_after

    def admits(self, sock: socket.socket) -> bool:
        """Whether a connection just accepted may stay; else it has been reset."""
        number = self._accepted
        self._accepted += 1
        if not self._faults.drops(number):
            return True
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        sock.close()
        return False

    def connection(self, sock: Socket, outbox: Outbox) -> Connection:
        """A connection that can be made to suffer."""
        return FaultyConnection(sock, self._body_limit, outbox, self._alarms)

    def instead(self, entry: Entry, ask: Ask, number: int) -> Reply | None:
        """Note the fault that generation `number` meets, if it meets one; the reply that takes its place, if one does."""
        met = self._faults.met_by(number, ask.stream)
        if met is None:
            return None
        entry.fault = met.label
        return reply(met)

    def meet(self, connection: Connection, entry: Entry, ask: Ask, number: int) -> None:
        """Generation `number` begins, and nothing takes its place: make ready for its fault."""
        met = self._faults.met_by(number, ask.stream)
        if met is not None:
            assert isinstance(connection, FaultyConnection)
            connection.suffer(filter_of(met, ask.max_tokens), entry, ask.stream)

    def sooner(self, due: int | None) -> int | None:
        """The earlier of `due` and the next step that waits; None where there is neither."""
        mine = self._alarms.next()
        return due if mine is None else mine if due is None else min(mine, due)

    def wake(self, at: int) -> list[Connection]:
        """Do what is due by `at`; the connections concerned, to be looked after."""
        concerned: list[Connection] = []
        for connection in self._alarms.due(at):
            connection.wake(at)
            concerned.append(connection)
        return concerned


def _reset_on_close(descriptor: int) -> None:
    """Have the connection end in a reset, whatever is wrapped around it."""
    with socket.socket(fileno=os.dup(descriptor)) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
