"""Draft 5.5: the most requests in flight with a P99 of TTFT within a threshold, against long runs about that number.

The truth is where a line through log(P99) of long closed loops at several numbers in flight crosses the threshold. Searches
have a quarter of the default completions a slot, 25: each level then has some thousand requests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.headlines.headline import TRUTH_SEED, Headline, Truth
from benchmarks.played import measured, plan_of, stand_of
from inferometer.plan.procedure_parameters import Tests
from inferometer.procedures.setup import answering, closed_loop, without_warm_up
from inferometer.procedures.summary_access import stat

COMPLETIONS = 25
TRUTH_REQUESTS, QUICK_REQUESTS = 8_000, 1_500


@dataclass(frozen=True, slots=True)
class Limit:
    """A threshold, and numbers in flight near the one at which P99 crosses it."""

    ttft_p99_ms: float
    near: tuple[int, ...]


LIMITS = {"testbed": Limit(1_500.0, (36, 38, 40, 42))}


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """Fewer completions a slot than the default."""
    wanted = {"ttft_p99_ms": LIMITS[preset].ttft_p99_ms, "completions_per_slot": COMPLETIONS}
    return {"capacity": wanted | ({"duration_s": 20.0} if quick else {})}


def truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """The largest whole number below the crossing. Its error is of the crossing, by the residuals of the line."""
    limit, stand = LIMITS[preset], stand_of(preset)
    requests = QUICK_REQUESTS if quick else TRUTH_REQUESTS
    over = []
    for number, slots in enumerate(limit.near):
        plan = answering(plan_of(TRUTH_SEED + number), Tests().capacity.output_tokens)
        p99 = stat(
            measured(stand, closed_loop(without_warm_up(plan), slots, requests=requests)), "ttft", "p99"
        )
        over.append(math.log((p99 or math.nan) / limit.ttft_p99_ms))
    slope, at = np.polyfit(limit.near, over, 1)
    residuals = np.array(over) - (slope * np.array(limit.near) + at)
    error = math.sqrt(float(residuals @ residuals) / (len(over) - 2) / len(over)) / slope
    return {"max_concurrency": Truth(float(math.floor(-at / slope)), float(error))}


HEADLINE = Headline("capacity", parameters, truths)
