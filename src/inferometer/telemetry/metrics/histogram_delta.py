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
