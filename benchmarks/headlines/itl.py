"""Draft 5.4: P99 of the gaps between tokens at each share of saturation, against long runs at the same rate.

100 % is given to all searches, so that each measures the same levels. How far it is off where it is searched for:
`python -m benchmarks maximum`. At 90 % most runs of 1,000 requests have no interval: BUSY has four times as many there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.headlines.headline import Headline, Truth, long_runs
from benchmarks.played import CAPACITY
from inferometer.documents.summary import Summary
from inferometer.metrics.statistics import Stats
from inferometer.plan.schema import Plan
from inferometer.procedures.setup import open_loop, without_warm_up, workload_key
from inferometer.procedures.step import KnownLimits
from inferometer.procedures.summary_access import statistic

LEVELS = (25, 50, 75, 90)
TRUTH_REQUESTS, QUICK_REQUESTS = 5_000, 300
BUSY_LEVEL, BUSY_REQUESTS, BUSY_TRUTH = 90, 4_000, 10_000


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """The default 1,000 requests a level."""
    del preset
    return {"itl": {"requests": QUICK_REQUESTS}} if quick else {}


def busy(preset: str, quick: bool) -> Mapping[str, Any]:
    """The busiest level alone."""
    del preset
    return {"itl": {"percent": [BUSY_LEVEL], "requests": QUICK_REQUESTS if quick else BUSY_REQUESTS}}


def known(preset: str, plan: Plan) -> KnownLimits:
    """The saturation rate."""
    return KnownLimits({workload_key(plan): CAPACITY[preset]})


def truths(
    preset: str, quick: bool, levels: Sequence[int] = LEVELS, most: int = TRUTH_REQUESTS
) -> Mapping[str, Truth]:
    """Percentiles of the gaps of runs of `most` requests each."""
    found: dict[str, Truth] = {}
    for level in levels:
        rate = float(f"{CAPACITY[preset] * level / 100:.6g}")

        def load(plan: Plan, rate: float = rate) -> Plan:
            requests = QUICK_REQUESTS if quick else most
            return open_loop(without_warm_up(plan), rate, requests=requests)

        def figures(summary: Summary, level: int = level) -> Mapping[str, float | None]:
            shape = summary.itl_shape
            gaps: Stats | None = None if shape is None else shape.itl_ms
            return {f"itl_{name}_{level}": statistic(gaps, name) for name in ("p99", "p50")}

        found |= long_runs(preset, load, figures, quick=quick)
    return found


HEADLINE = Headline("itl", parameters, truths, known=known)
BUSY = Headline("itl", busy, partial(truths, levels=(BUSY_LEVEL,), most=BUSY_TRUTH), known=known, part="busy")
