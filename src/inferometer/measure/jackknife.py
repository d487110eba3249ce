"""95 % intervals of figures that several runs give together, by leaving out a stretch of time.

Requests of a run share its queue and its bursts, so neighbours are correlated. They are parted, in the order in which they
were due, into B blocks of equal size, which are taken to be longer than the correlation reaches, and the figure is worked out
B times, each time without one block (Tukey 1958; blocks: Kuensch 1989). With t_1 ... t_B those values,

    variance = (B - 1) / B * sum (t_b - mean t)^2,        interval = t -+ student(B - 1) sqrt(variance),

where t is the figure of all requests. Runs of different requests are independent: their variances are added, each found with
the other runs whole, with the degrees of freedom of Welch and Satterthwaite. Runs of the same requests lose the same block
together, so that what they have in common, the requests' own lengths and arrivals, cancels in a ratio of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from inferometer.measure.record import Ints
from inferometer.measure.stats import student
from inferometer.metrics.statistics import Interval

BLOCKS, FEWEST_BLOCKS = 20, 6
LEAST = 4
"""Requests of a block: fewer are hardly longer than what correlates them."""

Figures = Callable[[Sequence[Ints]], Mapping[str, float | None]]
"""Figures by their names of several groups of requests, of which those at these places count; None: they do not tell."""


def jackknife_intervals(sizes: Sequence[int], figures: Figures) -> dict[str, Interval]:
    """The intervals of figures of groups of requests that are independent of each other, of these sizes, each in order of
    time. None of them where a group is too small; a figure that is not known without one of the blocks has none."""
    whole: list[Ints] = [np.arange(size) for size in sizes]
    if min(sizes, default=0) < FEWEST_BLOCKS * LEAST:
        return {}
    values = {name: value for name, value in figures(whole).items() if value is not None}
    found = {name: list[tuple[int, float]]() for name in values}
    for number, size in enumerate(sizes):
        blocks = min(BLOCKS, size // LEAST)
        edges = np.linspace(0, size, blocks + 1).astype(np.int64)
        without = []
        for low, high in pairwise(edges.tolist()):
            left = [*whole]
            left[number] = np.concatenate([whole[number][:low], whole[number][high:]])
            without.append(figures(left))
        for name in values:
            known = np.array([value for one in without if (value := one.get(name)) is not None])
            spread = float(((known - known.mean()) ** 2).sum()) if len(known) == blocks else math.nan
            found[name].append((blocks, (blocks - 1) / blocks * spread))
    return {
        name: _around(value, found[name])
        for name, value in values.items()
        if all(math.isfinite(variance) for _, variance in found[name])
    }


def _around(value: float, variances: Sequence[tuple[int, float]]) -> Interval:
    """The interval, of the number of blocks and the variance of each group."""
    total = math.fsum(variance for _, variance in variances)
    if total == 0:
        return value, value
    freedom = total**2 / math.fsum(variance**2 / (blocks - 1) for blocks, variance in variances)
    half = student(freedom) * math.sqrt(total)
    return value - half, value + half
