"""The highest rate under a limit of latency, in open loop: draft 5.2.3, step 4b, and the ten-times rule of 5.2.3.1.

A percentile of one level's requests is luck: P99 of 1,000 varies by a fifth and more where they share a queue. So no single
level decides. Each gives y = log(value / limit), of the worst where there are several limits, and y is fitted to

    y = a + b x,    x = -log(1 - SHARE r / C)

r being the rate and C the capacity: latencies grow like 1 / (1 - load). Weights fall with |y|, so that levels near the limit
count. The answer is where the line crosses 0, with its interval. Levels go up or down until the limit lies between two, then to
the crossing, to and fro, until ENOUGH of them are near and the interval is narrow, or `most` were run. A limit that holds at
LAST of the capacity is answered by that level: nearer to the capacity what a level meets of its queue is chance, so what holds
there is not known, and is not tried. A P99 of fewer than LEAST_REQUESTS is about their maximum, and decides nothing.

| limit      | is                                                                                          |
| ---------- | ------------------------------------------------------------------------------------------- |
| objectives | the plan's                                                                                  |
| ten times  | P99 of TTFT at most ten times the P50 at a tenth of the capacity, which is measured for that |
| C.1        | P99 of TTFT below 500 ms, and the plan's objectives                                         |
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Interval
from inferometer.documents.summary import Summary
from inferometer.measure.stats import student
from inferometer.plan.schema import Plan
from inferometer.plan.slo import Slo
from inferometer.procedures.arrivals import REQUESTS, Arrivals
from inferometer.procedures.setup import LIVES, open_loop, reseeded, without_warm_up
from inferometer.procedures.step import Measured, Performed, PerformedRun, Run, runs
from inferometer.procedures.summary_access import stat
from inferometer.procedures.sustained import LEAST_COMPLETION_RATIO

PART, REFERENCE = "limit", "reference"
LOW = 0.1
"""Of the capacity: where the reference is measured, and the least load."""
FIRST, LAST, DOWN = 0.6, 0.95, 1.6
SHARE = 0.97
"""Of r / C: at the capacity itself there is no end to a queue, but there is to a run."""
P99_OVER_P50 = 10.0
NEAR = 0.15
"""A level this near to the crossing, as a share of it, says most of it."""
ENOUGH, PRECISE = 4, 0.05
OFFSETS = (1.0, 0.94, 1.06, 0.97, 1.03)
LEAST_NOISE = 0.08
"""Of y, whatever a few levels that happen to agree look like."""
LOST, BEHIND = 1.0, 0.7
"""y at least, where requests fail and where they are not kept up with."""
LEAST_REQUESTS = 100
"""Of each level, for an answer."""
SEEDS = 2_000


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit: the plan's objectives that have to hold, and whether the ten-times rule does."""

    objectives: tuple[str, ...] = ()
    ten_times: bool = False

    @property
    def of_tails(self) -> bool:
        """Whether it is of P90 or beyond."""
        return self.ten_times or any("_p9" in expr for expr in self.objectives)


@dataclass(frozen=True, slots=True)
class Seeking:
    """A search: of this plan, whose capacity is known in arrivals a second; `requests` a level, or more where that takes less
    than `seconds` or LIVES times `life_s`, what a session takes; at most `most` levels for each limit."""

    plan: Plan
    capacity: float
    seconds: float
    requests: int
    reference_requests: int
    success_rate: float
    most: int
    life_s: float = 0.0
    arrivals: Arrivals = REQUESTS


@dataclass(frozen=True, slots=True)
class Point:
    """A level: its rate, how far it is beyond the limit (y), and what binds there."""

    done: PerformedRun
    rate: float
    beyond: float
    binding: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to. `binding`: what refuses a higher rate. `why`: `crossed`: at the limit; `held`: the limit holds at
    the highest rate that was tried, which is the answer; `free`: it holds at the maximum itself; `missed`: not even at the
    least load; `few`: levels have fewer than LEAST_REQUESTS, the shortest `requests`; `open`: the search has not come to its
    end. `below`: the least load that was run, where the interval would begin below that: nobody measured there, so it has
    none, and no rate that lies there is an answer."""

    rate: float | None
    ci: Interval | None
    binding: str
    why: Literal["crossed", "held", "free", "missed", "few", "open"]
    below: float | None = None
    requests: int | None = None


def reference(done: Sequence[Performed]) -> PerformedRun | None:
    """The run at a tenth of the capacity."""
    return next(iter(runs(done, REFERENCE)), None)


def points(seeking: Seeking, limit: Limit, done: Sequence[Performed]) -> list[Point]:
    """The levels among what was done, as a limit sees them; those of other limits too."""
    low, found = reference(done), []
    for one in runs(done, REFERENCE, PART):
        beyond = seen(one.outcome.summary, limit, low, seeking.success_rate)
        if beyond is not None:
            found.append(Point(one, one.step.at.rate or 0.0, *beyond))
    return found


def seen(
    summary: Summary, limit: Limit, low: PerformedRun | None, success_rate: float
) -> tuple[float, str] | None:
    """y of a run, and which limit it is of; None: nothing of it was measured, or not all of the objectives: none is met by not
    being measured. `low`: the run at the reference."""
    if unmeasured(summary, limit):
        return None
    p50 = None if low is None else stat(low.outcome.summary, "ttft", "p50")
    said: list[tuple[float, str]] = []
    for slo in summary.slos:
        if slo.expr in limit.objectives and slo.value and slo.limit:
            upper = Slo.parse(slo.expr).op.startswith("<")
            said.append((math.log(slo.value / slo.limit) * (1 if upper else -1), f"objective {slo.expr}"))
    p99 = stat(summary, "ttft", "p99")
    if limit.ten_times and p50 and p99:
        said.append((math.log(p99 / (P99_OVER_P50 * p50)), "latency"))
    if not said:
        return None
    worst, which = max(said)
    done, steady = summary.success_rate.value, summary.steady
    if done is not None and done < success_rate:
        return max(worst, LOST), "success"
    if (
        steady is not None
        and steady.completion_ratio_ci95 is not None
        and steady.completion_ratio_ci95[1] < LEAST_COMPLETION_RATIO
    ):
        return max(worst, BEHIND), which if worst > 0 else "completions"
    return worst, which


def unmeasured(summary: Summary, limit: Limit) -> tuple[str, ...]:
    """The objectives that a run has no value of, such as a pace between tokens where several come at once."""
    return tuple(slo.expr for slo in summary.slos if slo.expr in limit.objectives and slo.value is None)


def left_open(unders: Sequence[tuple[Limit, Found]], done: Sequence[Performed]) -> Iterator[Note]:
    """What keeps answers under limits from being known: objectives that no level measured, or a search that was cut short."""
    tried = runs(done, REFERENCE, PART)
    open_ = [limit for limit, found in unders if found.why == "open"]
    missing = dict.fromkeys(
        expr
        for limit in open_
        for expr in limit.objectives
        if tried and all(expr in unmeasured(one.outcome.summary, limit) for one in tried)
    )
    if missing:
        yield Note("objectives_not_measured", {"objectives": tuple(missing)})
    elif open_:
        yield Note("limit_search_not_ended")


def find(seeking: Seeking, limit: Limit, done: Sequence[Performed]) -> Found:
    """Where a limit lies by what was done."""
    move = _next(seeking, limit, done)
    known = points(seeking, limit, done)
    fewest = _fewest(known)
    if limit.of_tails and fewest is not None and fewest < LEAST_REQUESTS and not _missed_at_once(move):
        return Found(None, None, "", "few", requests=fewest)
    if isinstance(move, Found):
        return move
    rate, ends = _crossing(seeking, known) or (None, None)
    return _found(known, rate, ends, _binding(known), "open")


def _missed_at_once(move: float | Found) -> bool:
    """Whether the least load is beyond the limit, for which few requests are enough."""
    return isinstance(move, Found) and move.why == "missed"


def _fewest(known: Sequence[Point]) -> int | None:
    """Requests of the shortest level, but for the reference; None without any."""
    levels = (one.done for one in known if one.done.step.part == PART)
    return min((one.outcome.summary.requests.completed for one in levels), default=None)


def seek(
    seeking: Seeking, limit: Limit, before: Sequence[Performed]
) -> Generator[Run, Measured, list[Performed]]:
    """Search, going on from what was done before; gives all that was done."""
    done = list(before)
    if reference(done) is None:
        run = _run(seeking, seeking.capacity * LOW, done, REFERENCE)
        done.append(PerformedRun(run, (yield run)))
    while isinstance(move := _next(seeking, limit, done), float):
        run = _run(seeking, move, done, PART)
        done.append(PerformedRun(run, (yield run)))
    return done


def _run(seeking: Seeking, rate: float, done: Sequence[Performed], part: str) -> Run:
    rate = float(f"{rate:.4g}")
    count = seeking.requests if part == PART else seeking.reference_requests
    seconds = max(seeking.arrivals.seconds(count, rate), seeking.seconds if part == PART else 0.0)
    seconds = max(seconds, LIVES * seeking.life_s)
    plan = open_loop(without_warm_up(seeking.plan), rate, seconds=float(f"{seconds:.6g}"))
    facts: dict[str, Fact] = {"rate": rate, "seconds": seconds, "unit": seeking.arrivals.per_second}
    note = Note("limit_level", facts) if part == PART else Note("reference_level", facts)
    seed = SEEDS + len(runs(done, REFERENCE, PART))
    return Run(reseeded(plan, seed), part, Conditions(rate=rate), note)


def _next(seeking: Seeking, limit: Limit, done: Sequence[Performed]) -> float | Found:
    """The next rate, or what the search came to."""
    known = points(seeking, limit, done)
    if not known:
        return Found(None, None, "", "open")
    most, least = LAST * seeking.capacity, LOW * seeking.capacity
    met = [one.rate for one in known if one.beyond <= 0]
    missed = [one.rate for one in known if one.beyond > 0]
    if not met and min(missed) <= 1.01 * least:
        return Found(None, None, _binding(known), "missed")
    if not missed:
        top = max(met)
        if top >= 0.99 * most:
            return Found(top, None, "", "held")
        if top <= 1.01 * least:
            return FIRST * seeking.capacity
        return most if top > 0.8 * seeking.capacity else (top + seeking.capacity) / 2
    crossing = _crossing(seeking, known)
    if crossing is None:
        low, high = max((one for one in met if one < max(missed)), default=least), min(missed)
        if len(known) > seeking.most:
            return _found(
                known, (low + high) / 2, (min(low, high), max(low, high)), _binding(known), "crossed"
            )
        return (low + high) / 2
    rate, ends = crossing
    near = [one for one in known if abs(one.rate / rate - 1) <= NEAR]
    narrow = ends[1] - ends[0] <= 2 * PRECISE * rate
    if (len(near) >= ENOUGH and narrow) or len(known) > seeking.most:
        return _found(known, rate, ends, _binding(near or known), "crossed")
    return min(max(rate * OFFSETS[len(near) % len(OFFSETS)], least), most)


def _found(
    known: Sequence[Point],
    rate: float | None,
    ends: Interval | None,
    binding: str,
    why: Literal["crossed", "open"],
) -> Found:
    """What was found, with its interval as far as levels were run: the line says nothing of loads below the least of them."""
    least = min((one.rate for one in known), default=0.0)
    if ends is not None and ends[0] < least:
        return Found(rate if rate is not None and rate >= least else None, None, binding, why, least)
    return Found(rate, ends, binding, why)


def _binding(known: Sequence[Point]) -> str:
    """What is missed first: of the lowest level beyond the limit."""
    missed = [one for one in known if one.beyond > 0]
    return min(missed, key=lambda one: one.rate).binding if missed else ""


def _crossing(seeking: Seeking, known: Sequence[Point]) -> tuple[float, Interval] | None:
    """Where the line through the levels crosses the limit, and its 95 % interval; None: no rising line does."""
    rates = np.array([one.rate for one in known])
    y = np.array([one.beyond for one in known])
    if len(known) < 3 or y.min() > 0 or y.max() < 0:
        return None
    x = -np.log1p(-SHARE * np.minimum(rates / seeking.capacity, 1.0))
    weights = np.exp(-(y**2) / 2)
    total = float(weights.sum())
    x_mean, y_mean = float(weights @ x) / total, float(weights @ y) / total
    spread = float(weights @ (x - x_mean) ** 2)
    slope = float(weights @ ((x - x_mean) * (y - y_mean))) / spread if spread > 0 else 0.0
    if slope <= 0:
        return None
    at = x_mean - y_mean / slope
    left = y - (y_mean + slope * (x - x_mean))
    free = max(1.0, total - 2)
    noise = max(LEAST_NOISE, math.sqrt(float(weights @ left**2) / free))
    half = student(free) * noise / slope * math.sqrt(1 / total + (at - x_mean) ** 2 / spread)
    # A nearly level line crosses anywhere: what lies below a rate of 0 is told by its sign alone.
    low, middle, high = (
        seeking.capacity * -math.expm1(min(-end, 1.0)) / SHARE for end in (at - half, at, at + half)
    )
    if middle <= 0:
        return None
    return min(middle, seeking.capacity), (max(0.0, low), min(high, seeking.capacity))
