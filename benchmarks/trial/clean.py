"""Clean runs: nothing is wrong, and nothing may be said to be. Most are records of truthful runs, judged as live ones; the rest
are made by the product's own simulation, from the plan to the verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.trial import agents, tasks
from benchmarks.trial.defects import random_of
from benchmarks.trial.hosts import agreeing
from benchmarks.trial.lies import OWN, cached
from benchmarks.trial.playing import Scene
from benchmarks.trial.records import Recorded, judged, truthful
from inferometer.plan.parse import build
from inferometer.run.simulate import simulate
from inferometer.server.presets import PRESETS
from inferometer.simulation.engine import choose

CAPACITY = {
    "tiny-cpu": 89.0,
    "testbed": 10.2,
    "a100-8b": 15.9,
    "h100-70b-tp4": 17.8,
    "m4-laptop-8b": 0.2,
}
"""Requests a second of 128 to 512 tokens of prompt and 64 to 256 of answer that each preset ends with its places taken."""
LOADS = (0.3, 0.5, 0.65, 0.75)
"""Shares of it in open loop: at more, 1,000 requests say little of the tail of a queue (docs/statistics.md)."""
SLOTS = {"tiny-cpu": 16, "testbed": 8, "a100-8b": 64, "h100-70b-tp4": 64, "m4-laptop-8b": 4}
REQUESTS = 1_000
SLOWEST = "m4-laptop-8b"


@dataclass(frozen=True, slots=True)
class Clean:
    """A clean run. `quick`: it belongs to the short form."""

    name: str
    carry_out: Callable[[], tuple[str, tuple[str, ...]]]
    quick: bool = False


def recorded(
    name: str, scene: Scene, change: Callable[[Recorded], Recorded], *, quick: bool = False
) -> Clean:
    """The record of a truthful run, with a plan that says something else of it, or none."""

    def carry_out() -> tuple[str, tuple[str, ...]]:
        said = judged(change(truthful(scene)))
        return said.status, said.reasons

    return Clean(name, carry_out, quick)


PLANS: dict[str, Callable[[Recorded], Recorded]] = {
    "": lambda run: run,
    ", own tokenizer": lambda run: run.planned(**OWN),
}


def _records() -> Iterator[Clean]:
    lengths = {"mixed lengths": ((128, 512), (64, 256)), "one length": ((300, 300), (100, 100))}
    number = 0
    for preset, capacity in CAPACITY.items():
        # An output guardrail holds text back, which is a defect of its own.
        engine = replace(PRESETS[preset], output_check_tokens=0)
        for label, (prompts, answers) in lengths.items():
            base = Scene(requests=REQUESTS, prompts=prompts, answers=answers, engine=engine)
            share = 1.0 if label == "mixed lengths" else 1.3
            scenes = {
                f"open loop, {load:.0%}": replace(base, rate=share * load * capacity) for load in LOADS
            } | {
                f"closed loop, {slots}": replace(base, rate=None, slots=slots)
                for slots in (1, SLOTS[preset] // 2, SLOTS[preset])
            }
            for load, scene in scenes.items():
                for plan, change in PLANS.items():
                    for _ in range(2):
                        number += 1
                        yield recorded(
                            f"{preset}, {label}, {load}{plan}, seed {number}",
                            replace(scene, seed=1_000 + number),
                            change,
                            quick=number % 15 == 0 and preset != SLOWEST and scene.slots != 1,
                        )


def _declared() -> Iterator[Clean]:
    """Runs whose cache is as declared."""
    again: dict[str, Any] = {"workload": {"repeatable_prompts": True}}
    for seed in range(5):
        scene = Scene(seed=2_000 + seed, requests=REQUESTS)
        for state, share in (("warm", 1.0), ("cold", 0.0), ("unknown", 0.5)):
            plans = {**again, "sut": {"cache_state": state}}
            yield recorded(
                f"cache declared {state}, {share:.0%} of the prompts found, seed {seed}",
                scene,
                lambda run, share=share, plans=plans: cached(share, plans)(run, random_of("clean")),  # type: ignore[misc]
                quick=not seed,
            )


def _hosts() -> Iterator[Clean]:
    """Loads that several hosts sent, each by a clock of its own: known to within its bound, and of another rate."""
    for number, (hosts, ppm) in enumerate(((2, 0.0), (4, 20.0), (8, -80.0), (16, 180.0))):
        for loop, scene in (("open", Scene()), ("closed", Scene(rate=None, slots=16))):
            yield recorded(
                f"{hosts} load hosts, {ppm:g} ppm, {loop} loop",
                replace(scene, seed=3_000 + number, requests=1_200),
                lambda run, hosts=hosts, ppm=ppm: agreeing(hosts, ppm)(run, random_of("clean")),  # type: ignore[misc]
                quick=hosts == 4,
            )


OPEN_OUTPUT = ("output_check_tokens=0",)


def simulated(name: str, preset: str, flags: dict[str, Any], *, quick: bool = False) -> Clean:
    """The product's own simulation of a plan, without a guardrail of answers, which would hold text back."""

    def carry_out() -> tuple[str, tuple[str, ...]]:
        with tempfile.TemporaryDirectory() as place:
            result = simulate(build(None, flags), choose(preset, OPEN_OUTPUT), Path(place), agents.Silent())
        verdict = result.summary.verdict
        return verdict.status, tuple(dict.fromkeys(reason.code for reason in verdict.reasons))

    return Clean(name, carry_out, quick)


def _simulations() -> Iterator[Clean]:
    for preset, capacity in CAPACITY.items():
        rate = round(0.5 * capacity, 3)
        slots = SLOTS[preset] // 2
        kinds: dict[str, dict[str, Any]] = {
            "open loop": {"--rate": f"{rate}"},
            "closed loop": {"--concurrency": f"{slots}"},
            "completions": {"--rate": f"{rate}", "--api": "completions"},
            "constant gaps": {"--rate": f"{rate}", "--arrival": "constant"},
            "bursty": {"--rate": f"{0.6 * rate:.4f}", "--burstiness": "0.5"},
            "normal": {"--concurrency": f"{slots}", "--workload": "normal"},
            "whole answers": {"--concurrency": f"{slots}", "--no-stream": True},
        }
        for at, (kind, flags) in enumerate(kinds.items()):
            given = {"--requests": f"{REQUESTS}", "--seed": f"{100 + at}", **flags}
            yield simulated(
                f"simulated {preset}, {kind}",
                preset,
                given,
                quick=preset == "tiny-cpu" and kind in ("open loop", "closed loop"),
            )


def cleans() -> Iterator[Clean]:
    """All of them."""
    yield from _records()
    yield from _declared()
    yield from _hosts()
    yield from _simulations()
    for name, carry_out in (*agents.clean(), *tasks.clean()):
        yield Clean(name, carry_out, quick=name == "tasks, agent")
