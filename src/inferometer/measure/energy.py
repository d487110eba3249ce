"""The energy of a span of time from the readings of a power meter.

With samples (t_i, p_i) of power in watts, or (t_i, c_i) of a counter in joules, and the span [b, e]:

| function     | from                           | energy                                                                     |
| ------------ | ------------------------------ | -------------------------------------------------------------------------- |
| `integrated` | power at instants              | sum of trapezoids, with the power at b and e on the line between neighbours |
| `averaged`   | means since the sample before  | sum of p_i (t_i - t_(i-1)), the first and the last in proportion           |
| `counted`    | a counter                      | c(e) - c(b), each on the line between neighbours                           |

A counter that wraps at w has w added once for each decrease. It must not wrap twice between two samples, which no meter does
within LARGEST_GAP_S: the smallest range in use lasts a minute at a kilowatt.

| reason          | there is no energy, because                                                                   |
| --------------- | --------------------------------------------------------------------------------------------- |
| `no_readings`   | the meter gave none of this kind                                                              |
| `too_few`       | there are fewer than two samples                                                              |
| `not_covered`   | no sample lies at or before b, or none at or after e                                          |
| `counter_reset` | it went backwards; its range is unknown, smaller than the step, or makes it too steep (WRAP_SLOPE) |
| `counter_jumped` | one step is too steep (WRAP_SLOPE), and no wrap                                              |
| `implausible`   | a power is negative or over the largest that its device can have, or the counter grew so fast |
| `counter_stuck` | the counter never moved: no device draws nothing                                              |
| `no_power`      | the power never was anything but 0                                                            |
| `unit_changes`  | a wall meter's readings lie further apart than those of one machine in one unit (UNIT_SPREAD) |

An energy is valid if no two neighbours of the samples used, those around b and e included, are more than LARGEST_GAP_S apart:
between them the power is assumed, not known. A counter that stands still was not read anew, as no device draws nothing.
Samples that are not finite, and those not later than one before, are left out.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np

from inferometer.measure.record import Floats, Ints
from inferometer.telemetry.power.readings import LARGEST_W
from inferometer.units import NS_PER_S

LARGEST_GAP_S = 3.0
"""Three samples at the usual rate: a meter that misses one is still valid, and a load's steps take seconds."""

WRAP_SLOPE, WRAP_LEAST_W = 10.0, 2e3
"""A step that is more than so many times as steep as any other, and over so many watts, which few devices with a counter draw,
is no load, which lasts longer than one step: a decrease that would be so as a wrap is a counter that began anew, and an
increase one that jumped. Either would be energy that nobody spent."""

UNIT_SPREAD = 200.0
"""The largest power of one machine in one unit, by the smallest that is not 0, is less: a board that idles at 5 W and draws
700 W has 140, a machine that holds it less. Between W and mW or kW lies a factor of 1000, of which 200 is left where the load
quintuples meanwhile."""

Reason = Literal[
    "no_readings",
    "too_few",
    "not_covered",
    "counter_reset",
    "counter_jumped",
    "implausible",
    "counter_stuck",
    "no_power",
    "unit_changes",
]


class SpanEnergy(msgspec.Struct, frozen=True):
    """`joules`: None for `reason`. Of the samples used, those around the ends included: `samples`, `rate_hz` and
    `largest_gap_s`, None without two of them."""

    joules: float | None
    reason: Reason | None = None
    samples: int = 0
    rate_hz: float | None = None
    largest_gap_s: float | None = None

    @property
    def valid(self) -> bool:
        """Whether there is an energy without a gap over the limit."""
        return self.joules is not None and (self.largest_gap_s or 0.0) <= LARGEST_GAP_S


class Course(msgspec.Struct, frozen=True):
    """Energy as a function of time: `t_s`, seconds since the span's begin, and `joules` since the first of them, at the samples
    used. `watts`: the power there, between which it is linear; None: it is constant between two samples. `anew_s`: the instants
    of the ends and of the samples that show something new; None: all do."""

    t_s: Floats
    joules: Floats
    watts: Floats | None = None
    anew_s: Floats | None = None

    def at(self, instants_s: Floats) -> Floats:
        """Joules at instants within the samples."""
        if self.watts is None:
            return np.interp(instants_s, self.t_s, self.joules)
        before = np.clip(np.searchsorted(self.t_s, instants_s, side="right") - 1, 0, len(self.t_s) - 2)
        since = instants_s - self.t_s[before]
        power = np.interp(instants_s, self.t_s, self.watts)
        return self.joules[before] + (self.watts[before] + power) / 2 * since


def integrated(
    t_ns: Ints, watts: Floats, begin_ns: int, end_ns: int, *, largest_w: float = LARGEST_W
) -> SpanEnergy:
    """The energy of a span from power at instants. Raises ValueError for a span without a length."""
    return _spent(integrated_course(t_ns, watts, begin_ns, end_ns, largest_w=largest_w), begin_ns, end_ns)


def averaged(
    t_ns: Ints, watts: Floats, begin_ns: int, end_ns: int, *, largest_w: float = LARGEST_W
) -> SpanEnergy:
    """The energy of a span from means since the sample before. Raises ValueError for a span without a length."""
    return _spent(averaged_course(t_ns, watts, begin_ns, end_ns, largest_w=largest_w), begin_ns, end_ns)


def counted(
    t_ns: Ints,
    joules: Floats,
    begin_ns: int,
    end_ns: int,
    wraps_at: float | None = None,
    *,
    largest_w: float = LARGEST_W,
) -> SpanEnergy:
    """The energy of a span from a counter. `wraps_at`: its range in joules. Raises ValueError for a span without a length."""
    course = counted_course(t_ns, joules, begin_ns, end_ns, wraps_at, largest_w=largest_w)
    return _spent(course, begin_ns, end_ns)


def integrated_course(
    t_ns: Ints, watts: Floats, begin_ns: int, end_ns: int, *, largest_w: float = LARGEST_W
) -> Course | Reason:
    """See `integrated`."""
    found = _around(t_ns, watts, begin_ns, end_ns)
    if isinstance(found, str):
        return found
    t_s, power = found
    if not _plausible(power, largest_w):
        return "implausible"
    if not power.any():
        return "no_power"
    return Course(t_s, _cumulated((power[1:] + power[:-1]) / 2 * np.diff(t_s)), power)


def averaged_course(
    t_ns: Ints, watts: Floats, begin_ns: int, end_ns: int, *, largest_w: float = LARGEST_W
) -> Course | Reason:
    """See `averaged`."""
    found = _around(t_ns, watts, begin_ns, end_ns)
    if isinstance(found, str):
        return found
    t_s, power = found
    if not _plausible(power[1:], largest_w):
        return "implausible"
    if not power[1:].any():
        return "no_power"
    return Course(t_s, _cumulated(power[1:] * np.diff(t_s)))


def counted_course(
    t_ns: Ints,
    joules: Floats,
    begin_ns: int,
    end_ns: int,
    wraps_at: float | None = None,
    *,
    largest_w: float = LARGEST_W,
) -> Course | Reason:
    """See `counted`."""
    found = _around(t_ns, joules, begin_ns, end_ns)
    if isinstance(found, str):
        return found
    t_s, counter = found
    steps = np.diff(counter)
    wrapped = steps < 0
    steps = np.where(wrapped, steps + (wraps_at or 0.0), steps)
    if (steps < 0).any():
        return "counter_reset"
    moved = np.flatnonzero(steps)
    if not len(moved):
        return "counter_stuck"
    anew_s = t_s[np.concatenate([[0], moved + 1])]
    watts = steps[moved] / np.diff(anew_s)
    steepest = int(np.argmax(watts))
    others = np.delete(watts, steepest)
    too_steep = len(others) > 0 and watts[steepest] > max(WRAP_LEAST_W, WRAP_SLOPE * others.max())
    if too_steep and wrapped[moved[steepest]]:
        return "counter_reset"
    if not _plausible(watts, largest_w):
        return "implausible"
    if too_steep:
        return "counter_jumped"
    return Course(t_s, _cumulated(steps), anew_s=np.unique([*anew_s, t_s[-1]]))


def in_one_unit(watts: Floats) -> bool:
    """Whether these can all be the power of one machine in one unit, whatever it did. Those that are not finite or 0 count for
    nothing."""
    there = watts[np.isfinite(watts) & (watts > 0)]
    return not len(there) or bool(there.max() < UNIT_SPREAD * there.min())


def _plausible(watts: Floats, largest_w: float) -> bool:
    return bool(((watts >= 0) & (watts <= largest_w)).all())


def _spent(course: Course | Reason, begin_ns: int, end_ns: int) -> SpanEnergy:
    if isinstance(course, str):
        return SpanEnergy(None, course)
    ends = np.array([0.0, (end_ns - begin_ns) / NS_PER_S])
    before, after = course.at(ends)
    anew_s = course.t_s if course.anew_s is None else course.anew_s
    return SpanEnergy(
        float(after - before),
        None,
        len(course.t_s),
        (len(course.t_s) - 1) / float(course.t_s[-1] - course.t_s[0]),
        float(np.diff(anew_s).max()),
    )


def _around(t_ns: Ints, values: Floats, begin_ns: int, end_ns: int) -> tuple[Floats, Floats] | Reason:
    """The samples from the last at or before the span's begin to the first at or after its end, with their instants in seconds
    since its begin."""
    if end_ns <= begin_ns:
        raise ValueError("the span has no length")
    if not len(t_ns) or np.isnan(values).all():
        return "no_readings"
    latest = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(t_ns)[:-1]])
    kept = np.isfinite(values) & (t_ns > latest)
    t_ns, values = t_ns[kept], values[kept]
    if len(t_ns) < 2:
        return "too_few"
    first = int(np.searchsorted(t_ns, begin_ns, side="right")) - 1
    last = int(np.searchsorted(t_ns, end_ns, side="left"))
    if first < 0 or last >= len(t_ns):
        return "not_covered"
    used = slice(first, last + 1)
    return (t_ns[used] - begin_ns) / NS_PER_S, values[used]


def _cumulated(steps: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(steps)])
