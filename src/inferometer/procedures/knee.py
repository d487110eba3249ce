"""Where the knee of draft 5.3.4 lies for certain: between two levels, each of which its intervals settle.

| a level is | where                                                                                                     |
| ---------- | --------------------------------------------------------------------------------------------------------- |
| below      | the upper end of its P99 is at most twice the least P99, by the lower end of that                          |
| beyond     | a lower end among its percentiles is above twice the least P99, by the upper end of that; or it is not kept |
|            | up with, so that its queue, and its P99, grow for as long as it lasts                                      |

The least P99 lies between the least lower and the least upper end of all levels. The interval goes from the highest level below
to the lowest beyond. A level of a minute meets few bursts, so its own P99 says little of the P99 at that load: on one simulated
engine the first level above twice the least was 70, 80 or 90 % of capacity by chance (docs/headlines.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.results import Interval
from inferometer.documents.summary import Summary
from inferometer.procedures.summary_access import Metric, stat_interval
from inferometer.procedures.sustained import LEAST_COMPLETION_RATIO

KNEE = 2.0
PERCENTILES = ("p50", "p90", "p95", "p99")


def knee_interval(levels: Sequence[tuple[float, Summary]], metric: Metric) -> Interval | None:
    """The 95 % interval of the rate at which P99 exceeds twice its least; None where no level settles one of its ends.

    `levels`: rate and summary, in ascending order.
    """
    known = [ends for _, one in levels if (ends := stat_interval(one, metric, "p99")) is not None]
    if not known:
        return None
    low, high = (KNEE * min(ends[side] for ends in known) for side in (0, 1))
    beyond = next((rate for rate, one in levels if behind(one) or _above(one, metric, high)), None)
    below = [
        rate
        for rate, one in levels
        if beyond is not None
        and rate < beyond
        and (ends := stat_interval(one, metric, "p99")) is not None
        and ends[1] <= low
    ]
    return (max(below), beyond) if beyond is not None and below else None


def behind(summary: Summary) -> bool:
    """Whether a level was surely not kept up with, by the interval of its completions (sustained.py)."""
    ends = None if summary.steady is None else summary.steady.completion_ratio_ci95
    return ends is not None and ends[1] < LEAST_COMPLETION_RATIO


def _above(summary: Summary, metric: Metric, limit: float) -> bool:
    """P99 is no less than any other percentile."""
    ends = (stat_interval(summary, metric, name) for name in PERCENTILES)
    return any(one is not None and one[0] > limit for one in ends)
