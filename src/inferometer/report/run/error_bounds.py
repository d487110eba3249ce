"""The bounds of the instrument's own error, beside the headlines that they are of."""

from __future__ import annotations

import math

from inferometer.documents.summary import Summary
from inferometer.metrics.catalogue import METRICS, RATES
from inferometer.metrics.statistics import STATISTICS
from inferometer.report.figures import figure

BOUNDED = ("mean", "p50", "p90", "p95", "p99")
"""Statistics that have a bound."""
_SHORT = ("ttft_ms", "itl_ms", "chunk_gap_ms", "tpot_ms", "e2e_ms")


LEAST = 0.001
"""A microsecond, or a thousandth of a token a second: what is less is not worth its digits."""


def rounded_up(bound: float | None) -> str:
    """A bound to two significant digits or LEAST, never below it; a dash for None."""
    if not bound:
        return figure(bound, trim=True)
    bound = max(bound, LEAST)
    unit = 10.0 ** (math.floor(math.log10(bound)) - 1)
    return figure(math.ceil(bound / unit - 1e-9) * unit, trim=True)


def bound_of(summary: Summary, name: str, statistic: str) -> float | None:
    """The bound of a metric's statistic, in its unit; None where there is none."""
    bounds = summary.instrument.error_bounds
    found = None if bounds is None else getattr(bounds, name, None)
    return None if found is None else getattr(found, statistic, None)


def rate_bound(summary: Summary, name: str) -> float | None:
    """The bound of a rate, per second; None where there is none."""
    bounds = summary.instrument.error_bounds
    return None if bounds is None else getattr(bounds, name, None)


def error_rows(summary: Summary) -> list[list[str]]:
    """A row a metric, with its bounds in the order of BOUNDED; a row a rate, with one bound."""
    if summary.instrument.error_bounds is None:
        return []
    rows = []
    for name, metric in METRICS.items():
        if bound_of(summary, name, "mean") is not None:
            cells = [rounded_up(bound_of(summary, name, key)) for key in BOUNDED]
            rows.append([f"{metric.title} ({metric.unit})", *cells])
    for name, rate in RATES.items():
        if (bound := rate_bound(summary, name)) is not None:
            rows.append([f"{rate.title} ({rate.unit})", rounded_up(bound), *[""] * (len(BOUNDED) - 1)])
    return rows


ERROR_HEAD = ["Metric", *(STATISTICS[key] for key in BOUNDED)]


def error_line(summary: Summary) -> str | None:
    """The bounds of the latencies' medians and P99 in one line; None where there are none."""
    parts = []
    for name in _SHORT:
        middle, tail = (bound_of(summary, name, key) for key in ("p50", "p99"))
        if middle is not None:
            parts.append(f"{METRICS[name].short} {rounded_up(middle)} and {rounded_up(tail)}")
    if not parts:
        return None
    return f"The instrument's own error of P50 and P99 is at most, in ms: {', '.join(parts)}"
