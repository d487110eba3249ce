"""`compare` as a gate: a side that is truly slower, or not comparable, must not be passed as no regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from benchmarks.comparison_null import SEED_SPREAD, drawn, luck
from benchmarks.trial.defects import Case, Defect
from benchmarks.trial.records import Bent
from inferometer.judge.comparison.compare import Comparison, Criteria, Run, compare

THRESHOLD = 0.05
REPLICATES = 100
SEEDS = 8
"""Comparisons a defect: it is believed if one of them is."""


def sides(kind: str, runs: int, slower: float, seed: int) -> list[list[Run]]:
    """Two sides of so many runs, the second truly slower."""
    random = np.random.default_rng(seed)
    shared = np.exp(random.normal(0, SEED_SPREAD, runs))

    def side(factor: float) -> list[Run]:
        return [drawn(at, factor * float(shared[at]) * luck(kind, random), random) for at in range(runs)]

    return [side(1.0), side(1.0 + slower)]


def gate(kind: str, runs: int, slower: float, seed: int) -> Comparison:
    """One comparison with a threshold, as in continuous integration."""
    return compare(
        sides(kind, runs, slower, seed), Criteria(threshold=THRESHOLD, seed=seed, replicates=REPLICATES)
    )


def gated(name: str, slower: float, compared: Callable[[int], Comparison]) -> Defect:
    """A gate that must not pass: believed, if it says `no_regression` for any seed."""

    def carry_out() -> Case:
        outcomes = [str(compared(seed).outcome) for seed in range(SEEDS)]
        passed = outcomes.count("no_regression")
        said = tuple(f"{outcome} {outcomes.count(outcome)}" for outcome in dict.fromkeys(outcomes))
        return Case("VALID" if passed else "INVALID", said, lambda: Bent("all latencies", slower, 0))

    return Defect(name, "compare as a gate", (), carry_out)


def other_plan(seed: int) -> Comparison:
    """The second side asked for another load."""
    first, second = sides("calm", 5, 0.1, seed)
    moved = [
        replace(
            run,
            facts=replace(
                run.facts,
                fingerprint=f"sha256:other-{run.facts.seed}",
                plan=run.facts.plan.model_copy(
                    update={"load": run.facts.plan.load.model_copy(update={"concurrency": 64})}
                ),
            ),
        )
        for run in second
    ]
    return compare([first, moved], Criteria(threshold=THRESHOLD, seed=seed, replicates=REPLICATES))


def defects() -> Iterator[Defect]:
    """All of them."""
    for kind, runs, slower in (
        ("calm", 3, 0.1),
        ("calm", 5, 0.1),
        ("calm", 3, 0.2),
        ("noisy", 3, 0.1),
        ("noisy", 5, 0.2),
        ("hiccups", 3, 0.1),
    ):
        yield gated(
            f"{slower:.0%} slower, {kind}, {runs} runs",
            slower,
            lambda seed, kind=kind, runs=runs, slower=slower: gate(kind, runs, slower, seed),  # type: ignore[misc]
        )
    yield gated("another load on the second side", 0.1, other_plan)
