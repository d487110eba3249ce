"""Reading a run's summary: one number at a time, None where it was not measured."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from inferometer.procedures.results import Cell, Interval

Summary = Mapping[str, Any]


def stat(summary: Summary, metric: str, name: str) -> float | None:
    """A statistic of a metric in ms: `stat(summary, "ttft", "p99")`."""
    found: float | None = (summary["metrics"][f"{metric}_ms"] or {}).get(name)
    return found


def stat_interval(summary: Summary, metric: str, name: str) -> Interval | None:
    """Its 95 % interval."""
    found = ((summary["metrics"][f"{metric}_ms"] or {}).get("ci95") or {}).get(name)
    return None if found is None else (found[0], found[1])


def rate(summary: Summary, name: str) -> float | None:
    """A rate over the steady span, per second: `output_tok_s`, `input_tok_s` or `request_s`."""
    found: float | None = summary["throughput"][name]
    return found


def rate_interval(summary: Summary, name: str) -> Interval | None:
    """Its 95 % interval."""
    found = summary["throughput"]["ci95"].get(name)
    return None if found is None else (found[0], found[1])


def success(summary: Summary) -> float | None:
    """Succeeded / ended requests."""
    found: float | None = (summary.get("success_rate") or {}).get("value")
    return found


def percent(share: float | None) -> float | None:
    """A share in per cent."""
    return None if share is None else 100.0 * share


def growth(summary: Summary) -> Cell:
    """Draft 5.3.4's indicator of queue growth."""
    growing = ((summary.get("steady") or {}).get("queue") or {}).get("growing")
    return None if growing is None else "growing" if growing else "stable"


def curve(summary: Summary, metric: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Values in ms and the share of samples up to each: what a CDF is drawn of. Empty where there are none."""
    found = (summary.get("distributions") or {}).get(f"{metric}_ms")
    return pairs(found)


def pairs(found: Mapping[str, Sequence[float]] | None) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Quantiles of a summary as values and shares."""
    if not found:
        return (), ()
    return tuple(found["v"]), tuple(percent / 100.0 for percent in found["q"])


def share_below(values: Sequence[float], shares: Sequence[float], limit: float) -> float:
    """The share of samples up to a limit, between two quantiles by a straight line."""
    if limit < values[0]:
        return 0.0
    at = bisect_right(values, limit)
    if at == len(values):
        return 1.0
    low, high = values[at - 1], values[at]
    return shares[at - 1] + (shares[at] - shares[at - 1]) * (limit - low) / (high - low)
