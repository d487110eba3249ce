"""Whether a system kept up with a load: out of one run's summary (draft 5.2.3.1, 5.2.3.2).

| signal        | saturated when                                                                             |
| ------------- | ------------------------------------------------------------------------------------------ |
| `completions` | fewer than 92 % of the requests that were due to end did: half-way from 1 to 1 / 1.2       |
| `queue`       | the queue grew from third to third of the span, by more than chance explains, and fewer    |
|               | requests ended than were due, by the whole interval; by chance requests in flight vary as  |
|               | where each is served by itself, the server's own queue as at a load of 100 %               |
| `steady`      | the output of a third of the span is more than 10 % off, and more than chance explains     |
| `success`     | less than the success rate asked for                                                       |

Each says yes, no, or that its interval does not settle it; a longer run then may. A run that cannot be made longer is judged by
its values (`final`), unless it was shorter than its requests and had no steady span at all: that is never settled, and counts
as not sustained (search.py). The first signal that says saturated decides; a load is sustained when every one says it is not.

The draft's 90 % lets a load of 111 % of what a system can do pass. A limit closer to 1 needs more requests than a level has:
just below saturation a queue of chance holds some per cent of a level's requests. So levels are 10 % below the capacity and
20 % above it, which 92 % tells apart, and the capacity itself is measured (plateau.py). Where the interval of the last run
holds the limit, the measured capacity decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inferometer.documents.summary import Objective, Summary
from inferometer.plan.slo import Slo

COMPLETIONS, QUEUE = "completions", "queue"
"""Signals that more requests came than the system is done with."""
LEAST_COMPLETION_RATIO = 0.92
STEADY_SHARE = 0.10
LEAST_RISE = 0.10
"""A queue grows that rises by this share from third to third."""
SIGMAS = 3.0
"""What chance explains: three standard deviations."""
QUEUE_SIGMAS = 2.0
"""Of a queue, which counts as grown only if completions agree by their whole interval."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal: whether it says saturated (None: not settled), its number and its limit."""

    code: str
    saturated: bool | None
    value: float | None
    limit: float | None
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the load was sustained, None: not settled; and all signals."""

    sustained: bool | None
    signals: tuple[Signal, ...]

    @property
    def reasons(self) -> tuple[Signal, ...]:
        """The signals that decided, or kept it from being decided."""
        return tuple(one for one in self.signals if one.saturated is not False)


def decide(
    summary: Summary, *, success_rate: float, final: bool = False, expected: bool | None = None
) -> Decision:
    """All signals of a run in open loop. `expected`: whether the load is within the capacity that was measured, which stands as
    long as a run does not contradict it by its whole interval; None: nothing was."""
    signals = [
        _completions(summary, final=final, expected=expected),
        _queue(summary),
        steadiness(summary, final=final),
        _success(summary, success_rate, final=final),
    ]
    # Without a steady span nobody has seen whether requests queue up: then nothing but saturation can be told of it.
    return decision(signals, final=final and summary.steady is not None)


def decision(signals: Sequence[Signal], *, final: bool) -> Decision:
    """The decision that signals come to. After the last run a signal that was not measured does not count as saturated, but
    what was asked for, an objective or a success rate, is not met by not being measured."""
    saturated = {one.saturated for one in signals}
    if True in saturated:
        return Decision(False, tuple(signals))
    required = {
        one.saturated for one in signals if one.code == "success" or one.code.startswith("objective ")
    }
    return Decision(None if None in (required if final else saturated) else True, tuple(signals))


def objectives(summary: Summary, success_rate: float, *, final: bool) -> list[Signal]:
    """The plan's objectives, and the success rate, which every search asks for: failing fast is no throughput."""
    return [
        *(_objective(one, final=final) for one in summary.slos),
        _success(summary, success_rate, final=final),
    ]


def _queue(summary: Summary) -> Signal:
    """Three thirds that rise may be chance. Requests in flight move by chance alone; a rise within that is none, and neither
    is one of a queue that is worked off as fast as it is filled."""
    steady = summary.steady
    queue = None if steady is None else steady.queue
    if steady is None or queue is None:
        return Signal(QUEUE, None, None, LEAST_RISE)
    growing = queue.rising
    if growing:
        ends = steady.completion_ratio_ci95
        growing = ends is not None and ends[1] < 1
        first, *_, last = queue.thirds
        by_chance = (
            _chance(summary, first, steady.duration_s / 3)
            if queue.source == "in_flight"
            else _queued_by_chance(summary, steady.arrivals / len(queue.thirds))
        )
        growing = growing and last - first > by_chance
    return Signal(QUEUE, growing, queue.rise_share, LEAST_RISE)


def _chance(summary: Summary, mean: float, seconds: float) -> float:
    """How far the means of two thirds are apart by chance: where Poisson arrivals stay for S, n in flight on average, a mean
    over t has a variance of n min(1, E[S^2] / (E[S] t)): long answers stay in flight for long."""
    stay = summary.metrics.e2e_ms
    mean_s, std_s = (0.0, 0.0) if stay is None else (stay.mean / 1000, (stay.std or 0.0) / 1000)
    lasting = mean_s + std_s**2 / mean_s if mean_s else 0.0
    if summary.requests_each > 1:
        lasting = seconds  # of a session there are requests in flight for longer than they last themselves
    return SIGMAS * math.sqrt(2 * mean * min(1.0, lasting / seconds))


def _queued_by_chance(summary: Summary, arrivals: float) -> float:
    """How far the means of the first and the last third of a queue are apart by chance, at a load of exactly 100 %, below which
    it is less: the queue is then a random walk with a variance of 1 + c^2 a request, c being the variation of the work, and so
    many requests a third; of E[k^2] / E[k] + c^2 where they come as sessions of k. Means over thirds that have one between them
    differ by 5/3 of a third's variance."""
    lengths = summary.metrics.output_tokens
    variation = 0.0 if lengths is None or not lengths.mean else (lengths.std or 0.0) / lengths.mean
    return QUEUE_SIGMAS * math.sqrt(5 / 3 * (summary.requests_at_once + max(1.0, variation**2)) * arrivals)


def _completions(summary: Summary, *, final: bool, expected: bool | None) -> Signal:
    steady = summary.steady
    ratio, interval = (
        (None, None) if steady is None else (steady.completion_ratio, steady.completion_ratio_ci95)
    )
    below = beyond(
        ratio, interval, lambda value: value < LEAST_COMPLETION_RATIO, final=final and expected is None
    )
    if below is None and final and ratio is not None and expected is not None:
        below = not expected
    return Signal(COMPLETIONS, below, ratio, LEAST_COMPLETION_RATIO)


def steadiness(summary: Summary, *, final: bool) -> Signal:
    """Whether a third's output is further off the mean of the thirds than STEADY_SHARE and than chance explains."""
    steady, chance = summary.steady, third_chance(summary)
    if steady is None or chance is None:
        return Signal("steady", None, None, STEADY_SHARE)
    thirds = steady.output_thirds_tok_s
    mean = math.fsum(thirds) / len(thirds)
    off = max(abs(third / mean - 1) for third in thirds)
    limit = max(STEADY_SHARE, chance)
    return Signal("steady", (True if final else None) if off > limit else False, off, limit)


def third_chance(summary: Summary) -> float | None:
    """How far a third's output may be off by chance, as a share: answers come in whole, so a third with n of them has a
    relative standard deviation of sqrt((1 + cv^2) / n), cv being that of their lengths, or, as sessions bring them k at a time,
    of up to sqrt((E[k^2] / E[k] + cv^2) / n). None: there are no thirds."""
    steady, lengths = summary.steady, summary.metrics.output_tokens
    if steady is None or lengths is None or not any(steady.output_thirds_tok_s):
        return None
    answers = max(1.0, steady.completions / len(steady.output_thirds_tok_s))
    spread = (lengths.std or 0.0) / lengths.mean if lengths.mean else 0.0
    return SIGMAS * math.sqrt((summary.requests_at_once + spread**2) / answers)


def _objective(slo: Objective, *, final: bool) -> Signal:
    missed = None if slo.met is None else not slo.met
    if missed is None and final and slo.value is not None:
        missed = not Slo.parse(slo.expr).met_by(slo.value)
    return Signal(f"objective {slo.expr}", missed, slo.value, slo.limit)


def _success(summary: Summary, least: float, *, final: bool) -> Signal:
    rate = summary.success_rate
    below = beyond(rate.value, rate.ci95, lambda value: value < least, final=final)
    if below is None and rate.value == 1.0:
        below = False  # nothing failed: no run, however long, could say more
    return Signal("success", below, rate.value, least)


def beyond(
    value: float | None,
    interval: Sequence[float] | None,
    past: Callable[[float], bool],
    *,
    final: bool,
) -> bool | None:
    """Whether a value lies beyond its limit: its whole interval does, or none of it, or it is not settled."""
    if value is None:
        return None
    if interval is not None:
        ends = {past(end) for end in interval}
        if len(ends) == 1:
            return ends.pop()
    return past(value) if final else None
