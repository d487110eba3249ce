"""Round trips to a server: of TCP handshakes, which its kernel answers before any program of the server runs.

    SYN ->            the time from the first to the second packet is one round trip of the network,
    <- SYN, ACK       to whatever ends TCP there: a proxy, if there is one

The kernel times it, on Linux: TCP_INFO of a new connection holds one sample, the handshake's (RFC 6298: the first sample is the
estimate). Elsewhere the time is that of the call, which adds tens of microseconds of this machine.

| what happens                               | counts as                                                                   |
| ------------------------------------------ | --------------------------------------------------------------------------- |
| the connection is there                    | a time                                                                      |
| the SYN had to be sent again               | `repeated`, without a time: the answer may be to either                     |
| no connection: refused, or none in time    | `failed`; the first's reason is kept in words                               |

The estimate of a connection that carries requests would be no round trip: a server acknowledges a request together with its
answer, if that comes within some 40 ms.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field

GAP_S = 0.005
"""Between two handshakes in a row: one slow moment of the network is not to decide all of them."""

_RTT_AT, _REPEATED_AT = 68, 100
"""Offsets of tcpi_rtt (microseconds) and tcpi_total_retrans in struct tcp_info (<linux/tcp.h>, since 2.6)."""
_INFO_BYTES = _REPEATED_AT + 4
_unsigned = struct.Struct("I").unpack_from


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect: as `socket.connect` wants it."""

    family: int
    address: tuple[str | int, ...]


@dataclass(slots=True)
class Handshakes:
    """Round trips in the order in which they were made, ns; see above. `by_kernel`: each time so far is the kernel's."""

    times_ns: array[int] = field(default_factory=lambda: array("q"))
    repeated: int = 0
    failed: int = 0
    problem: str | None = None
    by_kernel: bool = True

    def fail(self, why: str) -> None:
        """Count one that gave nothing."""
        self.failed += 1
        self.problem = self.problem or why


def measured(
    to: Address, count: int, timeout_s: float, patience_s: float, pause: Callable[[float], None] = time.sleep
) -> Handshakes:
    """So many handshakes in a row, each given up after `timeout_s`; none is begun after `patience_s`, or after one that was
    refused or given up: where nobody answers, nobody is asked again."""
    trips = Handshakes()
    until = time.monotonic() + patience_s
    for number in range(count):
        if number:
            pause(GAP_S)
        if trips.failed or time.monotonic() > until:
            break
        shake(to, timeout_s, trips)
    return trips


def shake(to: Address, timeout_s: float, trips: Handshakes) -> None:
    """One handshake, and a connection that is closed at once. Never raises."""
    try:
        with socket.socket(to.family, socket.SOCK_STREAM) as sock:
            sock.settimeout(timeout_s)
            begun = time.monotonic_ns()
            sock.connect(to.address)
            took = time.monotonic_ns() - begun
            seen = _by_kernel(sock)
    except TimeoutError:
        trips.fail(f"no connection within {timeout_s:g} s")
        return
    except OSError as cause:
        trips.fail(cause.strerror or str(cause))
        return
    if seen is None:
        trips.by_kernel = False
        trips.times_ns.append(took)
    elif seen[1]:
        trips.repeated += 1
    else:
        trips.times_ns.append(seen[0])


def _by_kernel(sock: socket.socket) -> tuple[int, int] | None:
    """The handshake's round trip in ns and how often its SYN was sent again; None where the kernel does not say."""
    if sys.platform != "linux":
        return None
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_BYTES)
    except OSError:
        return None
    if len(info) < _INFO_BYTES:
        return None
    (trip,), (repeated,) = _unsigned(info, _RTT_AT), _unsigned(info, _REPEATED_AT)
    return (int(trip) * 1_000, int(repeated)) if trip or repeated else None


class Watched:
    """Handshakes at a steady pace, the first after half an `every_s`, in a thread, from entering the block to leaving it. The
    thread waits; the kernel takes the times, so they do not grow if this process is busy."""

    def __init__(self, to: Address, timeout_s: float, every_s: float) -> None:
        self.trips = Handshakes()
        self._to, self._timeout_s, self._every_s = to, timeout_s, every_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="round trips", daemon=True)

    def _watch(self) -> None:
        due = time.monotonic() + self._every_s / 2
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            shake(self._to, self._timeout_s, self.trips)
            due = max(due + self._every_s, time.monotonic())

    def __enter__(self) -> Watched:
        """Begin."""
        with contextlib.suppress(
            RuntimeError
        ):  # no thread is to be had: there are no times, and the run goes on
            self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """End, after the handshake under way."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(self._timeout_s + 1.0)
