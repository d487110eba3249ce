"""What an engine's counters grew by over a run, from the record of its scrapes: the last one less the first.

The first scrape of a run lies behind its probe and before its first request, the last behind its last answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from inferometer.telemetry.metrics.exposition import HISTOGRAM
from inferometer.telemetry.metrics.series import Series, Store


@dataclass(frozen=True, slots=True)
class Growth:
    """Of one family, over all its series: a counter's value, or a histogram's sum, and the number of its observations.

    `went_back`: a value is below the one before, so that what was added is not known.
    """

    total: float
    count: float | None
    went_back: bool


def growth(store: Store, family: str) -> Growth | None:
    """None if no scrape shows the family, or only one was taken."""
    total, count, went_back, is_histogram = 0.0, 0.0, False, False
    found = False
    for endpoint in store.endpoints.values():
        if len(endpoint.times) < 2:
            continue
        for one in endpoint.series(family):
            found = True
            is_histogram = one.family.kind == HISTOGRAM
            # A series that the first scrape does not have began at 0.
            begins = one.times[0] == endpoint.times[0]
            for values in _values(one):
                went_back |= bool((np.diff(values) < 0).any())
            added = [float(values[-1] - (values[0] if begins else 0.0)) for values in _values(one)]
            total += added[0]
            count += added[1] if is_histogram else 0.0
    return Growth(total, count if is_histogram else None, went_back) if found else None


def _values(one: Series) -> Iterable[npt.NDArray[np.float64]]:
    return (one.sums, one.counts) if one.family.kind == HISTOGRAM else (one.values,)
