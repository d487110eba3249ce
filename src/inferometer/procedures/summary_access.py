"""Figures of a summary by the name of their metric, None where they were not measured; and what is derived from them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from inferometer.documents.summary import Summary
from inferometer.measure.distributions import Quantiles
from inferometer.metrics.statistics import Interval, Stats, percentile_of

Metric = Literal["ttft", "tpot", "e2e", "itl", "chunk_gap"]
Rate = Literal["output_tok_s", "input_tok_s", "request_s"]
Curve = tuple[tuple[float, ...], tuple[float, ...]]
"""Values, and the share of samples up to each."""


def stat(summary: Summary | None, metric: Metric, name: str) -> float | None:
    """A statistic of a latency in ms: `stat(summary, "ttft", "p99")`."""
    return None if summary is None else statistic(_stats(summary, metric), name)


def stat_interval(summary: Summary, metric: Metric, name: str) -> Interval | None:
    """Its 95 % interval."""
    return interval(_stats(summary, metric), name)


def statistic(stats: Stats | None, name: str) -> float | None:
    """A statistic by its name; rough, if it is a percentile of too few samples."""
    value: float | None = getattr(stats, name, None)
    return value if stats is None else percentile_of(value, name, stats.n)


def interval(stats: Stats | None, name: str) -> Interval | None:
    """The 95 % interval of a statistic; None where that statistic has none."""
    ends: Interval | None = None if stats is None else getattr(stats.ci95, name, None)
    return ends


def samples(summary: Summary | None) -> int | None:
    """The number of requests with a TTFT; None: none."""
    stats = None if summary is None else summary.metrics.ttft_ms
    return None if stats is None else stats.n


def rate(summary: Summary | None, name: Rate) -> float | None:
    """A rate over the steady span, per second."""
    value: float | None = None if summary is None else getattr(summary.throughput, name)
    return value


def rate_interval(summary: Summary | None, name: Rate) -> Interval | None:
    """Its 95 % interval."""
    ends: Interval | None = None if summary is None else getattr(summary.throughput.ci95, name)
    return ends


def percent(share: float | None) -> float | None:
    """A share in per cent."""
    return None if share is None else 100.0 * share


def success(summary: Summary) -> float | None:
    """Requests that succeeded among those that ended, in per cent."""
    return percent(summary.success_rate.value)


def growth(summary: Summary) -> str | None:
    """Draft 5.3.4's indicator of queue growth: what the queue's thirds do."""
    queue = None if summary.steady is None else summary.steady.queue
    rising = None if queue is None else queue.rising
    return None if rising is None else "rising" if rising else "stable"


def held_to(summary: Summary, objectives: Collection[str]) -> Summary:
    """The summary with these of its objectives alone."""
    return msgspec.structs.replace(summary, slos=tuple(slo for slo in summary.slos if slo.expr in objectives))


def curve(summary: Summary, metric: Metric) -> Curve:
    """What a CDF of a latency in ms is drawn of. Empty where there are no samples."""
    quantiles: Quantiles | None = getattr(summary.distributions, f"{metric}_ms")
    return steps_of(quantiles)


def steps_of(quantiles: Quantiles | None) -> Curve:
    """Quantiles as values and shares."""
    if quantiles is None:
        return (), ()
    return quantiles.v, tuple(percent / 100.0 for percent in quantiles.q)


def share_below(values: Sequence[float], shares: Sequence[float], limit: float) -> float:
    """The share of samples up to a limit, between two quantiles by a straight line."""
    if limit < values[0]:
        return 0.0
    at = bisect_right(values, limit)
    if at == len(values):
        return 1.0
    low, high = values[at - 1], values[at]
    return shares[at - 1] + (shares[at] - shares[at - 1]) * (limit - low) / (high - low)


def _stats(summary: Summary, metric: Metric) -> Stats | None:
    stats: Stats | None = getattr(summary.metrics, f"{metric}_ms")
    return stats
