"""How much evidence a series of correlated values holds.

Requests of one run share its queue, its batches and its bursts of arrivals, so their latencies are correlated in time, and the
variance of their mean is not s^2 / n. With the autocovariances g_k of a stationary series u_1 ... u_n it is V / n, where

    V = g_0 + 2 (g_1 + g_2 + ...)           the long-run variance
    n g_0 / V                               the effective sample size: as many independent values tell as much

V is taken from an autoregression (spectral density at frequency 0; Parzen 1974, Heidelberger and Welch 1981): coefficients by
the Yule-Walker equations (Levinson's recursion), order up to 10 log10 n by the least AIC, V = s_e^2 / (1 - a_1 - ... - a_p)^2.
It is never taken below g_0: anticorrelation found by chance would promise more than independent values give.
"""

from __future__ import annotations

import math

import numpy as np

from inferometer.measure.record import Floats

BINS = 1_024
"""The most entries a series is given: longer ones are summed in bins first, which leaves their long-run variance as it is."""


def autocovariances(series: Floats, lags: int) -> Floats:
    """g_0 ... g_lags of a series with its mean taken off; sums over n, so that they are positive definite."""
    centred = series - series.mean()
    n = len(centred)
    return np.array([float(centred[: n - lag] @ centred[lag:]) / n for lag in range(lags + 1)])


def long_run_variance(series: Floats) -> float:
    """V of a series in order of time, at least g_0; 0.0 for a constant one. Needs at least two entries."""
    n = len(series)
    lags = min(int(10 * math.log10(n)), n - 2) if n > 2 else 0
    covariances = autocovariances(series, lags)
    return _spectrum_at_zero(covariances, n)


def _spectrum_at_zero(covariances: Floats, n: int) -> float:
    """V by the autoregression of least AIC, given g_0 ... g_p of n entries (Levinson's recursion)."""
    variance = float(covariances[0])
    if variance <= 0:
        return 0.0
    error, weights = variance, np.zeros(0)
    best, found = n * math.log(variance), variance
    for order in range(1, len(covariances)):
        reflection = (float(covariances[order]) - float(weights @ covariances[order - 1 : 0 : -1])) / error
        weights = np.append(weights - reflection * weights[::-1], reflection)
        error *= 1 - reflection * reflection
        if error <= 0:  # the series is determined by its past
            break
        criterion = n * math.log(error) + 2 * order
        if criterion < best:
            best = criterion
            spared = max(1.0 - float(weights.sum()), 1e-6)
            found = error * n / max(n - order - 1, 1) / spared**2
    return max(found, variance)


def effective_size(series: Floats) -> float:
    """How many independent values tell as much of the mean as this series; its length for a constant one."""
    n = len(series)
    if n < 2:
        return float(n)
    variance = float(series.var())
    return n * variance / max(long_run_variance(series), variance) if variance > 0 else float(n)


def binned(values: Floats, bins: int = BINS) -> Floats:
    """Means of at most `bins` neighbouring groups of nearly equal size."""
    if len(values) <= bins:
        return values
    edges = np.linspace(0, len(values), bins + 1).astype(np.int64)
    means: Floats = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    return means
