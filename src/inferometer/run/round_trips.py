"""Round trips to the server under test before the load, while it is measured and behind it (draft 4.7.3).

| when                              | what                                                                          |
| --------------------------------- | ----------------------------------------------------------------------------- |
| before the warm-up, behind it all | HANDSHAKES of TCP, then REQUESTS of the probe's cheapest kind, over one       |
|                                   | connection if the server keeps it; opening that, and its first, do not count  |
| the measured phase                | a handshake each EVERY_S                                                      |

One that gets no answer ends its row; what follows would wait as long. It is part of the result, in words. Workers take no part:
they sleep before and behind, and meanwhile send the load.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from msgspec.structs import replace

from inferometer.client.round_trip import Address, Handshakes, Watched, measured
from inferometer.documents.run_facts import RoundTrips, TimedBy, TripTimes
from inferometer.drive.probe import Probe
from inferometer.errors import PeerError
from inferometer.measure.stats import percentiles
from inferometer.plan.schema import Plan
from inferometer.run.target import Target, open_probe
from inferometer.units import NS_PER_MS

HANDSHAKES, TIMEOUT_S, PATIENCE_S = 10, 2.0, 3.0
"""Each is given up after TIMEOUT_S, and none is begun after PATIENCE_S of them."""
REQUESTS, REQUEST_TIMEOUT_S, REQUESTS_S = 5, 2.0, 1.0
EVERY_S = 1.0


class RoundTripAccount:
    """What is measured of a run's way to its server. `key`: a secret, for the requests. Raises PlanError."""

    def __init__(self, plan: Plan, target: Target, key: str | None) -> None:
        self._to = Address(target.family, target.address)
        self._probe = open_probe(plan, target.endpoint.url, key)
        self._kernel = True
        self._trips: RoundTrips | None = None

    def before(self) -> RoundTrips:
        """Measure while nothing is sent yet; all that is known so far."""
        handshakes = self._handshakes()
        requests = _requests(self._probe)
        name = self._probe.cheapest
        self._trips = RoundTrips(self._timed_by, handshakes, request=name, request_before=requests)
        return self._trips

    @contextmanager
    def during(self) -> Iterator[None]:
        """Measure for as long as the block lasts."""
        with Watched(self._to, TIMEOUT_S, EVERY_S) as watched:
            yield
        if self._trips is not None:
            during = self._taken(watched.trips)
            self._trips = replace(self._trips, during=during, timed_by=self._timed_by)

    def after(self, *, interrupted: bool) -> RoundTrips | None:
        """Measure once the load has ended, unless a person ended it, who waits; all that is known."""
        if self._trips is None or interrupted:
            return self._trips
        handshakes = self._handshakes()
        requests = None if handshakes.failed else _requests(self._probe)
        return replace(self._trips, after=handshakes, request_after=requests, timed_by=self._timed_by)

    def _handshakes(self) -> TripTimes:
        return self._taken(measured(self._to, HANDSHAKES, TIMEOUT_S, PATIENCE_S))

    def _taken(self, trips: Handshakes) -> TripTimes:
        self._kernel = self._kernel and trips.by_kernel
        return trip_times(trips)

    @property
    def _timed_by(self) -> TimedBy:
        return "kernel" if self._kernel else "client"


def trip_times(trips: Handshakes) -> TripTimes:
    """Their number and statistics, in ms."""
    missed = (trips.repeated, trips.failed, trips.problem)
    if not trips.times_ns:
        return TripTimes(0, None, None, None, *missed)
    times = np.array(trips.times_ns, np.float64) / NS_PER_MS
    p50, p99 = percentiles(times, (0.5, 0.99))
    return TripTimes(len(times), float(times.min()), p50, p99, *missed)


def _requests(probe: Probe) -> TripTimes:
    """The cheapest request some times; the first one opens the connection, and is not counted."""
    trips = Handshakes(by_kernel=False)
    until = time.monotonic() + REQUESTS_S
    try:
        with probe:  # which closes the connection, not to hold one while the load lasts
            probe.touch(REQUEST_TIMEOUT_S)
            while len(trips.times_ns) < REQUESTS and time.monotonic() < until:
                begun = time.monotonic_ns()
                probe.touch(REQUEST_TIMEOUT_S)
                trips.times_ns.append(time.monotonic_ns() - begun)
    except PeerError as cause:
        trips.fail(cause.said)
    return trip_times(trips)
