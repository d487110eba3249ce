"""Draft 4.5.3: load time and latency of the first request, against the engine's setting `load` and the median of many prompts.

The engines have no slow first steps (`cold_steps`), and load before they are healthy: so the first request of a start takes
what any request takes that is alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from benchmarks.headlines.headline import TRUTH_SEED, Headline, Truth
from benchmarks.played import measured, plan_of, stand_of
from inferometer.procedures.setup import closed_loop, without_warm_up
from inferometer.simulation.engine import choose
from inferometer.units import NS_PER_S

REQUESTS, QUICK_REQUESTS = 2_000, 100


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """The default number of starts."""
    del preset, quick
    return {}


def truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """The setting; and the median of requests one at a time, with the error of a median, sqrt(pi / 2) s / sqrt(n)."""
    settings, requests = choose(preset).settings, QUICK_REQUESTS if quick else REQUESTS
    assert not settings.cold_steps
    plan = closed_loop(without_warm_up(plan_of(TRUTH_SEED)), 1, requests=requests)
    alone = measured(stand_of(preset), plan).metrics.ttft_ms
    assert alone is not None
    latency = Truth(alone.p50, (alone.std or 0.0) * math.sqrt(math.pi / 2 / requests))
    load = Truth(settings.load_ns / NS_PER_S)
    return {"load_time": load, "cold_start_latency": latency, "second_ttft": latency}


HEADLINE = Headline("cold-start", parameters, truths, ("a100-8b", "h100-70b-tp4", "m4-laptop-8b"))
