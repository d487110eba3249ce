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
| interval of requests | the same of each third's tokens/s less the share that its answers have in the mean length,     |
|                     | both by their means; and the chance of the other lengths                                       |

Conversations and recorded sessions are as many in flight as there are slots, and each sends its requests one after another, and
nothing while its tools run or its user thinks. So more of them fill a system than it answers requests at a time. Slots that
begin together are in step at first, and where the last sessions end they run empty. So a concurrency lasts, by time, ARRIVALS
times as long as one of them does there: a run more at the first concurrency, SIZING, shows how long that is, and nothing else.

The lengths that a seed draws move both rates. So each request of these runs is its own: of a thousand that are sent over and
over, thirds would show what a server does with those, and not how far another thousand lie from them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Interval
from inferometer.documents.summary import Summary
from inferometer.measure.stats import mean_interval
from inferometer.plan.schema import Plan
from inferometer.procedures.arrivals import REQUESTS, Arrivals, arrivals_of, unit_of
from inferometer.procedures.setup import closed_loop, reseeded, with_warm_up, without_warm_up
from inferometer.procedures.step import Measured, Performed, PerformedRun, Run, runs
from inferometer.procedures.summary_access import rate, rate_interval

GAIN = 0.04
"""Twice as many in flight that add less than this to throughput only wait."""
LINEAR, JUMP = 0.8, 4
"""Where the last doubling added so much, the next step is fourfold, if there is room for it."""
SLOT_REQUESTS = 2
"""Requests of a run for each in flight, at least."""
ARRIVALS = 4
"""Conversations or sessions of a run for each slot, at least."""
COLLAPSED = 0.9
"""Of the capacity, which the level below it is offered at: a system that does less with more in flight does not recover there
from a queue that came by chance."""
SPARE = 1.2
"""Requests that a run of a given length has, of those that its rate before makes one expect: a closed loop that ends by time
alone goes through fewer again and again, and the thirds of such a run are alike as no new requests would be."""
SIZING = "session-length"
"""Part of the run that shows how long a conversation or session lasts."""
MOST = 1024
MOST_SESSIONS = 4_096
"""Of conversations and sessions, most of which wait for their tools and users at any time."""
LEAST_SUCCESS = 0.99
Z_95 = 1.96
SEEDS = 100
"""Runs of other seeds than their neighbours': their chances are their own."""


@dataclass(frozen=True, slots=True)
class Climb:
    """Where to look: of this plan, from `first` in flight to `most`, `requests` each and more where many are in flight, or
    `seconds`. `part`: of its runs; `step`: concurrencies are multiples of it, from the first on; `least`: where the first fails
    requests, as that of a server with a short queue does, so few are tried, by halves; None: no fewer than the first."""

    plan: Plan
    first: int
    most: int
    requests: int
    seconds: float | None = None
    part: str = "pilot"
    step: int = 1
    least: int | None = None

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
    """What the system does with a backlog that never empties. `gain`: of the last doubling; `life_s`: how long an arrival, a
    request or a whole session, takes in a full system where it waits least; `arrivals`: what a load of this workload counts."""

    concurrency: int
    output_tok_s: float
    output_ci: Interval | None
    input_tok_s: float | None
    request_s: float
    request_ci: Interval | None
    tokens: float
    gain: float
    life_s: float = 0.0
    arrivals: Arrivals = REQUESTS

    @property
    def arrival_s(self) -> float:
        """What load that is: arrivals a second."""
        return self.arrivals.rate(self.request_s)

    @property
    def arrival_ci(self) -> Interval | None:
        """Its interval."""
        return self.arrivals.rates(self.request_ci)

    @property
    def arrival_tokens(self) -> float:
        """Output tokens that an arrival brings."""
        return self.arrivals.requests(self.tokens)


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
    if not any(one.answered for one in found):
        fewest = min(one.concurrency for one in found)
        return max(fewest // 2, climb.least) if climb.least is not None and fewest > climb.least else None
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


def distinct(seconds: float, request_s: float) -> int | None:
    """How many requests a run of so many seconds is given, each its own, at about so many a second; None: that is not known."""
    return math.ceil(SPARE * seconds * request_s) if request_s > 0 else None


def ascend(climb: Climb) -> Generator[Run, Measured, list[Performed]]:
    """Go up to the plateau; the first run has the warm-up before it. Gives what was done."""
    done: list[Performed] = []
    if unit_of(climb.plan) != "requests":
        run = replace(
            _run(climb, climb.first, ()),
            part=SIZING,
            why=Note("session_length", {"concurrency": climb.first}),
        )
        done.append(PerformedRun(run, (yield run)))
    while (slots := following(climb, rungs(climb, done))) is not None:
        run = _run(climb, slots, runs(done))
        done.append(PerformedRun(run, (yield run)))
    return done


def _run(climb: Climb, slots: int, before: Sequence[PerformedRun]) -> Run:
    """The run at a concurrency, behind those before it."""
    plan = without_warm_up(climb.plan) if before else with_warm_up(climb.plan)
    each = _arrivals(climb.plan, before)
    seconds, expected = climb.seconds, 0.0
    if before:
        last = before[-1]
        request_s = (
            rate(last.outcome.summary, "request_s") or last.outcome.summary.throughput.whole_run.request_s
        )
        expected = (request_s or 0.0) * slots / (last.step.at.concurrency or slots)
        if not each.single and request_s:
            seconds = max(seconds or 0.0, ARRIVALS * slots / each.rate(request_s))
    count: int | None = max(climb.requests, math.ceil(SLOT_REQUESTS * slots * each.each))
    if seconds is not None:
        count = distinct(seconds, expected)
        seconds = float(f"{seconds:.6g}")
    return Run(
        reseeded(closed_loop(plan, slots, requests=count, seconds=seconds), SEEDS * len(before)),
        climb.part,
        Conditions(concurrency=slots),
        Note("climb", {"concurrency": slots}),
    )


def _arrivals(plan: Plan, made: Sequence[PerformedRun]) -> Arrivals:
    return arrivals_of(plan, [one.outcome.summary for one in made])


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
    """Whether the last doubling added more than GAIN: no plateau was seen. A step back to fewer in flight is none."""
    if any(not one.answered for one in found):
        return False
    top = max(found, key=lambda one: one.concurrency, default=None)
    return top is None or top.gain is None or top.gain >= GAIN


def no_plateau(climb: Climb, found: Sequence[Rung]) -> Note:
    """Why a climb came to no plateau: it was cut short, or requests failed even with the fewest in flight."""
    if following(climb, found) is not None or not found:
        return Note("search_not_ended")
    fewest = min(one.concurrency for one in found)
    return Note("fewest_in_flight_failed", {"concurrency": fewest}, capacity=True)


def refused(found: Sequence[Rung], at: Rung) -> bool:
    """Whether requests failed with more in flight than at the plateau."""
    return any(one.concurrency > at.concurrency and not one.answered for one in found)


def collapsed(found: Sequence[Rung], at: Rung, whole: Capacity) -> Rung | None:
    """The concurrency above `at`, which the capacity is of, that did least, if that is less than COLLAPSED of the capacity, by
    the intervals of both, though its requests succeeded: how such a system fares depends on how many a client allows to be in
    flight, and an open loop allows any number. A run without a steady span says less of the system than of its own ends."""
    above = [
        one
        for one in found
        if one.concurrency > at.concurrency and one.answered and one.done.outcome.summary.steady is not None
    ]
    worst = min(above, key=lambda one: one.output_tok_s, default=None)
    if worst is None:
        return None
    ends = rate_interval(worst.done.outcome.summary, "output_tok_s")
    most = worst.output_tok_s if ends is None else ends[1]
    surely = whole.output_tok_s if whole.output_ci is None else whole.output_ci[0]
    return worst if most < COLLAPSED * surely else None


def capacity(
    found: Sequence[Rung], at: Rung, saturated: Sequence[PerformedRun], others: Sequence[PerformedRun] = ()
) -> Capacity:
    """The capacity by the runs with a full system, `saturated`; without any, by the concurrencies that gave as much as `at`.
    `others`: more runs whose answers' lengths are known."""
    level = [one for one in found if abs(one.output_tok_s / at.output_tok_s - 1) < GAIN]
    working = [one for one in saturated if one.outcome.summary.steady is not None]
    full = [one.outcome.summary for one in working or [one.done for one in level] or saturated]
    every = [one.outcome.summary for one in (*(one.done for one in found), *saturated, *others)]
    here, elsewhere = _lengths(full), _lengths([one for one in every if not any(one is of for of in full)])
    arrivals = arrivals_of(at.done.step.plan, every)
    tokens = _pooled(here, elsewhere) or output(full[-1]) / (rate(full[-1], "request_s") or math.nan)
    parts = [part for one in full for part in _parts(one)]
    mean = statistics.fmean(part.output_tok_s for part in parts)
    higher = any(one.concurrency > at.concurrency for one in found)
    gain = 0.0 if higher else max(0.0, at.gain or 0.0)
    inputs = [value for one in full if (value := rate(one, "input_tok_s")) is not None]
    return Capacity(
        concurrency=at.concurrency,
        output_tok_s=mean,
        output_ci=_around(mean, _half([part.output_tok_s / mean for part in parts]), gain),
        input_tok_s=statistics.fmean(inputs) if inputs else None,
        request_s=mean / tokens,
        request_ci=_around(mean / tokens, _half_of_requests(parts, here, elsewhere), gain),
        tokens=tokens,
        gain=gain,
        life_s=_life_s(level, arrivals),
        arrivals=arrivals,
    )


def _life_s(full: Sequence[Rung], arrivals: Arrivals) -> float:
    """How long an arrival takes. Of sessions by Little's law: so many in flight over those that end in a second."""
    known = []
    for one in full:
        summary = one.done.outcome.summary
        request_s = rate(summary, "request_s")
        if arrivals.single and summary.metrics.e2e_ms is not None:
            known.append(summary.metrics.e2e_ms.mean / 1000)
        elif not arrivals.single and request_s:
            known.append(one.concurrency / arrivals.rate(request_s))
    return min(known, default=0.0)


@dataclass(frozen=True, slots=True)
class _Part:
    """A third of a run. `tokens`: mean tokens of an answer that ended in it; None: not known."""

    output_tok_s: float
    tokens: float | None


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Answers of known length: how many, their mean, and their standard deviation by that."""

    n: int
    mean: float
    variation: float


def _parts(summary: Summary) -> list[_Part]:
    """The thirds of a run's steady span; of a run without one, all of it."""
    steady = summary.steady
    if steady is None:
        return [_Part(output(summary), None)]
    ended: Sequence[float | None] = steady.request_thirds_s or (None,) * len(steady.output_thirds_tok_s)
    pairs = zip(steady.output_thirds_tok_s, ended, strict=True)
    return [_Part(tokens, tokens / request_s if request_s else None) for tokens, request_s in pairs]


def _lengths(summaries: Sequence[Summary]) -> _Lengths:
    known = [found for one in summaries if (found := one.metrics.output_tokens) is not None and found.n]
    n = sum(one.n for one in known)
    if not n:
        return _Lengths(0, 0.0, 0.0)
    mean = math.fsum(one.mean * one.n for one in known) / n
    variance = math.fsum((one.std or 0.0) ** 2 * one.n for one in known) / n
    return _Lengths(n, mean, math.sqrt(variance) / mean if mean else 0.0)


def _pooled(*lengths: _Lengths) -> float:
    n = sum(one.n for one in lengths)
    return math.fsum(one.n * one.mean for one in lengths) / n if n else 0.0


def _half(values: Sequence[float]) -> float | None:
    """Half the width of Student's 95 % interval of their mean; None of fewer than two."""
    spread = statistics.stdev(values) if len(values) > 1 else None
    ends = mean_interval(len(values), 0.0, spread)
    return None if ends is None else ends[1]


def _half_of_requests(parts: Sequence[_Part], here: _Lengths, elsewhere: _Lengths) -> float | None:
    """The same of requests per second, as a share: of log X - log L to first order, L being the mean length of all answers, of
    which a share ended with a full system. Where these happen to be longer X is higher, so the two are taken together."""
    if not here.n:
        return None
    share = here.n / (here.n + elsewhere.n)
    mean = statistics.fmean(part.output_tok_s for part in parts)
    known = [part.tokens for part in parts if part.tokens is not None]
    others = (1 - share) * Z_95 * elsewhere.variation / math.sqrt(elsewhere.n) if elsewhere.n else 0.0
    if len(known) < len(parts):
        half, lengths = (
            _half([part.output_tok_s / mean for part in parts]),
            here.variation / math.sqrt(here.n),
        )
        return None if half is None else math.hypot(half, share * Z_95 * lengths, others)
    usual = statistics.fmean(known)
    half = _half(
        [one.output_tok_s / mean - share * length / usual for one, length in zip(parts, known, strict=True)]
    )
    return None if half is None else math.hypot(half, others)


def _around(value: float, half: float | None, gain: float) -> Interval | None:
    """The interval of a value by its half-width as a share, and what another doubling might add; None where it would say that
    the system may do nothing at all: then so little is known that it is no interval."""
    return None if half is None or half >= 1 else (value * (1 - half), value * (1 + half) * (1 + gain))
