"""Two small samples of per-run values: how far their means lie apart, and how far apart they could have been seen to lie.

Symbols: a side has n values with mean m and variance v = sum (x - m)^2 / (n - 1). A run is one value, for runs are what is
independent (draft 6.3); requests of one run share its luck.

Welch      t = (m_B - m_A) / se, se^2 = v_A / n_A + v_B / n_B, df = se^4 / sum ((v / n)^2 / (n - 1))
paired     Student's t of the differences of runs that share a seed, df = n - 1
Hedges g   J (m_B - m_A) / s, s^2 pooled over both sides, J = 1 - 3 / (4 df - 1), df = n_A + n_B - 2; its interval is that of
           the noncentral t's parameter, times J sqrt(1 / n_A + 1 / n_B)
Holm       sorted p-values times how many are not yet rejected, made monotone: the chance of any false one stays below 5 %
detectable the difference that a t-test at level alpha finds four times out of five: se times the noncentrality that
           lifts its power to 0.8
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Floats
from inferometer.measure.stats import CONFIDENCE
from inferometer.metrics.statistics import Interval

ALPHA = 1 - CONFIDENCE
POWER = 0.8
_NODES = 200
"""Of the integral over the chi-squared distribution."""


@dataclass(frozen=True, slots=True)
class Test:
    """A difference of means in the values' unit: 95 % interval, standard error, degrees of freedom, two-sided p."""

    difference: float
    interval: Interval
    se: float
    df: float
    p: float


def welch(baseline: Floats, other: Floats) -> Test | None:
    """`other` less `baseline` by Welch's t; None for fewer than two values on a side.

    Values without any spread have no error: their difference is certain (p = 0), or there is none (p = 1).
    """
    if min(len(baseline), len(other)) < 2:
        return None
    parts = [float(np.var(values, ddof=1)) / len(values) for values in (baseline, other)]
    difference = float(other.mean() - baseline.mean())
    squares = sum(part**2 / (len(values) - 1) for part, values in zip(parts, (baseline, other), strict=True))
    df = sum(parts) ** 2 / squares if squares else float(len(baseline) + len(other) - 2)
    return _tested(difference, math.sqrt(sum(parts)), df)


def paired(baseline: Floats, other: Floats) -> Test | None:
    """The same by the differences of pairs; None for fewer than two of them."""
    if len(baseline) != len(other) or len(baseline) < 2:
        return None
    differences = other - baseline
    se = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    return _tested(float(differences.mean()), se, len(differences) - 1.0)


def _tested(difference: float, se: float, df: float) -> Test:
    from scipy import special  # here, since it takes longer to import than all the rest

    # Rounding leaves a spread of some 1e-16 on values that are equal.
    if se <= 1e-12 * abs(difference) or se == 0:
        return Test(difference, (difference, difference), 0.0, df, 0.0 if difference else 1.0)
    half = float(special.stdtrit(df, 1 - ALPHA / 2)) * se
    p = 2 * float(special.stdtr(df, -abs(difference) / se))
    return Test(difference, (difference - half, difference + half), se, df, p)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values, in the order given."""
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, p_values[at] * (len(p_values) - rank)))
        adjusted[at] = highest
    return adjusted


def detectable(se: float, df: float, alpha: float) -> float:
    """The least difference, in the unit of `se`, that a two-sided t-test at level `alpha` finds with a power of 0.8."""
    from scipy import special

    critical = float(special.stdtrit(df, 1 - alpha / 2))
    return se * _noncentrality(df, critical, 1 - POWER)


def interval_of_spread(value: float, df: float) -> Interval:
    """95 % interval of a value that is proportional to a standard error with `df` degrees of freedom: df s^2 / sigma^2 is
    chi-squared for normal values. Three runs a side know their own spread to a factor of two and a half."""
    from scipy import special

    low, high = (float(special.chdtri(df, p)) for p in (ALPHA / 2, 1 - ALPHA / 2))  # upper tails
    return value * math.sqrt(df / low), value * math.sqrt(df / high)


def hedges_g(baseline: Floats, other: Floats) -> tuple[float, Interval] | None:
    """Hedges' g and its 95 % interval; None for fewer than two values on a side, or without any spread."""
    sizes = len(baseline), len(other)
    df = sum(sizes) - 2
    if min(sizes) < 2:
        return None
    squares = sum((len(values) - 1) * float(np.var(values, ddof=1)) for values in (baseline, other))
    spread, difference = math.sqrt(squares / df), float(other.mean() - baseline.mean())
    if spread <= 1e-12 * abs(difference) or spread == 0:
        return None
    scale = math.sqrt(sum(1 / size for size in sizes))
    small = 1 - 3 / (4 * df - 1)
    low, high = (_noncentrality(df, difference / (spread * scale), p) for p in (1 - ALPHA / 2, ALPHA / 2))
    return difference / spread * small, (low * scale * small, high * scale * small)


def _noncentrality(df: float, t: float, share: float) -> float:
    """The noncentrality with which a noncentral t is at most `t` with probability `share`.

    That probability is the mean of Phi(t sqrt(X / df) - noncentrality) over a chi-squared X, taken over quantiles of X:
    scipy's own function of it gives NaN for large arguments.
    """
    from scipy import optimize, special

    nodes, weights = _legendre()
    roots = np.sqrt(2 * special.gammaincinv(df / 2, (nodes + 1) / 2) / df)

    def off(noncentrality: float) -> float:
        return float(weights @ special.ndtr(t * roots - noncentrality)) / 2 - share

    farthest = abs(t) * float(roots[-1]) + 8
    return float(optimize.brentq(off, -farthest, farthest))


@functools.cache
def _legendre() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, weights
