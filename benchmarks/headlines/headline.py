"""A headline and its truth: what a test is asked for, what is right, and what one search of it answers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.played import measured, plan_of, played_in_states, stand_of
from inferometer.documents.results import Interval
from inferometer.documents.summary import Summary
from inferometer.judge.compliance.evidence import MeasuredRun
from inferometer.judge.procedure_verdict import verdict_of_test
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.registry import PROCEDURES
from inferometer.procedures.results import Results
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import KnownLimits, runs
from inferometer.report.campaign.titles import headline_of
from inferometer.simulation.engine import Chosen
from inferometer.studies import procedure_document

TRUTH_SEED = 987_654
"""Far from those of the searches."""
TRUTH_RUNS, QUICK_TRUTH_RUNS = 5, 2


@dataclass(frozen=True, slots=True)
class Truth:
    """What is right, and the standard error of that; 0: a closed form."""

    value: float
    error: float = 0.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a test says of one figure; None: that it does not know."""

    value: float | None
    interval: Interval | None


Answers = Mapping[str, Answer]


def of_values(results: Results) -> dict[str, Answer]:
    """The test's values by their names."""
    return {
        value.name: Answer(None if value.value is None else float(value.value), value.ci)
        for value in results.values
        if not isinstance(value.value, bool | str)
    }


def as_given(plan: Plan) -> Plan:
    """The default workload."""
    return plan


def nothing_known(preset: str, plan: Plan) -> KnownLimits:
    """A test that finds out all that it needs by itself."""
    del preset, plan
    return KnownLimits()


@dataclass(frozen=True, slots=True)
class Headline:
    """A test, and how it is held against the truth.

    `parameters`: those of all tests, by the preset and whether it is quick; `truths`: by the names of figures, of which the
    first is the headline; `answers`: the same figures out of a test's results. `engine`: in place of the preset's; `known`:
    what an earlier test of a campaign has measured, so that all searches try the same levels. `workload`: in place of the
    default one. `part`: of a test with several headlines.
    """

    test: str
    parameters: Callable[[str, bool], Mapping[str, Any]]
    truths: Callable[[str, bool], Mapping[str, Truth]]
    presets: tuple[str, ...] = ("testbed",)
    answers: Callable[[Results], Answers] = of_values
    engine: Callable[[str], str | Chosen] = str
    known: Callable[[str, Plan], KnownLimits] = nothing_known
    slos: Sequence[str] = field(default=())
    workload: Callable[[Plan], Plan] = as_given
    part: str = ""

    @property
    def name(self) -> str:
        """On the command line: the test's, with the part of it that this is about, if there are several."""
        return f"{self.test}-{self.part}" if self.part else self.test


@dataclass(frozen=True, slots=True)
class Search:
    """One search: its answers, and the verdict with the codes of its reasons."""

    seed: int
    runs: int
    answers: Answers
    verdict: str
    reasons: tuple[str, ...]


def searched(headline: Headline, preset: str, seed: int, *, quick: bool = False) -> Search:
    """The answers and the verdict of one test, as a campaign gives them."""
    plan = headline.workload(plan_of(seed, slos=headline.slos))
    tests = Tests.model_validate(dict(headline.parameters(preset, quick)))
    setup = Setup(plan, tests, headline.known(preset, plan))
    procedure = PROCEDURES[headline.test]
    done, states = played_in_states(headline.engine(preset), procedure.steps(setup))
    results = procedure.results(setup, done)
    made = [
        MeasuredRun(one.outcome.run, one.step.part, one.step.at, one.outcome.summary, state)
        for one, state in zip(runs(done), states, strict=True)
    ]
    first = headline_of(headline.test, procedure_document.values(results))
    judged = verdict_of_test(headline.test, made, None, results.undecided, first)
    reasons = tuple(dict.fromkeys(one.code for one in judged.objections))
    return Search(seed, len(made), headline.answers(results), judged.status, reasons)


def long_runs(
    engine: str | Chosen,
    plan: Callable[[Plan], Plan],
    figures: Callable[[Summary], Mapping[str, float | None]],
    *,
    quick: bool,
    seeds: Iterable[int] | None = None,
) -> dict[str, Truth]:
    """Figures of several long runs, each with its own seed: their means, and the errors of these by their spread.

    `plan`: the load, of the default workload.
    """
    stand, found = stand_of(engine), list[Mapping[str, float | None]]()
    number = QUICK_TRUTH_RUNS if quick else TRUTH_RUNS
    for seed in seeds or range(TRUTH_SEED, TRUTH_SEED + number):
        found.append(figures(measured(stand, plan(plan_of(seed)))))
    return {name: mean_of([one[name] for one in found]) for name in found[0]}


def mean_of(values: Sequence[float | None]) -> Truth:
    """Of several runs."""
    known = [value for value in values if value is not None]
    spread = statistics.stdev(known) if len(known) > 1 else math.nan
    return Truth(statistics.fmean(known), spread / math.sqrt(len(known)))
