"""Axes of a chart: which numbers they reach over, where they are ticked, and where a number lies.

Linear axes are ticked at multiples of 1, 2 or 5 times a power of ten; logarithmic ones at 1, 2 and 5 of each decade, at fewer
or more where the axis is long or short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

FEW = 8
"""Ticks on a logarithmic axis, at most, but for powers of ten."""


@dataclass(frozen=True, slots=True)
class Scale:
    """`low` to `high` in the axis's unit, lying at `start` to `end` of the chart, with ticks between."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Where a number lies."""
        low, high, value = (
            (math.log(self.low), math.log(self.high), math.log(value))
            if self.log
            else (self.low, self.high, value)
        )
        return self.start + (value - low) / (high - low) * (self.end - self.start)

    def holds(self, value: float | None) -> bool:
        """Whether a number lies on the axis."""
        return value is not None and self.low <= value <= self.high

    def inside(self, value: float) -> float:
        """Where a number lies, or the end of the axis that it lies beyond."""
        return self.at(min(max(value, self.low), self.high))


def drawable(value: object, log: bool) -> TypeGuard[float]:
    """Whether a number has a place on the axis: None, NaN, and on a logarithmic axis zero and less, have none."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and (value > 0 or not log)
    )


def linear(values: Sequence[float], start: float, end: float, from_zero: bool) -> Scale:
    """Over all values; from zero on where asked, or where they come near it."""
    low, high = min(values), max(values)
    if from_zero or 0 <= low <= high / 2:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = (low, low + 1) if from_zero else (low - 1, high + 1)
    step = _step((high - low) / 5)
    if all(float(value).is_integer() for value in values):
        step = max(step, 1.0)
    low, high = math.floor(low / step) * step, math.ceil(high / step - 1e-9) * step
    count = round((high - low) / step)
    ticks = tuple(_rounded(low + step * i, step) for i in range(count + 1))
    # A point on the very edge would be cut in half.
    room = 0.0 if from_zero else 0.03 * (high - low)
    low, high = low - room * (low == min(values)), high + room * (high == max(values))
    return Scale(low, high, start, end, False, ticks)


def exact(low: float, high: float, start: float, end: float, *, log: bool = False) -> Scale:
    """From `low` to `high` and no further: for charts that share an axis. On a logarithmic one `low` is above zero."""
    if log:
        low, high = (low, high) if low < high else (low / 1.1, high * 1.1)
        return Scale(low, high, start, end, True, _decades(low, high))
    if high <= low:
        low, high = low - 1, high + 1
    step = _step((high - low) / 5)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return Scale(
        low, high, start, end, False, tuple(_rounded(step * i, step) for i in range(first, last + 1))
    )


def _rounded(value: float, step: float) -> float:
    """A tick without the noise of floating point, however small the steps are."""
    return round(value, 12 - math.floor(math.log10(step)))


def _step(rough: float) -> float:
    ten: float = 10.0 ** math.floor(math.log10(rough))
    return next((ten * n for n in (1, 2, 5) if ten * n >= rough * 0.999), ten * 10)


def logarithmic(values: Sequence[float], start: float, end: float) -> Scale:
    """Over all values, which are above zero, with a little room at both ends."""
    low, high = min(values) / 1.1, max(values) * 1.1
    return Scale(low, high, start, end, True, _decades(low, high))


def _decades(low: float, high: float) -> tuple[float, ...]:
    """As many ticks as tell the scale, and no more than FEW: of each decade 1, or 1, 2 and 5, or 1 to 9; within a small part of
    one decade, even steps."""
    tens = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1,), range(1, 10)):
        found = [n * 10.0**ten for ten in tens for n in digits if low <= n * 10.0**ten <= high]
        if 3 <= len(found) <= FEW:
            return tuple(found)
    if high / low > 10:
        return tuple(10.0**ten for ten in tens if low <= 10.0**ten <= high)
    ticks: tuple[float, ...] = ()
    for parts in (4, 8):  # a step of nearly half may fit in only once
        step = _step((high - low) / parts)
        ticks = tuple(
            _rounded(step * i, step) for i in range(math.ceil(low / step), math.floor(high / step) + 1)
        )
        if len(ticks) > 1:
            break
    return ticks
