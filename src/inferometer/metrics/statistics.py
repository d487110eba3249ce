"""What stands for many samples: their statistics and the intervals of those."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Withheld = Literal["correlated", "skewed", "few"]
"""Why a sample gives no interval (measure/stats.py): its values hang together for too long, rare values decide, or too few."""

Interval = tuple[float, float]
"""[low, high] in the unit of the value it is about."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """95 % confidence intervals [low, high] in the metric's unit; None where the sample cannot give one, and `withheld` says
    why, by statistic."""

    mean: Interval | None
    p50: Interval | None
    p90: Interval | None
    p95: Interval | None
    p99: Interval | None
    withheld: Mapping[str, Withheld] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stats:
    """A metric's statistics over its n samples, in the metric's unit. `std` is None for n < 2.

    `n_effective`: how many independent samples would tell as much of the mean; None where there is too little to tell.
    """

    n: int
    mean: float
    std: float | None
    min: float
    max: float
    p50: float
    p75: float
    p90: float
    p95: float
    p99: float
    p99_9: float
    ci95: Intervals
    n_effective: float | None = None


STATISTICS = {
    "mean": "Mean",
    "min": "Min",
    "max": "Max",
    "std": "Std",
    "p50": "P50",
    "p75": "P75",
    "p90": "P90",
    "p95": "P95",
    "p99": "P99",
    "p99_9": "P99.9",
}
"""Members of Stats in the order of the result table, with their headings."""

QUANTILES = {"p50": 0.5, "p75": 0.75, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}
"""Statistics that are quantiles."""

ENOUGH = {"p50": 20, "p75": 40, "p90": 100, "p95": 200, "p99": 1_000, "p99_9": 10_000}
"""Samples a percentile needs: ten beyond it, which gives draft 5.1.2.1's 1,000 for P99 and 10,000 for P99.9."""


class RoughPercentile(float):
    """A percentile of fewer samples than ENOUGH asks for: what a report marks. What is reckoned with it is a plain number."""

    __slots__ = ()


def percentile_of(value: float | None, name: str, n: int) -> float | None:
    """A statistic of `n` samples by its name, rough where those are too few for it."""
    return RoughPercentile(value) if value is not None and n < ENOUGH.get(name, 0) else value


INTERVALS = {name: QUANTILES[name] for name in ("p50", "p90", "p95", "p99")}
"""Quantiles whose intervals a summary has."""
