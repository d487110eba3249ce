"""The control group of a comparison of caches: requests that have nothing in common with any other.

A cache saves them no prefill. But they wait for others, and for less with a cache: on an engine with long prompts at 80 %
load the quickest quarter fell by 23 %, where those that share fell by 77 %. So a control group that is quicker is no proof by
itself. One that surely is by more than SHARE, and by more than PART of what those that share are, is one: then the system was
another with the cache on, and what shared requests gained is not known to be the cache's. All by the quickest QUIET of each
group, which waited least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inferometer.documents.results import Interval
from inferometer.measure.jackknife import jackknife_intervals
from inferometer.measure.record import Floats, Ints
from inferometer.measure.request_times import RequestTimes

SHARE, PART = 5.0, 0.5
"""Per cent, and of the reduction of those that share."""
QUIET = 0.25
LEAST = 24
"""Requests: as many as the fewest blocks of an interval need (measure/jackknife.py)."""


@dataclass(frozen=True, slots=True)
class Control:
    """By how much the TTFT of requests that share nothing is less with the cache, per cent of that without, and its interval;
    and by how much that of those that share."""

    reduction: float
    ci: Interval | None
    sharing: float

    @property
    def quicker(self) -> bool:
        """Whether that is more than waiting less for others explains."""
        return self.ci is not None and self.ci[0] > SHARE and self.reduction > PART * self.sharing


def control(without: RequestTimes | None, cached: RequestTimes | None) -> Control | None:
    """Of the same requests in both; None: fewer than LEAST of them share nothing, or share."""
    if without is None or cached is None:
        return None
    _, first, second = np.intersect1d(without.index, cached.index, return_indices=True)
    order = np.argsort(first)  # of arrival
    before, after = without.where(first[order]), cached.where(second[order])
    known = ~np.isnan(before.ttft_ms) & ~np.isnan(after.ttft_ms)
    alone, sharing = known & (before.shared == 0), known & (before.shared > 0)
    if min(alone.sum(), sharing.sum()) < LEAST:
        return None
    slow, quick = before.ttft_ms[alone], after.ttft_ms[alone]

    def reduced(places: Sequence[Ints]) -> dict[str, float | None]:
        [left] = places
        return {"control": _less(slow[left], quick[left])}

    ends = jackknife_intervals([len(slow)], reduced).get("control")
    return Control(_less(slow, quick), ends, _less(before.ttft_ms[sharing], after.ttft_ms[sharing]))


def _less(before: Floats, after: Floats) -> float:
    return 100.0 * (1 - float(np.quantile(after, QUIET)) / float(np.quantile(before, QUIET)))
