"""The tables of docs/headlines.md: of each figure of a test its truth, the answers, their errors and their intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.figure import Figure, Note
from benchmarks.headlines.headline import Search, Truth, searched
from benchmarks.headlines.tests import HEADLINES
from benchmarks.loads import Bench

SEEDS, QUICK_SEEDS = 20, 2


def headlines(bench: Bench) -> Iterator[Figure | Note]:
    """All tests, each on its presets."""
    number = QUICK_SEEDS if bench.quick else SEEDS
    yield Note("seeds", f"{number} a test and preset")
    for headline in HEADLINES.values():
        for preset in headline.presets:
            truths = headline.truths(preset, bench.quick)
            found = [searched(headline, preset, seed, quick=bench.quick) for seed in range(1, number + 1)]
            yield from figures(f"{headline.name}, {preset}", truths, found)


def figures(grid: str, truths: Mapping[str, Truth], found: Sequence[Search]) -> Iterator[Figure | Note]:
    """A line for each figure. Errors in per cent of the truth; shares of intervals in per cent of the intervals given."""
    for name, truth in truths.items():
        answers = [one.answers[name] for one in found if name in one.answers]
        values = [one.value for one in answers if one.value is not None]
        errors = [100 * abs(value / truth.value - 1) for value in values]
        intervals = [one.interval for one in answers if one.interval is not None]
        held = sum(low <= truth.value <= high for low, high in intervals)
        cells = {
            "truth": truth.value,
            "+-": truth.error,
            "answers": float(len(values)),
            "least": min(values, default=math.nan),
            "median": statistics.median(values) if values else math.nan,
            "most": max(values, default=math.nan),
            "worst error, %": max(errors, default=math.nan),
            "intervals": float(len(intervals)),
            "held the truth": float(held),
        }
        for label, value in cells.items():
            digits = 0 if label in ("answers", "intervals", "held the truth") else 3
            yield Figure(label, value, digits=digits, grid=grid, line=name)
    verdicts = [one.verdict for one in found]
    reasons = [reason for one in found for reason in one.reasons]
    counted = ", ".join(f"{verdicts.count(name)} {name}" for name in dict.fromkeys(verdicts))
    why = ", ".join(f"{name} ({reasons.count(name)})" for name in dict.fromkeys(reasons))
    yield Note(grid, f"{counted}{f'; reasons: {why}' if why else ''}")
