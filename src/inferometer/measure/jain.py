"""Jain's fairness index J = (sum x_i)^2 / (n sum x_i^2) (draft 5.6.4).

J is 1 if all x_i are equal, 1 / n if one has everything, and does not change when all x_i are multiplied by one number.

x_i is what a request took over what it was to take. A summary has no requests, but of each group of them the number n, mean m
and standard deviation s (by n - 1), and those hold both sums exactly where all of a group were to take the same b:
sum x = n m / b and sum x^2 = ((n - 1) s^2 + n m^2) / b^2. `Shares` are such sums, which can be added and weighed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Moments = tuple[int, float, float | None, float]
"""Of one group: requests n, their mean, their standard deviation (None for n < 2), and b; one unit for all three."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The number of some x, their sum, and the sum of their squares."""

    n: float
    total: float
    squares: float

    @property
    def mean(self) -> float:
        """Of at least one."""
        return self.total / self.n

    def weighed(self, n: float) -> Shares:
        """The same x in another number."""
        return Shares(n, self.total * n / self.n, self.squares * n / self.n)


def jain(values: Sequence[float]) -> float | None:
    """The index of values that are not below 0; None where there are none, or all are 0. ValueError for others."""
    if not all(value >= 0 and math.isfinite(value) for value in values):
        raise ValueError("Jain's index needs finite values of 0 or more")
    largest = max(values, default=0.0)
    # Relative to the largest: the square of a very small or large number would be 0 or infinite.
    shares = [value / largest for value in values] if largest > 0 else []
    return _index(len(shares), math.fsum(shares), math.fsum(one * one for one in shares))


def shares_of(groups: Iterable[Moments]) -> Shares | None:
    """The sums over the requests of all groups; None where there are none.

    ValueError for a b that is not above 0, or for a spread that is missing.
    """
    count, total, squares = 0, 0.0, 0.0
    for n, mean, std, baseline in groups:
        if n == 0:
            continue
        if not baseline > 0:
            raise ValueError(f"a class's baseline has to be above 0, not {baseline:g}")
        if std is None and n > 1:
            raise ValueError(f"{n} requests have a standard deviation")
        count += n
        total += n * mean / baseline
        squares += ((n - 1) * (std or 0.0) ** 2 + n * mean**2) / baseline**2
    return Shares(count, total, squares) if count else None


def jain_of_shares(several: Iterable[Shares]) -> float | None:
    """The index over the x of all. None where there are none, or all are 0."""
    known = list(several)
    total, squares = math.fsum(one.total for one in known), math.fsum(one.squares for one in known)
    return _index(math.fsum(one.n for one in known), total, squares)


def jain_of_moments(groups: Iterable[Moments]) -> float | None:
    """The index over the requests of all groups (`shares_of`)."""
    shares = shares_of(groups)
    return None if shares is None else jain_of_shares([shares])


def _index(n: float, total: float, squares: float) -> float | None:
    # Rounding must not carry it past its bounds.
    return min(1.0, max(1 / n, total * total / (n * squares))) if n and squares > 0 else None
