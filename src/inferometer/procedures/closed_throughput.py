"""Draft 5.2 in closed loop: the concurrency beyond which throughput no longer rises.

Queues cannot grow in closed loop, and completions cannot fall behind arrivals. So this tool has a rule of its own: a level
counts as saturated when

| signal      |                                                                                                        |
| ----------- | ------------------------------------------------------------------------------------------------------ |
| `gain`      | it has less than 5 % more throughput than the highest level with at most ten elevenths of its requests |
| `latency`   | P99 of TTFT exceeds ten times the P50 at the lowest level (5.2.3.1)                                    |
| `steady`    | output falls or rises within the run, as in open loop (5.2.3.2)                                        |
| `objective` | an objective is missed                                                                                 |
| `success`   | less than the success rate asked for                                                                   |

each by its interval. A step of a smaller share could not add 5 % to any system: where the increment is less than a tenth of the
level, a step is several increments. Levels step up by the increment; the last before the first saturated one is run again, with
another seed, and is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Axis, Cell, Column, Figure, Mark, Series
from inferometer.documents.summary import Summary
from inferometer.procedures.results import Results, Table
from inferometer.procedures.saturation import CONFIRMING_SEED
from inferometer.procedures.search import MOST_TRIALS, Answer, Ask, Ladder, Trial, advance, reached, reason
from inferometer.procedures.setup import Setup, closed_loop, reseeded, with_warm_up, without_warm_up
from inferometer.procedures.step import Performed, PerformedRun, Run, Steps, runs
from inferometer.procedures.summary_access import held_to, percent, rate, rate_interval, stat, success
from inferometer.procedures.sustained import (
    P99_OVER_P50,
    Decision,
    Signal,
    beyond,
    decision,
    latency,
    objectives,
    steadiness,
)
from inferometer.procedures.throughput_results import (
    latency_table,
    point_expression,
    summary_table,
    values,
    with_point,
)

LEAST_GAIN = 0.05
STEP_SHARE = (10, 11)
"""A step goes up from a level with at most ten elevenths as many requests in flight."""


@dataclass(frozen=True, slots=True)
class Level:
    """A concurrency that was run, and what it came to."""

    done: PerformedRun
    concurrency: int
    times: int
    confirms: bool
    decision: Decision
    met: frozenset[str]

    @property
    def trial(self) -> Trial:
        """As the search sees it."""
        return Trial(float(self.concurrency), self.decision.sustained, self.times, self.confirms)

    @property
    def gain(self) -> float | None:
        """Throughput over that of the level a step below, less 1; None at the lowest."""
        return next((signal.value for signal in self.decision.signals if signal.code == "gain"), None)


def steps(setup: Setup) -> Steps:
    """Levels, stepping up; the last one sustained once more."""
    done: list[Performed] = []
    while isinstance(move := _next(setup, done), Ask):
        run = _run(setup, move, cold=not done)
        done.append(PerformedRun(run, (yield run)))


def _ladder(setup: Setup) -> Ladder:
    """Any bracket is narrow: there is nothing between two levels."""
    wanted = setup.tests.throughput
    rungs = (wanted.max_concurrency - wanted.min_concurrency) // wanted.concurrency_step
    return Ladder(
        first=wanted.min_concurrency,
        step=wanted.concurrency_step,
        most=wanted.max_concurrency,
        least=wanted.min_concurrency,
        resolution=math.inf,
        longer=setup.tests.search.longer,
        integral=True,
        trials=rungs + MOST_TRIALS,
    )


def _next(setup: Setup, done: Sequence[Performed]) -> Ask | Answer:
    return advance(_ladder(setup), [one.trial for one in levels(setup, done)])


def _run(setup: Setup, ask: Ask, *, cold: bool) -> Run:
    slots, seconds = int(ask.level), setup.tests.throughput.duration_s * ask.times
    plan = with_point(setup)
    closed = closed_loop(with_warm_up(plan) if cold else without_warm_up(plan), slots, seconds=seconds)
    facts = {"concurrency": slots, "seconds": seconds, "reason": reason(ask)}
    return Run(
        reseeded(closed, CONFIRMING_SEED * ask.confirms),
        "confirm" if ask.confirms else "level",
        Conditions(concurrency=slots, times=ask.times),
        Note("concurrency_level", facts),
    )


def levels(setup: Setup, done: Sequence[Performed]) -> list[Level]:
    """The levels among what was done, each with what it came to at that point."""
    measured: list[Level] = []
    asked = {str(slo) for slo in setup.plan.slos}
    longest = 2**setup.tests.search.longer
    for one in runs(done, "level", "confirm"):
        at, summary = one.step.at, one.outcome.summary
        slots, times = at.concurrency or 0, at.times or 1
        below, lowest = (
            _below(measured, slots),
            stat((measured[0].done if measured else one).outcome.summary, "ttft", "p50"),
        )
        held = held_to(summary, asked)
        final = times >= longest
        signals = [] if below is None else [gain(below, summary, final=final)]
        if lowest is not None:
            signals.append(latency(summary, P99_OVER_P50 * lowest, final=final))
        signals.append(steadiness(summary, final=final))
        signals += objectives(held, setup.tests.throughput.success_rate, final=final)
        met = frozenset(slo.expr for slo in summary.slos if slo.met)
        confirms = one.step.part == "confirm"
        measured.append(Level(one, slots, times, confirms, decision(signals, final=final), met))
    return measured


def _below(levels: Sequence[Level], slots: int) -> Summary | None:
    """The last run of the highest level at least a step below."""
    share, whole = STEP_SHARE
    under = [one for one in levels if whole * one.concurrency <= share * slots]
    level = max((one.concurrency for one in under), default=None)
    return next((one.done.outcome.summary for one in reversed(under) if one.concurrency == level), None)


def gain(below: Summary, here: Summary, *, final: bool) -> Signal:
    """Whether a step added less than 5 %: g = b / a - 1 of the output throughputs of both levels, and its interval by the
    relative half widths of theirs, which add as their squares do."""
    a, b = rate(below, "output_tok_s"), rate(here, "output_tok_s")
    if not a or b is None:
        return Signal("gain", None, None, LEAST_GAIN)
    growth, interval = b / a - 1, None
    spans = rate_interval(below, "output_tok_s"), rate_interval(here, "output_tok_s")
    if b and spans[0] is not None and spans[1] is not None:
        widths = [(high - low) / 2 / of for (low, high), of in zip((spans[0], spans[1]), (a, b), strict=True)]
        half = b / a * math.hypot(*widths)
        interval = growth - half, growth + half
    return Signal(
        "gain", beyond(growth, interval, lambda value: value < LEAST_GAIN, final=final), growth, LEAST_GAIN
    )


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """As in open loop: Tables 3 and 4, the levels, and their picture."""
    measured = levels(setup, done)
    if not measured:
        return Results(undecided=(Note("no_concurrency_measured"),))
    move = _next(setup, done)
    ended = move if isinstance(move, Answer) else None
    top = _top(setup, measured)
    point = _point(measured, {point_expression(setup), *(str(slo) for slo in setup.plan.slos)})
    best = None if top is None else top.done
    return Results(
        values=values(setup, best, None if point is None else point.done, "in flight", "concurrency"),
        tables=(
            summary_table(setup, best, "in flight", "concurrency"),
            latency_table(best),
            _table(measured),
        ),
        figures=(_figure(measured, top),),
        notes=_notes(setup, ended, top),
        undecided=_undecided(setup, ended, top),
    )


def _top(setup: Setup, levels: Sequence[Level]) -> Level | None:
    """The run at the highest level sustained; of a search that was cut short, the highest below the lowest that was not."""
    highest = reached(_ladder(setup), [one.trial for one in levels])
    at = [one for one in levels if one.concurrency == highest and one.decision.sustained]
    return at[-1] if at else None


def _point(levels: Sequence[Level], required: set[str]) -> Level | None:
    """Of the levels sustained that meet C.1's operating point as well, that of the highest throughput."""
    meeting = [one for one in levels if one.decision.sustained and required <= one.met]
    return max(
        meeting,
        key=lambda one: (one.concurrency, rate(one.done.outcome.summary, "output_tok_s") or 0.0),
        default=None,
    )


def _table(levels: Sequence[Level]) -> Table:
    columns = (
        Column("concurrency", "In flight"),
        Column("seconds", "Run", "s"),
        Column("achieved", "Achieved", "tok/s"),
        Column("gain", "Added by the step", "%"),
        Column("ttft_p50", "TTFT P50", "ms"),
        Column("ttft_p99", "TTFT P99", "ms"),
        Column("tpot_p99", "TPOT P99", "ms"),
        Column("success", "Success", "%"),
        Column("sustained", "Sustained"),
        Column("because", "Because of"),
    )
    return Table(
        "levels",
        "Load levels in the order they were run",
        "5.2.3",
        columns,
        tuple(map(_row, levels)),
        capacity=True,
    )


def _row(one: Level) -> tuple[Cell, ...]:
    summary, sustained = one.done.outcome.summary, one.decision.sustained
    said = {True: "yes", False: "no", None: "not settled"}[sustained]
    return (
        one.concurrency,
        one.done.step.plan.load.duration_s,
        rate(summary, "output_tok_s"),
        percent(one.gain),
        stat(summary, "ttft", "p50"),
        stat(summary, "ttft", "p99"),
        stat(summary, "tpot", "p99"),
        success(summary),
        said + (" (confirmed)" if one.confirms and sustained else ""),
        "" if sustained else ", ".join(signal.code for signal in one.decision.reasons),
    )


def _figure(levels: Sequence[Level], top: Level | None) -> Figure:
    last = {one.concurrency: one.done.outcome.summary for one in levels}
    slots = sorted(last)
    series = Series(
        "achieved", tuple(map(float, slots)), tuple(rate(last[level], "output_tok_s") for level in slots)
    )
    marks = () if top is None else (Mark("sustainable", x=float(top.concurrency)),)
    axes = Axis("Requests in flight"), Axis("Output throughput", "tok/s")
    return Figure("achieved", "Throughput by concurrency", "lines", *axes, (series,), marks, capacity=True)


def _notes(setup: Setup, ended: Answer | None, top: Level | None) -> tuple[Note, ...]:
    wanted = setup.tests.throughput
    bounds = {
        "lowest": wanted.min_concurrency, "highest": wanted.max_concurrency, "step": wanted.concurrency_step,
    }  # fmt: skip
    notes = [
        Note("closed_loop_saturation_rule", {"least_gain": LEAST_GAIN}),
        Note("concurrency_levels", bounds, capacity=True),
    ]
    if ended is not None and ended.unsettled:
        notes.append(Note("unsettled_taken_as_saturated", {"levels": ended.unsettled}, capacity=True))
    if (
        top is not None
        and ended is not None
        and top.concurrency == wanted.min_concurrency != wanted.max_concurrency
    ):
        notes.append(Note("lowest_level_is_the_answer"))
    return tuple(notes)


def _undecided(setup: Setup, ended: Answer | None, top: Level | None) -> tuple[Note, ...]:
    if ended is None:
        return (Note("search_not_ended"),)
    if ended.why == "endless":
        return (Note("search_given_up", {"tried": "levels", "held": "sustained"}),)
    if top is None:
        return (Note("lowest_concurrency_not_sustained"),)
    if ended.why == "ceiling":
        highest = setup.tests.throughput.max_concurrency
        return (Note("throughput_still_rose", {"concurrency": highest}, capacity=True),)
    return ()
