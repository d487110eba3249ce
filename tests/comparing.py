"""Runs to compare: drawn from known distributions (benchmarks/comparison_null.py), or simulated in virtual time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))  # `benchmarks` is not installed

import numpy as np

from benchmarks.comparison_null import drawn, facts_of
from inferometer.documents.comparison import ComparisonDocument, Difference
from inferometer.drive.progress_counters import Progress
from inferometer.journal.schema import Phase
from inferometer.judge.comparison.compare import Comparison, Criteria, Run, compare
from inferometer.judge.comparison.equivalence import RunFacts
from inferometer.judge.compliance.of_comparison import complied
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan
from inferometer.report.comparison.document import compose
from inferometer.report.compliance import statement_document
from inferometer.run.evaluate import RunResult
from inferometer.run.simulate import simulate
from inferometer.run.ui import Ui
from inferometer.simulation.engine import choose

FLAGS: dict[str, object] = {
    "--input-tokens": "40",
    "--output-tokens": "uniform(5,15)",
    "--rate": "60",
    "--requests": "150",
    "--warmup": "5",
}


class Listener:
    """A Ui that remembers what it was told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """See Ui."""
        self.notes.append(text)

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


def simulated(plan: Plan, out: Path, ui: Ui, *settings: str) -> RunResult:
    """A plan in virtual time."""
    return simulate(plan, choose(None, settings), out, ui)


def simulated_side(out: Path, *settings: str, seeds: Sequence[int] = (1, 2, 3), **flags: object) -> Path:
    """A folder of simulated runs, one a seed."""
    for seed in seeds:
        plan = build(
            None, FLAGS | {"--seed": str(seed)} | {f"--{key}": value for key, value in flags.items()}
        )
        simulated(plan, out, Listener(), *settings)
    return out


def side(factor: float = 1.0, runs: int = 3, *, first: int = 0, spread: float = 0.01) -> list[Run]:
    """Runs of a system that is slower by this factor, each by some luck of its own, which another `first` changes."""
    rng = np.random.default_rng([first, runs])
    return [drawn(at, factor * float(np.exp(rng.normal(0, spread))), rng, requests=200) for at in range(runs)]


def changed(runs: Sequence[Run], **facts: Any) -> list[Run]:
    """The same runs with other facts."""
    return [replace(run, facts=replace(run.facts, **facts)) for run in runs]


def planned(run: RunFacts, part: str, **values: Any) -> RunFacts:
    """The same with other values in a part of its plan."""
    changed = getattr(run.plan, part).model_copy(update=values)
    return replace(run, plan=run.plan.model_copy(update={part: changed}))


def figure(comparison: Comparison, name: str, at: int = 0) -> Difference:
    """One figure of one side."""
    return next(one for one in comparison.contrasts[at] if one.name == name)


def document(sides: Sequence[Sequence[Run]], criteria: Criteria | None = None) -> ComparisonDocument:
    """A comparison's document."""
    criteria = criteria or Criteria(replicates=100)
    names = [f"side {at}" for at in range(len(sides) + len(criteria.noise))]
    found = compare(sides, criteria)
    return compose("0.1.0", names, sides, criteria, found, statement_document(complied(found)))


__all__ = ["drawn", "facts_of"]
