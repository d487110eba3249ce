"""How near draft 5.2's answers come to the truth: every preset of the reference engine, open and closed loop, in virtual time.

The truth of Max Output Throughput is the rate of a backlog that never empties, in one long closed loop of its own seed. That of
the answer under the ten-times rule is where the line of latency_limit.py crosses, fitted to long runs near it. Answers are of
`inferometer test throughput` with its defaults, but for the seed.

    python -m benchmarks maximum [--quick]      # 20 seeds, or 2, of every preset: hours, or half an hour
    python -m benchmarks.maximum PRESET SEED... [--closed] [--base] [--maximum-only] [--truth] [--limit-truth]
                                                # a line of JSON a search
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.figure import Figure, Note
from benchmarks.loads import Bench
from benchmarks.played import measured, plan_of, played, stand_of
from inferometer.plan.procedure_parameters import Tests
from inferometer.procedures import throughput
from inferometer.procedures.plateau import output
from inferometer.procedures.results import Results
from inferometer.procedures.saturation import base_of, find_base
from inferometer.procedures.setup import Setup, closed_loop, open_loop, without_warm_up
from inferometer.procedures.step import Run, Steps
from inferometer.server.presets import PRESETS

SEEDS, QUICK_SEEDS = 20, 2
TRUTH_SEED = 987_654
TRUTH_REQUESTS = 10_000
TRUTH_SLOTS = {"m4-laptop-8b": 16, "testbed": 128}
"""More in flight than the engine has places; elsewhere 512."""


def searched(preset: str, seed: int, loop: str, *, maximum_only: bool = False) -> dict[str, Any]:
    """The answers of one test."""
    tests = Tests.model_validate({"throughput": {"loop": loop}})
    setup = Setup(plan_of(seed), tests)
    steps = throughput.steps(setup)
    done = played(preset, _until(steps) if maximum_only else steps)
    found = throughput.results(setup, done)
    return {"preset": preset, "seed": seed, "loop": loop, "runs": len(done)} | _answers(found, loop)


def _until(steps: Steps) -> Steps:
    """The steps before the searches under a limit."""
    came: Any = None
    while True:
        try:
            step = steps.send(came)
        except StopIteration:
            return
        if isinstance(step, Run) and step.part == "reference":
            return
        came = yield step


def _answers(found: Results, loop: str) -> dict[str, Any]:
    load = "rate" if loop == "open" else "concurrency"
    names = (
        "max_output_tok_s",
        "max_request_s",
        "limited_output_tok_s",
        f"limited_{load}",
        "throughput_at_ttft_limit",
    )
    known = {value.name: value for value in found.values}
    return {name: None if name not in known else [known[name].value, known[name].ci] for name in names} | {
        "undecided": [one.code for one in found.undecided],
        "notes": [one.code for one in found.notes],
    }


def base(preset: str, seed: int) -> dict[str, Any]:
    """The 100 % of other tests."""
    setup = Setup(plan_of(seed), Tests())
    done = played(preset, find_base(setup, setup.plan))  # type: ignore[arg-type]  # it returns a rate, too
    return {"preset": preset, "seed": seed, "base": base_of(setup, setup.plan, done), "runs": len(done)}


def truth(preset: str) -> dict[str, float]:
    """Output tokens and requests a second of a backlog that never empties."""
    slots = TRUTH_SLOTS.get(preset, 512)
    plan = closed_loop(without_warm_up(plan_of(TRUTH_SEED)), slots, requests=TRUTH_REQUESTS)
    summary = measured(stand_of(preset), plan)
    lengths = summary.metrics.output_tokens
    assert lengths is not None
    return {"output_tok_s": output(summary), "request_s": output(summary) / lengths.mean}


def limit_truth(preset: str, capacity: float, loads: tuple[float, ...] = (0.57, 0.6, 0.63)) -> float:
    """The rate at which P99 of TTFT is ten times the P50 at a tenth of the capacity: by a line through log(value) against
    log(rate) of three long runs at `loads`, which have to be near it."""
    stand = stand_of(preset)

    def quantile(seed: int, load: float, requests: int, name: str) -> float:
        rate = float(f"{load * capacity:.5g}")
        plan = open_loop(without_warm_up(plan_of(seed)), rate, requests=requests)
        ttft = measured(stand, plan).metrics.ttft_ms
        assert ttft is not None
        return float(getattr(ttft, name))

    limit = 10 * quantile(TRUTH_SEED, 0.1, TRUTH_REQUESTS // 2, "p50")
    over = [
        math.log(quantile(TRUTH_SEED + 1 + i, load, TRUTH_REQUESTS, "p99") / limit)
        for i, load in enumerate(loads)
    ]
    slope, at = np.polyfit(np.log(np.array(loads) * capacity), over, 1)
    return float(np.exp(-at / slope))


def maximum(bench: Bench) -> Iterator[Figure | Note]:
    """Errors of Max Output Throughput, and how often its interval holds the truth."""
    seeds = QUICK_SEEDS if bench.quick else SEEDS
    yield Note("seeds", f"{seeds} a preset and loop")
    for preset in PRESETS:
        true = truth(preset)["output_tok_s"]
        yield Figure(preset, true, "tok/s", digits=1, grid="truth", line=preset)
        for loop in ("open", "closed"):
            found = [searched(preset, seed, loop, maximum_only=True) for seed in range(1, seeds + 1)]
            answers = [one["max_output_tok_s"] for one in found]
            known = [(value, ci) for value, ci in answers if value is not None]
            errors = [abs(value / true - 1) for value, _ in known]
            held = sum(ci is not None and ci[0] <= true <= ci[1] for _, ci in known)
            yield Figure("worst", 100 * max(errors), "%", digits=2, grid=f"{loop}: error", line=preset)
            yield Figure(
                "holds the truth", 100 * held / seeds, "%", digits=0, grid=f"{loop}: interval", line=preset
            )


def main() -> None:
    """One preset and some seeds, a line of JSON each."""
    flags = argparse.ArgumentParser()
    flags.add_argument("preset", choices=sorted(PRESETS))
    flags.add_argument("seeds", nargs="*", type=int)
    flags.add_argument("--closed", action="store_true")
    flags.add_argument("--maximum-only", action="store_true")
    flags.add_argument("--truth", action="store_true")
    flags.add_argument("--base", action="store_true")
    flags.add_argument("--limit-truth", type=float, nargs="+", metavar="LOAD")
    asked = flags.parse_args()
    if asked.truth:
        print(json.dumps({"preset": asked.preset} | truth(asked.preset)), flush=True)
    if asked.limit_truth:
        capacity = truth(asked.preset)["request_s"]
        crossing = limit_truth(asked.preset, capacity, tuple(asked.limit_truth))
        print(json.dumps({"preset": asked.preset, "limited_rate": crossing}), flush=True)
    for seed in asked.seeds:
        loop = "closed" if asked.closed else "open"
        line = (
            base(asked.preset, seed)
            if asked.base
            else searched(asked.preset, seed, loop, maximum_only=asked.maximum_only)
        )
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
