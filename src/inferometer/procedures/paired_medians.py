"""The difference of a latency's medians in two runs of one test, which may have had the same requests."""

from __future__ import annotations

import numpy as np

from inferometer.documents.results import Interval
from inferometer.measure.median_difference import median_difference
from inferometer.measure.record import Floats
from inferometer.measure.request_times import RequestTimes
from inferometer.procedures.step import Measured
from inferometer.procedures.summary_access import Metric

PAIRED = 0.9
"""Of a run's requests: if fewer were answered in both runs, medians are not compared by pairs."""


def difference_interval(first: Measured | None, second: Measured | None, metric: Metric) -> Interval | None:
    """The 95 % interval of the second median less the first, in ms (measure/median_difference.py): by pairs of the same
    request, else of two independent runs. `metric`: TTFT or end-to-end latency. None: a run is missing, or has too few
    requests."""
    sides = [one for one in (first, second) if one is not None]
    known = [one.requests for one in sides if one.requests is not None]
    if len(known) < 2:
        return None
    before, after = (one.where(np.flatnonzero(~np.isnan(_of(one, metric)))) for one in known)
    paired = len({one.summary.workload.fingerprint for one in sides}) == 1
    if paired:
        _, ours, theirs = np.intersect1d(before.index, after.index, return_indices=True)
        order = np.argsort(ours)  # of arrival
        paired = len(ours) >= PAIRED * max(len(before), len(after))
        if paired:
            before, after = before.where(ours[order]), after.where(theirs[order])
    return median_difference(_of(before, metric), _of(after, metric), paired=paired)


def _of(requests: RequestTimes, metric: Metric) -> Floats:
    return requests.ttft_ms if metric == "ttft" else requests.e2e_ms
