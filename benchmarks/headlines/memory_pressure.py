"""Draft 5.8: the base that a KV cache for ten requests leaves, and how TTFT and preemptions grow beyond it.

Prompts of 128 to 384 tokens, answers of 16; an iteration takes 100 ms, give or take 5 %; the cache holds ten requests of the
mean length. A capacity is held to a P99 of TTFT. The truth of the base is the highest concurrency at which runs of 5,000
requests meet that; the other truths are of such runs at it and at 150 % of it. With CLEAR_MS the P99s of the levels on either
side are clear of the limit; with NEAR_MS that of the level above exceeds it by a tenth, so that chance has a say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from benchmarks.headlines.headline import TRUTH_SEED, Answer, Answers, Headline, Truth, mean_of, of_values
from benchmarks.played import measured, plan_of, stand_of
from inferometer.documents.summary import Summary
from inferometer.plan.lengths import fixed, uniform
from inferometer.procedures.results import Results
from inferometer.procedures.setup import closed_loop, documents, without_warm_up
from inferometer.procedures.summary_access import stat
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen

INPUT, OUTPUT = (128, 384), 16
CLEAR_MS, NEAR_MS = 750.0, 875.0
"""P99 of TTFT: 0.60 s with 9 in flight, 0.96 s with 10."""
BEYOND = 150
LEVELS = range(8, 12)
RUNS, QUICK_RUNS = 3, 2
TRUTH_REQUESTS, QUICK_REQUESTS = 5_000, 2_000


def engine(preset: str) -> Chosen:
    """Ten requests of the mean length, with their answers, fill the cache."""
    settings = Settings(
        jitter=0.05,
        step_base_ns=100e6,
        step_per_request_ns=0,
        prefill_base_ns=0,
        prefill_per_token_ns=0,
        token_budget=20_000,
        kv_blocks=10 * math.ceil((sum(INPUT) / 2 + OUTPUT) / 16),
    )
    return Chosen(preset, settings)


def parameters(preset: str, quick: bool, limit_ms: float) -> Mapping[str, Any]:
    """The defaults, with these lengths, the limit and one level beyond the base."""
    del preset, quick
    lengths = {"input_tokens": f"uniform({INPUT[0]}, {INPUT[1]})", "output_tokens": str(OUTPUT)}
    return {"memory-pressure": lengths | {"ttft_p99_ms": limit_ms, "percent": [BEYOND]}}


@cache
def _long_runs(preset: str, slots: int, quick: bool) -> tuple[Summary, ...]:
    """Closed loops with so many in flight; both limits ask for the same."""
    stand, found = stand_of(engine(preset)), list[Summary]()
    for seed in range(TRUTH_SEED, TRUTH_SEED + (QUICK_RUNS if quick else RUNS)):
        plan = without_warm_up(documents(plan_of(seed), uniform(*INPUT), fixed(OUTPUT)))
        loop = closed_loop(plan, slots, requests=QUICK_REQUESTS if quick else TRUTH_REQUESTS)
        found.append(measured(stand, loop))
    return tuple(found)


def _p99(summary: Summary) -> float:
    return stat(summary, "ttft", "p99") or math.nan


def _preempted(summary: Summary) -> float:
    """Per cent of the requests sent."""
    counts, sent = summary.preemption, summary.requests
    assert counts is not None
    assert counts.requests is not None
    return 100.0 * counts.requests / (sent.sent + sent.lead_in + sent.lead_out)


def truths(preset: str, quick: bool, limit_ms: float) -> Mapping[str, Truth]:
    """Of long closed loops."""
    runs = {slots: _long_runs(preset, slots, quick) for slots in LEVELS}
    base = max(slots for slots, made in runs.items() if mean_of([*map(_p99, made)]).value <= limit_ms)
    below, beyond = runs[base], _long_runs(preset, math.ceil(base * BEYOND / 100), quick)
    growth = [_p99(after) / _p99(before) for before, after in zip(below, beyond, strict=True)]
    return {
        "base_concurrency": Truth(float(base)),
        "ttft_p99_growth": mean_of(growth),
        "ttft_p99_100": mean_of([*map(_p99, below)]),
        f"ttft_p99_{BEYOND}": mean_of([*map(_p99, beyond)]),
        f"preempted_{BEYOND}": mean_of([*map(_preempted, beyond)]),
    }


def answers(results: Results) -> Answers:
    """The values, and columns of the table of levels by their per cent."""
    found = dict[str, Answer]()
    for table in results.tables:
        if table.name == "levels":
            names = [column.name for column in table.columns]
            for row in table.rows:
                cells = dict(zip(names, row, strict=True))
                for name in ("ttft_p99", "preempted"):
                    value = cells[name]
                    known = None if value is None or isinstance(value, str) else float(value)
                    found[f"{name}_{cells['percent']:g}"] = Answer(known, None)
    return of_values(results) | found


def _headline(limit_ms: float, part: str = "") -> Headline:
    asked, right = partial(parameters, limit_ms=limit_ms), partial(truths, limit_ms=limit_ms)
    return Headline("memory-pressure", asked, right, ("tiny-cpu",), answers, engine, part=part)


HEADLINE = _headline(CLEAR_MS)
NEAR = _headline(NEAR_MS, "near")
