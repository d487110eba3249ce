"""What is left of iteration times when their costs are taken off, told apart by how it grows with them.

    e = j u p + r       e residual, p predicted time, u uniform from -1 to 1, r `noise` (server/engine/noise.py)

Spread   in CLASSES classes of iterations, evenly spaced in log p, the core of the residuals has the width c = IQR / 1.349. By
         least squares over the classes with LEAST_IN_CLASS rows c^2 = A + (J p)^2, neither below 0: A is the noise's, J the
         jitter's. Where A is below LEAST_NOISE of the median c^2 there is none in the core.
Jitter   uniform from -j to j with that quartile distance: j = 1.349 J. Without noise in the core it is taken from the 5 % and
         95 % quantiles of e / p, which are surer.
Noise    the quantiles of r: residuals in the core (|e| at most FAR widths) are shrunk to the noise's part of their width,
         e sqrt(A / (A + (J p)^2)); what lies further out is neither's core, but a delay, and kept whole. There is none if A is
         0 and fewer than LEAST_FAR of the residuals lie further out.

What is drawn is independent from iteration to iteration; slow times of a real engine are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inferometer.server.engine.noise import PROBABILITIES

Floats = NDArray[np.float64]

CLASSES = 10
LEAST_IN_CLASS = 20
LEAST_NOISE = 0.1
"""A tenth of the variance is about what chance makes of A where there is none, in classes of a hundred iterations."""
FAR = 3.0
"""No uniform spread reaches 2.4 of its IQR / 1.349 widths; a normal one exceeds three in 3 of 1,000."""
LEAST_FAR = 0.002
_IQR_OF_NORMAL = 1.349
_CENTRAL = 1.8
"""The distance of the 5 % and 95 % quantiles of a uniform spread from -1 to 1."""


@dataclass(frozen=True, slots=True)
class Spread:
    """`jitter`: a half width as a share; `noise`: quantiles in ns at PROBABILITIES, none where there is no noise."""

    jitter: float
    noise: tuple[float, ...]


def spread(residuals: Floats, predicted: Floats) -> Spread:
    """Of residuals and predicted times in ns, one a row each; the predicted above 0."""
    constant, share = _variances(residuals, predicted)
    widths = np.sqrt(constant + (share * predicted) ** 2)
    far = np.abs(residuals) > FAR * widths
    if not constant and far.mean() < LEAST_FAR:
        return Spread(_central(residuals / predicted), ())
    jitter = _IQR_OF_NORMAL * share if constant else _central((residuals / predicted)[~far])
    shrunk = residuals * np.sqrt(constant) / np.maximum(widths, 1e-9)
    found = np.quantile(np.where(far, residuals, shrunk), PROBABILITIES)
    return Spread(jitter, tuple(float(one) for one in found))


def _central(off: Floats) -> float:
    return float(np.subtract(*np.percentile(off, (95, 5)))) / _CENTRAL


def _variances(residuals: Floats, predicted: Floats) -> tuple[float, float]:
    """(A, J) of the head of this file."""
    from scipy.optimize import nnls  # here, since it takes longer to import than all the rest

    edges = np.geomspace(predicted.min(), predicted.max() * 1.001, CLASSES + 1)
    of_class = np.searchsorted(edges, predicted, side="right")
    classes = [
        rows
        for rows in (np.flatnonzero(of_class == k) for k in range(CLASSES + 2))
        if len(rows) >= LEAST_IN_CLASS
    ]
    classes = classes or [np.arange(len(predicted))]
    cores = np.array([np.subtract(*np.percentile(residuals[some], (75, 25))) for some in classes])
    squares = np.maximum((cores / _IQR_OF_NORMAL) ** 2, 1e-9)
    times = np.array([np.mean(predicted[some]) for some in classes]) ** 2
    # A variance is known to a share of itself, by the root of the rows behind it.
    weights = np.sqrt([len(some) for some in classes])
    matrix = np.column_stack((1 / squares, times / squares)) * weights[:, None]
    (constant, share), _ = nnls(matrix, weights)
    if constant < LEAST_NOISE * float(np.median(squares)):
        return 0.0, float(np.sqrt(np.median(squares / times)))
    return float(constant), float(np.sqrt(share))
