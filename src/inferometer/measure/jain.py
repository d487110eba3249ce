"""Jain's fairness index J = (sum x_i)^2 / (n sum x_i^2) (draft 5.6.4).

J is 1 if all x_i are equal, 1 / n if one has everything, and does not change when all x_i are multiplied by one number.

x_i is a request's TTFT over the median TTFT of its class when that class is alone. A summary has no requests, but their
number n, mean m and standard deviation s (by n - 1) for each class, and those hold both sums exactly: with the baseline b of
the class, sum x = n m / b and sum x^2 = ((n - 1) s^2 + n m^2) / b^2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Moments = tuple[int, float, float | None, float]
"""Of one class: requests n, their mean, their standard deviation (None for n < 2), and the baseline; one unit for all three."""


def jain(values: Sequence[float]) -> float | None:
    """The index of values that are not below 0; None where there are none, or all are 0. ValueError for others."""
    if not all(value >= 0 and math.isfinite(value) for value in values):
        raise ValueError("Jain's index needs finite values of 0 or more")
    largest = max(values, default=0.0)
    # Relative to the largest: the square of a very small or large number would be 0 or infinite.
    shares = [value / largest for value in values] if largest > 0 else []
    return _index(len(shares), math.fsum(shares), math.fsum(one * one for one in shares))


def jain_of_moments(classes: Iterable[Moments]) -> float | None:
    """The index over the requests of all classes, each request's value over its class's baseline.

    None where there are no requests, or all values are 0. ValueError for a baseline that is not above 0, or for a spread that
    is missing.
    """
    count, total, squares = 0, 0.0, 0.0
    for n, mean, std, baseline in classes:
        if n == 0:
            continue
        if not baseline > 0:
            raise ValueError(f"a class's baseline has to be above 0, not {baseline:g}")
        if std is None and n > 1:
            raise ValueError(f"{n} requests have a standard deviation")
        count += n
        total += n * mean / baseline
        squares += ((n - 1) * (std or 0.0) ** 2 + n * mean**2) / baseline**2
    return _index(count, total, squares)


def _index(n: int, total: float, squares: float) -> float | None:
    # Rounding must not carry it past its bounds.
    return min(1.0, max(1 / n, total * total / (n * squares))) if n and squares > 0 else None
