"""One metric's distribution: exact percentiles, and intervals that allow for correlation in time.

Symbols: x_1 <= ... <= x_n the sorted samples, p a probability, m their mean, s their standard deviation.

percentile  linear interpolation between order statistics, at position 1 + p (n - 1); numpy's default
std         s = sqrt(sum (x - m)^2 / (n - 1)): undefined for n < 2

Intervals (95 %). Samples of one run are correlated: neighbours share a queue, a batch, a stall, and the gaps of one request
share its luck. A statistic's residuals are u = x - m for the mean and u = [x <= q] - p for the p-quantile q, in order of time
(summed over at most BINS bins). The half-width h is the larger of two:

    t(0.975, B - 1) se_B        se_B from the sums of u over B equal blocks of time (batch means)
    t(0.975, min(B, n_e / 2)) sqrt(V / n)        V the long-run variance, n_e the effective size (dependence.py)

B is what fits of blocks of BLOCK correlation times each, at most BLOCKS_MOST. The correlation time is the longer of two: that
of u itself, and that of the number of requests in flight, for a metric with much noise of its own hides how slowly the load
under it moves. The interval of the mean is [m - h + c, m + h + c]: c = min(1, 1.45 g / sqrt(n_e)) h / 1.96 allows for skewed
samples (Hall 1992), g the larger of their skewness and twice their coefficient of variation, which is a gamma distribution's
skewness. That of a quantile runs between the empirical quantiles of p - h and p + h (Woodruff 1952).

Where the evidence does not reach there is no interval, and a word why:

correlated  fewer than BLOCKS_LEAST blocks of BLOCK correlation times fit into the run
skewed      n_e < SKEW g^2: rare values decide the mean, and too few were there to tell how rare (after Cochran 1977)
few         n_e min(p, 1 - p) < TAIL, or the interval would leave the sample
"""

from __future__ import annotations

import math

import numpy as np

from inferometer.measure.dependence import BINS, binned, effective_size, long_run_variance
from inferometer.measure.record import Floats, Ints
from inferometer.metrics.statistics import INTERVALS, QUANTILES, Interval, Intervals, Stats, Withheld

CONFIDENCE = 0.95
_TAIL = (1 - CONFIDENCE) / 2
Z_95 = 1.959963984540054
"""The normal distribution's 97.5 % point."""

BLOCK = 2.0
BLOCKS_LEAST, BLOCKS_MOST = 5, 20
SKEW = 10.0
TAIL = 5.0
HALL = (2 * Z_95**2 + 1) / 6


def percentile(ordered: Floats, p: float) -> float:
    """The p-quantile (0 <= p <= 1) of sorted samples by linear interpolation. Needs at least one sample."""
    position = p * (len(ordered) - 1)
    below = math.floor(position)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    return min(low + (high - low) * (position - below), high)  # rounding must not carry it past its neighbour


def student(freedom: float) -> float:
    """The 97.5 % point of Student's distribution with at least one degree of freedom."""
    from scipy import special  # here, since it takes longer to import than all the rest

    return float(special.stdtrit(max(freedom, 1.0), 1 - _TAIL))


def mean_interval(n: int, mean: float, std: float | None) -> Interval | None:
    """Student's interval of the mean of independent values; None for n < 2."""
    if std is None or n < 2:
        return None
    half = student(n - 1) * std / math.sqrt(n)
    return (mean - half, mean + half)


def describe(values: Floats, epochs: float = math.inf) -> Stats | None:
    """Statistics of samples in order of time; NaN entries are no samples. None when nothing is left.

    `epochs`: the effective size of the load that they met (load.py), where it is known.
    """
    known = values[~np.isnan(values)]
    return _described(known, Bins.in_order(len(known)), epochs) if len(known) else None


def describe_at(values: Floats, at_ns: Ints, epochs: float = math.inf) -> Stats | None:
    """Statistics of samples pooled from requests that ran side by side, each at its instant. No NaN allowed."""
    return _described(values, Bins.at(at_ns), epochs) if len(values) else None


def quantile_interval(values: Floats, p: float, epochs: float = math.inf) -> Interval | Withheld:
    """The interval of the p-quantile of samples in order of time, or why there is none. No NaN allowed."""
    return _quantile_interval(values, np.sort(values), p, Bins.in_order(len(values)), epochs)


def quantile_interval_at(
    values: Floats, at_ns: Ints, p: float, epochs: float = math.inf
) -> Interval | Withheld:
    """The same of pooled samples, each at its instant."""
    return _quantile_interval(values, np.sort(values), p, Bins.at(at_ns), epochs)


class Bins:
    """Samples in bins of time: `bin_of` for each sample, or None where they lie in order and bins are of equal size."""

    def __init__(self, samples: int, count: int, bin_of: Ints | None) -> None:
        self.samples, self.count, self.bin_of = samples, count, bin_of
        if bin_of is None:
            self.edges = np.linspace(0, samples, count + 1).astype(np.int64)
            self.sizes: Floats = np.diff(self.edges).astype(np.float64)
        else:
            self.sizes = np.bincount(bin_of, minlength=count).astype(np.float64)

    @classmethod
    def in_order(cls, samples: int) -> Bins:
        """Bins of neighbours."""
        return cls(samples, min(samples, BINS), None)

    @classmethod
    def at(cls, at_ns: Ints) -> Bins:
        """Bins of equal duration, of four samples and more in the mean."""
        count = min(BINS, max(1, len(at_ns) // 4))
        start = int(at_ns.min())
        length = int(at_ns.max()) - start + 1
        return cls(len(at_ns), count, ((at_ns - start) * count // length).astype(np.int64))

    def sums(self, values: Floats) -> Floats:
        """Each bin's sum of the samples' values."""
        if self.bin_of is not None:
            return np.bincount(self.bin_of, weights=values, minlength=self.count).astype(np.float64)
        total: Floats = values if self.count == self.samples else np.add.reduceat(values, self.edges[:-1])
        return total


def _described(values: Floats, bins: Bins, epochs: float) -> Stats:
    ordered = np.sort(values)
    mean = float(ordered.mean())
    std = float(ordered.std(ddof=1)) if len(ordered) > 1 else None
    deviations = values - mean
    variance = float(deviations @ deviations) / len(values)
    evidence = half_width(bins.sums(deviations), len(values), variance, epochs)
    found: dict[str, Interval | Withheld] = {
        "mean": evidence
        if isinstance(evidence, str)
        else _mean_interval(deviations, mean, variance, *evidence)
    }
    for name, p in INTERVALS.items():
        found[name] = _quantile_interval(values, ordered, p, bins, epochs)
    intervals = Intervals(
        **{name: None if isinstance(one, str) else one for name, one in found.items()},
        withheld={name: one for name, one in found.items() if isinstance(one, str)},
    )
    p50, p75, p90, p95, p99, p99_9 = (percentile(ordered, p) for p in QUANTILES.values())
    low, high = float(ordered[0]), float(ordered[-1])
    size = None if isinstance(evidence, str) else evidence[1]
    return Stats(len(ordered), mean, std, low, high, p50, p75, p90, p95, p99, p99_9, intervals, size)


def _mean_interval(
    deviations: Floats, mean: float, variance: float, half: float, size: float
) -> Interval | Withheld:
    if variance == 0:
        return mean, mean
    third = float((deviations**3).mean()) / variance**1.5
    skewness = max(third, 2 * math.sqrt(variance) / abs(mean) if mean else 0.0)
    if size < SKEW * skewness**2:
        return "skewed"
    shift = min(1.0, HALL * skewness / math.sqrt(size)) * half / Z_95
    return mean - half + shift, mean + half + shift


def _quantile_interval(
    values: Floats, ordered: Floats, p: float, bins: Bins, epochs: float
) -> Interval | Withheld:
    n = len(values)
    below = (values <= percentile(ordered, p)).astype(np.float64)
    share = float(below.mean())
    found = half_width(bins.sums(below) - share * bins.sizes, n, share * (1 - share), epochs)
    if isinstance(found, str):
        return found
    half, size = found
    low, high = p - half, p + half
    if size * min(p, 1 - p) < TAIL or low < 0.5 / n or high > 1 - 0.5 / n:
        return "few"
    return percentile(ordered, low), percentile(ordered, high)


def half_width(
    residuals: Floats, samples: int, variance: float, epochs: float
) -> tuple[float, float] | Withheld:
    """The half-width of the mean of `samples` values with this variance, and the effective size behind it.

    `residuals`: their deviations from it, summed in bins of time.
    """
    bins = len(residuals)
    if bins < BLOCKS_LEAST:
        return "few"
    if variance == 0:
        return 0.0, float(samples)
    per_sample = max(long_run_variance(residuals) * bins / samples, variance)
    size = samples * variance / per_sample
    blocks = min(BLOCKS_MOST, bins, int(min(size, epochs) / BLOCK))
    if blocks < BLOCKS_LEAST:
        return "few" if samples < BLOCK * BLOCKS_LEAST else "correlated"
    edges = np.linspace(0, bins, blocks + 1).astype(np.int64)
    sums = np.add.reduceat(residuals, edges[:-1])
    by_blocks = float(sums @ sums) * blocks / (blocks - 1) / samples**2  # the variance of the mean
    by_spectrum = per_sample / samples
    half = max(
        student(blocks - 1) * math.sqrt(by_blocks),
        student(min(blocks, size / 2)) * math.sqrt(by_spectrum),
    )
    return half, variance / max(by_blocks, by_spectrum)


def load_epochs(in_flight: Floats) -> float:
    """How many independent states of the load a run has seen: the effective size of the requests in flight, send by send."""
    series = binned(in_flight)
    return effective_size(series) if len(series) > 2 else math.inf


def wilson(successes: float, n: float) -> Interval | None:
    """Wilson's 95 % interval of a share of n independent trials; None for n = 0."""
    if n == 0:
        return None
    share, z2 = successes / n, Z_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def share_interval(successes: float, n: float, effective: float | None) -> Interval | None:
    """Wilson's interval of a share of n correlated trials, which tell as much as `effective` independent ones (None: n)."""
    size = n if effective is None else min(n, effective)
    return wilson(successes * size / n, size) if n else None
