"""Draft 5.7: reductions of TTFT and the hit rate of a warm cache, each seed against its own passes at ten times their size.

    python -m benchmarks.headlines.prefix_cache SEED...   # a line of JSON a seed: truths, answers, intervals

The seed draws the texts that requests share, and how long these are decides what a cache saves: so there is no truth for all
seeds. The load is given, so that each measures at the same. The cold hit rate is not held against anything: its misses are the
first request of each text, so it rises with the number of requests.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from benchmarks.headlines.few_steps import few_steps
from benchmarks.headlines.headline import Answer, of_values
from benchmarks.played import plan_of, played
from inferometer.plan.procedure_parameters import Tests
from inferometer.procedures import prefix_cache
from inferometer.procedures.setup import Setup, variant, workload_key
from inferometer.procedures.step import KnownLimits

PRESET, BASE = "testbed", 17.2
"""Requests of Code Completion per second that the engine (few_steps.py) sustains without cache."""
SIZE, TRUTH_SIZE = {"requests": 300, "throughput_s": 20}, {"requests": 3_000, "throughput_s": 2}
"""A third of the default, and ten times as much."""
FIGURES = ("ttft_reduction_cold", "ttft_reduction_warm", "hit_rate_warm")


def answers(seed: int, size: Mapping[str, float]) -> Mapping[str, Answer]:
    """A whole test's."""
    plan, tests = plan_of(seed), Tests.model_validate({"prefix-cache": dict(size)})
    bare = variant(prefix_cache.workload(Setup(plan, tests)), sut={"prefix_caching": "disabled"})
    setup = Setup(plan, tests, KnownLimits({workload_key(bare): BASE}))
    return of_values(prefix_cache.results(setup, played(few_steps(PRESET), prefix_cache.steps(setup))))


def main(seeds: Sequence[int]) -> None:
    """A line a seed."""
    for seed in seeds:
        found, truth = answers(seed, SIZE), answers(seed, TRUTH_SIZE)
        rows = {
            name: {"truth": truth[name].value, "answer": found[name].value, "interval": found[name].interval}
            for name in FIGURES
        }
        print(json.dumps({"seed": seed} | rows), flush=True)


if __name__ == "__main__":
    main([int(one) for one in sys.argv[1:]])
