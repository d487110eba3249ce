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
    Estimate,
    FigureVerdict,
    Held,
    Item,
    NoiseFloor,
    Outcome,
)
from inferometer.judge.comparison import bootstrap, rules, welch
from inferometer.judge.comparison.bootstrap import Sampled, Statistic
from inferometer.judge.comparison.equivalence import (
    Declared,
    RunFacts,
    Sides,
    accelerators,
    checklist,
    hardware_differs,
    normalised_by,
    pairs,
)
from inferometer.judge.comparison.rules import LEAST_RUNS
from inferometer.measure.record import Floats
from inferometer.measure.stats import mean_interval
from inferometer.metrics.catalogue import METRICS, RATES, SUCCESS, stem
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


FIGURES: dict[str, Figure] = _rates() | _distributed() | {SUCCESS: Figure(Statistic("success"), more=True)}
"""What a comparison shows, by the metrics' entries. Rates stand in runs' `rates`, the others in their samples."""

DECIDING = ("output_tok_s", "ttft_p50", "ttft_p99", "tpot_p50", "success_rate")
"""Unless told otherwise. Where hardware differs, throughput normalised takes the place of the first (draft 6.2)."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its facts, its per-run values by figure (None: it has none), and what can be resampled."""

    facts: RunFacts
    values: Mapping[str, float | None]
    sampled: Sampled


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
        made.append(Run(run.facts, {**run.values, **more}, sampled))
    return made


def _usual(facts: Sides, declared: Declared, rows: Sequence[Sequence[Run]]) -> tuple[str, ...]:
    """The usual deciding figures, without those that no run has."""
    method = normalised_by(facts, declared) if hardware_differs(facts) else None
    first = DECIDING[0] if method is None else NORMALISED[method]
    known = {name for row in rows for run in row for name, value in run.values.items() if value is not None}
    return tuple(name for name in (first, *DECIDING[1:]) if name in known)


def _uncounted(items: Sequence[Item], facts: Sides) -> set[str]:
    """Figures that cannot be set against each other: tokens counted in different ways, gaps taken in different ways."""
    counted = next(item for item in items if item.code == "token_count").status != "violated"
    methods = {run.tokens.itl_method for side in facts for run in side}
    return {
        name
        for name, figure in FIGURES.items()
        if (figure.tokens and not counted) or (figure.statistic.of == "itl" and len(methods) > 1)
    }


def _values(runs: Sequence[Run], name: str) -> Floats | None:
    found = [run.values.get(name) for run in runs]
    return None if None in found else np.array(found, np.float64)


def _estimate(values: Floats | None) -> Estimate | None:
    if values is None:
        return None
    mean = float(values.mean())
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    interval = mean_interval(len(values), mean, std)
    return Estimate(len(values), mean, interval, tuple(map(float, values)))


def _scaled(interval: Interval, by: float) -> Interval:
    return interval[0] / by, interval[1] / by


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
            scale = abs(float(base.mean()))
            shift = abs(float(other.mean()) - float(base.mean())) / scale
            test = welch.welch(base, other)
            if test is not None:
                tests.append((name, test.p))
            if name not in floors or shift > floors[name].value:
                floors[name] = NoiseFloor(shift, None if test is None else _scaled(test.interval, scale))
    adjusted = welch.holm([p for _, p in tests])
    moves = {name for (name, _), p in zip(tests, adjusted, strict=True) if p < welch.ALPHA}
    return floors, tuple(name for name in FIGURES if name in moves)


# A difference in the making: what is worked out before the sides of a family are known to each other.


@dataclass(slots=True)
class _Draft:
    name: str
    deciding: bool
    apart: bool
    base: Floats | None
    other: Floats | None
    floor: NoiseFloor | None
    test: welch.Test | None = None
    paired: welch.Test | None = None
    bootstrap: Interval | None = None
    p_holm: float | None = None
    family: int = 1

    @property
    def decides(self) -> welch.Test | None:
        """By pairs of runs where the design has them, else by Welch's: the design chooses, never the data."""
        return self.paired or self.test

    @property
    def scale(self) -> float | None:
        """What differences are divided by."""
        mean = None if self.base is None or self.other is None else abs(float(self.base.mean()))
        return mean or None


def _draft(
    name: str, base: Sequence[Run], row: Sequence[Run], deciding: bool, floor: NoiseFloor | None, apart: bool
) -> _Draft:
    draft = _Draft(name, deciding, apart, _values(base, name), _values(row, name), floor)
    if draft.base is not None and draft.other is not None and draft.scale is not None and not apart:
        draft.test = welch.welch(draft.base, draft.other)
    return draft


def _resample(drafts: Sequence[Sequence[_Draft]], rows: Sequence[Sequence[Run]], criteria: Criteria) -> None:
    for at, row in enumerate(drafts, start=1):
        wanted = {one.name: FIGURES[one.name].statistic for one in row if one.scale is not None}
        base, other = ([run.sampled for run in rows[side]] for side in (0, at))
        found = bootstrap.relative_intervals(base, other, wanted, criteria.seed, criteria.replicates)
        for one in row:
            one.bootstrap = found.get(one.name)


def _pair(drafts: Sequence[Sequence[_Draft]], rows: Sequence[Sequence[Run]], facts: Sides) -> None:
    for at, row in enumerate(drafts, start=1):
        found = pairs([facts[0], facts[at]])
        if found is None or len(found) < len(rows[0]):
            continue
        for one in row:
            if one.base is None or one.other is None or one.scale is None:
                continue
            if not one.apart:
                one.paired = welch.paired(one.base[[a for a, _ in found]], one.other[[b for _, b in found]])


def _decided(
    drafts: Sequence[Sequence[_Draft]], threshold: float, allowed: FigureVerdict | None, *, foreign: bool
) -> tuple[tuple[Difference, ...], ...]:
    for deciding in (True, False):  # two families: what decides does not pay for what is only shown
        family = [one for row in drafts for one in row if one.deciding is deciding]
        tested = [one for one in family if one.decides is not None]
        adjusted = welch.holm([one.decides.p for one in tested if one.decides is not None])
        for one, p in zip(tested, adjusted, strict=True):
            one.p_holm, one.family = p, len(tested)
    return tuple(
        tuple(_difference(one, threshold, allowed, foreign=foreign) for one in row) for row in drafts
    )


def _difference(
    draft: _Draft, threshold: float, allowed: FigureVerdict | None, *, foreign: bool
) -> Difference:
    """`foreign`: the noise floor is that of another system or load."""
    test, scale = draft.decides, draft.scale
    baseline, side = _estimate(draft.base), _estimate(draft.other)
    relative = interval = detectable = detectable_ci = None
    if baseline is not None and side is not None and scale is not None:
        relative = (side.mean - baseline.mean) / scale
    effect = None
    if test is not None and scale is not None:
        interval = _scaled(test.interval, scale)
        detectable = welch.detectable(test.se / scale, test.df, welch.ALPHA / draft.family)
        detectable_ci = welch.interval_of_spread(detectable, test.df)
        assert draft.base is not None
        assert draft.other is not None
        effect = welch.hedges_g(draft.base, draft.other)
    held = _held(draft, relative, interval, threshold)
    if foreign and held == ("noise",) and allowed is None:  # a floor of something else says nothing of this
        allowed = "no_claim"
    return Difference(
        draft.name,
        "more" if FIGURES[draft.name].more else "less",
        draft.deciding,
        baseline,
        side,
        relative,
        None if draft.test is None or scale is None else _scaled(draft.test.interval, scale),
        None if test is None else test.p,
        draft.p_holm,
        None if draft.paired is None or scale is None else _scaled(draft.paired.interval, scale),
        draft.bootstrap,
        None if effect is None else effect[0],
        None if effect is None else effect[1],
        detectable,
        draft.floor,
        None if interval is None or not threshold else max(map(abs, interval)) < threshold,
        _verdict(draft, relative, interval, held, allowed, threshold),
        held,
        None if test is None else "paired" if draft.paired is not None else "welch",
        detectable_ci,
    )


def _held(
    draft: _Draft, relative: float | None, interval: Interval | None, threshold: float
) -> tuple[Held, ...]:
    """What speaks against calling it a difference."""
    again = draft.bootstrap
    agrees = again is not None and relative is not None and (again[0] > 0 if relative > 0 else again[1] < 0)
    floor = None if draft.floor is None else draft.floor.value
    return rules.held(relative, interval, draft.p_holm, agrees=agrees, threshold=threshold, floor=floor)


def _verdict(
    draft: _Draft,
    relative: float | None,
    interval: Interval | None,
    held: Sequence[Held],
    allowed: FigureVerdict | None,
    threshold: float,
) -> FigureVerdict:
    if draft.apart:
        return "not_comparable"
    tested, more = draft.decides is not None, FIGURES[draft.name].more
    return rules.decided(relative, interval, held, allowed, tested=tested, threshold=threshold, more=more)


def _outcome(
    contrasts: Sequence[Sequence[Difference]], allowed: FigureVerdict | None, invalid: bool
) -> Outcome:
    deciding = (one.verdict for row in contrasts for one in row if one.deciding)
    return rules.outcome(deciding, comparable=allowed != "not_comparable", invalid=invalid)
