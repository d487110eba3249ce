"""When a difference is better, worse, or not shown: the rules that comparisons of runs and of benchmarks have in common.

A relative difference d with interval [low, high] is called better or worse unless something holds it: the interval holds zero;
p is 0.05 or more after Holm's correction; a bootstrap does not agree; |d| is no more than the threshold, or than the noise
floor. Where something does, it is "no difference" only if the interval holds no change for the worse beyond the threshold.
A verdict that what the values leave out could overturn (answers that could not be judged) is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from inferometer.documents.comparison import FigureVerdict, Held, Outcome
from inferometer.judge.comparison.welch import ALPHA
from inferometer.metrics.statistics import Interval

LEAST_RUNS = 3
"""Draft 6.3: at least 3 independent runs."""


def held(
    relative: float | None,
    interval: Interval | None,
    p_holm: float | None,
    *,
    agrees: bool,
    threshold: float,
    floor: float | None,
) -> tuple[Held, ...]:
    """What speaks against calling it a difference. `agrees`: the bootstrap does, or the design has none; `threshold`, `floor`:
    shares of one."""
    if relative is None or interval is None:
        return ()
    found: list[Held] = []
    if interval[0] <= 0 <= interval[1]:
        found.append("interval")
    elif p_holm is not None and p_holm >= ALPHA:
        found.append("holm")
    if not agrees:
        found.append("bootstrap")
    if abs(relative) <= threshold and threshold:
        found.append("threshold")
    if floor is not None and abs(relative) <= floor:
        found.append("noise")
    return tuple(found)


def excludes_harm(interval: Interval | None, threshold: float, *, more: bool) -> bool:
    """Whether no change for the worse beyond the threshold is left inside the interval. Without a threshold nobody asked.
    `more`: more of the figure is better."""
    if not threshold:
        return True
    if interval is None:
        return False
    return interval[0] > -threshold if more else interval[1] < threshold


def decided(
    relative: float | None,
    interval: Interval | None,
    found: Sequence[Held],
    allowed: FigureVerdict | None,
    *,
    tested: bool,
    threshold: float,
    more: bool,
) -> FigureVerdict:
    """The verdict on a figure that can be compared. `found`: what holds it; `allowed`: the only verdict possible, None: any."""
    if relative is None:
        return "not_comparable"
    if allowed is not None:
        return allowed
    if not tested:
        return "no_claim"
    if found:
        return "no_difference" if excludes_harm(interval, threshold, more=more) else "no_claim"
    return "better" if (relative > 0) is more else "worse"


def stands(
    verdict: FigureVerdict, interval: Interval, unknown: Interval, threshold: float, *, more: bool
) -> bool:
    """Whether a verdict is the same wherever in `unknown` the difference lies further by what nobody knows: what is better or
    worse has to stay so, and what is no difference may not turn out worse."""
    low, high = (interval[0], interval[1]) if more else (-interval[1], -interval[0])
    harm, gain = unknown if more else (-unknown[1], -unknown[0])
    if verdict == "better":
        return low + harm > 0
    if verdict == "worse":
        return high + gain < 0
    if verdict == "no_difference":
        return high + harm >= 0 and (not threshold or low + harm > -threshold)
    return True


def outcome(deciding: Iterable[FigureVerdict], *, comparable: bool, invalid: bool) -> Outcome:
    """What a comparison comes to, by the verdicts on the figures that decide."""
    if not comparable:
        return "not_comparable"
    if invalid:
        return "invalid"
    verdicts = set(deciding)
    if "worse" in verdicts:
        return "regression"
    return "no_regression" if verdicts and verdicts <= {"better", "no_difference"} else "no_claim"
