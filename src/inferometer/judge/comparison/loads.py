"""The absolute loads that figures of two sides were measured at, where a test takes its levels from what the system carries.

A test at 50 % of the saturation rate puts a system that carries 10 requests/s under 5, and one that carries 4 under 2. The
parameters of the test are the same, and the load is not: a latency of one side says nothing of the other (draft 6.1).

A level is known by the part of the test, the conditions that it has, and its percentage; without a percentage, by its place
among the levels of that part. A side's load at a level is the mean over its campaigns. Two loads are apart if

    larger / smaller - 1 > SHARE

which is the same whichever side is the baseline. It is of means, since maxima that are found for one system again and again
differ by a per cent or so, which averages out over repeats, and the figures that are compared are means over the same repeats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from inferometer.documents.campaign import Conditions, ProcedureDocument
from inferometer.documents.comparison import ComparedLoads

SHARE = 0.05
"""Far above what a found maximum differs by between repeats of one system, and as fine as a search's last step."""


@dataclass(frozen=True, slots=True)
class _Level:
    """A level of a test. `place`: among the levels without a percentage of its part and conditions, from 0."""

    part: str
    class_name: str | None
    configuration: str | None
    cache: str | None
    percent: float | None
    measure: Literal["rate", "concurrency"]
    place: int = 0


def apart(
    test: str, sides: Sequence[Sequence[ProcedureDocument]], parts: Collection[str]
) -> ComparedLoads | None:
    """The level at which a side's load is farthest from the baseline's, the first side's; None where all are within SHARE.

    `sides`: the documents of this test in the campaigns of each side; `parts`: of the test, whose runs count.
    """
    loads = [_loads(side, parts) for side in sides]
    distances = {
        level: max(_distance(base, other[level]) for other in loads[1:] if level in other)
        for level, base in loads[0].items()
        if any(level in other for other in loads[1:])
    }
    far = max(distances, key=lambda level: distances[level], default=None)
    if far is None or distances[far] <= SHARE:
        return None
    return ComparedLoads(
        test, far.percent, far.measure, tuple(one.get(far) for one in loads), _counted(sides[0][0])
    )


def _counted(document: ProcedureDocument) -> Literal["requests", "conversations", "sessions"]:
    """What the loads of a test count, by its plan's workload."""
    workload = document.plan.get("workload", {})
    if workload.get("kind") == "sessions":
        return "sessions"
    return "requests" if workload.get("turns") is None else "conversations"


def loads_of(document: ProcedureDocument, parts: Collection[str]) -> tuple[float, ...]:
    """The loads of one campaign's test, level by level, in the order of its runs; `parts`: of the test, whose runs count."""
    return tuple(_loads([document], parts).values())


def alike(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether two campaigns' loads, as `loads_of` gives them, are within SHARE of each other at every level."""
    return len(one) == len(other) and all(_distance(*pair) <= SHARE for pair in zip(one, other, strict=True))


def _loads(side: Sequence[ProcedureDocument], parts: Collection[str]) -> dict[_Level, float]:
    found: dict[_Level, list[float]] = {}
    for document in side:
        for level, load in _levels(document, parts):
            found.setdefault(level, []).append(load)
    return {level: math.fsum(loads) / len(loads) for level, loads in found.items()}


def _levels(document: ProcedureDocument, parts: Collection[str]) -> Iterator[tuple[_Level, float]]:
    before: Counter[_Level] = Counter()
    for run in document.runs:
        at = run.at
        if run.part not in parts or not isinstance(at, Conditions):
            continue
        load = at.concurrency if at.rate is None else at.rate
        if load is None:
            continue
        measure: Literal["rate", "concurrency"] = "concurrency" if at.rate is None else "rate"
        named = (run.part, at.class_name, at.configuration, at.cache, at.percent, measure)
        level = _Level(*named)
        yield (level if at.percent is not None else _Level(*named, place=before[level])), float(load)
        before[level] += 1


def _distance(one: float, other: float) -> float:
    low, high = sorted((one, other))
    return high / low - 1 if low > 0 else 0.0 if high == low else math.inf
