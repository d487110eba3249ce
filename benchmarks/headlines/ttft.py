"""Draft 5.1: percentiles of TTFT at half of what a preset sustains, against long runs at the same rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.headlines.headline import Headline, Truth, long_runs
from benchmarks.played import CAPACITY
from inferometer.documents.summary import Summary
from inferometer.plan.schema import Plan
from inferometer.procedures.setup import open_loop, without_warm_up
from inferometer.procedures.summary_access import stat

LOAD = 0.5
TRUTH_REQUESTS, QUICK_REQUESTS = 20_000, 2_000
POINTS = ("p50", "p90", "p95", "p99")


def _rate(preset: str) -> float:
    return float(f"{LOAD * CAPACITY[preset]:.4g}")


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """The default 10,000 requests, at one level."""
    return {"ttft": {"rates": [_rate(preset)], **({"requests": QUICK_REQUESTS} if quick else {})}}


def truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """Percentiles of runs of 20,000 requests each."""
    requests = QUICK_REQUESTS if quick else TRUTH_REQUESTS

    def load(plan: Plan) -> Plan:
        return open_loop(without_warm_up(plan), _rate(preset), requests=requests)

    def figures(summary: Summary) -> Mapping[str, float | None]:
        return {f"ttft_{name}": stat(summary, "ttft", name) for name in POINTS}

    return long_runs(preset, load, figures, quick=quick)


HEADLINE = Headline("ttft", parameters, truths)
