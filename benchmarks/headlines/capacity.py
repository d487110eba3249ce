"""Draft 5.5: the most requests in flight with a P99 of TTFT within a threshold, against long runs about that number.

The truth is where a line through log(P99) of long closed loops at several numbers in flight crosses the threshold. Searches
have a quarter of the default completions a slot, 25: each level then has some thousand requests.

NOISY is of an engine whose P99 is that of its slowest iterations: 1 in 50 takes 50 to 300 ms longer than its work. Chance
decides there among several numbers in flight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.headlines.few_steps import few_steps
from benchmarks.headlines.headline import TRUTH_SEED, Headline, Truth
from benchmarks.played import measured, plan_of, stand_of
from inferometer.plan.procedure_parameters import Tests
from inferometer.procedures.setup import answering, closed_loop, without_warm_up
from inferometer.procedures.summary_access import stat
from inferometer.simulation.engine import Chosen

COMPLETIONS = 25
TRUTH_REQUESTS, NOISY_REQUESTS, QUICK_REQUESTS = 8_000, 20_000, 1_500


@dataclass(frozen=True, slots=True)
class Limit:
    """A threshold, and numbers in flight near the one at which P99 crosses it."""

    ttft_p99_ms: float
    near: tuple[int, ...]


LIMITS = {"testbed": Limit(1_500.0, (36, 38, 40, 42))}
NOISY_LIMIT = Limit(550.0, (32, 36, 40, 44, 48))
NOISE = "-20ms,-15ms,-12ms,-10ms,-5ms,0ms,5ms,12ms,25ms,50ms,80ms,120ms,180ms,300ms"
"""Its quantiles (docs/engine.md)."""


def noisy(preset: str) -> Chosen:
    """The preset in few steps that are short beside their noise, and with room for all."""
    chosen = few_steps(preset)
    changes: dict[str, Any] = {"step_base_ns": 20e6, "step_per_request_ns": 0.3e6, "prefill_base_ns": 0}
    return replace(
        chosen, settings=replace(chosen.settings, jitter=0.1, noise=NOISE, max_batch=256, **changes)
    )


def parameters(preset: str, quick: bool, limits: Mapping[str, Limit] = LIMITS) -> Mapping[str, Any]:
    """Fewer completions a slot than the default."""
    wanted = {"ttft_p99_ms": limits[preset].ttft_p99_ms, "completions_per_slot": COMPLETIONS}
    return {"capacity": wanted | ({"duration_s": 20.0} if quick else {})}


def truths(
    preset: str,
    quick: bool,
    limits: Mapping[str, Limit] = LIMITS,
    engine: Callable[[str], str | Chosen] = str,
    most: int = TRUTH_REQUESTS,
) -> Mapping[str, Truth]:
    """The largest whole number below the crossing. Its error is of the crossing, by the residuals of the line."""
    limit, stand = limits[preset], stand_of(engine(preset))
    requests = QUICK_REQUESTS if quick else most
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
_ITS_LIMIT = {"testbed": NOISY_LIMIT}
NOISY = Headline(
    "capacity",
    partial(parameters, limits=_ITS_LIMIT),
    partial(truths, limits=_ITS_LIMIT, engine=noisy, most=NOISY_REQUESTS),
    engine=noisy,
    part="noisy",
)
