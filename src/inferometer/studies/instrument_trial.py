"""Two short trials of the instrument's own means on this machine: the timer that sends requests, and the stamps of what is
read. Each uses the code of a run, without a server: together less than a second."""

from __future__ import annotations

import select
import socket
import time
from statistics import median

import numpy as np

from inferometer.documents.doctor import StampSeries, TimerSeries
from inferometer.drive import clock, time_slice
from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import HTTP1
from inferometer.drive.reactor import Reactor
from inferometer.drive.transport import Peer
from inferometer.units import NS_PER_MS

INSTANTS = 500
EVERY_NS = 1_000_000
"""500 instants a millisecond apart: P99 is the sixth-latest."""
READS = 200
SLACK_NS = 50_000
"""How far a true stamp may lie outside the time from sending to reading: the two clocks' offset is known to a few
microseconds, and an interrupt between reading both adds some tens."""
_PATIENCE_S = 1.0
STAMPS_BEGIN_NS = 500_000_000
"""Linux begins to stamp received packets some milliseconds after the first socket has asked for it, and stops after the last;
the connections of a run are open for longer before they carry load."""


def timer(instants: int = INSTANTS, every_ns: int = EVERY_NS) -> TimerSeries:
    """How late the load generator's loop is for instants that follow each other at `every_ns`."""
    time_slice.shorten()  # as a worker does
    reactor = Reactor(Peer(socket.AF_INET, ("127.0.0.1", 0)), HTTP1, _no_exchange)
    late = np.empty(instants)
    try:
        due = clock.monotonic_ns() + every_ns
        for at in range(instants):
            while (now := clock.monotonic_ns()) < due:
                reactor.wait(due, exact=True)
            late[at] = now - due
            due = max(due, now) + every_ns  # an instant that passed meanwhile would be late by the one before
    finally:
        reactor.close()
    late /= NS_PER_MS
    p50, p99 = np.quantile(late, (0.5, 0.99))
    return TimerSeries(instants, float(p50), float(p99), float(late.max()))


def stamps(reads: int = READS) -> StampSeries:
    """Send a byte at a time over loopback, and read it with the kernel's stamp as a run does."""
    lags: list[float] = []
    stamped = implausible = received = 0
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as reader,
    ):
        clock.ask_for_stamps(reader)
        sender, _ = server.accept()
        with sender:
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            begun = clock.monotonic_ns()
            while not _one(sender, reader)[1] and clock.monotonic_ns() < begun + STAMPS_BEGIN_NS:
                pass
            for _ in range(reads):
                sent, stamp, read = _one(sender, reader)
                received += 1
                if stamp:
                    at = stamp - clock.realtime_offset_ns()
                    stamped += 1
                    implausible += not sent - SLACK_NS <= at <= read + SLACK_NS
                    lags.append((read - at) / NS_PER_MS)
    return StampSeries(received, stamped, implausible, median(lags) if lags else None)


def _one(sender: socket.socket, reader: socket.socket) -> tuple[int, int, int]:
    """One byte: when it was sent (monotonic), its stamp (wall clock; 0: it has none), when it had been read."""
    sent = clock.monotonic_ns()
    sender.send(b".")
    select.select([reader], [], [], _PATIENCE_S)
    _, ancillary, _, _ = reader.recvmsg(1, clock.ANCILLARY_BYTES)
    return sent, clock.kernel_stamp_ns(ancillary), clock.monotonic_ns()


def clock_step_ms(offset_before_ns: int) -> float:
    """How far the wall clock has moved against the monotonic one since an offset of realtime_offset_ns, in ms."""
    return abs(clock.realtime_offset_ns() - offset_before_ns) / NS_PER_MS


def pause(seconds: float) -> None:
    """Let the machine go on by itself for so long."""
    time.sleep(max(seconds, 0.0))


def _no_exchange(_: Exchange) -> None:
    """None is submitted."""
