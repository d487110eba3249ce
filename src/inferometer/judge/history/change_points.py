"""Where the level of a series of results changed: E-divisive (Matteson and James, JASA 109, 2014).

Symbols: X = x_1..x_m before a split of a series, Y = y_1..y_n after it, |a - b| the distance of two results.

divergence  E = 2/(m n) sum |x_i - y_j| - 2/(m (m - 1)) sum_(i<j) |x_i - x_j| - 2/(n (n - 1)) sum_(i<j) |y_i - y_j|, which
            estimates twice the energy distance of two distributions: 0 only where they are the same
statistic   Q = m n / (m + n) E; the split with the largest Q is the candidate
test        the results of the segment are permuted: p = (1 + permutations with a Q as large) / (1 + permutations)

A segment is split at its candidate where p is at most `level`, and both parts are searched in turn. The right end of Y is the
end of the segment, not searched for as in the paper: that takes n^2 in place of n^3, and loses power only against changes that
go back. No distribution is assumed; results are taken to be independent where nothing changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Floats

SHORTEST = 5
"""Results on each side of a split: fewer say little of a level."""


@dataclass(frozen=True, slots=True)
class Split:
    """A change of level: `at` is the place of the first result after it, from 0."""

    at: int
    p: float


@dataclass(frozen=True, slots=True)
class Permutations:
    """The test of a split: how many permutations, the largest p that splits, and the seed they are drawn from."""

    count: int
    level: float
    seed: int = 0


def change_points(values: Floats, permutations: Permutations) -> list[Split]:
    """The changes of level in a series, in their order. Fewer than 2 SHORTEST results have none."""
    distances = np.abs(np.subtract.outer(values, values))
    rng = np.random.default_rng(permutations.seed)
    found: list[Split] = []
    segments = [(0, len(values))]
    while segments:
        start, end = segments.pop()
        if end - start < 2 * SHORTEST:
            continue
        inner = distances[start:end, start:end]
        place, largest = _candidate(inner)
        p = _p_value(inner, largest, permutations, rng)
        if p <= permutations.level:
            found.append(Split(start + place, p))
            segments += [(start, start + place), (start + place, end)]
    return sorted(found, key=lambda one: one.at)


def _candidate(distances: Floats) -> tuple[int, float]:
    """The split with the largest statistic, and that."""
    statistics = split_statistics(distances)
    at = int(np.argmax(statistics))
    return at + SHORTEST, float(statistics[at])


def split_statistics(distances: Floats) -> Floats:
    """Q of each split from SHORTEST to n - SHORTEST, by the distances of all results from each other."""
    size = len(distances)
    # below[t]: sum over pairs i < j < t; touching[t]: over pairs i < t <= j.
    columns = np.triu(distances, 1).sum(axis=0)
    below = np.concatenate(([0.0], np.cumsum(columns)))
    touching = np.cumsum(distances.sum(axis=1)) - 2 * below[1:]
    m = np.arange(SHORTEST, size - SHORTEST + 1, dtype=np.float64)
    at = m.astype(np.int64)
    n = size - m
    within, across = below[at], touching[at - 1]
    after = below[size] - within - across
    divergence = 2 * across / (m * n) - 2 * within / (m * (m - 1)) - 2 * after / (n * (n - 1))
    return np.asarray(m * n / (m + n) * divergence, np.float64)


def _p_value(
    distances: Floats, largest: float, permutations: Permutations, rng: np.random.Generator
) -> float:
    """The permutation test's p, or, as soon as it cannot be `level` any more, a bound above that."""
    most = permutations.level * (permutations.count + 1) - 1
    as_large, floor = 0, largest - 1e-12 * abs(largest)
    for drawn in range(1, permutations.count + 1):
        order = rng.permutation(len(distances))
        # A permutation that leaves the series as it was gives the same sums but for rounding.
        as_large += float(split_statistics(distances[np.ix_(order, order)]).max()) >= floor
        if as_large > most:
            return (1 + as_large) / (1 + drawn)
    return (1 + as_large) / (1 + permutations.count)
