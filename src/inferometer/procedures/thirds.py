"""The interval of a run's output rate where the run's own method gives none: by the spread of its thirds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from inferometer.documents.results import Interval
from inferometer.documents.summary import Summary
from inferometer.procedures.summary_access import rate, rate_interval

T_OF_THIRDS = 4.3027
"""t(0.975, 2)."""


def output_interval(summary: Summary) -> Interval | None:
    """The 95 % interval of output tokens a second. Where answers are so long that the run's own method gives none, as beyond
    saturation: that of `interval_of_thirds`."""
    own, value = rate_interval(summary, "output_tok_s"), rate(summary, "output_tok_s")
    thirds = () if summary.steady is None else summary.steady.output_thirds_tok_s
    return own if own is not None or value is None else interval_of_thirds(value, thirds)


def interval_of_thirds(rate: float, thirds: Sequence[float]) -> Interval | None:
    """The 95 % interval of a rate by the spread of its three thirds; None without them, or of no output.

    Student's t with two degrees of freedom, of the rate's logarithm: thirds of a positive rate are not symmetric, and on a
    plain scale the interval goes below zero where they differ by half, and holds the truth less often
    (benchmarks/interval_of_thirds.py). The error of log(r) is that of r over r.
    """
    if len(thirds) != 3 or rate <= 0:
        return None
    factor = math.exp(T_OF_THIRDS * statistics.stdev(thirds) / math.sqrt(3) / rate)
    return rate / factor, rate * factor
