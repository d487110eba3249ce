"""What a histogram says over a period: the input of every percentile estimator."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PERCENTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Observed:
    """A histogram's differences over a period, and its scrapes within it.

    `bounds` (n,) ascends, and ends with +Inf where the server has that bucket; `cumulative` (n,) are the observations at or
    below each bound, over the period. `history_buckets` (scrapes, n), `history_sums` and `history_counts` (scrapes,) are the
    cumulative values as exposed, the first being those from which the differences count. The first
    `within` scrapes are those of the period, later ones came after it.
    """

    bounds: Floats
    cumulative: Floats
    sum: float
    count: float
    history_buckets: Floats
    history_sums: Floats
    history_counts: Floats
    within: int


def bracket(observed: Observed, percent: float) -> tuple[float, float]:
    """The bounds between which a percentile of the observations certainly lies, whatever its estimate: those of the buckets
    that hold the two observations that linear interpolation between ranks takes it from. The second is inf above the last
    finite bound, the first 0 below the first one if that is positive. There is an observation, and a bucket."""
    number = float(observed.cumulative[-1])
    rank = (number - 1) * percent / 100
    ranks = np.floor(rank) + 1, np.ceil(rank) + 1  # from 1
    below, above = np.searchsorted(observed.cumulative, ranks, "left").tolist()
    edges = np.concatenate([[min(0.0, float(observed.bounds[0]))], observed.bounds])
    return float(edges[below]), float(edges[min(above, len(observed.bounds) - 1) + 1])


def with_overflow(les: tuple[str, ...], buckets: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Bounds (n,) and cumulative counts (scrapes, n) of a histogram, with a last bucket of all of `counts` (scrapes,) where
    the server has none."""
    bounds = np.array([float(le) for le in les])
    if not len(bounds) or np.isinf(bounds[-1]):
        return bounds, buckets
    return np.append(bounds, np.inf), np.column_stack([buckets, np.maximum(counts, buckets[:, -1])])
