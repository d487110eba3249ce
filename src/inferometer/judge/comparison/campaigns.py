"""Campaigns against campaigns: which figures of the draft's tests are better, worse, or not shown to differ.

By the rules of a comparison of runs (compare.py, differences.py), with campaigns in the place of runs: each gives one value of
a figure, and at least three a side make a claim possible (draft 6.3). There is no bootstrap, for a test's headline cannot be
resampled. What else keeps a figure from a claim, or from being compared at all:

| bar          | when                                                                  | verdict        |
| ------------ | --------------------------------------------------------------------- | -------------- |
| `invalid`    | its test is INVALID in a campaign of either side                      | no claim       |
| `partial`    | its test did not come to its end                                      | no claim       |
| `bound`      | what the test could not settle makes it a bound, such as a capacity   | no claim       |
|              | above the highest concurrency tried                                   |                |
| `load`       | it was measured at absolute loads that differ (loads.py)              | no claim       |
| `parameters` | the test's parameters differ                                          | not comparable |
| `labels`     | it is of another kind on the sides: gaps of tokens, gaps of chunks    | not comparable |
| `tokens`     | it hangs on tokens, which are counted in different ways               | not comparable |
| `missing`    | a campaign has no such number                                         | not comparable |

A figure found among levels that were tried differs only by more than the distance of neighbouring levels: that is its least
noise floor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import asdict, replace

from inferometer.documents.campaign import Campaign, ProcedureDocument
from inferometer.documents.campaign_comparison import Bar, CampaignFigure
from inferometer.documents.comparison import (
    ComparedLoads,
    ConfigurationDifference,
    Item,
    ItemFacts,
    NoiseFloor,
    Outcome,
)
from inferometer.judge.comparison import equivalence, loads, rules, welch
from inferometer.judge.comparison.campaign_figures import (
    KINDS,
    MAXIMUM,
    PER_DOLLAR,
    PER_GPU,
    Kind,
    Named,
    figures_of,
    headline_among,
    is_bound,
    successes_of,
)
from inferometer.judge.comparison.differences import (
    Draft,
    correct,
    difference,
    floor_of,
    of_two,
    scaled,
)
from inferometer.judge.comparison.equivalence import Declared, RunFacts
from inferometer.measure.record import Floats
from inferometer.metrics.catalogue import TASK_SHARE
from inferometer.metrics.statistics import Interval

APART: tuple[Bar, ...] = ("parameters", "labels", "tokens", "missing")
"""Bars of what cannot be compared; the others are of what cannot be claimed."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """One campaign. `configuration`: beside the plan's, by dotted keys: the reference engine's, and the tests' parameters."""

    facts: RunFacts
    document: Campaign
    configuration: Mapping[str, object]

    def test(self, name: str) -> ProcedureDocument | None:
        """Its test of this name."""
        return next((one for one in self.document.tests if one.test == name), None)


@dataclass(frozen=True, slots=True)
class CampaignCriteria:
    """What decides. `deciding`: figures, or tests for what stands for them; () for all that stand for a test; `threshold`: the
    least relative change that matters, as a share of one; `noise`: A/A sides, further campaigns of the baseline's system."""

    deciding: tuple[str, ...] = ()
    threshold: float = 0.0
    noise: tuple[tuple[Repeat, ...], ...] = ()
    declared: Declared = field(default_factory=Declared)


@dataclass(frozen=True, slots=True)
class ComparedCampaigns:
    """All of it. `contrasts`: for each side after the baseline, its figures; `invalid`: campaigns' ids with the tests that are
    INVALID in them; `noise_moves`: figures in which A/A campaigns differ beyond chance; `unmatched`: tests that not every
    campaign has; `unlike`: tests whose parameters differ."""

    items: tuple[Item, ...]
    differences: tuple[ConfigurationDifference, ...]
    contrasts: tuple[tuple[CampaignFigure, ...], ...]
    deciding: tuple[str, ...]
    least: int
    invalid: tuple[tuple[str, str], ...]
    noise_moves: tuple[str, ...]
    unmatched: tuple[str, ...]
    unlike: tuple[str, ...]
    outcome: Outcome


Sides = Sequence[Sequence[Repeat]]


def compare_campaigns(sides: Sides, criteria: CampaignCriteria) -> ComparedCampaigns:
    """Compare each side with the first. Every side has at least one campaign, and none is on two sides."""
    facts = [[one.facts for one in side] for side in sides]
    found = differing(sides)
    unlike, unmatched = _unlike(sides), _unmatched(sides)
    items = _checklist(facts, sides, criteria, found, unmatched, unlike)
    rows = [
        [_numbers(one, criteria.declared.prices.get(at)) for one in side] for at, side in enumerate(sides)
    ]
    noise = [[_numbers(one, criteria.declared.prices.get(0)) for one in side] for side in criteria.noise]
    deciding = _deciding(criteria, facts, rows)
    least = min(map(len, sides))
    forbidden = any(item.forbids for item in items)
    counted = next(item for item in items if item.code == "token_count").status != "violated"
    drafts = [
        list(_drafts(sides, rows, at, deciding, unlike, counted=counted)) for at in range(1, len(sides))
    ]
    moves = _floors(drafts, rows[0], noise)
    for at, row in enumerate(drafts, start=1):
        places = equivalence.pairs([facts[0], facts[at]])
        for one in row:
            if places is not None and len(places) == len(facts[0]):
                one.draft.pair(places)
            one.draft.allowed = "no_claim" if set(one.barred) - set(APART) else None
    correct(one.draft for row in drafts for one in row)
    allowed = "not_comparable" if forbidden else "no_claim" if least < rules.LEAST_RUNS else None
    foreign = any(item.code == "noise" and item.status == "violated" for item in items)
    contrasts = tuple(
        tuple(_figure(one, criteria.threshold, allowed, foreign=foreign) for one in row) for row in drafts
    )
    invalid = _invalid([*sides, *criteria.noise], {name.partition(".")[0] for name in deciding})
    verdicts = [one for row in contrasts for one in row]
    outcome = rules.outcome(
        (one.verdict for one in verdicts if one.deciding),
        comparable=not forbidden and any(one.verdict != "not_comparable" for one in verdicts),
        invalid=bool(invalid),
    )
    return ComparedCampaigns(
        items, found, contrasts, deciding, least, invalid, moves, unmatched, unlike, outcome
    )


def differing(sides: Sides) -> tuple[ConfigurationDifference, ...]:
    """Where plans, declarations, the reference engine and the tests' parameters differ (6.4's last item)."""
    own = [[one.configuration for one in side] for side in sides]
    keys = dict.fromkeys(key for side in own for one in side for key in one)
    plain = equivalence.differences([[one.facts for one in side] for side in sides])
    found = (
        ConfigurationDifference(
            key, tuple(tuple(dict.fromkeys(str(one.get(key)) for one in side)) for side in own)
        )
        for key in keys
    )
    return (*plain, *(one for one in found if len({value for side in one.values for value in side}) > 1))


# The checklist: that of runs, and what is about tests.


def _checklist(
    facts: Sequence[Sequence[RunFacts]],
    sides: Sides,
    criteria: CampaignCriteria,
    found: Sequence[ConfigurationDifference],
    unmatched: Sequence[str],
    unlike: Sequence[str],
) -> tuple[Item, ...]:
    again = [[one.facts for one in side] for side in criteria.noise]
    beside = [[one.configuration for one in side] for side in sides]
    plain = equivalence.checklist(facts, criteria.declared, again, beside)
    listed = [_listed(one, sides, found) for one in plain]
    quick = {one.document.quick for side in (*sides, *criteria.noise) for one in side}
    return (
        *listed,
        Item("size", "6.1", "MUST", "satisfied" if len(quick) == 1 else "violated", ItemFacts()),
        _about("tests", unmatched),
        _about("parameters", unlike),
    )


def _loads(sides: Sides) -> tuple[ComparedLoads, ...]:
    """Tests with figures that depend on a load, and whose loads differ."""
    found = (
        loads.apart(name, _documents(sides, name), {part for kind in kinds for part in kind.loads})
        for name, kinds in KINDS.items()
    )
    return tuple(one for one in found if one is not None)


def _documents(sides: Sides, test: str) -> list[list[ProcedureDocument]]:
    """The documents of a test, of those campaigns of each side that have it."""
    return [[found for one in side if (found := one.test(test)) is not None] for side in sides]


def _listed(item: Item, sides: Sides, found: Sequence[ConfigurationDifference]) -> Item:
    """An item of the checklist of runs, as it is of campaigns."""
    if item.code == "differences":
        return replace(item, facts=ItemFacts(count=len(found)))
    if item.code == "load" and item.status == "satisfied" and (elsewhere := _loads(sides)):
        return replace(item, status="violated", facts=ItemFacts(loads=elsewhere))
    return item


def _about(code: str, tests: Sequence[str]) -> Item:
    return Item(code, "6.4", "checklist", "violated" if tests else "satisfied", ItemFacts(keys=tuple(tests)))


def _unmatched(sides: Sides) -> tuple[str, ...]:
    names = dict.fromkeys(test.test for side in sides for one in side for test in one.document.tests)
    return tuple(name for name in names if any(one.test(name) is None for side in sides for one in side))


def _unlike(sides: Sides) -> tuple[str, ...]:
    """Tests whose parameters differ; those that a test inherits of `search` are among them."""
    known: dict[str, list[Mapping[str, object]]] = {}
    for one in (one for side in sides for one in side):
        for test in one.document.tests:
            shared = {
                key: value for key, value in one.configuration.items() if key.startswith("tests.search.")
            }
            known.setdefault(test.test, []).append({**test.parameters, **shared})
    return tuple(name for name, found in known.items() if any(one != found[0] for one in found[1:]))


def _invalid(sides: Sides, tests: set[str]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (one.facts.id, test.test)
        for side in sides
        for one in side
        for test in one.document.tests
        if test.test in tests and test.verdict.status == "INVALID"
    )


# Figures.


def _numbers(repeat: Repeat, price: float | None) -> dict[str, Named]:
    """A campaign's numbers by name; the maximum throughput also for each dollar an hour, where that is known (6.2)."""
    order = list(KINDS)
    tests = sorted(
        (one for one in repeat.document.tests if one.test in KINDS), key=lambda one: order.index(one.test)
    )
    found = {one.name: one for test in tests for one in figures_of(test)}
    most = found.get(f"throughput.{MAXIMUM}")
    if most is not None and price:
        name = f"throughput.{PER_DOLLAR}"
        found[name] = Named(
            name, Kind(PER_DOLLAR, more=True, tokens=True), most.value, most.number / price, None
        )
    return found


def _deciding(
    criteria: CampaignCriteria,
    facts: Sequence[Sequence[RunFacts]],
    rows: Sequence[Sequence[Mapping[str, Named]]],
) -> tuple[str, ...]:
    """The figures that decide: those that stand for the baseline's tests, or those asked for."""
    every = [one for row in rows for one in row]
    everywhere = [name for name in every[0] if all(name in one for one in every)]
    baseline = list(dict.fromkeys(name for one in rows[0] for name in one))
    asked = criteria.deciding or tuple(dict.fromkeys(name.partition(".")[0] for name in baseline))
    chosen: list[str] = []
    for name in asked:
        headline = headline_among(name, everywhere) or headline_among(name, baseline)
        chosen += [name] if "." in name else [headline] if headline is not None else []
        success = f"{name}.{TASK_SHARE}"
        chosen += [success] if any(success in one for one in every) else []
    most = f"throughput.{MAXIMUM}"
    if not criteria.deciding and most in chosen and equivalence.hardware_differs(facts):
        by = equivalence.normalised_by(facts, criteria.declared)
        normalised = {"price": PER_DOLLAR, "gpu": PER_GPU, None: MAXIMUM}[by]
        chosen[chosen.index(most)] = f"throughput.{normalised}"
    return tuple(dict.fromkeys(chosen))


@dataclass(slots=True)
class _Making:
    """A figure in the making. `values`: of the campaigns of both sides that have one; `loads`: those it depends on, where they
    differ."""

    draft: Draft
    values: tuple[Sequence[Named], Sequence[Named]]
    barred: tuple[Bar, ...]
    loads: ComparedLoads | None

    @property
    def test(self) -> str:
        return self.draft.name.partition(".")[0]


def _drafts(
    sides: Sides,
    rows: Sequence[Sequence[Mapping[str, Named]]],
    at: int,
    deciding: Sequence[str],
    unlike: Sequence[str],
    *,
    counted: bool,
) -> Iterator[_Making]:
    """What is compared of one side: what the baseline has, test by test. Tests of the side alone are unmatched, no more."""
    order, tests = list(KINDS), {test.test for one in sides[0] for test in one.document.tests}
    criteria = {equivalence.criteria_of(one.facts.plan) for one in (*sides[0], *sides[at])}
    names = dict.fromkeys(name for row in (rows[0], rows[at]) for one in row for name in one)
    for name in sorted(
        dict.fromkeys([*names, *deciding]), key=lambda name: order.index(name.partition(".")[0])
    ):
        test = name.partition(".")[0]
        if test not in tests:
            continue
        values = [[one[name] for one in row if name in one] for row in (rows[0], rows[at])]
        by_side = _documents((sides[0], sides[at]), test)
        documents = [one for side in by_side for one in side]
        full = [len(found) == len(row) for found, row in zip(values, (rows[0], rows[at]), strict=True)]
        kinds = [one.kind for found in values for one in found]
        found_apart = loads.apart(test, by_side, {part for kind in kinds for part in kind.loads})
        labels = {one.value.label for found in values for one in found}
        of_tasks = name == f"{test}.{TASK_SHARE}"
        bars: dict[Bar, bool] = {
            "invalid": any(one.verdict.status == "INVALID" for one in documents),
            "partial": any(one.ended_by is not None for one in documents),
            "bound": any(is_bound(one, name) for one in documents),
            "load": found_apart is not None,
            "parameters": test in unlike or (of_tasks and len(criteria) > 1),
            "labels": len(labels) > 1,
            "tokens": not counted and any(one.tokens for one in kinds),
            "missing": not all(full),
        }
        barred = tuple(bar for bar, holds in bars.items() if holds)
        base, other = (_array(found) if whole else None for found, whole in zip(values, full, strict=True))
        points = any(one.points for one in kinds)
        draft = Draft(
            name,
            any(one.more for one in kinds),
            name in deciding,
            base,
            other,
            apart=bool(set(barred) & set(APART)),
            resampled=False,
            unit=100.0 if points else _unit(base, other),
            unknown=_unknown(by_side, values) if of_tasks else (0.0, 0.0),
        )
        yield _Making(draft.tried(), (values[0], values[1]), barred, found_apart)


def _unknown(documents: Sequence[Sequence[ProcedureDocument]], values: Sequence[Sequence[Named]]) -> Interval:
    """How far the difference in task success may lie lower and higher by the answers that could not be judged."""
    ends = []
    for tests, found in zip(documents, values, strict=True):
        bounds = [bound for one in tests if (bound := successes_of(one)) is not None]
        if not bounds or not found:
            return 0.0, 0.0
        mean = sum(one.number for one in found) / len(found)
        low, high = (sum(bound[end] for bound in bounds) / len(bounds) - mean for end in (0, 1))
        ends.append((low, high))
    (down, up), (other_down, other_up) = ends
    return other_down - up, other_up - down


def _array(found: Sequence[Named]) -> Floats:
    return np.array([one.number for one in found], np.float64)


def _unit(base: Floats | None, other: Floats | None) -> float | None:
    """1 for values that are all 0, which have no relative difference and yet are the same."""
    zero = base is not None and other is not None and not base.any() and not other.any()
    return 1.0 if zero else None


def _floors(
    drafts: Sequence[Sequence[_Making]],
    baseline: Sequence[Mapping[str, Named]],
    noise: Sequence[Sequence[Mapping[str, Named]]],
) -> tuple[str, ...]:
    """Give each figure its noise floor; the figures in which A/A campaigns differ beyond chance (Holm over all of theirs)."""
    floors: dict[str, NoiseFloor] = {}
    tests: list[tuple[str, float]] = []
    scales = {
        one.draft.name: scale for row in drafts for one in row if (scale := one.draft.scale) is not None
    }
    for name, scale in scales.items():
        if not all(name in one for one in baseline):
            continue
        base = _array([one[name] for one in baseline])
        for side in noise:
            if not all(name in one for one in side):
                continue
            other = _array([one[name] for one in side])
            test = welch.welch(base, other)
            if test is not None:
                tests.append((name, test.p))
            floors[name] = floor_of(base, other, scale, floors.get(name))
    for one in (one for row in drafts for one in row):
        own, scale = floors.get(one.draft.name), scales.get(one.draft.name)
        steps = [named.step for found in one.values for named in found if named.step is not None]
        if steps and scale is not None and (own is None or own.value < max(steps) / scale):
            own = NoiseFloor(max(steps) / scale, None)
        one.draft.floor = own
    adjusted = welch.holm([p for _, p in tests])
    moved = dict.fromkeys(name for (name, _), p in zip(tests, adjusted, strict=True) if p < welch.ALPHA)
    return tuple(moved)


def _figure(one: _Making, threshold: float, allowed: str | None, *, foreign: bool) -> CampaignFigure:
    draft = one.draft
    found = difference(draft, threshold, allowed, foreign=foreign)  # type: ignore[arg-type]  # one of its verdicts
    values = [named for side in one.values for named in side]
    first = values[0].value if values else None
    derived = draft.name.endswith(PER_DOLLAR)
    levels = {named.value.at for named in values}
    at = f", {first.at}" if first is not None and first.at and len(levels) == 1 else ""
    return CampaignFigure(
        **asdict(found),
        procedure=one.test,
        title="Max Output Throughput per $/h"
        if derived
        else f"{first.label}{at}"
        if first is not None
        else draft.name,
        unit="tok/s per $/h" if derived else first.unit if first is not None else "",
        headline=headline_among(one.test, [draft.name]) is not None,
        change="points" if any(named.kind.points for named in values) else "ratio",
        own=_own(one),
        barred=one.barred,
        loads=one.loads,
    )


def _own(one: _Making) -> Interval | None:
    """The interval of the change by the values' own intervals, of one campaign a side."""
    base, other = one.values
    scale = one.draft.scale
    if len(base) != 1 or len(other) != 1 or scale is None or one.draft.apart:
        return None
    mine, theirs = base[0].value.ci, other[0].value.ci
    if mine is None or theirs is None or one.draft.name.endswith(PER_DOLLAR):
        return None
    return scaled(of_two(base[0].number, other[0].number, (mine, theirs)), scale)
