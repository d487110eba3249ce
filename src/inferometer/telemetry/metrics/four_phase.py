"""The percentile estimate of a histogram in four phases: the one version implemented here, step by step.

Source: "AIPerf Server Metrics JSON Export Schema", Histogram Percentile Estimation. That text leaves thresholds, the +Inf
bucket's spread and what follows a capped shift open; where it does, this is what AIPerf 0.13.0 was seen to do.

1. Learn. Where one interval between scrapes has all its observations in one bucket, sum difference / count difference is a mean
   of that bucket. mu is their mean weighted by count; v their unweighted variance (ddof 1), from three on.
2. Sum of a finite bucket: its count times mu where lo < mu < hi, else times the middle. F is the sum of these.
3. +Inf: k observations around a = (S - F) / k, evenly from L, the last finite bound, to 2 a - L (2 L where that is not
   above L); a = 1.5 L where S - F leaves none above L.
4. Finite buckets: c observations at f_i = (i + 0.5) / c of the way, s = sqrt(v), w the width:

   | when                                     | placed                                                            |
   | ---------------------------------------- | ----------------------------------------------------------------- |
   | 4 s / w < 0.01                           | two-point: c v / (v + (mu - lo)^2) at lo, the rest at mu + v / (mu - lo) |
   | 4 s / w < 0.2 and abs(mu - mid) / w < 0.3| half way between the shifted uniform and the next                  |
   | v known otherwise                        | two ramps that meet in mu, each at most 3 s long                   |
   | v unknown or 0                           | uniform, shifted to mu, or to the middle                           |

   A bucket with 95 % of the finite observations, when v is unknown, is shifted to the mean that the sum leaves for all of them.
   Then each bucket is shifted, once, by its share of what the sum still lacks, by 0.4 w at most, and clipped to its bounds.

More than 100,000 observations are scaled down to as many.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass

import numpy as np

from inferometer.telemetry.metrics.histogram_delta import PERCENTILES, Floats, Observed

MOST_PLACED = 100_000
DOMINANT = 0.95
TIGHTEST, TIGHT, CENTRAL = 0.01, 0.2, 0.3
FARTHEST_SHIFT = 0.4
ENOUGH = 0.001
LEAST_MEANS = 3


@dataclass(frozen=True, slots=True)
class Learned:
    """What single-bucket intervals say of a bucket: the mean of its observations, and the variance of the intervals' means."""

    mean: float
    variance: float | None


def learn(observed: Observed) -> dict[int, Learned]:
    """Phase 1; by the bucket's place among the bounds."""
    counts = np.trunc(np.diff(observed.history_counts))
    sums = np.diff(observed.history_sums)
    cumulative = np.maximum(np.diff(observed.history_buckets, axis=0), 0.0)
    each = np.maximum(np.diff(cumulative, axis=1, prepend=0.0), 0.0)
    alone = (counts > 0) & ((each > 0).sum(axis=1) == 1)
    bucket = each[alone].argmax(axis=1)
    weights = counts[alone]
    means = sums[alone] / weights
    found = {}
    for at in np.unique(bucket):
        chosen = bucket == at
        mean = float(np.sum(means[chosen] * weights[chosen]) / np.sum(weights[chosen]))
        known = int(chosen.sum()) >= LEAST_MEANS
        found[int(at)] = Learned(mean, float(np.var(means[chosen], ddof=1)) if known else None)
    return found


def estimate(observed: Observed) -> Floats | None:
    """The nine percentiles, None where there is nothing to estimate from."""
    bounds = observed.bounds
    finite = np.isfinite(bounds)
    if observed.count <= 0 or not np.isfinite(observed.sum) or not finite.any():
        return None
    if observed.sum == 0:
        return np.zeros(len(PERCENTILES))
    learned = learn(observed)
    number = int(finite.sum())
    each = np.diff(observed.cumulative, prepend=0.0)
    total_sum = observed.sum
    beyond = float(observed.cumulative[-1] - observed.cumulative[number - 1])
    each = each[:number]
    # Counts that fall from bucket to bucket are a damaged histogram: what is missing makes no room for the rest.
    total = float(np.maximum(each, 0.0).sum()) + max(beyond, 0.0)
    if total > MOST_PLACED:
        each, total_sum = each * (MOST_PLACED / total), total_sum * (MOST_PLACED / total)
        beyond = float(np.ceil(beyond * (MOST_PLACED / total)))
    highs = bounds[:number]
    lows = np.concatenate([[0.0], highs[:-1]])
    overflow = _beyond(each, lows, highs, learned, total_sum, int(beyond))
    target = total_sum - float(overflow.sum())
    placed = _place(each, lows, highs, learned, target)
    placed = _adjust(placed, lows, highs, target)
    values = np.concatenate([*placed, overflow])
    return np.percentile(values, PERCENTILES) if len(values) else None


def _valid(learned: Learned | None, low: float, high: float) -> bool:
    return learned is not None and low < learned.mean < high


def _beyond(
    each: Floats, lows: Floats, highs: Floats, learned: dict[int, Learned], total_sum: float, count: int
) -> Floats:
    """Phases 2 and 3: the observations above the last finite bound."""
    if count <= 0:
        return np.empty(0)
    finite_sum = 0.0
    for at in np.flatnonzero(each > 0):
        known = learned.get(int(at))
        centre = (lows[at] + highs[at]) / 2
        if known is not None and _valid(known, lows[at], highs[at]):
            centre = known.mean
        finite_sum += each[at] * centre
    last = float(highs[-1])
    mean = (total_sum - finite_sum) / count
    if total_sum - finite_sum <= 0 or mean <= last:
        mean = 1.5 * last
    if count == 1:
        return np.array([mean])
    top = 2 * mean - last
    return np.linspace(last, top if top > last else 2 * last, count)


def _place(
    each: Floats, lows: Floats, highs: Floats, learned: dict[int, Learned], target: float
) -> list[Floats]:
    """Phase 4, first half: each finite bucket's observations."""
    total = float(each.sum())
    dominant = int(each.argmax()) if total > 0 and float(each.max()) >= DOMINANT * total else -1
    overall = target / total if total > 0 else 0.0
    placed = []
    for at, (count, low, high) in enumerate(zip(each.astype(int), lows, highs, strict=True)):
        if count <= 0:
            placed.append(np.empty(0))
            continue
        known = learned.get(at)
        if known is not None and known.variance and _valid(known, low, high):
            placed.append(_with_variance(int(count), low, high, known.mean, known.variance))
            continue
        middle = (low + high) / 2
        centre = known.mean if known is not None and _valid(known, low, high) else middle
        if at == dominant and low < overall < high:
            centre = overall
        placed.append(_uniform(int(count), low, high, centre))
    return placed


def _uniform(count: int, low: float, high: float, centre: float) -> Floats:
    """Evenly over the bucket, shifted so that its middle is at `centre`, and clipped."""
    fractions = (np.arange(count) + 0.5) / count
    return np.clip(low + (high - low) * fractions + centre - (low + high) / 2, low, high)


def _with_variance(count: int, low: float, high: float, mean: float, variance: float) -> Floats:
    """Two-point, blended or two ramps, as the table says."""
    width, deviation = high - low, float(np.sqrt(variance))
    spread = 4 * deviation / width
    if spread < TIGHTEST:
        below = int(count * variance / (variance + (mean - low) ** 2))
        above = min(high, mean + variance / (mean - low))
        return np.concatenate([np.full(below, low), np.full(count - below, above)])
    fractions = (np.arange(count) + 0.5) / count
    under, over = min((mean - low) / deviation, 3.0), min((high - mean) / deviation, 3.0)
    ramps = np.where(
        fractions < 0.5,
        mean - under * deviation * (1 - 2 * fractions),
        mean + over * deviation * (2 * fractions - 1),
    )
    ramps = np.clip(ramps, low, high)
    if spread < TIGHT and abs(mean - (low + high) / 2) / width < CENTRAL:
        return np.clip((_uniform(count, low, high, mean) + ramps) / 2, low, high)
    return ramps


def _adjust(placed: list[Floats], lows: Floats, highs: Floats, target: float) -> list[Floats]:
    """Phase 4, second half: one shift towards the sum."""
    sums = [float(values.sum()) for values in placed]
    placed_sum = functools.reduce(operator.add, sums)  # sum() rounds differently from Python 3.12 on
    lacking = target - placed_sum
    if placed_sum <= 0 or target <= 0 or abs(lacking) / target < ENOUGH:
        return placed
    shifted = []
    for values, part, low, high in zip(placed, sums, lows, highs, strict=True):
        if len(values):
            most = FARTHEST_SHIFT * (high - low)
            shift = float(np.clip(lacking * (part / placed_sum) / len(values), -most, most))
            values = np.clip(values + shift, low, high)
        shifted.append(values)
    return shifted
