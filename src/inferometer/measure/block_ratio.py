"""The ratio of two totals of a run, such as joules and tokens, with a 95 % interval by batch means.

The run is divided into B blocks of equal length in time, with totals x_b and y_b. The figure is the ratio of sums, not a mean
of ratios, in which blocks with few tokens would weigh too much:

    R = sum x / sum y,    u_b = x_b - R y_b,    se = sqrt(sum u_b^2 B / (B - 1) / (1 - m)) / sum y,    R -+ t(0.975, B - 1) se

(the ratio estimator of Cochran 1977, section 6.3). The load's memory is the time after which the power and the tokens of one
moment no longer tell those of another: in an open load about the mean latency. Each block is at least BLOCK times as long, and
not shorter than LEAST_BLOCK_S, several periods of any meter. m, the memory by the length of a block, is what neighbouring
blocks still share where correlation falls exponentially; without it their spread alone would be short. It assumes that

- blocks are otherwise independent;
- the run is steady: a trend shows as spread between the blocks, and widens the interval;
- tokens count at the instant at which they are received, so that power spent in one block on tokens of the next is rare.

It knows nothing of the meter's own error, which every block shares.

| withheld         | there is no interval, because                                             |
| ---------------- | ------------------------------------------------------------------------- |
| `memory_unknown` | the load's memory was not given                                           |
| `few_blocks`     | the run has fewer than BLOCKS_LEAST of them                               |
| `few_tokens`     | more than a quarter of the blocks has none in the denominator             |
| `wide`           | the interval would reach 0, and its inverse would have no end             |
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from inferometer.measure.record import Floats
from inferometer.measure.stats import BLOCK, BLOCKS_LEAST, BLOCKS_MOST, student
from inferometer.metrics.statistics import Interval

LEAST_BLOCK_S = 5.0
EMPTY_MOST = 0.25
"""Share of the blocks."""

NoInterval = Literal["memory_unknown", "few_blocks", "few_tokens", "wide"]


class Ratio(msgspec.Struct, frozen=True):
    """`value` with its 95 % interval [low, high] from `blocks` blocks; without one, `withheld` says why."""

    value: float
    interval: Interval | None
    blocks: int
    withheld: NoInterval | None = None

    def inverse(self) -> Ratio:
        """The ratio the other way round. `value` must not be 0."""
        ends = self.interval
        return Ratio(
            1 / self.value, None if ends is None else (1 / ends[1], 1 / ends[0]), self.blocks, self.withheld
        )


def block_count(duration_s: float, memory_s: float) -> int:
    """The blocks of a run that remembers a request for `memory_s`; 0 if it has too few."""
    fit = math.floor(duration_s / max(LEAST_BLOCK_S, BLOCK * memory_s) + 1e-9)  # rounding must not decide
    return min(fit, BLOCKS_MOST) if fit >= BLOCKS_LEAST else 0


def block_ratio(above: Floats, below: Floats, remembered: float = 0.0) -> Ratio | None:
    """The ratio of the sums of two series of totals, a pair a block. `remembered`: m above, at most 1 / BLOCK. None if either
    sum is not positive."""
    blocks = len(above)
    total, divisor = math.fsum(above), math.fsum(below)
    if total <= 0 or divisor <= 0:
        return None
    value = total / divisor
    if blocks < BLOCKS_LEAST:
        return Ratio(value, None, blocks, "few_blocks")
    if np.count_nonzero(below <= 0) > EMPTY_MOST * blocks:
        return Ratio(value, None, blocks, "few_tokens")
    squares = math.fsum((above - value * below) ** 2) / (1 - min(remembered, 1 / BLOCK))
    half = student(blocks - 1) * math.sqrt(squares * blocks / (blocks - 1)) / divisor
    if half >= value:
        return Ratio(value, None, blocks, "wide")
    return Ratio(value, (value - half, value + half), blocks)
