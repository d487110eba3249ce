"""Draft 5.7: reductions of TTFT, hit rates and the gain in throughput, against the same passes at many times their size.

The load is given to all searches, so that each measures at the same. The truth is the mean of whole tests with long passes and
seeds of their own: an engine's hit rate and the median's fall have no closed form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.headlines.few_steps import few_steps
from benchmarks.headlines.headline import TRUTH_SEED, Headline, Truth, mean_of, of_values
from benchmarks.played import plan_of, played
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures import prefix_cache
from inferometer.procedures.setup import Setup, variant, workload_key
from inferometer.procedures.step import KnownLimits

BASE = {"testbed": 17.2}
"""Requests of Code Completion per second that the engine (few_steps.py) sustains without cache."""
SIZE, TRUTH_SIZE = {"requests": 300, "throughput_s": 20}, {"requests": 3_000, "throughput_s": 100}
"""A third of the default, and the truth ten times as much."""
QUICK_SIZE = {"requests": 60, "throughput_s": 10}
TRUTHS = 3
FIGURES = (
    "ttft_reduction_cold", "hit_rate_cold", "ttft_reduction_warm", "hit_rate_warm", "throughput_improvement",
)  # fmt: skip


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """A third of the default size."""
    del preset
    return {"prefix-cache": QUICK_SIZE if quick else SIZE}


def known(preset: str, plan: Plan) -> KnownLimits:
    """The rate that 50 % is of."""
    bare = variant(prefix_cache.workload(Setup(plan, Tests())), sut={"prefix_caching": "disabled"})
    return KnownLimits({workload_key(bare): BASE[preset]})


def truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """Whole tests of passes that are ten times as long."""
    tests = Tests.model_validate({"prefix-cache": QUICK_SIZE if quick else TRUTH_SIZE})
    found = []
    for seed in range(TRUTH_SEED, TRUTH_SEED + (1 if quick else TRUTHS)):
        plan = plan_of(seed)
        setup = Setup(plan, tests, known(preset, plan))
        found.append(
            of_values(prefix_cache.results(setup, played(few_steps(preset), prefix_cache.steps(setup))))
        )
    return {name: mean_of([one[name].value for one in found]) for name in FIGURES}


HEADLINE = Headline("prefix-cache", parameters, truths, engine=few_steps, known=known)
