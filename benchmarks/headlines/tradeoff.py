"""Draft 5.3: knee, saturation point and optimum, against long runs of the same levels.

100 % is given to all searches, so that each tries the same levels. The draft's points are levels. The true knee is the first
level whose true P99 is above twice the least true one, the true optimum the level of the highest throughput among those that
truly meet the objectives. Where throughput levels off, as it does on these engines, there is no true fall: a saturation point
is then chance. FALLING is of an engine whose throughput does fall: its KV cache takes in more short prompts than it has room
for once their long answers grow, and swaps most of the time. Its levels last ten minutes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from benchmarks.headlines.few_steps import few_steps
from benchmarks.headlines.headline import Headline, Truth, long_runs
from benchmarks.played import CAPACITY
from inferometer.documents.summary import Summary
from inferometer.plan.lengths import uniform
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.knee import KNEE
from inferometer.procedures.plateau import output
from inferometer.procedures.setup import documents, open_loop, without_warm_up
from inferometer.procedures.summary_access import stat
from inferometer.simulation.engine import Chosen

OBJECTIVE_MS = 100.0
"""P99 of TTFT, of the optimum."""
BELOW = 95.0
"""Per cent: levels above have no P99 that a longer run would find again."""
TRUTH_REQUESTS, QUICK_REQUESTS = 10_000, 1_500

INPUT, OUTPUT = uniform(8, 16), uniform(300, 500)
FALLING_CAPACITY, FALLING_S, FALLING_REQUESTS = 2.0, 600.0, 5_000
"""Requests per second: 2.0 with 20 in flight, 1.0 with 64."""
FALLING_LEVELS = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110)


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """The default levels of 60 s, and 100 %."""
    wanted: dict[str, Any] = {"capacity_rate": CAPACITY[preset]}
    return {"tradeoff": wanted | ({"duration_s": 20.0} if quick else {})}


def truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """The rates of two levels; their errors are 0 where the P99s of levels on either side are clear of the limits."""
    requests = QUICK_REQUESTS if quick else TRUTH_REQUESTS
    p99s: dict[float, float] = {}
    for percent in Tests().tradeoff.percent:
        rate = float(f"{CAPACITY[preset] * percent / 100:.6g}")
        if percent > BELOW:
            continue

        def load(plan: Plan, rate: float = rate) -> Plan:
            return open_loop(without_warm_up(plan), rate, requests=requests)

        def p99(summary: Summary) -> Mapping[str, float | None]:
            return {"p99": stat(summary, "ttft", "p99")}

        p99s[rate] = long_runs(preset, load, p99, quick=True)["p99"].value
    least = min(p99s.values())
    beyond = [rate for rate, value in p99s.items() if value > KNEE * least]
    within = [rate for rate, value in p99s.items() if value <= OBJECTIVE_MS]
    found = {"knee": min(beyond)} if beyond else {}
    return {
        name: Truth(rate) for name, rate in (found | ({"optimum": max(within)} if within else {})).items()
    }


def falling(preset: str) -> Chosen:
    """The preset in few steps, with a KV cache of 6,400 tokens, which it swaps at 20 ms a block."""
    chosen = few_steps(preset, 4)
    changes: dict[str, Any] = {"output_check_tokens": 0, "input_check_ns": 0, "prefix_caching": False}
    changes |= {"max_batch": 64, "kv_blocks": 400, "preemption": "swap", "swap_per_block_ns": 20_000_000}
    return replace(chosen, settings=replace(chosen.settings, **changes))


def growing(plan: Plan) -> Plan:
    """Short prompts and long answers."""
    return documents(plan, INPUT, OUTPUT)


def falling_parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """Levels of ten minutes."""
    del preset
    wanted = {"capacity_rate": FALLING_CAPACITY, "percent": FALLING_LEVELS}
    return {"tradeoff": wanted | {"duration_s": 60.0 if quick else FALLING_S}}


def falling_truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """The first level whose P99 is above twice the least, the first with less throughput than the one before, and the most."""
    requests = QUICK_REQUESTS if quick else FALLING_REQUESTS
    p99s, outputs = list[float](), list[Truth]()
    rates = [float(f"{FALLING_CAPACITY * level / 100:.6g}") for level in FALLING_LEVELS]
    for rate in rates:

        def load(plan: Plan, rate: float = rate) -> Plan:
            return open_loop(without_warm_up(growing(plan)), rate, requests=requests)

        def figures(summary: Summary) -> Mapping[str, float | None]:
            return {"p99": stat(summary, "ttft", "p99"), "output": output(summary)}

        found = long_runs(falling(preset), load, figures, quick=True)
        p99s.append(found["p99"].value)
        outputs.append(found["output"])
    most = max(outputs, key=lambda one: one.value)
    knee = next(rate for rate, p99 in zip(rates, p99s, strict=True) if p99 > KNEE * min(p99s))
    fall = next(
        rate
        for rate, (one, after) in zip(rates[1:], pairwise(outputs), strict=True)
        if after.value < one.value
    )
    return {"knee": Truth(knee), "saturation": Truth(fall), "peak_output_tok_s": most}


HEADLINE = Headline("tradeoff", parameters, truths, slos=(f"ttft_p99<{OBJECTIVE_MS:g}ms",))
FALLING = Headline(
    "tradeoff", falling_parameters, falling_truths, engine=falling, workload=growing, part="falling"
)
