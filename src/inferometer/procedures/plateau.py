"""The rate at which a system works off a backlog that never empties: what it can do at all (draft 5.2.3, step 4a).

With ever more requests in flight throughput rises until the system is full, and from there on more of them only wait. So the
number in flight is doubled, in closed loop, until that adds less than GAIN. What comes out there is a rate of renewals, which
varies little, and not a limit that a search has to close in on.

| quantity            | is                                                                                             |
| ------------------- | ---------------------------------------------------------------------------------------------- |
| output tokens/s     | mean over the thirds of the runs at that concurrency                                           |
| requests/s          | that by the mean length of the answers of all runs                                             |
| interval of tokens  | Student's t over the thirds; the upper end allows for another doubling, which adds no more than |
|                     | the last one did                                                                               |
| interval of requests | that, and the chance of the lengths                                                           |
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Interval
from inferometer.documents.summary import Summary
from inferometer.measure.stats import mean_interval
from inferometer.plan.schema import Plan
from inferometer.procedures.setup import closed_loop, reseeded, with_warm_up, without_warm_up
from inferometer.procedures.step import Measured, Performed, PerformedRun, Run, runs
from inferometer.procedures.summary_access import rate

GAIN = 0.04
"""Twice as many in flight that add less than this to throughput only wait."""
LINEAR, JUMP = 0.8, 4
"""Where the last doubling added so much, the next step is fourfold, if there is room for it."""
SLOT_REQUESTS = 2
"""Requests of a run for each in flight, at least."""
MOST = 1024
LEAST_SUCCESS = 0.99
Z_95 = 1.96
SEEDS = 100
"""Runs of other seeds than their neighbours': their chances are their own."""


@dataclass(frozen=True, slots=True)
class Climb:
    """Where to look: of this plan, from `first` in flight to `most`, `requests` each and more where many are in flight, or
    `seconds`. `part`: of its runs; `step`: concurrencies are multiples of it, from the first on."""

    plan: Plan
    first: int
    most: int
    requests: int
    seconds: float | None = None
    part: str = "pilot"
    step: int = 1

    def on_grid(self, slots: int) -> int:
        """The nearest concurrency that is a whole number of steps from the first."""
        return min(self.first + round((slots - self.first) / self.step) * self.step, self.most)


@dataclass(frozen=True, slots=True)
class Rung:
    """A concurrency that was run. `gain`: what a doubling up to here added to throughput; None at the first."""

    done: PerformedRun
    concurrency: int
    output_tok_s: float
    gain: float | None

    @property
    def answered(self) -> bool:
        """Whether its requests succeeded; those that its end cut off are none of the system's failures."""
        counts = self.done.outcome.summary.requests
        ended = counts.completed + counts.failed
        return ended > 0 and counts.completed >= LEAST_SUCCESS * ended


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the system does with a backlog that never empties. `gain`: of the last doubling; `life_s`: how long a request takes
    in a full system where it waits least."""

    concurrency: int
    output_tok_s: float
    output_ci: Interval | None
    input_tok_s: float | None
    request_s: float
    request_ci: Interval | None
    tokens: float
    gain: float
    life_s: float = 0.0


def rungs(climb: Climb, done: Sequence[Performed]) -> list[Rung]:
    """The concurrencies among what was done, in their order."""
    found: list[Rung] = []
    for one in runs(done, climb.part):
        here, slots = output(one.outcome.summary), one.step.at.concurrency or 1
        before = found[-1] if found else None
        gain = None
        if before is not None and before.output_tok_s > 0 and slots > before.concurrency:
            doublings = math.log2(slots / before.concurrency)
            gain = (here / before.output_tok_s) ** (1 / doublings) - 1
        found.append(Rung(one, slots, here, gain))
    return found


def output(summary: Summary) -> float:
    """Output tokens a second; of a run without a steady span those of all of it."""
    return rate(summary, "output_tok_s") or summary.throughput.whole_run.output_tok_s or 0.0


def following(climb: Climb, found: Sequence[Rung]) -> int | None:
    """How many in flight come next; None: the plateau was reached, or nothing is left to try. Where a fourfold step lost
    requests or throughput, a twofold one is tried."""
    if not found:
        return climb.first
    last, best = found[-1], max(found, key=lambda one: one.output_tok_s * one.answered)
    lost = [
        one.concurrency
        for one in found
        if not one.answered or one.output_tok_s < (1 - GAIN) * best.output_tok_s
    ]
    over = min((slots for slots in lost if slots > best.concurrency), default=None)
    if over is not None:
        between = climb.on_grid(over // 2)
        return between if best.answered and best.concurrency < between < over // 2 + 1 else None
    flat = last.gain is not None and last.gain < GAIN
    if flat or not last.answered or not last.output_tok_s or last.concurrency >= climb.most:
        return None
    steep = last.gain is not None and last.gain > LINEAR
    step = JUMP if steep and JUMP * last.concurrency <= climb.most else 2
    above = climb.on_grid(last.concurrency * step)
    return above if above > last.concurrency else min(last.concurrency + climb.step, climb.most)


def ascend(climb: Climb) -> Generator[Run, Measured, list[Performed]]:
    """Go up to the plateau; the first run has the warm-up before it. Gives what was done."""
    done: list[Performed] = []
    while (slots := following(climb, rungs(climb, done))) is not None:
        plan = without_warm_up(climb.plan) if done else with_warm_up(climb.plan)
        count = max(climb.requests, SLOT_REQUESTS * slots) if climb.seconds is None else None
        run = Run(
            reseeded(closed_loop(plan, slots, requests=count, seconds=climb.seconds), SEEDS * len(done)),
            climb.part,
            Conditions(concurrency=slots),
            Note("climb", {"concurrency": slots}),
        )
        done.append(PerformedRun(run, (yield run)))
    return done


def plateau(climb: Climb, found: Sequence[Rung]) -> Rung | None:
    """The concurrency to measure at: the highest that was tried, where nothing was lost by it; else the best of them. None: the
    climb has not come to its end, or nothing succeeded."""
    good = [one for one in found if one.answered and one.output_tok_s > 0]
    if not good or following(climb, found) is not None:
        return None
    most = max(one.output_tok_s for one in good)
    return [one for one in good if one.output_tok_s >= (1 - GAIN) * most][-1]


def filled(found: Sequence[Rung]) -> int | None:
    """The least in flight that gave as much as any; None: throughput still rose, or nothing succeeded."""
    good = [one for one in found if one.answered and one.output_tok_s > 0]
    if not good or still_rose(found):
        return None
    most = max(one.output_tok_s for one in good)
    return min(one.concurrency for one in good if one.output_tok_s >= (1 - GAIN) * most)


def still_rose(found: Sequence[Rung]) -> bool:
    """Whether the last doubling added more than GAIN: no plateau was seen."""
    if any(not one.answered for one in found):
        return False
    return not found or found[-1].gain is None or found[-1].gain >= GAIN


def capacity(
    found: Sequence[Rung], at: Rung, saturated: Sequence[PerformedRun], others: Sequence[PerformedRun] = ()
) -> Capacity:
    """The capacity by the runs with a full system, `saturated`; without any, by the concurrencies that gave as much as `at`.
    `others`: more runs whose answers' lengths are known."""
    level = [one for one in found if abs(one.output_tok_s / at.output_tok_s - 1) < GAIN]
    working = [one for one in saturated if one.outcome.summary.steady is not None]
    full = working or [one.done for one in level]
    parts = [part for one in full for part in _parts(one.outcome.summary)]
    mean = statistics.fmean(parts)
    gain = max(0.0, at.gain or 0.0)
    ends = mean_interval(len(parts), mean, statistics.stdev(parts) if len(parts) > 1 else None)
    summaries = [one.outcome.summary for one in (*(one.done for one in found), *saturated, *others)]
    tokens, luck = _lengths(summaries)
    inputs = [value for one in full if (value := rate(one.outcome.summary, "input_tok_s")) is not None]
    return Capacity(
        concurrency=at.concurrency,
        output_tok_s=mean,
        output_ci=None if ends is None else (max(0.0, ends[0]), ends[1] * (1 + gain)),
        input_tok_s=statistics.fmean(inputs) if inputs else None,
        request_s=mean / tokens,
        request_ci=None if ends is None else _of_requests(mean, ends, tokens, luck, gain),
        tokens=tokens,
        gain=gain,
        life_s=_life_s([one.done.outcome.summary for one in level]),
    )


def _life_s(full: Sequence[Summary]) -> float:
    known = [one.metrics.e2e_ms.mean / 1000 for one in full if one.metrics.e2e_ms is not None]
    return min(known, default=0.0)


def _parts(summary: Summary) -> tuple[float, ...]:
    """Output tokens a second in each third of a run's steady span; of a run without one, its rate."""
    return (output(summary),) if summary.steady is None else summary.steady.output_thirds_tok_s


def _lengths(summaries: Sequence[Summary]) -> tuple[float, float]:
    """Mean tokens of an answer, and the relative standard error of that."""
    known = [found for one in summaries if (found := one.metrics.output_tokens) is not None]
    count = sum(one.n for one in known)
    if not count:
        summary = summaries[-1]
        return output(summary) / (rate(summary, "request_s") or math.nan), math.nan
    mean = math.fsum(one.mean * one.n for one in known) / count
    variance = math.fsum((one.std or 0.0) ** 2 * one.n for one in known) / count
    return mean, math.sqrt(variance / count) / mean


def _of_requests(mean: float, ends: Interval, tokens: float, luck: float, gain: float) -> Interval:
    half = math.hypot((ends[1] - ends[0]) / 2 / mean, Z_95 * luck)
    request_s = mean / tokens
    return max(0.0, request_s * (1 - half)), request_s * (1 + half) * (1 + gain)
