"""The hosts that sent a load together, as run.json has them: which workers were theirs, and how well their clocks were
known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inferometer.telemetry.clock_state import ClockSynchronisation
from inferometer.telemetry.host import Environment
from inferometer.telemetry.slowdowns import Slowed


@dataclass(frozen=True, slots=True)
class HostClock:
    """A host's monotonic clock against the conductor's, by four-stamp probes before, during and after the load.

    offset_ns      what the conductor's showed beyond it when the measurement began
    drift_ppm      by how much the conductor's runs faster
    bound_ns       how wrong any instant of the load may be on the conductor's clock: half the least round trip and the residual
                   of the fit; half the round trip is also the most that unequal ways there and back can do. Before the first
                   probe and after the last it grows by what is not known of the drift
    round_trip_ns  the least of all probes
    probes         how many there were
    stepped        no straight line fits the probes: the clock was set, or the machine was suspended
    uncompared_s   for how long the load had begun before the first probe, or went on after the last
    """

    offset_ns: int
    drift_ppm: float
    bound_ns: int
    round_trip_ns: int
    probes: int
    stepped: bool
    uncompared_s: float = 0.0


@dataclass(frozen=True, slots=True)
class HostTrips:
    """Round trips from a host to the server, of TCP handshakes while no load ran, ms; None: there were none. The way there
    alone takes between nothing and all of that."""

    count: int
    least_ms: float | None
    p50_ms: float | None


@dataclass(frozen=True, slots=True)
class LoadHost:
    """One host. `first`: the number of its first worker. `clock`: None if it was lost before it was compared. `lost`: why it
    was lost while the load ran, in words. `clock_state`: what it said of its own synchronisation, which nothing here rests on.
    `certificate`: the id of that which its machine cites, None without one. `slowed`: by heat, or by a limit on its CPU time,
    while the run went on."""

    name: str
    first: int
    workers: int
    environment: Environment
    clock: HostClock | None = None
    lost: str | None = None
    clock_state: ClockSynchronisation | None = None
    certificate: str | None = None
    round_trip_before: HostTrips | None = None
    round_trip_after: HostTrips | None = None
    slowed: Slowed | None = None

    def of(self, worker: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of these workers are its."""
        return (worker >= self.first) & (worker < self.first + self.workers)
