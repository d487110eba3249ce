"""The interval of a median by order statistics, which assumes independent values and nothing about their distribution.

With B the number of n values below the median, binomial (n, 1/2):

    [x_(k), x_(n + 1 - k)],  k the largest with 2 P(B < k) <= 0.05

Six values are the fewest: then it goes from the least to the most, which holds the median in 96.9 % (5: 93.75 %).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from inferometer.metrics.statistics import Interval

LEAST_VALUES = 6
MISSED = 0.05


def median_interval(values: Sequence[float]) -> Interval | None:
    """The 95 % interval of the median; None for fewer than LEAST_VALUES."""
    ordered, n = sorted(values), len(values)
    if n < LEAST_VALUES:
        return None
    tail, k = 1, 1  # in 2^-n
    while 2 * (tail + math.comb(n, k)) <= MISSED * 2**n:
        tail += math.comb(n, k)
        k += 1
    return ordered[k - 1], ordered[n - k]
