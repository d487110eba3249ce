"""Draft 5.10, Guardrail Overhead: whether anything shows that a configuration's filters were on in it, and off in the baseline.

| shown by           | is                                                                                                |
| ------------------ | ------------------------------------------------------------------------------------------------- |
| the system         | it confirmed this switch and that to the baseline                                                 |
| refusals           | of policy, in FEWEST requests of the configuration and in none of the baseline                    |
| answers held back  | by an output filter, as the check `streamed` has it                                               |
| latency            | TTFT or end-to-end latency beyond chance above the baseline's, at more than half of the levels    |

Without any of it, a switch that did nothing looks like a filter that costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.summary import Summary
from inferometer.measure.delivery import HELD_SHARE
from inferometer.measure.measurement import OF_FILTERS
from inferometer.measure.stats import wilson
from inferometer.procedures.paired_medians import difference_interval
from inferometer.procedures.step import Measured, Performed, Switch, Switched
from inferometer.procedures.summary_access import Metric

FEWEST = 6
"""Refusals: that all of as many fall into one of two configurations alike is less likely than 5 %."""
METRICS: tuple[Metric, ...] = ("ttft", "e2e")

Levels = Sequence[tuple[Measured, Measured]]
"""The runs of the baseline and of a configuration at each load level."""


def confirmed(done: Sequence[Performed]) -> set[str]:
    """The states that the system said itself it was in, each time that it was switched to them."""
    switched = [
        (one.step.state, one.outcome.status)
        for one in done
        if isinstance(one.step, Switch) and isinstance(one.outcome, Switched)
    ]
    return {state for state, _ in switched} - {state for state, status in switched if status != "verified"}


def seen(levels: Levels) -> bool:
    """Whether runs show it."""
    return _refuses(levels) or _holds_back(levels) or any(_later(levels, metric) for metric in METRICS)


def _refuses(levels: Levels) -> bool:
    without, with_ = (sum(_stopped(pair[side].summary) for pair in levels) for side in (0, 1))
    return with_ >= FEWEST and not without


def _stopped(summary: Summary) -> int:
    return sum(summary.refusals.by_signal.get(name, 0) for name in OF_FILTERS)


def _holds_back(levels: Levels) -> bool:
    """Whether more answers than a few came at once, and the check took them for a filter's doing."""
    checks = [check for _, with_ in levels for check in with_.summary.verdict.checks]
    for one in checks:
        if one.code == "streamed" and one.facts.get("of") == "filter":
            ends = wilson(one.facts.get("held") or 0, one.facts.get("judged") or 0)
            if ends is not None and ends[0] > HELD_SHARE:
                return True
    return False


def _later(levels: Levels, metric: Metric) -> bool:
    intervals = [difference_interval(without, with_, metric) for without, with_ in levels]
    return 2 * sum(ends is not None and ends[0] > 0 for ends in intervals) > len(intervals)
