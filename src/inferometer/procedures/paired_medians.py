"""A latency in two runs of one test, which may have had the same requests: statistics of one population, and the difference of
their medians.

| requests of the two runs        | compared are                                                                    |
| ------------------------------- | ------------------------------------------------------------------------------- |
| the same, by their fingerprint  | those that were answered in both, in pairs                                      |
| others                          | all of each                                                                     |

What a filter refuses, or a server fails, is answered in one run alone. Its length is no chance, as a rule, so a median with it
and one without are of different prompts, and their difference is not the filter's doing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.documents.results import Interval
from inferometer.measure.median_difference import median_difference
from inferometer.measure.record import Floats
from inferometer.measure.request_times import RequestTimes
from inferometer.metrics.statistics import percentile_of
from inferometer.procedures.step import Measured
from inferometer.procedures.summary_access import Metric, stat

PERCENTS = {"p50": 50, "p95": 95, "p99": 99}


@dataclass(frozen=True, slots=True)
class Compared:
    """A latency in two runs, in ms, in order of arrival. `paired`: one entry a request in both."""

    before: Floats
    after: Floats
    paired: bool


def compared(first: Measured | None, second: Measured | None, metric: Metric) -> Compared | None:
    """What of two runs is comparable. `metric`: TTFT or end-to-end latency. None: a run is missing, or its requests are not at
    hand one by one."""
    sides = [one for one in (first, second) if one is not None]
    known = [one.requests for one in sides if one.requests is not None]
    if len(known) < 2:
        return None
    before, after = (one.where(np.flatnonzero(~np.isnan(_of(one, metric)))) for one in known)
    paired = len({one.summary.workload.fingerprint for one in sides}) == 1
    if paired:
        _, ours, theirs = np.intersect1d(before.index, after.index, return_indices=True)
        order = np.argsort(ours)  # of arrival
        before, after = before.where(ours[order]), after.where(theirs[order])
    return Compared(_of(before, metric), _of(after, metric), paired)


def both(
    first: Measured | None, second: Measured | None, metric: Metric, name: str
) -> tuple[float, float] | None:
    """A statistic of a latency in two runs, in ms: of what is comparable, or where that is all that either run has, or only
    summaries are at hand, as the summaries have it."""
    found = compared(first, second, metric)
    if found is not None and not _whole(found, first, second, metric):
        sides = [_statistic(values, name) for values in (found.before, found.after)]
    else:
        sides = [stat(None if one is None else one.summary, metric, name) for one in (first, second)]
    before, after = sides
    return None if before is None or after is None else (before, after)


def difference_interval(first: Measured | None, second: Measured | None, metric: Metric) -> Interval | None:
    """The 95 % interval of the second median less the first, in ms (measure/median_difference.py): by pairs of the same
    request, else of two independent runs. None: a run is missing, or there are too few requests."""
    found = compared(first, second, metric)
    return None if found is None else median_difference(found.before, found.after, paired=found.paired)


def _whole(found: Compared, first: Measured | None, second: Measured | None, metric: Metric) -> bool:
    """Whether nothing of either run was left out."""
    sides = ((found.before, first), (found.after, second))
    return all(
        one is not None and one.requests is not None and len(values) == np.count_nonzero(~np.isnan(_of(one.requests, metric)))
        for values, one in sides
    )  # fmt: skip


def _statistic(values: Floats, name: str) -> float | None:
    if not len(values):
        return None
    if name == "mean":
        return float(values.mean())
    return percentile_of(float(np.percentile(values, PERCENTS[name])), name, len(values))


def _of(requests: RequestTimes, metric: Metric) -> Floats:
    return requests.ttft_ms if metric == "ttft" else requests.e2e_ms
