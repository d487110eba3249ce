"""Means over the repetitions of the agentic benchmark."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inferometer.documents.agentic import AgenticSample
from inferometer.measure.stats import mean_interval
from inferometer.metrics.statistics import Interval


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over `n` repetitions. `ci95`: Student's, None with a single one."""

    n: int
    mean: float
    ci95: Interval | None


def ttft_of(samples: Sequence[AgenticSample], phases: Sequence[str]) -> Mean | None:
    """The TTFT, ms, of these phases: their mean in each repetition that has all of them, over those; None: none has."""
    values = []
    for number in sorted({one.repeat for one in samples}):
        mine = [one.ttft_ms for one in samples if one.repeat == number and one.phase in phases]
        known = [wait for wait in mine if wait is not None]
        if len(known) == len(mine) == len(phases):
            values.append(statistics.fmean(known))
    if not values:
        return None
    mean = statistics.fmean(values)
    spread = statistics.stdev(values) if len(values) > 1 else None
    return Mean(len(values), mean, mean_interval(len(values), mean, spread))


def mean_known(values: Iterable[float | None]) -> float | None:
    """The mean of those that are known; None: none is."""
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None
