"""The first configuration of a test once more at its end: whether the system changed between the configurations it compares.

The repeated run has a part of its own, so that it enters no figure. The system changed if a median of it is apart from the
first run's by more than chance (the interval of their difference leaves 0 out) and by more than SHARE of the first. A smaller
change stays unseen, and may still be much of a small overhead; so does one that is over by the end. Without a repeated run
(quick campaigns make none, nor does a system that cannot be switched back) none is seen, nor is it where the medians have no
interval, and a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.note import Fact, Note
from inferometer.procedures.paired_medians import both, difference_interval
from inferometer.procedures.step import Measured
from inferometer.procedures.summary_access import Metric

PART = "again"
SHARE = 0.05
WORDS: dict[str, str] = {"ttft": "TTFT", "e2e": "End-to-end latency"}


def drifted(
    label: str, first: Measured | None, again: Measured | None, metrics: Sequence[Metric]
) -> list[Note]:
    """That the system changed, for the first of these latencies whose median did; nothing where there is no repeated run.
    `label`: the configuration."""
    for metric in metrics:
        ends, medians = difference_interval(first, again, metric), both(first, again, metric, "p50")
        if ends is None or medians is None:
            continue
        before, after = medians
        if not ends[0] <= 0 <= ends[1] and abs(after - before) > SHARE * before:
            facts: dict[str, Fact] = {"of": label, "latency": WORDS[metric], "first": before, "again": after}
            return [Note("drifted_between", facts)]
    return []


def unseen(
    label: str, first: Measured | None, again: Measured | None, metrics: Sequence[Metric]
) -> list[Note]:
    """That a change would be unseen: nothing was measured again, or medians of one of these latencies have no interval."""
    if first is None:
        return []
    if again is None:
        return [Note("not_repeated", {"of": label})]
    untold = [metric for metric in metrics if difference_interval(first, again, metric) is None]
    return [Note("repeated_too_short", {"of": label, "latency": WORDS[metric]}) for metric in untold[:1]]
