"""Whether repeated measurements of one quantity differ by more than their own intervals explain."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import chi2, norm

from inferometer.metrics.statistics import Interval

ALARM = 0.001
"""How often repeats that differ by chance alone are said to differ, if their intervals are those of normal errors."""
_HALF = float(norm.ppf(0.975))
"""Standard errors from the value to either end of a 95 % interval."""


def heterogeneous(values: Sequence[float], intervals: Sequence[Interval]) -> bool:
    """Cochran's test of independent values with a 95 % interval each, at the level ALARM; False of fewer than two.

    The standard error of a value is taken from that half of its interval which faces the weighted mean. An interval without any
    width weighs as the narrowest of the others; where none has any, unequal values differ.
    """
    if len(values) < 2 or len(set(values)) == 1:
        return False
    widths = [high - low for low, high in intervals]
    least = min((width for width in widths if width > 0), default=0.0)
    if least == 0:
        return True
    weights = [(max(width, least) / (2 * _HALF)) ** -2 for width in widths]
    mean = sum(w * value for w, value in zip(weights, values, strict=True)) / sum(weights)
    errors = [
        max(high - value if value < mean else value - low, least / 2) / _HALF
        for value, (low, high) in zip(values, intervals, strict=True)
    ]
    spread = sum(((value - mean) / error) ** 2 for value, error in zip(values, errors, strict=True))
    return bool(chi2.sf(spread, len(values) - 1) < ALARM)
