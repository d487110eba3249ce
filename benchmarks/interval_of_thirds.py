"""How often the interval of a throughput by its run's thirds holds the truth, and how often it goes below zero.

Three thirds are drawn from a gamma distribution of mean 1 and a given spread, as the outputs of a few long answers are; their
mean is the rate. `plain` is Student's t with two degrees of freedom on the rate itself, `relative` what
procedures/tradeoff.py has. A row a spread (standard deviation over mean): shares of 20,000 draws.

    python -m benchmarks.interval_of_thirds
"""

from __future__ import annotations

import math
import statistics

import numpy as np

from inferometer.procedures.thirds import T_OF_THIRDS, interval_of_thirds

DRAWS, SEED = 20_000, 1
SPREADS = (0.02, 0.1, 0.3, 0.5, 0.7, 1.0)


def shares(spread: float) -> tuple[float, float, float]:
    """The share of intervals that hold the truth, plain and relative, and of plain ones that begin below zero."""
    shape = 1 / spread**2
    draws = np.random.default_rng(SEED).gamma(shape, 1 / shape, (DRAWS, 3)).tolist()
    plain = relative = negative = 0
    for thirds in draws:
        rate = statistics.fmean(thirds)
        half = T_OF_THIRDS * statistics.stdev(thirds) / math.sqrt(3)
        plain += rate - half <= 1 <= rate + half
        negative += rate < half
        ends = interval_of_thirds(rate, thirds)
        relative += ends is not None and ends[0] <= 1 <= ends[1]
    return plain / DRAWS, relative / DRAWS, negative / DRAWS


def main() -> None:
    """Print the table."""
    print("spread  plain  relative  plain below zero")
    for spread in SPREADS:
        plain, relative, negative = shares(spread)
        print(f"{spread:6.2f}  {plain:5.1%}  {relative:8.1%}  {negative:16.1%}")


if __name__ == "__main__":
    main()
