"""The percentile estimate of a histogram from a smooth curve, moved to agree with the sums of the scrapes.

1. Curve. The share of observations at or below each bound, as a normal quantile, against the bound's logarithm: monotone
   cubic interpolation (PCHIP). A log-normal is a straight line there. In the first and the last bucket that hold anything
   the line goes on with the slope of the bucket beside it; without such a slope, a bucket's observations lie evenly.
   Each bucket is then M points of equal weight, which have a mean mu_b and a variance v_b.
2. Means. Interval i between scrapes has n_ib observations in bucket b and the sum s_i. With K v_b as the variance of mu_b
   before, and s_i of mean sum_b n_ib mu_b and variance phi^2 sum_b n_ib v_b, the posterior mean of mu is the solution of one
   linear system (phi: `_unsteady`). What an interval's sum still lacks is shared among its buckets by n_ib v_b, so that
   the buckets' sums add up to what was scraped; an interval with one bucket is exact.
3. Move. Each bucket's points get weights exp(lambda_b x), lambda_b such that their mean is the bucket's. Points above the
   last finite bound are stretched away from it instead. Where single-bucket intervals say that a bucket's observations vary
   less than its points do, these are drawn together around the mean; so they are where the mean is close to a bound.
4. Read. Percentiles of the weighted points of all buckets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inferometer.telemetry.metrics.histogram_delta import PERCENTILES, Floats, Observed

POINTS = 64
PRIOR = 0.1
"""K: how uncertain a bucket's mean is, as a share of the variance within it."""
LEAST_INTERVALS = 6
"""Single-bucket intervals from which a bucket's variance is taken."""
LEAST_SHARE = 0.5
"""Of a bucket's observations, in such intervals: fewer may be those of one stretch of time, and not like the others."""
NEAR_EDGE = 0.02
"""As a share of the points' range: a mean nearer to its ends is reached by drawing the points together, not by weights."""
STEEPEST, HALVINGS = 200.0, 50
"""Of the search for lambda, which is in units of one over the points' range."""
_FRACTIONS = (np.arange(POINTS) + 0.5) / POINTS


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets that hold anything: which they are, their bounds and their numbers of observations."""

    at: npt.NDArray[np.int64]
    lows: Floats
    highs: Floats
    counts: Floats


@dataclass(frozen=True, slots=True)
class Intervals:
    """Observations by bucket and their sums: (intervals, buckets) and (intervals,)."""

    counts: Floats
    sums: Floats


def estimate(observed: Observed) -> Floats | None:
    """The nine percentiles, None where there is nothing to estimate from."""
    if observed.count <= 0 or not np.isfinite(observed.sum) or not np.isfinite(observed.bounds).any():
        return None
    each = np.diff(observed.cumulative, prepend=0.0)
    at = np.flatnonzero(each > 0)
    if not len(at):
        return None
    lows = np.concatenate([[min(0.0, float(observed.bounds[0]))], observed.bounds[:-1]])
    held = Buckets(at, lows[at], observed.bounds[at], each[at])
    points = curve(held, observed.sum)
    intervals = _intervals(observed, held)
    means = _means(intervals, held, points)
    weights = np.full(points.shape, 1 / POINTS)
    for row, mean in enumerate(means.tolist()):
        points[row], weights[row] = _moved(points[row], mean, float(held.lows[row]), float(held.highs[row]))
    _draw_together(intervals, points, weights)
    return _read(points, weights * held.counts[:, None])


def _intervals(observed: Observed, held: Buckets) -> Intervals:
    """What each interval between the period's scrapes added, where it added anything; failing that the period as one."""
    buckets = np.diff(observed.history_buckets[: observed.within], axis=1, prepend=0.0)
    counts = np.maximum(np.diff(buckets, axis=0), 0.0)[:, held.at]
    some = counts.sum(axis=1) > 0
    if (np.abs(held.counts - counts.sum(axis=0)) > 0.5).any():
        return Intervals(held.counts[None, :], np.array([observed.sum]))
    return Intervals(counts[some], np.diff(observed.history_sums[: observed.within])[some])


def curve(held: Buckets, total: float) -> Floats:
    """Step 1: the points of each bucket, ascending, (buckets, POINTS)."""
    shares = np.cumsum(held.counts) / held.counts.sum()
    number = len(held.counts)
    points = np.empty((number, POINTS))
    for row in range(number):
        points[row] = _even(held, row, total)
    # Chains of buckets side by side: an empty bucket between two says nothing of how either goes on.
    for chain in np.split(np.arange(number), np.flatnonzero(np.diff(held.at) > 1) + 1):
        _chain(held, chain, shares, points)
    return points


def _even(held: Buckets, row: int, total: float) -> Floats:
    """Points that lie evenly; above the last bound, an exponential with the mean that the sum leaves."""
    low, high = held.lows[row], held.highs[row]
    if np.isfinite(high):
        return np.asarray(low + (high - low) * _FRACTIONS)
    others = float((held.counts[:row] * (held.lows[:row] + held.highs[:row]) / 2).sum())
    beyond = max((total - others) / held.counts[row] - low, 0.1 * abs(low))
    found: Floats = low - beyond * np.log1p(-_FRACTIONS)
    return found


def _chain(held: Buckets, chain: npt.NDArray[np.int64], shares: Floats, points: Floats) -> None:
    """Fill in the points of buckets side by side, where their bounds give a curve."""
    # Here, since they take longer to import than all the rest.
    from scipy.interpolate import PchipInterpolator
    from scipy.special import ndtri

    bounds = held.highs[chain[:-1]]  # between two of them
    if len(bounds) < 2 or bounds[0] <= 0:
        return
    x, y = np.log(bounds), ndtri(shares[chain[:-1]])
    smooth = PchipInterpolator(x, y)
    slopes = np.diff(y) / np.diff(x)
    for place, row in enumerate(chain):
        below = shares[row - 1] if row else 0.0
        wanted = ndtri(below + (shares[row] - below) * _FRACTIONS)
        if 0 < place < len(chain) - 1:
            grid = np.linspace(x[place - 1], x[place], POINTS + 1)
            logs = np.interp(wanted, smooth(grid), grid)
        elif place == 0:
            logs = x[0] - (y[0] - wanted) / slopes[0]
        else:
            logs = x[-1] + (wanted - y[-1]) / slopes[-1]
        points[row] = np.clip(np.exp(logs), held.lows[row], held.highs[row])


def _means(intervals: Intervals, held: Buckets, points: Floats) -> Floats:
    """Step 2: the mean of each bucket's observations."""
    counts, sums = intervals.counts, intervals.sums
    before = points.mean(axis=1)
    within = np.maximum(points.var(axis=1), 1e-12 * np.maximum(before**2, 1e-12))
    noise = counts @ within
    weighted = counts / noise[:, None] / _unsteady(counts) ** 2
    system = counts.T @ weighted + np.diag(1 / (PRIOR * within))
    mean = before + np.linalg.solve(system, weighted.T @ (sums - counts @ before))
    shared = counts * within * ((sums - counts @ mean) / noise)[:, None]
    found: Floats = mean + shared.sum(axis=0) / held.counts
    return found


def _unsteady(counts: Floats) -> float:
    """phi: how much more the intervals' shares of the buckets vary than by chance, chi-square by its degrees, at least 1.

    Where latencies drift, the means within the buckets drift along with the shares, and intervals' sums would mislead.
    """
    degrees = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    if degrees < 1:
        return 1.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    return max(1.0, float(((counts - expected) ** 2 / expected).sum() / degrees))


def _moved(points: Floats, mean: float, low: float, high: float) -> tuple[Floats, Floats]:
    """Step 3 of one bucket: points and weights that sum to 1, with this mean as far as the bounds allow."""
    even = np.full(POINTS, 1 / POINTS)
    now, least, most = float(points.mean()), float(points[0]), float(points[-1])
    if not np.isfinite(high):
        return (low + (points - low) * (mean - low) / (now - low) if min(now, mean) > low else points), even
    mean = min(max(mean, low), high)
    width = most - least
    if not least + NEAR_EDGE * width < mean < most - NEAR_EDGE * width:
        room = [
            (high - mean) / (most - now) if most > now else 1.0,
            (mean - low) / (now - least) if now > least else 1.0,
        ]
        return mean + (points - now) * min(1.0, *room), even
    scaled, target = (points - least) / width, (mean - least) / width
    bottom, top = -STEEPEST, STEEPEST
    for _ in range(HALVINGS):
        middle = (bottom + top) / 2
        weights = np.exp(middle * scaled - max(middle, 0.0))
        if float(weights @ scaled) < target * float(weights.sum()):
            bottom = middle
        else:
            top = middle
    return points, weights / weights.sum()


def _draw_together(intervals: Intervals, points: Floats, weights: Floats) -> None:
    """Step 3, last: less spread in the buckets where single-bucket intervals show less."""
    alone = (intervals.counts > 0).sum(axis=1) == 1
    for row in range(len(points)):
        chosen = alone & (intervals.counts[:, row] > 0)
        counts = intervals.counts[chosen, row]
        if len(counts) < LEAST_INTERVALS or counts.sum() < LEAST_SHARE * intervals.counts[:, row].sum():
            continue
        means = intervals.sums[chosen] / counts
        centre = float((counts * means).sum() / counts.sum())
        variance = float((counts * (means - centre) ** 2).sum() / (len(counts) - 1))
        mean = float(weights[row] @ points[row])
        now = float(weights[row] @ (points[row] - mean) ** 2)
        if variance < now:
            points[row] = mean + (points[row] - mean) * np.sqrt(variance / now)


def _read(points: Floats, weights: Floats) -> Floats:
    """Step 4."""
    order = np.argsort(points, axis=None)
    values, weights = points.ravel()[order], weights.ravel()[order]
    reached = (np.cumsum(weights) - weights / 2) / weights.sum()
    found: Floats = np.interp(np.array(PERCENTILES) / 100, reached, values)
    return found
