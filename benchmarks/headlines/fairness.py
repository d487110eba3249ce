"""Draft 5.6: Jain's index and the slowdowns of the default classes, against whole tests at many times their size.

The saturation rate of the mix is given to all searches, so that each measures at the same load.

    python -m benchmarks.headlines.fairness SEED...   # a line of JSON a seed: engines that are fair, and planted schedulers

holds the reading of the index against what is planted: a fair engine on each standard workload, and engines that compute one
prompt at a time, in turn or with one class before the other.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.headlines.few_steps import few_steps
from benchmarks.headlines.headline import TRUTH_SEED, Headline, Truth, mean_of, of_values
from benchmarks.played import plan_of, played, stand_of
from inferometer.measure.jain import jain_of_shares
from inferometer.measure.length_cost import by_length, cost_of, slowdowns_of
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.plan.standard import STANDARD
from inferometer.procedures import fairness
from inferometer.procedures.setup import Setup, another_workload, open_loop, workload_key
from inferometer.procedures.step import KnownLimits
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen

BASE = {"testbed": 1.1}
"""Requests of the mix per second that the engine sustains."""
SLOWER = 16
"""So that the shortest run brings no more than the requests of a class that are asked for."""
SIZE = {"percent": 40, "duration_s": 60, "requests_per_class": 100}
"""A fifth of the default requests, so that 20 searches take minutes, and half of the load: at 80 % the engine does not sustain
the short class alone."""
TRUTH_SIZE = {"percent": 40, "duration_s": 300, "requests_per_class": 1_000}
QUICK_SIZE = {"duration_s": 10, "requests_per_class": 20}
TRUTHS = 3
FIGURES = (
    "jain", "jain_alone", "slowdown_short", "slowdown_long", "inflation_short", "inflation_long",
)  # fmt: skip

FAIR_RATE, FAIR_REQUESTS = 0.02, 200
"""Next to no request of a standard workload meets another."""
ONE_AT_A_TIME = Settings(
    jitter=0,
    max_batch=1,
    step_base_ns=50_000,
    step_per_request_ns=0,
    prefill_base_ns=0,
    prefill_per_token_ns=200_000,
    chunked_prefill=False,
    token_budget=8192,
    draft_tokens=31,
    acceptance=1,
)
PLANTED = {
    "in turn": ("fcfs", ((256, 1024), (256, 1024)), 90),
    "one of two equal classes first": ("priority", ((256, 1024), (256, 1024)), 90),
    "short before long": ("priority", ((128, 256), (256, 512)), 95),
}
"""By name: the policy, the prompt lengths of both classes, and the load in per cent of what the engine carries."""


def parameters(preset: str, quick: bool) -> Mapping[str, Any]:
    """See SIZE."""
    del preset
    return {"fairness": QUICK_SIZE if quick else SIZE}


def known(preset: str, plan: Plan) -> KnownLimits:
    """The rate that 80 % is of."""
    return KnownLimits({workload_key(fairness.mix(Setup(plan, Tests()))): BASE[preset]})


def engine(preset: str) -> Chosen:
    """The preset in few steps, at the preset's time by token."""
    return few_steps(preset, SLOWER)


def truths(preset: str, quick: bool) -> Mapping[str, Truth]:
    """Whole tests of ten times the requests."""
    tests = Tests.model_validate({"fairness": QUICK_SIZE if quick else TRUTH_SIZE})
    found = []
    for seed in range(TRUTH_SEED, TRUTH_SEED + (1 if quick else TRUTHS)):
        plan = plan_of(seed)
        setup = Setup(plan, tests, known(preset, plan))
        found.append(of_values(fairness.results(setup, played(engine(preset), fairness.steps(setup)))))
    return {name: mean_of([one[name].value for one in found]) for name in FIGURES}


def fair(seed: int, workload: str) -> float | None:
    """Jain's index of a standard workload on an engine that keeps nobody waiting, by the costs of its own lengths."""
    plan = open_loop(another_workload(plan_of(seed), name=workload), FAIR_RATE, requests=FAIR_REQUESTS)
    with tempfile.TemporaryDirectory() as folder:
        requests = stand_of(few_steps("testbed")).measure(plan, Path(folder)).requests
    groups = by_length(requests.prompt, requests.ttft_ms)
    cost = cost_of(groups)
    shares = None if cost is None else slowdowns_of(groups, cost)
    return None if shares is None else jain_of_shares([shares])


def planted(seed: int, name: str) -> Mapping[str, float | str | None]:
    """The index, the slowdowns and what the test says of a scheduler."""
    policy, lengths, percent = PLANTED[name]
    classes = [
        {"name": each, "input_tokens": prompt, "output_tokens": (16, 32), "share": share, "priority": number}
        for number, (each, prompt, share) in enumerate(
            zip(("first", "second"), lengths, (0.8, 0.2), strict=True)
        )
    ]
    tests = Tests.model_validate({"fairness": SIZE | {"classes": classes, "percent": percent}})
    means = [one.lengths[0].mean() for one in tests.fairness.classes]
    prefill = ONE_AT_A_TIME.prefill_per_token_ns * (0.8 * means[0] + 0.2 * means[1])
    full = 1e9 / (prefill + 2 * ONE_AT_A_TIME.step_base_ns)
    plan = plan_of(seed)
    setup = Setup(plan, tests, KnownLimits({workload_key(fairness.mix(Setup(plan, tests))): full}))
    scheduler = Chosen("tiny-cpu", replace(ONE_AT_A_TIME, policy=policy))
    results = fairness.results(setup, played(scheduler, fairness.steps(setup)))
    codes = [note.code for note in results.notes]
    reading = next((code for code in codes if code in ("significantly_unfair", "unfair_alone")), "fair")
    behind = next((str(note.facts["class"]) for note in results.notes if note.code == "class_behind"), None)
    answers = {
        one: found.value for one, found in of_values(results).items() if not one.startswith("starvation")
    }
    return answers | {"reading": reading, "behind": behind}


def main(seeds: Sequence[int]) -> None:
    """A line a seed."""
    for seed in seeds:
        found: dict[str, Any] = {f"fair, {name}": fair(seed, name) for name in STANDARD}
        found |= {name: planted(seed, name) for name in PLANTED}
        print(json.dumps({"seed": seed} | found), flush=True)


HEADLINE = Headline("fairness", parameters, truths, engine=engine, known=known)

if __name__ == "__main__":
    main([int(one) for one in sys.argv[1:]])
