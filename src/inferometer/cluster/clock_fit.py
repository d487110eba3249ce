"""A host's clock against the conductor's: offset and drift from four-stamp probes, with an error bound. No clock, no socket.

A probe has four stamps: t1 the host sends, t2 the conductor receives, t3 it answers, t4 the host receives. No datagram arrives
before it was sent, so at the probe's middle the offset (conductor minus host) lies in an interval that no path can leave,
however different the way there and the way back are:

    t3 - t4 <= offset <= t2 - t1,     centre +- half the round trip

Clocks of two machines run at slightly different rates. Over the probed span the offset is taken to be about a line:

| what                | is                                                                                           |
| ------------------- | -------------------------------------------------------------------------------------------- |
| the lines possible  | those that pass through the interval of every probe: a convex set                             |
| residual            | what the intervals must be widened by for one line to pass; 0 if the offset is a line         |
| the fit             | the line in the middle of what those reach at the first probe, and at the last                |
| drift not known     | the lines' slopes include 0 and differ by DRIFT_ALLOWANCE: the fit has drift 0                |
| `drift_bound`       | the farthest slope from the fit's, and RATE_CHANGE: no clock's rate stays the same            |
| the error bound     | the farthest that the offset can be from the fit, being in every probe's interval, and moving |
|                     | away from it by at most `drift_bound` in between                                              |
| outside the span    | the bound grows by `drift_bound` for each ns from the first or the last probe                 |

So the bound is about half of the least round trips plus the residual, less where the fastest way there and the fastest way back
are of different probes. A residual beyond what warming quartz explains is a clock that was stepped, or slewed fast: `step` has
the evidence, and the bound does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

DRIFT_ALLOWANCE = 100e-6
"""Two clocks run at rates that differ by no more, unless the probes show it. Quartz is specified to 50 ppm, often to 20."""
DRIFT_MOST = 1000e-6
"""And never by more: a kernel corrects a clock's rate by at most 500 ppm (adjtimex(2)), and there are two."""
RATE_CHANGE = 1e-6
"""What the drift may change by within a span without being a step: quartz moves by about 0.1 ppm a kelvin, and machines warm up
under load. An offset whose rate changes evenly by c over a span T is within c T / 16 of a line."""
STEP_LEAST_NS = 5_000
"""A residual up to this is no step however short the span: it is far below what any check judges, and the bound covers it."""
_HALVINGS = 100
"""Of a search: from 1e-3 to less than a float can tell apart."""


class ClockProbe(msgspec.Struct, frozen=True, array_like=True):
    """One probe. `host_ns`: the host's CLOCK_MONOTONIC at its middle; `offset_ns`: the conductor's minus the host's;
    `round_trip_ns`: without the time at the conductor, and with what the stamps themselves may be wrong by, so that the true
    offset lies within half of it."""

    host_ns: int
    offset_ns: int
    round_trip_ns: int


def four_stamps(t1: int, t2: int, t3: int, t4: int, slack_ns: int = 0) -> ClockProbe | None:
    """The probe of four stamps in ns: t1 and t4 of the host, not later than it sent and not earlier than it received; t2 and t3
    of the conductor, not earlier than it received and not later than it answered; `slack_ns`: what t2 - t1 and t3 - t4 may be
    wrong by all the same. None of stamps by which an answer came before its question, which are no clock's.
    """
    there, back = t2 - t1, t4 - t3
    # The clocks drift while the probe is out, and halves are rounded.
    allowance = 2 * slack_ns + math.ceil(DRIFT_MOST * max(t4 - t1, 0)) + 2
    if t4 < t1 or there + back + allowance < 0:
        return None
    return ClockProbe((t1 + t4) // 2, (there - back) // 2, max(there + back, 0) + allowance)


class ClockStep(msgspec.Struct, frozen=True):
    """Why the offset is no line: the two probes between which it changed the most, and by how much (beyond drift)."""

    before: ClockProbe
    after: ClockProbe
    jump_ns: int


class ClockFit(msgspec.Struct, frozen=True):
    """A host's monotonic clock in terms of the conductor's: `offset_ns` at `reference_ns` of the host, changing by `drift`.

    `bound_ns`: of the error between `first_ns` and `last_ns`, the first and the last probe. `drift_bound`: of the drift's.
    `probes`: how many there were; all are used. `residual_ns`, `step`: see above.
    """

    reference_ns: int
    offset_ns: int
    drift: float
    bound_ns: int
    drift_bound: float
    first_ns: int
    last_ns: int
    probes: int
    least_round_trip_ns: int
    residual_ns: int
    step: ClockStep | None = None

    @property
    def stepped(self) -> bool:
        """Whether no line explains the probes: a clock was stepped, or slewed. Then the bound does not hold."""
        return self.step is not None

    def conductor_ns(self, host_ns: int) -> int:
        """The conductor's clock when the host's shows this."""
        return host_ns + self.offset_ns + round(self.drift * (host_ns - self.reference_ns))

    def conductor_times(self, host_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """As `conductor_ns`, of many instants."""
        drifted: NDArray[np.int64] = np.rint(self.drift * (host_ns - self.reference_ns)).astype(np.int64)
        return host_ns + np.int64(self.offset_ns) + drifted

    def host_ns(self, conductor_ns: int) -> int:
        """The host's clock when the conductor's shows this: the inverse of `conductor_ns` to within 1 ns."""
        elapsed = conductor_ns - self.offset_ns - self.reference_ns
        return self.reference_ns + elapsed - round(elapsed * self.drift / (1 + self.drift))

    def bound_at(self, host_ns: int) -> int:
        """The error bound at an instant of the host, in ns: beyond the first and the last probe it grows with the distance."""
        outside = max(self.first_ns - host_ns, host_ns - self.last_ns, 0)
        return self.bound_ns + math.ceil(self.drift_bound * outside)


def fit(probes: Sequence[ClockProbe]) -> ClockFit:
    """The host's clock by all its probes, in any order. Raises ValueError without one, and for a negative round trip."""
    if not probes:
        raise ValueError("a clock cannot be fitted without a probe")
    if any(one.round_trip_ns < 0 for one in probes):
        raise ValueError("a probe's round trip is negative")
    ordered = sorted(probes, key=lambda one: one.host_ns)
    lines = _Lines(ordered, DRIFT_ALLOWANCE)
    if lines.residual > 0:
        faster = _Lines(ordered, DRIFT_MOST)
        lines = faster if faster.residual < lines.residual else lines
    low, high = lines.slopes
    first, last = (sum(lines.at(x)) / 2 for x in (0.0, lines.span))
    if high - low >= DRIFT_ALLOWANCE and low <= 0.0 <= high:
        first = last = (first + last) / 2  # drift not known
    drift = (last - first) / lines.span if lines.span else 0.0
    drift_bound = max(high - drift, drift - low) + RATE_CHANGE
    return ClockFit(
        reference_ns=ordered[0].host_ns + int(lines.span / 2),
        offset_ns=lines.base + round((first + last) / 2),
        drift=drift,
        bound_ns=math.ceil(lines.farthest(first, drift, drift_bound))
        + 2,  # what is rounded here and in conductor_ns
        drift_bound=drift_bound,
        first_ns=ordered[0].host_ns,
        last_ns=ordered[-1].host_ns,
        probes=len(ordered),
        least_round_trip_ns=min(one.round_trip_ns for one in ordered),
        residual_ns=math.ceil(lines.residual),
        step=_step(ordered, drift) if lines.residual > _no_step(lines.span) else None,
    )


def _no_step(span_ns: float) -> float:
    """Up to what residual the offset was not stepped."""
    return max(STEP_LEAST_NS, RATE_CHANGE * span_ns / 16)


def _step(ordered: Sequence[ClockProbe], drift: float) -> ClockStep:
    """The neighbours whose change of offset exceeds what drift and their round trips hide by the most. A step tilts the whole
    fit, so that drift is here the median of all neighbours', where there are more than a few."""
    host = np.array([one.host_ns - ordered[0].host_ns for one in ordered], dtype=np.float64)
    offset = np.array([one.offset_ns - ordered[0].offset_ns for one in ordered], dtype=np.float64)
    round_trip = np.array([one.round_trip_ns for one in ordered], dtype=np.float64)
    apart, change = np.diff(host), np.diff(offset)
    usual = drift if len(apart) < 3 else float(np.median(change / np.maximum(apart, 1.0)))
    jump = change - usual * apart
    at = int(np.argmax(np.abs(jump) - (round_trip[:-1] + round_trip[1:]) / 2))
    return ClockStep(ordered[at], ordered[at + 1], round(float(jump[at])))


class _Lines:
    """The lines a + b x through all intervals [low, high], widened by `residual`, with |b| at most `steepest`.

    x in ns of the host from the first probe, offsets in ns from `base`. For a slope b, `a` may lie between the greatest
    low - b x and the least high - b x; their difference is convex in b, and so is each of them by itself: every extreme is
    found by a search over b alone.
    """

    def __init__(self, ordered: Sequence[ClockProbe], steepest: float) -> None:
        start, self.base = ordered[0].host_ns, ordered[0].offset_ns
        self._x = np.array([one.host_ns - start for one in ordered], dtype=np.float64)
        half = np.array([one.round_trip_ns / 2 for one in ordered])
        offsets = np.array([one.offset_ns - self.base for one in ordered], dtype=np.float64)
        self._low, self._high = offsets - half, offsets + half
        self.span = float(self._x[-1])
        narrowest = _least(self._overlap, -steepest, steepest)
        lacking = self._overlap(narrowest) / 2
        self.residual = lacking if lacking > 0.5 else 0.0  # offsets are rounded to 1 ns
        self._wide = max(self.residual, 0.0) + 0.5
        self.slopes = self._edge(narrowest, -steepest), self._edge(narrowest, steepest)

    def at(self, x: float) -> tuple[float, float]:
        """The least and the greatest offset that these lines reach at x."""
        lowest, highest = self.slopes
        lower = _tilted(self._bottom, x)
        upper = _tilted(lambda b: -self._top(b), -x)
        low = lower(_least(lower, lowest, highest)) - self._wide
        high = -upper(_least(upper, lowest, highest)) + self._wide
        return low, high

    def farthest(self, first: float, drift: float, rate: float) -> float:
        """How far the offset can be from the line that has `first` at 0 and the slope `drift`, if it moves away from it, and
        towards it, by at most `rate`."""
        line = first + drift * self._x
        return max(self._reach(self._high - line, rate), self._reach(line - self._low, rate))

    def _reach(self, distance: NDArray[np.float64], rate: float) -> float:
        """The greatest value of what is at most `distance` at each x, and changes by at most `rate`."""
        moved = rate * self._x
        rising = np.minimum.accumulate(distance - moved) + moved
        falling = np.minimum.accumulate((distance + moved)[::-1])[::-1] - moved
        most = np.minimum(rising, falling)
        between = (most[:-1] + most[1:] + rate * np.diff(self._x)) / 2
        return float(max(most.max(), between.max(initial=-math.inf)))

    def _bottom(self, slope: float) -> float:
        return float((self._low - slope * self._x).max())

    def _top(self, slope: float) -> float:
        return float((self._high - slope * self._x).min())

    def _overlap(self, slope: float) -> float:
        """How far the intervals are from having a line of this slope in common; negative: they have."""
        return self._bottom(slope) - self._top(slope)

    def _edge(self, inside: float, outside: float) -> float:
        """The last slope on the way from `inside` to `outside` that has a line; from outside, so as not to miss any."""
        most = 2 * self._wide
        if self._overlap(outside) <= most:
            return outside
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            if self._overlap(middle) <= most:
                inside = middle
            else:
                outside = middle
        return outside


def _tilted(function: Callable[[float], float], slope: float) -> Callable[[float], float]:
    """The function plus a linear one: convex if it is."""
    return lambda b: function(b) + slope * b


def _least(convex: Callable[[float], float], low: float, high: float) -> float:
    """Where a convex function is least between `low` and `high`."""
    for _ in range(_HALVINGS):
        third = (high - low) / 3
        left, right = low + third, high - third
        if convex(left) <= convex(right):
            high = right
        else:
            low = left
    return (low + high) / 2
