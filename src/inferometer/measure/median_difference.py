"""The difference of two runs' medians, and its 95 % interval by drawing stretches of the runs again.

Symbols: x_i and y_i are what request i took in two runs, in order of arrival; d = median(y) - median(x).

Blocks of neighbours are drawn with replacement (circular block bootstrap, Politis and Romano 1992), for neighbours share a
queue. Two runs of one plan offer the same requests at the same instants to a system in two states: then the same blocks are
drawn of both, and what a request's length and its company make of its latency, in both alike, cancels. Runs of other requests
are drawn each by itself. The interval is that of the percentiles of d over the draws, widened as Student's t for so many blocks
is wider than the normal distribution.

A block has to outlast the memory of the load. The luck of single requests hides that memory, so it is taken from what they took
in stretches of neighbours, BINS of them: the means of their ranks, which no single long request moves. n_e is the least
effective size (dependence.py) of x, of y, and in pairs of y - x too, where what is common has cancelled and a queue that only
one of the runs had stands out. As for other intervals (stats.py) there are n_e / BLOCK blocks, BLOCKS_LEAST to BLOCKS_MOST, and
no interval with n_e < SIZE_LEAST: such a run has met too few states of the load to tell.

Leaving out one block at a time (jackknife.py) does not do here: that moves a median by a few order statistics, of the size of
their gaps and not of d's error, so that intervals of pairs would be several times too wide.

Two runs only tell what their requests say. What holds for one whole run and not for the other, such as a slower machine, needs
repeated campaigns.
"""

from __future__ import annotations

import math

import numpy as np

from inferometer.measure.dependence import binned, effective_size
from inferometer.measure.record import Floats, Ints
from inferometer.measure.stats import BLOCK, BLOCKS_LEAST, BLOCKS_MOST, SIZE_LEAST, Z_95, student
from inferometer.metrics.statistics import ENOUGH, Interval

BINS = int(BLOCK * BLOCKS_MOST)
"""As many as the most blocks ask for."""
DRAWS, LEAST_DRAWS = 1_000, 200
MOST = 4_000_000
"""Values that are drawn, at most: more requests are drawn less often, down to LEAST_DRAWS."""
SEED = 1_729


def median_difference(
    before: Floats, after: Floats, *, paired: bool, most_draws: int = DRAWS
) -> Interval | None:
    """The interval of median(after) - median(before), in their unit; no NaN allowed. `paired`: both have the same requests in
    the same order. None with fewer than 20 requests in either, or where they remember the load for too long."""
    if min(len(before), len(after)) < ENOUGH["p50"]:
        return None
    sides = [before, after, after - before] if paired else [before, after]
    size = min(_effective_size(one) for one in sides)
    if size < SIZE_LEAST:
        return None
    blocks = max(min(BLOCKS_MOST, int(size / BLOCK)), BLOCKS_LEAST)
    random = np.random.default_rng(SEED)
    draws = max(LEAST_DRAWS, min(most_draws, MOST // max(len(before), len(after))))
    ours = _drawn(random, len(before), blocks, draws)
    theirs = ours if paired else _drawn(random, len(after), blocks, draws)
    found = np.median(after[theirs], axis=1) - np.median(before[ours], axis=1)
    middle = float(np.median(after) - np.median(before))
    low, high = (float(end) for end in np.quantile(found, (0.025, 0.975)))
    wider = student(blocks - 1) / Z_95 * math.sqrt(blocks / (blocks - 1))
    return middle + wider * min(low - middle, 0.0), middle + wider * max(high - middle, 0.0)


def _effective_size(values: Floats) -> float:
    """n_e of the values' ranks in stretches; equal values share the middle one of theirs."""
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(ties) - ties / 2)[place]
    return effective_size(binned(ranks, BINS))


def _drawn(random: np.random.Generator, n: int, blocks: int, draws: int) -> Ints:
    """Places of so many draws of n requests, a row each."""
    length = -(-n // blocks)
    starts = random.integers(n, size=(draws, -(-n // length), 1))
    places: Ints = ((starts + np.arange(length)) % n).reshape(draws, -1)[:, :n]
    return places
