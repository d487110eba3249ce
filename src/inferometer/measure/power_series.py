"""The readings of power meters as series of one device each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Floats, Ints
from inferometer.telemetry.power.readings import Method, PowerReading, Scope


@dataclass(frozen=True, slots=True)
class PowerSeries:
    """One device by one meter. `t_ns`: instants of the readings, on one clock. `watts`, `joules`: as in PowerReading, NaN where
    a reading has none. `wraps_at`: the counter's range in joules, None if unknown or endless."""

    meter: str
    scope: Scope
    device: str
    method: Method
    t_ns: Ints
    watts: Floats
    joules: Floats
    wraps_at: float | None = None


def power_series(readings: Iterable[tuple[int, Sequence[PowerReading]]]) -> tuple[PowerSeries, ...]:
    """What was read at instants in ns, as a series of each device, in the order in which they first appear."""
    found: dict[tuple[str, Scope, str], list[tuple[int, PowerReading]]] = {}
    for at, present in readings:
        for reading in present:
            found.setdefault((reading.meter, reading.scope, reading.device), []).append((at, reading))
    return tuple(_series(rows) for rows in found.values())


def by_scope(series: Iterable[PowerSeries]) -> dict[tuple[str, Scope], tuple[PowerSeries, ...]]:
    """The series that may be added up: of one meter and one scope."""
    found: dict[tuple[str, Scope], tuple[PowerSeries, ...]] = {}
    for one in series:
        key = (one.meter, one.scope)
        found[key] = (*found.get(key, ()), one)
    return found


def _series(rows: Sequence[tuple[int, PowerReading]]) -> PowerSeries:
    last = rows[-1][1]
    return PowerSeries(
        last.meter,
        last.scope,
        last.device,
        last.method,
        np.array([at for at, _ in rows], dtype=np.int64),
        np.array([np.nan if one.watts is None else one.watts for _, one in rows], dtype=np.float64),
        np.array([np.nan if one.joules is None else one.joules for _, one in rows], dtype=np.float64),
        last.wraps_at,
    )
