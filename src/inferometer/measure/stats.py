"""One metric's distribution: exact percentiles, and intervals that allow for correlation in time.

Symbols: x_1 <= ... <= x_n the sorted samples, p a probability, m their mean, s their standard deviation.

percentile  linear interpolation between order statistics, at position 1 + p (n - 1); numpy's default
std         s = sqrt(sum (x - m)^2 / (n - 1)): undefined for n < 2

Intervals (95 %). Samples of one run are correlated: neighbours share a queue, a batch, a stall, and the gaps of one request
share its luck. A statistic's residuals are u = x - m for the mean and u = [x <= q] - p for the p-quantile q, in order of time
(summed over at most BINS bins). The half-width h is the larger of two:

    t(0.975, B - 1) se_B        se_B from the sums of u over B equal blocks of time (batch means)
    t(0.975, min(B, n_e / 2)) sqrt(V / n)        V the long-run variance, n_e the effective size (dependence.py)

B is what fits of blocks of BLOCK correlation times each, BLOCKS_LEAST to BLOCKS_MOST. The correlation time is the longer of
two: that of u itself, and that of the number of requests in flight (load_states.py), for a metric with much noise of its own
hides how slowly the load under it moves.

mean        [m - h + c, m + h + c + w]: c = min(1, 1.45 g / sqrt(n_e)) h / 1.96 allows for skewed samples (Hall 1992), g the
            larger of their skewness and twice their coefficient of variation, which is a gamma distribution's skewness
p-quantile  between the empirical quantiles of p - a and p + b + v: [p - a, p + b] is Clopper and Pearson's interval with
            n* = p (1 - p) (1.96 / h)^2 trials (Korn and Graubard 1998), which is not symmetric where few are beyond

A metric that includes a wait for the server allows for states of the load that the run did not meet: in a share `unseen` of the
time (load_states.py) every request may wait W longer, W the longest wait less the mean one. Then w = unseen W, and v is unseen
times the share of samples in (q - W, q], which such a wait would carry past q. For all other metrics w = v = 0.

Rare values decide the mean where n_e < SKEW g^2 (after Cochran 1977). Then the lower end has no c, and is not below the least
sample; w, where it is 0, allows for rare values that were not drawn, as large as the largest: its excess over the mean times
the share that n_e independent samples may miss.

P95 and beyond take the smaller n_e of their own and of P90: of few values beyond a point, chance alone decides whether their
correlation shows, and intervals would be left where it did not.

Where the evidence does not reach there is no interval, and a word why:

correlated  the run has met too few states of the load to know how long it remembers, or n_e < SIZE_LEAST
skewed      n_e < SKEW_LEAST g^2 for a metric without an allowance for waits: one or two rare values decide the mean
few         n* min(p, 1 - p) < TAIL, or the interval would leave the sample
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from inferometer.measure.dependence import BINS, long_run_variance
from inferometer.measure.large_arrays import Array, in_one, ordered, slices
from inferometer.measure.load_states import INDEPENDENT, LoadStates, unseen_share
from inferometer.measure.record import Floats, Ints, Mask, counted
from inferometer.measure.zeros import Ascending, Zeros
from inferometer.metrics.statistics import INTERVALS, QUANTILES, Interval, Intervals, Stats, Withheld

CONFIDENCE = 0.95
_TAIL = (1 - CONFIDENCE) / 2
Z_95 = 1.959963984540054
"""The normal distribution's 97.5 % point."""

BLOCK = 5.0
BLOCKS_LEAST, BLOCKS_MOST = 5, 20
ROUNDING = 1e-9
"""A share of a block: sums in another order must not decide how many fit."""
SIZE_LEAST = 10.0
SKEW, SKEW_LEAST = 10.0, 2.0
TAIL = 1.5
TAIL_REFERENCE = 0.9
HALL = (2 * Z_95**2 + 1) / 6


def percentile(ascending: Floats | Ascending, p: float) -> float:
    """The p-quantile (0 <= p <= 1) of sorted samples by linear interpolation. Needs at least one sample."""
    position = p * (len(ascending) - 1)
    below = math.floor(position)
    low, high = float(ascending[below]), float(ascending[min(below + 1, len(ascending) - 1)])
    return min(low + (high - low) * (position - below), high)  # rounding must not carry it past its neighbour


def quantiles(ascending: Floats, shares: Floats) -> Floats:
    """As np.quantile, which would put them in order again: of sorted samples, at least one."""
    places = shares * (len(ascending) - 1)
    below = np.floor(places).astype(np.int64)
    low, high = ascending[below], ascending[np.minimum(below + 1, len(ascending) - 1)]
    above = places - below
    steps = high - low
    return np.where(above < 0.5, low + steps * above, high - steps * (1 - above))


def percentiles(values: Floats, shares: Iterable[float]) -> list[float]:
    """Percentiles of values in any order, at least one: only those beside the quantiles are put in their places."""
    wanted = list(shares)
    below = {math.floor(p * (len(values) - 1)) for p in wanted}
    places = sorted(below | {min(place + 1, len(values) - 1) for place in below})
    partly = np.partition(values, places)
    return [percentile(partly, p) for p in wanted]


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


def describe(values: Floats, states: LoadStates = INDEPENDENT, wait: float = 0.0) -> Stats | None:
    """Statistics of samples in order of time; NaN entries are no samples. None when nothing is left.

    `states`: of the load that they met. `wait`: how much longer the longest wait for the server was than the mean one, in the
    values' unit, for a metric that includes it.
    """
    missing = np.isnan(values)
    known = values[~missing] if missing.any() else values
    return _described(known, Bins.in_order(len(known)), states, wait) if len(known) else None


def describe_at(
    values: Floats,
    at_ns: Ints,
    states: LoadStates = INDEPENDENT,
    ascending: Floats | None = None,
    zeros: Zeros | None = None,
) -> Stats | None:
    """Statistics of samples pooled from requests that ran side by side, each at its instant. No NaN allowed. `ascending`:
    the samples in that order, where they are at hand. `zeros`: samples beside them that are 0."""
    number = 0 if zeros is None else zeros.number
    if not len(values) + number:
        return None
    ascending = ordered(values) if ascending is None else ascending
    return _described(values, Bins.at(at_ns, zeros), states, 0.0, Ascending(ascending, number))


def describe_in_groups(
    values: Floats, group: Ints, states: LoadStates = INDEPENDENT, wait: float = 0.0
) -> Stats | None:
    """Statistics of samples of which those of one group count together, as the one event that they are: steps of a session.
    `group`: a number for each, ascending with time; NaN entries are no samples. None when nothing is left. `states`, `wait`: as
    in `describe`."""
    known = ~np.isnan(values)
    if not known.any():
        return None
    return _described(values[known], Bins.at(group[known]), states, wait)


def quantile_interval(
    values: Floats, p: float, states: LoadStates = INDEPENDENT, wait: float = 0.0
) -> Interval | Withheld:
    """The interval of the p-quantile of samples in order of time, or why there is none. No NaN allowed."""
    return _Sample(values, Bins.in_order(len(values)), states, wait).quantile(p)


def quantile_interval_at(
    values: Floats, at_ns: Ints, p: float, states: LoadStates = INDEPENDENT
) -> Interval | Withheld:
    """The same of pooled samples, each at its instant."""
    return _Sample(values, Bins.at(at_ns), states, 0.0).quantile(p)


class Bins:
    """Samples in bins of time: `bin_of` for each sample, or None where they lie in order and bins are of equal size. `zeros`:
    how many samples of value 0 each bin has beside them."""

    def __init__(self, samples: int, count: int, bin_of: Array | None, zeros: Floats | None = None) -> None:
        self.samples, self.count, self.bin_of, self.zeros = samples, count, bin_of, zeros
        if bin_of is None:
            self.edges = np.linspace(0, samples, count + 1).astype(np.int64)
            self._each: Floats = np.diff(self.edges).astype(np.float64)
        else:
            parts = (np.bincount(bin_of[part], minlength=count) for part in slices(samples))
            self._each = np.sum([np.zeros(count), *parts], axis=0)
        self.sizes: Floats = self._each if zeros is None else self._each + zeros

    @classmethod
    def in_order(cls, samples: int) -> Bins:
        """Bins of neighbours."""
        return cls(samples, min(samples, BINS), None)

    @classmethod
    def at(cls, at_ns: Ints, zeros: Zeros | None = None) -> Bins:
        """Bins of equal duration, of four samples and more in the mean."""
        number = 0 if zeros is None else zeros.number
        count = min(BINS, max(1, (len(at_ns) + number) // 4))
        every = [at_ns, zeros.at_ns] if zeros is not None and number else [at_ns]
        start = min(int(some.min()) for some in every if len(some))
        length = max(int(some.max()) for some in every if len(some)) - start + 1
        each = (_bin(at_ns[part] - start, count, length) for part in slices(len(at_ns)))
        of_zeros: Floats | None = None
        if zeros is not None and number:
            of_zeros = np.bincount(_bin(zeros.at_ns - start, count, length), zeros.counts, count).astype(
                np.float64
            )
        return cls(len(at_ns), count, in_one(np.int16, each), of_zeros)

    def sums(self, values: Floats, less: float = 0.0) -> Floats:
        """Each bin's sum of the samples' values, each `less` so much."""
        if self.bin_of is None:
            rest = values - less
            total: Floats = rest if self.count == self.samples else np.add.reduceat(rest, self.edges[:-1])
            return total
        total = np.zeros(self.count) if self.zeros is None else self.zeros * -less
        for part in slices(self.samples):
            total += np.bincount(self.bin_of[part], values[part] - less, self.count)
        return total

    def hits(self, these: Mask, *, zeros: bool = False) -> Floats:
        """How many of these samples each bin holds. `zeros`: with those of value 0 that it has beside them."""
        if zeros and self.zeros is not None:
            return self.hits(these) + self.zeros
        if self.bin_of is None:
            return counted(these, self.edges).astype(np.float64)
        if 2 * int(np.count_nonzero(these)) > self.samples:
            return self._each - self.hits(~these)
        found = np.zeros(self.count)
        for part in slices(self.samples):
            found += np.bincount(self.bin_of[part][these[part]], minlength=self.count)
        return found


def _bin(since: Ints, count: int, length: int) -> Ints:
    """Which of `count` bins of `length` together each instant lies in. Years of bins are cut otherwise: the product would pass
    what an int64 holds."""
    return since * count // length if length * count < 1 << 63 else since // (length // count + 1)


def _described(
    values: Floats, bins: Bins, states: LoadStates, wait: float, ascending: Ascending | None = None
) -> Stats:
    sample = _Sample(values, bins, states, wait, ascending)
    ordered, n = sample.ordered, sample.n
    std = math.sqrt(sample.variance * n / (n - 1)) if n > 1 else None
    found: dict[str, Interval | Withheld] = {"mean": sample.mean_interval()}
    for name, p in INTERVALS.items():
        found[name] = sample.quantile(p)
    intervals = Intervals(
        **{name: None if isinstance(one, str) else one for name, one in found.items()},
        withheld={name: one for name, one in found.items() if isinstance(one, str)},
    )
    p50, p75, p90, p95, p99, p99_9 = (percentile(ordered, p) for p in QUANTILES.values())
    low, high = ordered[0], ordered[n - 1]
    evidence = sample.evidence
    size = None if isinstance(evidence, str) else evidence[1]
    return Stats(n, sample.mean, std, low, high, p50, p75, p90, p95, p99, p99_9, intervals, size)


class _Sample:
    """Samples, what of them every interval needs, and the intervals."""

    def __init__(
        self, values: Floats, bins: Bins, states: LoadStates, wait: float, ascending: Ascending | None = None
    ) -> None:
        self.values, self.bins, self.states, self.wait = values, bins, states, wait
        self.ordered = Ascending(np.sort(values)) if ascending is None else ascending
        self.n = len(self.ordered)
        self.mean = self.ordered.mean()

    def _moment(self, power: int) -> float:
        """The mean of so high a power, 2 or 3, of the deviations from the mean."""
        total = 0.0
        for part in slices(len(self.values)):
            deviations = self.values[part] - self.mean
            total += float((deviations if power == 2 else deviations * deviations) @ deviations)
        return (total + self.ordered.zeros * (-self.mean) ** power) / self.n

    @cached_property
    def variance(self) -> float:
        """Over n."""
        return self._moment(2)

    @cached_property
    def evidence(self) -> tuple[float, float] | Withheld:
        """The half-width of the mean, and the effective size."""
        return half_width(self.bins.sums(self.values, self.mean), self.n, self.variance, self.states)

    def mean_interval(self) -> Interval | Withheld:
        """The interval of the mean."""
        if isinstance(self.evidence, str):
            return self.evidence
        half, size = self.evidence
        cubed = self.variance**1.5
        if cubed == 0:  # also where it is too small for a float
            return self.mean, self.mean
        third = self._moment(3) / cubed
        skewness = max(third, 2 * math.sqrt(self.variance) / abs(self.mean) if self.mean else 0.0)
        shift = min(1.0, HALL * skewness / math.sqrt(size)) * half / Z_95
        allowance = self.states.unseen * self.wait
        if size >= SKEW * skewness**2:
            return self.mean - half + shift, self.mean + half + shift + allowance
        if not allowance:
            if size < SKEW_LEAST * skewness**2:
                return "skewed"
            allowance = unseen_share(size) * (self.ordered[self.n - 1] - self.mean)
        return max(self.mean - half, self.ordered[0]), self.mean + half + shift + allowance

    def _of_quantile(self, p: float) -> tuple[float, float, float] | Withheld:
        """How far the p-quantile's share is known, the effective size behind that, and the share's variance over one trial."""
        n, point = self.n, percentile(self.ordered, p)
        left, right = self.ordered.before(point, "left") / n, self.ordered.before(point, "right") / n
        # Where values tie at the quantile, the nearer share tells more; one of nothing or of everything tells nothing.
        strict = left > 0 and (right == 1 or abs(left - p) < abs(right - p))
        below = self.values < point if strict else self.values <= point
        share = left if strict else right
        variance = share * (1 - share)
        zeros = point > 0 or (point == 0 and not strict)
        residuals = self.bins.hits(below, zeros=zeros) - share * self.bins.sizes
        found = half_width(residuals, n, variance, self.states)
        return found if isinstance(found, str) else (*found, variance)

    @cached_property
    def _reference_size(self) -> float:
        found = self._of_quantile(TAIL_REFERENCE)
        return 0.0 if isinstance(found, str) else found[1]

    def quantile(self, p: float) -> Interval | Withheld:
        """The interval of the p-quantile."""
        found = self._of_quantile(p)
        if isinstance(found, str):
            return found
        half, size, variance = found
        n, ordered = self.n, self.ordered
        if p > TAIL_REFERENCE and self._reference_size < size:
            half *= math.sqrt(size / self._reference_size) if self._reference_size else math.inf
        trials = float(n)
        if half:  # values are not all the same
            trials = min(trials, variance * (Z_95 / half) ** 2)
        if trials * min(p, 1 - p) < TAIL:
            return "few"
        low, high = clopper_pearson(p * trials, trials)
        if self.wait:
            point = percentile(ordered, p)
            within = p - ordered.before(point - self.wait, "right") / n
            high += self.states.unseen * max(within, 0.0)
        if low < 0.5 / n or high > 1 - 0.5 / n:
            return "few"
        return percentile(ordered, low), percentile(ordered, high)


def half_width(
    residuals: Floats, samples: int, variance: float, states: LoadStates
) -> tuple[float, float] | Withheld:
    """The half-width of the mean of `samples` values with this variance, and the effective size behind it.

    `residuals`: their deviations from it, summed in bins of time.
    """
    bins = len(residuals)
    if bins < BLOCKS_LEAST or samples < SIZE_LEAST:
        return "few"
    if not states.believed:
        return "correlated"
    if variance == 0:
        return 0.0, float(samples)
    per_sample = max(long_run_variance(residuals) * bins / samples, variance)
    size = samples * variance / per_sample
    if size < SIZE_LEAST:
        return "correlated"
    blocks = max(min(BLOCKS_MOST, bins, int(min(size, states.count) / BLOCK + ROUNDING)), BLOCKS_LEAST)
    edges = np.linspace(0, bins, blocks + 1).astype(np.int64)
    sums = np.add.reduceat(residuals, edges[:-1])
    by_blocks = float(sums @ sums) * blocks / (blocks - 1) / samples**2  # the variance of the mean
    by_spectrum = per_sample / samples
    half = max(
        student(blocks - 1) * math.sqrt(by_blocks),
        student(min(blocks, size / 2)) * math.sqrt(by_spectrum),
    )
    return half, variance / max(by_blocks, by_spectrum)


def clopper_pearson(successes: float, trials: float) -> Interval:
    """Clopper and Pearson's 95 % interval of a share; neither number has to be whole, but 0 < successes < trials."""
    from scipy import special  # here, since it takes longer to import than all the rest

    low = float(special.betaincinv(successes, trials - successes + 1, _TAIL))
    return low, float(special.betaincinv(successes + 1, trials - successes, 1 - _TAIL))


def wilson(successes: float, n: float) -> Interval | None:
    """Wilson's 95 % interval of a share of n independent trials; None for n = 0."""
    return _wilson(successes / n, n) if n else None


def _wilson(share: float, n: float) -> Interval:
    z2 = Z_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # Where all or none succeeded, an end is the share itself, and rounding must not put it on the other side of a limit.
    return max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share))


def share_interval(successes: float, n: float, effective: float | None) -> Interval | None:
    """Wilson's interval of a share of n correlated trials, which tell as much as `effective` independent ones (None: n)."""
    size = n if effective is None else min(n, effective)
    return _wilson(successes / n, size) if n else None


def share_of_values_interval(hits: Mask, worth: float, at_ns: Ints | None = None) -> Interval:
    """The interval of the share of hits among values in order of time, or pooled, each at its instant; at least one value.

    They tell as much as `worth` independent values, or less where hits come in bursts.
    """
    bins = Bins.in_order(len(hits)) if at_ns is None else Bins.at(at_ns)
    share, n = float(hits.mean()), len(hits)
    variance = share * (1 - share)
    if variance > 0 and bins.count > 2:
        residuals = bins.hits(hits) - share * bins.sizes
        worth = min(worth, n * variance / max(long_run_variance(residuals) * bins.count / n, variance))
    found = share_interval(float(hits.sum()), n, worth)
    assert found is not None
    return found
