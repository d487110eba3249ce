"""Checks of a load that several hosts sent together: do their clocks agree, and did each of them send in time?

Latencies and lateness are differences on one host's own clock, and know nothing of the others'. What compares hosts does: when
requests arrived one after the other, how many were in flight at once, the span of the load. Each such instant may be wrong by
the bound of its host's clock, which must not exceed what a request may be late."""

from __future__ import annotations

import numpy as np

from inferometer.judge.checks import lateness_limit_ms
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.load import excused_ms, lateness_ms
from inferometer.measure.load_hosts import HostClock
from inferometer.measure.measurement import Measurement
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan
from inferometer.units import NS_PER_MS

DRIFT_PPM = 200.0
"""Crystals are within 100 ppm, and NTP slews by up to 500: a clock that runs further off is named."""
UNCOMPARED_S = 10.0
"""Probes come each second, and the last of them while the load drains: a host without any for so long is not compared."""
LEAST_SENT = 100
"""Requests of a host for its P99."""


def host_clocks(measurement: Measurement, record: Record) -> Check:
    """The largest bound of a host's clock in ms, against the lateness that is accepted."""
    limit = lateness_limit_ms(measurement)
    known = [(one.name, one.clock) for one in record.hosts if one.clock is not None]
    if not record.hosts:
        return Check("host_clocks", "na", None, limit, "ms")
    if not known:
        return Check(
            "host_clocks", "fail", None, limit, "ms", {"unknown": [one.name for one in record.hosts]}
        )
    name, worst = max(known, key=lambda one: one[1].bound_ns)
    facts: Facts = {"hosts": len(record.hosts), "worst": name, **_of(worst)}
    stepped = [one for one, clock in known if clock.stepped]
    unknown = [one.name for one in record.hosts if one.clock is None]
    fast = [one for one, clock in known if abs(clock.drift_ppm) > DRIFT_PPM]
    blind = [one for one, clock in known if clock.uncompared_s > UNCOMPARED_S]
    named = (("stepped", stepped), ("unknown", unknown), ("fast", fast), ("uncompared", blind))
    facts |= {key: names for key, names in named if names}
    bound = worst.bound_ns / NS_PER_MS
    held = bound <= limit and not stepped and not unknown and not blind
    return Check("host_clocks", "pass" if held else "fail", bound, limit, "ms", facts)


def _of(clock: HostClock) -> Facts:
    return {
        "round_trip_ms": clock.round_trip_ns / NS_PER_MS,
        "drift_ppm": clock.drift_ppm,
        "probes": clock.probes,
    }


def host_lateness(plan: Plan, measurement: Measurement, record: Record) -> Check:
    """P99 of the lateness of the latest host on its own clock, in open loop: one host of many may be late throughout, and the
    P99 of all requests not show it."""
    limit = lateness_limit_ms(measurement)
    if len(record.hosts) < 2 or plan.load.model == "closed":
        return Check("host_lateness", "na", None, limit, "ms")
    late = lateness_ms(record) - excused_ms(record)
    worker = record.worker[record.sent_rows]
    each = {one.name: late[one.of(worker)] for one in record.hosts}
    p99 = {name: float(np.percentile(found, 99)) for name, found in each.items() if len(found) >= LEAST_SENT}
    if not p99:
        return Check("host_lateness", "na", None, limit, "ms")
    worst = max(p99, key=lambda name: p99[name])
    facts: Facts = {"worst": worst, "hosts": list(p99), "each_ms": list(p99.values())}
    return Check("host_lateness", "pass" if p99[worst] <= limit else "fail", p99[worst], limit, "ms", facts)
