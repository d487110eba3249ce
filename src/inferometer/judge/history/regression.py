"""Whether the newest result of a series is worse than those before it, by the noise that the series itself shows.

Symbols: x_1..x_n the results before, on a scale on which changes add up (the logarithm where all are above zero), m their
mean, s their standard deviation, y the newest result or the trimmed mean of the newest k.

counted    of a share p of c requests s is at least that of counting, the square root of p (1 - p) / c, on the logarithm divided
           by p, where p = (successes + 1) / (requests + 2) over all kept results: eight results without a failure do not say
           that there is none
noise      results further than FAR robust standard deviations (1.4826 MAD) from the median have no say in m and s, if they are
           at most a fifth; n counts the others
expected   m +- t(0.975, n - 1) s sqrt(1 + 1/n): the interval of one new result
recent     t = (y - m) / (s sqrt(v_k + 1/n)) with n - 1 degrees of freedom, v_k the variance of y for s = 1. k = 1 finds large
           changes at once, k = 5 small ones that last. Of five, y is the mean of the middle three: one bad result is no trend
Holm       over all deciding figures and both k, and apart from them over the others
change     a figure is worse (or better) where p < ALPHA after Holm's correction for some k, and the change for that k is larger
           than the threshold

Change points of a series of LONG results or more (change_points.py) are tested apart, at ALPHA_CHANGES over all deciding
figures. The last one is a regression too while it lies within the newest `last` results: so a lasting change stays reported
when the results after it have become part of those before. The results before the last change point are no part of the noise,
as long as `least` are left.

ALPHA is two-sided: half of it are changes for the worse. With ALPHA_CHANGES fewer than 2 checks in 100 raise an alarm where
nothing changed (benchmarks/history_power.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from inferometer.documents.comparison import FigureVerdict
from inferometer.documents.history import Scale
from inferometer.judge.comparison.welch import detectable, holm
from inferometer.judge.history.change_points import Permutations, change_points
from inferometer.measure.record import Floats
from inferometer.measure.stats import student
from inferometer.metrics.catalogue import Better
from inferometer.metrics.statistics import Interval

ALPHA = 0.02
ALPHA_CHANGES = 0.004
PERMUTATIONS = 4_999
LEAST = 8
"""Results before the newest one."""
LAST = 30
"""Most results before the newest one that its noise is estimated from."""
LONG = 20
RECENT = (1, 5)
"""How many of the newest results are held against those before."""
TRIMMED = {1: 1.0, 5: 0.2271}
"""v_k: the variance of the trimmed mean of k normal values of variance 1."""
FAR = 8.0
MAD_TO_SD = 1.4826
MOST_OUTLIERS = 0.2
STEEPEST = 700.0
"""Largest logarithm that is taken back: e to the 710 is no number of 64 bits."""


@dataclass(frozen=True, slots=True)
class FigureSeries:
    """A figure over comparable results, oldest first; the last is the one to check. All are finite. `counted`: of a share of
    requests, how many of them each result counted, 0: not known; None: it is no such share."""

    name: str
    better: Better
    scale: Scale
    deciding: bool
    values: Floats
    counted: int | None = None


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """`threshold`: the least change that matters, as a share of one; `least`, `last`: results before the newest one; `seed`: of
    the permutations."""

    threshold: float = 0.01
    least: int = LEAST
    last: int = LAST
    seed: int = 0


@dataclass(slots=True)
class RecentChange:
    """The newest k results against the n before them: the mean of these and the change, on the scale that adds up, and its
    p."""

    k: int
    n: int
    usual: float
    change: float
    p: float
    p_holm: float = 1.0


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change point: the place of the first result after it, the level before and the change of level on the scale that adds
    up, its p, and whether it is the last one and recent."""

    at: int
    usual: float
    change: float
    p: float
    stands: bool


@dataclass(slots=True)
class FigureFinding:
    """What a series shows. `usual`, `expected` in the figure's unit; `change`, `noise`, `detectable` on its scale: shares of
    `usual` for a ratio (None where that is 0), percentage points, or the figure's unit."""

    series: FigureSeries
    n: int
    usual: float
    expected: Interval
    change: float | None
    noise: float | None
    detectable: float | None
    outliers: int
    recent: list[RecentChange]
    levels: list[LevelChange] = field(default_factory=list)
    verdict: FigureVerdict = "no_difference"


def examine(series: Sequence[FigureSeries], sensitivity: Sensitivity) -> list[FigureFinding]:
    """What each series shows, in their order. Each has `sensitivity.least` results before its newest one."""
    found = []
    for one in series:
        family = sum(other.deciding is one.deciding for other in series)
        levels = _levels(one, sensitivity, family)
        found.append(_finding(one, levels, family * len(RECENT), sensitivity))
    for group in (True, False):
        recent = [one for finding in found if finding.series.deciding is group for one in finding.recent]
        for each, p in zip(recent, holm([one.p for one in recent]), strict=True):
            each.p_holm = p
    for finding in found:
        finding.verdict = _verdict(finding, sensitivity)
    return found


def shown_change(series: FigureSeries, change: float, usual: float) -> float | None:
    """A change from `usual`, both on the scale that adds up, as it is shown: a share of one for a ratio. None: a ratio has no
    share of 0."""
    if series.scale != "ratio":
        return change
    if _logarithmic(series):
        return math.expm1(min(change, STEEPEST))
    share = change / abs(usual) if usual else math.inf
    return share if math.isfinite(share) else None


def matters(series: FigureSeries, change: float, usual: float, threshold: float) -> bool:
    """Whether a change, both on the scale that adds up, is larger than the threshold: of the usual value, or percentage
    points."""
    if _logarithmic(series):
        return abs(math.expm1(min(change, STEEPEST))) > threshold
    return abs(change) > threshold * (100 if series.scale == "points" else abs(usual))


def is_better(series: FigureSeries, change: float) -> bool:
    """Whether a change is for the better, on the scale that adds up."""
    return (change > 0) is (series.better == "more")


def _logarithmic(series: FigureSeries) -> bool:
    return series.scale == "ratio" and bool((series.values > 0).all())


def _added(series: FigureSeries) -> Floats:
    return np.asarray(np.log(series.values), np.float64) if _logarithmic(series) else series.values


def _back(series: FigureSeries, value: float) -> float:
    return math.exp(min(value, STEEPEST)) if _logarithmic(series) else value


def _finding(
    series: FigureSeries, levels: list[LevelChange], tests: int, sensitivity: Sensitivity
) -> FigureFinding:
    values = _added(series)
    start = max((one.at for one in levels), default=0)
    before = _before(values, 1, start, sensitivity)
    kept = settled(before)
    centre, noise, n = float(kept.mean()), _noise(series, kept), len(kept)
    error = noise * math.sqrt(1 + 1 / n)
    half = student(n - 1) * error
    return FigureFinding(
        series=series,
        n=n,
        usual=_back(series, centre),
        expected=(_back(series, centre - half), _back(series, centre + half)),
        change=shown_change(series, float(values[-1]) - centre, centre),
        noise=shown_change(series, noise, centre),
        detectable=shown_change(series, detectable(error, n - 1, ALPHA / tests), centre),
        outliers=len(before) - n,
        recent=[
            _recent(series, k, start, sensitivity) for k in RECENT if len(values) - k >= sensitivity.least
        ],
        levels=levels,
    )


def _before(values: Floats, k: int, start: int, sensitivity: Sensitivity) -> Floats:
    """The results before the newest k: the last ones, and those from `start` on if that leaves enough."""
    before = values[:-k][-sensitivity.last :]
    since = values[start:-k][-sensitivity.last :]
    return since if len(since) >= sensitivity.least else before


def settled(values: Floats) -> Floats:
    """The values without those far from the others; all of them where these are more than a fifth, or where half are equal."""
    off = np.abs(values - np.median(values))
    scale = MAD_TO_SD * float(np.median(off))
    far = off > FAR * scale
    if scale == 0 or far.sum() > MOST_OUTLIERS * len(values):
        return values
    return values[~far]


def _spread(values: Floats) -> float:
    """Their standard deviation; that of rounding is none."""
    spread = float(values.std(ddof=1))
    return 0.0 if spread <= 1e-12 * float(np.abs(values).max()) else spread


def _noise(series: FigureSeries, kept: Floats) -> float:
    """Their standard deviation, of shares at least that of counting."""
    spread = _spread(kept)
    if not series.counted:
        return spread
    shares = np.exp(kept) if _logarithmic(series) else kept
    share = (float(shares.sum()) * series.counted + 1) / (len(kept) * series.counted + 2)
    counting = math.sqrt(max(share * (1 - share), 0.0) / series.counted)
    return max(spread, counting / share if _logarithmic(series) else counting)


def _recent(series: FigureSeries, k: int, start: int, sensitivity: Sensitivity) -> RecentChange:
    from scipy import special  # here, since it takes longer to import than all the rest

    values = _added(series)
    kept = settled(_before(values, k, start, sensitivity))
    n, newest = len(kept), np.sort(values[-k:])
    centre = float(newest[k // 5 : k - k // 5].mean())
    usual = float(kept.mean())
    change = centre - usual
    error = _noise(series, kept) * math.sqrt(TRIMMED[k] + 1 / n)
    if (
        error == 0
    ):  # nothing ever differed: a change is certain, or there is none; of unknown counts nothing is
        same = abs(change) <= 1e-12 * abs(centre) or series.counted == 0
        return RecentChange(k, n, usual, 0.0 if same else change, 1.0 if same else 0.0)
    return RecentChange(k, n, usual, change, 2 * float(special.stdtr(n - 1, -abs(change) / error)))


def _levels(series: FigureSeries, sensitivity: Sensitivity, family: int) -> list[LevelChange]:
    """The change points of a long series; `family`: how many figures are searched."""
    values = _added(series)[-2 * sensitivity.last :]
    if len(values) < LONG:
        return []
    first = len(series.values) - len(values)
    splits = change_points(values, Permutations(PERMUTATIONS, ALPHA_CHANGES / family, sensitivity.seed))
    edges = [0, *(one.at for one in splits), len(values)]
    found = []
    for number, split in enumerate(splits):
        before, after = values[edges[number] : split.at], values[split.at : edges[number + 2]]
        usual = float(np.median(before))
        stands = number == len(splits) - 1 and len(values) - split.at <= sensitivity.last
        found.append(LevelChange(first + split.at, usual, float(np.median(after)) - usual, split.p, stands))
    return found


def _verdict(finding: FigureFinding, sensitivity: Sensitivity) -> FigureVerdict:
    series, threshold = finding.series, sensitivity.threshold
    changes = [(one.change, one.usual) for one in finding.recent if one.p_holm < ALPHA]
    changes += [(one.change, one.usual) for one in finding.levels if one.stands]
    found = [change for change, usual in changes if matters(series, change, usual, threshold)]
    if not found:
        return "no_difference"
    # What is worse now outweighs what was better.
    return "better" if all(is_better(series, one) for one in found) else "worse"
