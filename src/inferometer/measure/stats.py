"""One metric's distribution: exact percentiles and honest intervals.

Symbols: x_1 <= ... <= x_n the sorted samples, p a probability, m their mean, s their standard deviation.

percentile  linear interpolation between order statistics, at position 1 + p (n - 1); numpy's default
std         s = sqrt(sum (x - m)^2 / (n - 1)): undefined for n < 2
mean CI     m +- t(0.975, n - 1) s / sqrt(n)
quantile CI the order statistics x_l, x_u with P(K < l) <= 0.025 and P(K >= u) <= 0.025, where K ~ Binomial(n, p) counts
            the samples below the true quantile. It needs no distribution of x. Too few samples have no such l or u: null.

Pooled gaps are not independent: those of one request share its luck. Their intervals therefore take the request as the
unit (a cluster sample): with k_i of a request's m_i gaps at or below the quantile q and F = sum k / sum m,
se = sqrt(R / (R - 1) sum (k_i - F m_i)^2) / sum m over R requests, and the interval runs between the empirical quantiles
of p +- t(0.975, R - 1) se (Woodruff 1952); the mean's likewise with sums in place of counts.
"""

from __future__ import annotations

import math

import numpy as np

from inferometer.measure.record import Floats, Ints
from inferometer.metrics.statistics import Interval, Intervals, Stats

CONFIDENCE = 0.95
_TAIL = (1 - CONFIDENCE) / 2


Z_95 = 1.959963984540054
"""The normal distribution's 97.5 % point."""


def percentile(ordered: Floats, p: float) -> float:
    """The p-quantile (0 <= p <= 1) of sorted samples by linear interpolation. Needs at least one sample."""
    position = p * (len(ordered) - 1)
    below = math.floor(position)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    return min(low + (high - low) * (position - below), high)  # rounding must not carry it past its neighbour


def quantile_ranks(n: int, p: float) -> tuple[int, int] | None:
    """Ranks (l, u), counted from 1, of the order statistics that enclose the p-quantile in 95 % of samples of size n.

    None if n is too small: x_1 or x_n is not yet far enough out (P99 needs n >= 368).
    """
    if n < 1:
        return None
    low = _binomial_quantile(_TAIL, n, p)
    high = _binomial_quantile(1 - _TAIL, n, p) + 1
    return (low, high) if low >= 1 and high <= n else None


def _binomial_quantile(probability: float, n: int, p: float) -> int:
    """The least k with P(Binomial(n, p) <= k) >= probability."""
    from scipy import special  # here, since it takes longer to import than all the rest

    guess = float(special.bdtrik(probability, n, p))
    k = 0 if math.isnan(guess) else max(0, math.ceil(guess) - 1)  # the solver may be off by a rounding error
    while float(special.bdtr(k, n, p)) < probability:
        k += 1
    return k


def quantile_interval(ordered: Floats, p: float) -> Interval | None:
    """The order-statistic interval of the p-quantile of independent sorted samples; None if they are too few."""
    ranks = quantile_ranks(len(ordered), p)
    return None if ranks is None else (float(ordered[ranks[0] - 1]), float(ordered[ranks[1] - 1]))


def mean_interval(n: int, mean: float, std: float | None) -> Interval | None:
    """Student's interval of the mean; None for n < 2."""
    from scipy import special  # here, since it takes longer to import than all the rest

    if std is None or n < 2:
        return None
    half = float(special.stdtrit(n - 1, 1 - _TAIL)) * std / math.sqrt(n)
    return (mean - half, mean + half)


def describe(values: Floats) -> Stats | None:
    """Statistics of independent samples in any order; NaN entries are no samples. None when nothing is left."""
    ordered = np.sort(values[~np.isnan(values)])
    n = len(ordered)
    if n == 0:
        return None
    mean, std = _moments(ordered)
    intervals = Intervals(
        mean_interval(n, mean, std), *(quantile_interval(ordered, p) for p in (0.5, 0.9, 0.95, 0.99))
    )
    return _stats(ordered, mean, std, intervals)


def describe_pooled(values: Floats, offsets: Ints) -> Stats | None:
    """Statistics of samples pooled from requests; request i gave `values[offsets[i]:offsets[i + 1]]`. No NaN allowed."""
    if len(values) == 0:
        return None
    ordered = np.sort(values)
    mean, std = _moments(ordered)
    starts = offsets[:-1][
        np.diff(offsets) > 0
    ]  # requests without a gap are no units; reduceat would misread them
    sizes = np.diff(np.append(starts, len(values))).astype(np.float64)
    intervals = Intervals(
        _pooled_mean(values, starts, sizes, mean),
        *(_pooled_quantile(values, ordered, starts, sizes, p) for p in (0.5, 0.9, 0.95, 0.99)),
    )
    return _stats(ordered, mean, std, intervals)


def _moments(ordered: Floats) -> tuple[float, float | None]:
    mean = float(ordered.mean())
    return mean, float(ordered.std(ddof=1)) if len(ordered) > 1 else None


def _stats(ordered: Floats, mean: float, std: float | None, intervals: Intervals) -> Stats:
    p50, p75, p90, p95, p99, p99_9 = (percentile(ordered, p) for p in (0.5, 0.75, 0.9, 0.95, 0.99, 0.999))
    low, high = float(ordered[0]), float(ordered[-1])
    return Stats(len(ordered), mean, std, low, high, p50, p75, p90, p95, p99, p99_9, intervals)


def _half_width(residuals: Floats, total: float) -> float | None:
    """t se of a ratio estimate from one residual a request; None for fewer than two requests."""
    from scipy import special  # here, since it takes longer to import than all the rest

    units = len(residuals)
    if units < 2:
        return None
    error = math.sqrt(units / (units - 1) * float(residuals @ residuals)) / total
    return float(special.stdtrit(units - 1, 1 - _TAIL)) * error


def _pooled_mean(values: Floats, starts: Ints, sizes: Floats, mean: float) -> Interval | None:
    half = _half_width(np.add.reduceat(values, starts) - mean * sizes, len(values))
    return None if half is None else (mean - half, mean + half)


def _pooled_quantile(
    values: Floats, ordered: Floats, starts: Ints, sizes: Floats, p: float
) -> Interval | None:
    n = len(ordered)
    at_or_below = values <= percentile(ordered, p)
    counts = np.add.reduceat(at_or_below, starts, dtype=np.float64)
    half = _half_width(counts - counts.sum() / n * sizes, n)
    if half is None or math.floor((p - half) * n) < 1 or math.ceil((p + half) * n) >= n:
        return None  # the interval leaves the sample: its end is unknown
    return float(ordered[math.floor((p - half) * n) - 1]), float(ordered[math.ceil((p + half) * n)])


def wilson(successes: float, n: int) -> Interval | None:
    """Wilson's 95 % interval of a share of n independent trials; None for n = 0."""
    if n == 0:
        return None
    share, z2 = successes / n, Z_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
