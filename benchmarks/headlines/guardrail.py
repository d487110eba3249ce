"""Draft 5.10: what planted filters cost, in latency and in throughput.

The engine is the preset with its filters on the engine: each prompt takes 8 ms more of its time, and every 16 tokens of an
answer 4 ms. So they cost latency and capacity.

The truth of an overhead is the difference of medians of long runs with and without the filter, of the same seeds and under the
same load; that of a reduction is by long closed loops with a full system. 100 % is given to all searches, so that each measures
the same levels. The workload is the plan's. A configuration that does not keep up with a level has no latency that a longer run
would find again, and so no truth there (SUSTAINED).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from benchmarks.headlines.headline import TRUTH_SEED, Headline, Truth, mean_of
from benchmarks.played import CAPACITY, measured, plan_of, stand_of
from inferometer.documents.summary import Summary
from inferometer.plan.schema import Plan
from inferometer.procedures.guarded_maximum import lost
from inferometer.procedures.guardrail import OVERHEADS
from inferometer.procedures.plateau import output
from inferometer.procedures.setup import closed_loop, open_loop, variant, without_warm_up, workload_key
from inferometer.procedures.step import KnownLimits
from inferometer.procedures.summary_access import stat
from inferometer.simulation.engine import Chosen, choose

SUSTAINED = {"input": (25, 50, 75), "output": (25, 50), "full": (25, 50)}
"""Levels, in per cent of the baseline's capacity. Of it an output filter leaves 71 %, the full one 67 %."""
LEVELS, QUICK_LEVELS = (25, 50, 75), (50,)
RUNS, QUICK_RUNS = 3, 2
TRUTH_REQUESTS, QUICK_REQUESTS = 5_000, 300
SLOTS = 96
"""Of a full system: three times the places of the preset."""
NAMES = tuple(SUSTAINED)


def engine(preset: str) -> Chosen:
    """The preset, with filters that take its own time."""
    chosen = choose(preset)
    return dataclasses.replace(chosen, settings=dataclasses.replace(chosen.settings, checks_on_engine=True))


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """The defaults; or one level, and half of the requests with a full system."""
    del preset
    return {
        "guardrail": {"workload": "plan", **({"percent": QUICK_LEVELS, "throughput_s": 30} if quick else {})}
    }


def known(preset: str, plan: Plan) -> KnownLimits:
    """The saturation rate of the baseline."""
    off = variant(plan, sut={"guardrails": {"input_filter": False, "output_filter": False}})
    return KnownLimits({workload_key(off): CAPACITY[preset]})


def truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """Of runs with seeds of their own."""
    requests, stand = QUICK_REQUESTS if quick else TRUTH_REQUESTS, stand_of(engine(preset))
    seeds = range(TRUTH_SEED, TRUTH_SEED + (QUICK_RUNS if quick else RUNS))

    def run(state: str, plan: Plan) -> Summary:
        stand.switch("guardrails", state)
        return measured(stand, without_warm_up(plan))

    def at(state: str, level: int) -> list[Summary]:
        rate = CAPACITY[preset] * level / 100
        return [run(state, open_loop(plan_of(seed), rate, requests=requests)) for seed in seeds]

    full = {
        state: [output(run(state, closed_loop(plan_of(seed), SLOTS, requests=requests))) for seed in seeds]
        for state in ("baseline", *NAMES)
    }
    found: dict[str, Truth] = {}
    for level in QUICK_LEVELS if quick else LEVELS:
        before = at("baseline", level)
        for name, metric, _ in OVERHEADS:
            if level in SUSTAINED[name]:
                sides = zip(at(name, level), before, strict=True)
                medians = [
                    (stat(with_, metric, "p50"), stat(without, metric, "p50")) for with_, without in sides
                ]
                found[f"{name}_overhead_{level}"] = mean_of(
                    [more - less for more, less in medians if more and less]
                )
    for name in NAMES:
        pairs = zip(full["baseline"], full[name], strict=True)
        found[f"throughput_reduction_{name}"] = mean_of([lost(before, after) for before, after in pairs])
    return found


HEADLINE = Headline("guardrail", parameters, truths, known=known, engine=engine)
