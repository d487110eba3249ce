"""Sides against a baseline: which figures are better, worse, or not shown to differ, and what that comes to.

A figure of side B is called better or worse than the baseline's only if all of this holds:

1. the sides may be compared (equivalence.py), no run is INVALID, and each side has at least three runs (draft 6.3);
2. a t-test on per-run values rejects after Holm's correction: p < 0.05 over all deciding figures of all sides at once, and
   apart from them over all others. By the differences of pairs where the design has them, else Welch's: never by the data;
3. the 95 % bootstrap interval of the pooled samples lies on the same side of zero (bootstrap.py);
4. the difference is larger than the threshold asked for and than the noise floor.

The noise floor of a figure is the largest relative difference that A/A runs, further runs of the baseline's own system, show
against the baseline. All relative differences are to the baseline's mean over its runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from inferometer.documents.comparison import (
    Difference,
    FigureVerdict,
    Item,
    NoiseFloor,
    Outcome,
)
from inferometer.judge.comparison import bootstrap, rules, welch
from inferometer.judge.comparison.bootstrap import Sampled, Statistic
from inferometer.judge.comparison.differences import Draft, correct, difference, floor_of
from inferometer.judge.comparison.equivalence import (
    Declared,
    RunFacts,
    Sides,
    accelerators,
    checklist,
    criteria_of,
    hardware_differs,
    normalised_by,
    pairs,
)
from inferometer.judge.comparison.rules import LEAST_RUNS
from inferometer.measure.record import Floats
from inferometer.metrics.catalogue import (
    METRICS,
    RATES,
    SESSION_METRICS,
    SESSION_RATES,
    SUCCESS,
    TASK_SUCCESS,
    stem,
)
from inferometer.metrics.statistics import QUANTILES, Interval


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that is compared. `more`: more of it is better. `tokens`: it hangs on how tokens are counted."""

    statistic: Statistic
    more: bool = False
    tokens: bool = False


NORMALISED = {"gpu": "output_tok_gpu_s", "price": "output_tok_dollar_h"}
"""Throughput for each accelerator, and for each dollar an hour (draft 6.2)."""


def _rates() -> dict[str, Figure]:
    figures = {
        name: Figure(Statistic(name), more=rate.better == "more", tokens=rate.tokens)
        for name, rate in RATES.items()
        if rate.compared
    }
    first, *others = figures  # output tokens, and at once what they are normalised to
    normalised = {name: Figure(Statistic(name), more=True, tokens=True) for name in NORMALISED.values()}
    return {first: figures[first]} | normalised | {name: figures[name] for name in others}


def _distributed() -> dict[str, Figure]:
    return {
        f"{stem(name)}_{statistic}": Figure(
            Statistic(stem(name), QUANTILES.get(statistic)),
            more=metric.better == "more",
            tokens=metric.tokens,
        )
        for name, metric in METRICS.items()
        for statistic in metric.compared
    }


def _shares() -> dict[str, Figure]:
    return {
        name: Figure(Statistic(name.removesuffix("_rate")), more=True) for name in (SUCCESS, TASK_SUCCESS)
    }


def _of_sessions() -> dict[str, Figure]:
    """As rates: a session is no single request."""
    rates = {name: Figure(Statistic(name), more=one.better == "more") for name, one in SESSION_RATES.items()}
    names = [f"{stem(name)}_{part}" for name, one in SESSION_METRICS.items() for part in one.compared]
    return rates | {name: Figure(Statistic(name)) for name in names}


OF_SESSIONS: dict[str, Figure] = _of_sessions()
FIGURES: dict[str, Figure] = _rates() | _distributed() | OF_SESSIONS | _shares()
"""What a comparison shows, by the metrics' entries. Rates, and all of sessions, stand in runs' `rates`, the others in their
samples."""

DECIDING = ("output_tok_s", "ttft_p50", "ttft_p99", "tpot_p50", "success_rate", TASK_SUCCESS)
"""Unless told otherwise, as far as runs have them. Where hardware differs, throughput normalised takes the place of the first
(draft 6.2)."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its facts, its per-run values by figure (None: it has none), and what can be resampled. `bounds`: of figures
    that leave out what nobody knows, between which ends they lie with it."""

    facts: RunFacts
    values: Mapping[str, float | None]
    sampled: Sampled
    bounds: Mapping[str, Interval] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Criteria:
    """What decides. `deciding`: figures, () for the usual; `threshold`: the least relative change that
    matters, as a share of one; `noise`: A/A sides, further runs of the baseline's system;
    `seed`, `replicates`: of the bootstrap."""

    deciding: tuple[str, ...] = ()
    threshold: float = 0.0
    noise: tuple[tuple[Run, ...], ...] = ()
    declared: Declared = field(default_factory=Declared)
    seed: int = 0
    replicates: int = bootstrap.REPLICATES


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of it. `contrasts`: for each side after the baseline, its differences in the order of FIGURES.

    `least_runs`: runs of the side that has fewest; `noise_moves`: figures in which A/A runs differ by more than
    chance, so that the system itself does not hold still.
    """

    items: tuple[Item, ...]
    contrasts: tuple[tuple[Difference, ...], ...]
    deciding: tuple[str, ...]
    least_runs: int
    invalid: tuple[str, ...]
    noise_moves: tuple[str, ...]
    outcome: Outcome

    @property
    def forbidden(self) -> tuple[Item, ...]:
        """The requirements that are violated."""
        return tuple(item for item in self.items if item.forbids)


def compare(sides: Sequence[Sequence[Run]], criteria: Criteria) -> Comparison:
    """Compare each side with the first. Every side has at least one run, and no run is on two sides."""
    facts = [[run.facts for run in side] for side in sides]
    again = [[run.facts for run in side] for side in criteria.noise]
    items = checklist(facts, criteria.declared, again)
    rows = [_normalised(side, facts[at], criteria.declared.prices.get(at)) for at, side in enumerate(sides)]
    noise = [_normalised(side, facts[0], criteria.declared.prices.get(0)) for side in criteria.noise]
    deciding = criteria.deciding or _usual(facts, criteria.declared, rows)
    floors, moves = _floors(rows[0], noise)
    least = min(map(len, sides))
    invalid = tuple(run.id for side in (*facts, *again) for run in side if run.status == "INVALID")
    allowed: FigureVerdict | None = None
    if any(item.forbids for item in items):
        allowed = "not_comparable"
    elif invalid or least < LEAST_RUNS:
        allowed = "no_claim"
    apart = _uncounted(items, facts)
    drafts = [
        [
            _draft(name, rows[0], row, name in deciding, floors.get(name), name in apart)
            for name in FIGURES
            if name in deciding or any(run.values.get(name) is not None for one in rows for run in one)
        ]
        for row in rows[1:]
    ]
    _resample(drafts, rows, criteria)
    _pair(drafts, rows, facts)
    foreign = any(item.code == "noise" and item.status == "violated" for item in items)
    contrasts = _decided(drafts, criteria.threshold, allowed, foreign=foreign)
    outcome = _outcome(contrasts, allowed, bool(invalid))
    return Comparison(items, contrasts, deciding, least, invalid, moves, outcome)


def _normalised(side: Sequence[Run], facts: Sequence[RunFacts], price: float | None) -> list[Run]:
    """The runs with throughput per accelerator and per dollar-hour among their values, where both are known (6.2)."""
    count = accelerators(facts)
    made = []
    for run in side:
        rate = run.values.get("output_tok_s")
        more = {
            name: rate / by
            for name, by in (("output_tok_gpu_s", count), ("output_tok_dollar_h", price))
            if rate is not None and by
        }
        sampled = Sampled(run.sampled.requests, run.sampled.pooled, {**run.sampled.rates, **more})
        made.append(Run(run.facts, {**run.values, **more}, sampled, run.bounds))
    return made


def _usual(facts: Sides, declared: Declared, rows: Sequence[Sequence[Run]]) -> tuple[str, ...]:
    """The usual deciding figures, without those that no run has."""
    method = normalised_by(facts, declared) if hardware_differs(facts) else None
    first = DECIDING[0] if method is None else NORMALISED[method]
    known = {name for row in rows for run in row for name, value in run.values.items() if value is not None}
    return tuple(name for name in (first, *DECIDING[1:]) if name in known)


def _uncounted(items: Sequence[Item], facts: Sides) -> set[str]:
    """Figures that cannot be set against each other: tokens counted in different ways, gaps taken in different ways, answers
    held to different criteria."""
    counted = next(item for item in items if item.code == "token_count").status != "violated"
    runs = [run for side in facts for run in side]
    methods = {run.tokens.itl_method for run in runs}
    criteria = {criteria_of(run.plan) for run in runs}
    return {
        name
        for name, figure in FIGURES.items()
        if (figure.tokens and not counted)
        or (figure.statistic.of == "itl" and len(methods) > 1)
        or (name == TASK_SUCCESS and len(criteria) > 1)
    }


def _values(runs: Sequence[Run], name: str) -> Floats | None:
    found = [run.values.get(name) for run in runs]
    return None if None in found else np.array(found, np.float64)


def _floors(
    baseline: Sequence[Run], noise: Sequence[Sequence[Run]]
) -> tuple[dict[str, NoiseFloor], tuple[str, ...]]:
    """The noise floor of each figure, and the figures in which A/A runs differ beyond chance (Holm over all of theirs)."""
    floors: dict[str, NoiseFloor] = {}
    tests: list[tuple[str, float]] = []
    for name in FIGURES:
        base = _values(baseline, name)
        for runs in noise:
            other = _values(runs, name)
            if base is None or other is None or not base.mean():
                continue
            test = welch.welch(base, other)
            if test is not None:
                tests.append((name, test.p))
            floors[name] = floor_of(base, other, abs(float(base.mean())), floors.get(name))
    adjusted = welch.holm([p for _, p in tests])
    moves = {name for (name, _), p in zip(tests, adjusted, strict=True) if p < welch.ALPHA}
    return floors, tuple(name for name in FIGURES if name in moves)


def _draft(
    name: str, base: Sequence[Run], row: Sequence[Run], deciding: bool, floor: NoiseFloor | None, apart: bool
) -> Draft:
    values = _values(base, name), _values(row, name)
    (down, up), (other_down, other_up) = _open(base, name), _open(row, name)
    unknown = (other_down - up, other_up - down)
    return Draft(name, FIGURES[name].more, deciding, *values, floor, apart, unknown=unknown).tried()


def _open(runs: Sequence[Run], name: str) -> Interval:
    """How far a side's mean may lie lower, and higher, by what its runs leave out."""
    ends = [
        (run.bounds[name][0] - value, run.bounds[name][1] - value)
        for run in runs
        if name in run.bounds and (value := run.values.get(name)) is not None
    ]
    return sum(low for low, _ in ends) / len(runs), sum(high for _, high in ends) / len(runs)


def _resample(drafts: Sequence[Sequence[Draft]], rows: Sequence[Sequence[Run]], criteria: Criteria) -> None:
    for at, row in enumerate(drafts, start=1):
        wanted = {one.name: FIGURES[one.name].statistic for one in row if one.scale is not None}
        base, other = ([run.sampled for run in rows[side]] for side in (0, at))
        found = bootstrap.relative_intervals(base, other, wanted, criteria.seed, criteria.replicates)
        for one in row:
            one.bootstrap = found.get(one.name)


def _pair(drafts: Sequence[Sequence[Draft]], rows: Sequence[Sequence[Run]], facts: Sides) -> None:
    for at, row in enumerate(drafts, start=1):
        found = pairs([facts[0], facts[at]])
        if found is None or len(found) < len(rows[0]):
            continue
        for one in row:
            one.pair(found)


def _decided(
    drafts: Sequence[Sequence[Draft]], threshold: float, allowed: FigureVerdict | None, *, foreign: bool
) -> tuple[tuple[Difference, ...], ...]:
    correct(one for row in drafts for one in row)
    return tuple(tuple(difference(one, threshold, allowed, foreign=foreign) for one in row) for row in drafts)


def _outcome(
    contrasts: Sequence[Sequence[Difference]], allowed: FigureVerdict | None, invalid: bool
) -> Outcome:
    deciding = (one.verdict for row in contrasts for one in row if one.deciding)
    return rules.outcome(deciding, comparable=allowed != "not_comparable", invalid=invalid)
