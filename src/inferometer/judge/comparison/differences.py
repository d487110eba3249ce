"""Differences in the making, of runs and of campaigns: a figure's values on two sides, tested, corrected, and judged.

A draft has the values of one figure on both sides. First each is tested by itself, by the differences of pairs where the design
has them, else by Welch's t; then Holm's correction is over all drafts of a family; then the rules (rules.py) decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from inferometer.documents.comparison import Difference, Estimate, FigureVerdict, Held, NoiseFloor
from inferometer.judge.comparison import rules, welch
from inferometer.measure.record import Floats
from inferometer.measure.stats import mean_interval
from inferometer.metrics.statistics import Interval


@dataclass(slots=True)
class Draft:
    """A figure in the making. `base`, `other`: a value a run, None where a run has none; `more`: more of it is better; `apart`:
    the sides' values cannot be set against each other; `allowed`: the only verdict possible, None: any; `resampled`: there is
    a bootstrap, which has to agree; `unit`: what differences are divided by, None: the baseline's mean; `unknown`: how far the
    difference may lie lower and higher by what the values leave out."""

    name: str
    more: bool
    deciding: bool
    base: Floats | None
    other: Floats | None
    floor: NoiseFloor | None = None
    apart: bool = False
    allowed: FigureVerdict | None = None
    resampled: bool = True
    unit: float | None = None
    unknown: Interval = (0.0, 0.0)
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
        """What differences are divided by; None: there is nothing to compare."""
        if self.base is None or self.other is None:
            return None
        return self.unit or abs(float(self.base.mean())) or None

    def tried(self) -> Draft:
        """The same, with Welch's test where one is possible."""
        if self.base is not None and self.other is not None and self.scale is not None and not self.apart:
            self.test = welch.welch(self.base, self.other)
        return self

    def pair(self, places: Sequence[tuple[int, ...]]) -> None:
        """Test by pairs, given as places in `base` and in `other`."""
        if self.base is None or self.other is None or self.scale is None or self.apart:
            return
        self.paired = welch.paired(
            self.base[[one[0] for one in places]], self.other[[one[1] for one in places]]
        )


def estimate(values: Floats | None) -> Estimate | None:
    """A side's values in one."""
    if values is None:
        return None
    mean = float(values.mean())
    std = float(values.std(ddof=1)) if len(values) > 1 else None
    interval = mean_interval(len(values), mean, std)
    return Estimate(len(values), mean, interval, tuple(map(float, values)))


def scaled(interval: Interval, by: float) -> Interval:
    """The interval divided by `by`."""
    return interval[0] / by, interval[1] / by


def of_two(baseline: float, other: float, intervals: tuple[Interval, Interval]) -> Interval:
    """95 % interval of `other` less `baseline`, two independent values with 95 % intervals of their own (MOVER: each end of the
    difference is as far off as the ends that make it lie from their values, added as squares; Zou and Donner 2008)."""
    (base_low, base_high), (low, high) = intervals
    difference = other - baseline
    return (
        difference - math.hypot(other - low, base_high - baseline),
        difference + math.hypot(high - other, baseline - base_low),
    )


def floor_of(base: Floats, other: Floats, scale: float, before: NoiseFloor | None) -> NoiseFloor:
    """The noise floor by one more A/A side: the larger of what there was before and of its own difference."""
    shift = abs(float(other.mean()) - float(base.mean())) / scale
    if before is not None and shift <= before.value:
        return before
    test = welch.welch(base, other)
    return NoiseFloor(shift, None if test is None else scaled(test.interval, scale))


def correct(drafts: Iterable[Draft]) -> None:
    """Holm's correction in two families: what decides does not pay for what is only shown."""
    drafts = list(drafts)
    for deciding in (True, False):
        family = [one for one in drafts if one.deciding is deciding]
        tested = [(one, one.decides) for one in family if one.decides is not None]
        adjusted = welch.holm([test.p for _, test in tested if test is not None])
        for (one, _), p in zip(tested, adjusted, strict=True):
            one.p_holm, one.family = p, len(tested)


def difference(
    draft: Draft, threshold: float, allowed: FigureVerdict | None, *, foreign: bool = False
) -> Difference:
    """The judgement on one draft. `allowed`: the only verdict possible on any figure, None: any; `foreign`: the noise floor is
    that of another system or load."""
    allowed = allowed or draft.allowed
    test, scale = draft.decides, draft.scale
    baseline, side = estimate(draft.base), estimate(draft.other)
    relative = interval = detectable = detectable_ci = None
    if baseline is not None and side is not None and scale is not None:
        relative = (side.mean - baseline.mean) / scale
    effect = None
    if test is not None and scale is not None:
        interval = scaled(test.interval, scale)
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
        "more" if draft.more else "less",
        draft.deciding,
        baseline,
        side,
        relative,
        None if draft.test is None or scale is None else scaled(draft.test.interval, scale),
        None if test is None else test.p,
        draft.p_holm,
        None if draft.paired is None or scale is None else scaled(draft.paired.interval, scale),
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
    draft: Draft, relative: float | None, interval: Interval | None, threshold: float
) -> tuple[Held, ...]:
    """What speaks against calling it a difference."""
    again = draft.bootstrap
    agrees = again is not None and relative is not None and (again[0] > 0 if relative > 0 else again[1] < 0)
    floor = None if draft.floor is None else draft.floor.value
    return rules.held(
        relative,
        interval,
        draft.p_holm,
        agrees=agrees or not draft.resampled,
        threshold=threshold,
        floor=floor,
    )


def _verdict(
    draft: Draft,
    relative: float | None,
    interval: Interval | None,
    held: Sequence[Held],
    allowed: FigureVerdict | None,
    threshold: float,
) -> FigureVerdict:
    if draft.apart:
        return "not_comparable"
    tested = draft.decides is not None
    found = rules.decided(
        relative, interval, held, allowed, tested=tested, threshold=threshold, more=draft.more
    )
    if interval is None or draft.scale is None or draft.unknown == (0.0, 0.0):
        return found
    unknown = scaled(draft.unknown, draft.scale)
    stands = rules.stands(found, interval, unknown, threshold, more=draft.more)
    return found if stands else "no_claim"
