"""Draft 5.10.4, throughput reduction: the most output tokens a second in each configuration of guardrails (Table 14).

baseline: climb from `search.pilot_concurrency`, or that of its search for 100 % -> RUNS with a full system
others:   climb from half of what the baseline's ended at                       -> the same requests with a full system

| figure      | is                                                                                                      |
| ----------- | ------------------------------------------------------------------------------------------------------- |
| maximum     | the capacity of plateau.py: of the runs at the concurrency that the climb ended at                      |
| reduction   | 1 - q in per cent, q the mean ratio of a configuration's thirds of runs to those of the baseline         |
| interval    | Student's t of log q over the thirds, which are paired, for both sides answer the same requests, and are |
|             | known to a token for each in flight at best; either                                                     |
|             | end allows for what another doubling may add to one side, which is no more than the last one did         |

With `guardrail.concurrency` nothing is searched: each configuration is measured with as many in flight.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec.structs import replace as changed

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Cell, Column, Interval
from inferometer.measure.stats import mean_interval
from inferometer.plan.schema import Plan
from inferometer.procedures.arrivals import arrivals_in
from inferometer.procedures.collapse import in_climb
from inferometer.procedures.plateau import (
    MOST,
    SEEDS,
    Capacity,
    Climb,
    Rung,
    ascend,
    capacity,
    distinct,
    output,
    plateau,
    rungs,
    still_rose,
)
from inferometer.procedures.results import Table
from inferometer.procedures.saturation import BASE, base_capacity, climb_of
from inferometer.procedures.setup import LIVES, Setup, closed_loop, reseeded, variant, without_warm_up
from inferometer.procedures.step import Collapse, Measured, Performed, PerformedRun, Run, Steps, runs
from inferometer.procedures.summary_access import rate, success

CLIMB, FULL = "pilot", "throughput"
"""Parts of runs."""
BASELINE = "baseline"
RUNS = 2
SEED = 50
WAVES = 4
"""Requests of a run with a full system for each in flight, at least."""
PATIENCE = 10.0
"""A configuration that takes longer than this many times the baseline's time does not answer all of its requests."""


@dataclass(frozen=True, slots=True)
class Maximum:
    """Of one configuration. `found`: None where the climb came to no end. `rose`: no plateau was seen; `slower`: that more in
    flight made the system slower."""

    climbed: tuple[Rung, ...]
    full: tuple[PerformedRun, ...]
    found: Capacity | None
    rose: bool
    slower: Collapse | None = None


@dataclass(frozen=True, slots=True)
class Reduction:
    """Of output tokens a second against the baseline, in per cent, positive for less; and its 95 % interval."""

    percent: float
    ci: Interval | None

    @property
    def by_chance(self) -> bool:
        """Whether there may be none."""
        return self.ci is not None and self.ci[0] <= 0 <= self.ci[1]


def measure(setup: Setup, plan: Plan, name: str, label: str, done: Sequence[Performed], base: float) -> Steps:
    """The runs for a configuration, `name` in the test's terms and `label` in words, after what was done. `base`: what the
    baseline sustains, arrivals/s."""
    known = list(done)
    if setup.tests.guardrail.concurrency is None and not _climbed(setup, plan, name, known):
        known += yield from _as(name, ascend(_climb(setup, plan, name, known)))
    for number in range(1 if setup.quick else RUNS):
        run = _full(setup, plan, name, label, number, known, base)
        if run is None:
            return
        known.append(PerformedRun(run, (yield run)))


def maximum(setup: Setup, plan: Plan, name: str, done: Sequence[Performed]) -> Maximum:
    """What the runs of a configuration came to."""
    climbed = _climbed(setup, plan, name, done)
    top = _top(setup, plan, name, done)
    full = [
        one for one in runs(done, FULL) if one.step.at.configuration == name and output(one.outcome.summary)
    ]
    found = None if top is None or not full else capacity(climbed, top, full)
    rose = top is not None and bool(climbed) and still_rose(climbed)
    slower = None if top is None or found is None else in_climb(climbed, top, found)
    return Maximum(tuple(climbed), tuple(full), found, rose, slower)


def reduction(baseline: Maximum, other: Maximum) -> Reduction | None:
    """By how much a configuration's maximum is less than the baseline's; None where either is missing."""
    before, after = baseline.found, other.found
    if before is None or after is None:
        return None
    parts = [_thirds(one) for one in (baseline, other)]
    if len(parts[0]) != len(parts[1]):
        return Reduction(lost(before.output_tok_s, after.output_tok_s), None)
    ratios = [math.log(there / here) for here, there in zip(*parts, strict=True) if here > 0 and there > 0]
    spread = max(statistics.stdev(ratios), _resolution(baseline, other)) if len(ratios) > 1 else None
    ends = mean_interval(len(ratios), statistics.fmean(ratios), spread) if ratios else None
    value = lost(before.output_tok_s, after.output_tok_s)
    if ends is None:
        return Reduction(value, None)
    low, high = math.exp(ends[0]) / (1 + before.gain), math.exp(ends[1]) * (1 + after.gain)
    return Reduction(value, (min(100 * (1 - high), value), max(100 * (1 - low), value)))


def _resolution(*sides: Maximum) -> float:
    """How well a third's output is known, as a share: at its borders each request in flight has a token more or less. Runs of
    the same requests may agree to the digit, and that is no certainty about others."""
    found = [
        slots * len(steady.output_thirds_tok_s) / (third * steady.duration_s)
        for one in sides
        for run in one.full
        if (steady := run.outcome.summary.steady) is not None
        and (slots := run.step.at.concurrency) is not None
        for third in steady.output_thirds_tok_s
        if third > 0 and steady.duration_s > 0
    ]
    return max(found, default=0.0)


def lost(before: float, after: float) -> float:
    """A reduction in per cent, positive for less: draft 5.10.4."""
    return 100.0 * (before - after) / before


def _thirds(one: Maximum) -> list[float]:
    """Output tokens a second in the thirds of each run with a full system."""
    steady = [run.outcome.summary.steady for run in one.full]
    return [part for span in steady if span is not None for part in span.output_thirds_tok_s]


def _climb(setup: Setup, plan: Plan, name: str, done: Sequence[Performed]) -> Climb:
    usual = replace(climb_of(setup, variant(plan, slos=[])), part=CLIMB)
    if name == BASELINE:
        return usual
    top = _top(setup, plan, BASELINE, done)
    first = usual.first if top is None else max(1, top.concurrency // 2)
    return replace(usual, first=first, most=max(MOST, 2 * first))


def _climbed(setup: Setup, plan: Plan, name: str, done: Sequence[Performed]) -> list[Rung]:
    """The climb of a configuration; the baseline's may be that of its search for 100 %."""
    own = [one for one in runs(done, CLIMB) if one.step.at.configuration == name]
    if own or name != BASELINE:
        return rungs(_climb(setup, plan, BASELINE, ()), own)
    found = base_capacity(setup, plan, done)
    return [] if found is None else rungs(climb_of(setup, variant(plan, slos=[]), BASE), done)


def _top(setup: Setup, plan: Plan, name: str, done: Sequence[Performed]) -> Rung | None:
    """Where a configuration is measured; None: nowhere."""
    fixed = setup.tests.guardrail.concurrency
    if fixed is not None:
        full = [one for one in runs(done, FULL) if one.step.at.configuration == name]
        return Rung(full[0], fixed, output(full[0].outcome.summary), None) if full else None
    climbed = _climbed(setup, plan, name, done)
    return plateau(_climb(setup, plan, name, done), climbed) if climbed else None


def _full(
    setup: Setup, plan: Plan, name: str, label: str, number: int, done: Sequence[Performed], base: float
) -> Run | None:
    """A run with a full system: of the same requests in every configuration. None: it is not known what fills it."""
    wanted, arrivals = setup.tests.guardrail, arrivals_in(plan, done)
    each = arrivals.each
    if wanted.concurrency is not None:
        slots: int = wanted.concurrency
        seconds = wanted.throughput_s
        if (
            not arrivals.single
        ):  # slots that begin together are in step at first, and at the first steps of their sessions
            seconds = max(seconds, float(f"{LIVES * slots / base:.4g}"))
        own = max(distinct(seconds, arrivals.requests(base)) or 0, math.ceil(2 * WAVES * slots * each))
        loop = closed_loop(plan, slots, seconds=seconds, requests=own)
    else:
        top, usual = _top(setup, plan, name, done), _top(setup, plan, BASELINE, done)
        request_s = None if usual is None else rate(usual.done.outcome.summary, "request_s")
        if top is None or usual is None or not request_s:
            return None
        slots = top.concurrency
        least = max(math.ceil(2 * WAVES * usual.concurrency * each), setup.tests.search.pilot_requests)
        count = max(math.ceil(request_s * wanted.throughput_s), least)
        longest = float(f"{PATIENCE * count / request_s:.4g}")
        loop = closed_loop(plan, slots, requests=count, seconds=longest)
    at = Conditions(configuration=name, concurrency=slots)
    why = Note("guardrail_throughput", {"configuration": label, "concurrency": slots})
    return Run(reseeded(without_warm_up(loop), SEED + SEEDS * number), FULL, at, why)


def _as(
    name: str, climb: Generator[Run, Measured, list[Performed]]
) -> Generator[Run, Measured, list[Performed]]:
    """A climb in a configuration, of a system that is warm."""
    done: list[Performed] = []
    came: Measured | None = None
    while True:
        try:
            run = next(climb) if came is None else climb.send(came)
        except StopIteration:
            return done
        run = replace(run, plan=without_warm_up(run.plan), at=changed(run.at, configuration=name))
        came = yield run
        done.append(PerformedRun(run, came))


def throughput_table(
    setup: Setup, labels: Mapping[str, str], found: Mapping[str, Maximum], notes: Sequence[Note]
) -> Table:
    """Draft Table 14: the change is signed, negative for less. `labels`: of all configurations, the baseline's first."""
    columns = (
        Column("configuration", "Configuration"),
        Column("throughput", "Max Throughput", "tok/s"),
        Column("change", "Change", "%"),
        Column("change_low", "95 % from", "%"),
        Column("change_high", "to", "%"),
        Column("low", "Max 95 % from", "tok/s"),
        Column("high", "to", "tok/s"),
        Column("concurrency", "In flight"),
    )
    rows: list[tuple[Cell, ...]] = []
    for name, label in labels.items():
        one = found.get(name)
        most = None if one is None else one.found
        if one is None or most is None:
            rows.append((label, *[None] * (len(columns) - 1)))
            continue
        less = reduction(found[BASELINE], one) if name != BASELINE else None
        ends: Interval | tuple[None, None] = (None, None) if less is None or less.ci is None else less.ci
        change: tuple[Cell, ...] = ("", "", "")
        if name != BASELINE:
            change = (
                None if less is None else -less.percent,
                *(None if end is None else -end for end in ends[::-1]),
            )
        rows.append((label, most.output_tok_s, *change, *(most.output_ci or (None, None)), most.concurrency))
    fixed = setup.tests.guardrail.concurrency
    how = (
        Note("maximum_by_climb")
        if fixed is None
        else Note("output_without_search", {"concurrency": fixed}, capacity=True)
    )
    return Table(
        "throughput", "Throughput impact", "5.10.5", columns, tuple(rows), (how, *notes), capacity=True
    )


def climb_table(labels: Mapping[str, str], found: Mapping[str, Maximum]) -> tuple[Table, ...]:
    """What was in flight in the searches, and what came of it."""
    columns = (
        Column("configuration", "Configuration"),
        Column("concurrency", "In flight"),
        Column("requests", "Requests"),
        Column("seconds", "Run", "s"),
        Column("achieved", "Achieved", "tok/s"),
        Column("gain", "Added by doubling", "%"),
        Column("success", "Success", "%"),
    )
    rows = tuple(_row(labels[name], one) for name in labels for one in _levels(found.get(name)))
    if not rows:
        return ()
    title = "The search for the most throughput of each configuration"
    return (Table("throughput_levels", title, "5.10.4", columns, rows, capacity=True),)


def _levels(one: Maximum | None) -> Iterator[Rung]:
    if one is not None and one.climbed:
        yield from one.climbed
        yield from (
            Rung(run, run.step.at.concurrency or 1, output(run.outcome.summary), None) for run in one.full
        )


def _row(label: str, one: Rung) -> tuple[Cell, ...]:
    summary = one.done.outcome.summary
    gain: Cell = "" if one.gain is None else 100.0 * one.gain
    return (
        label, one.concurrency, summary.requests.completed, summary.window.duration_s, one.output_tok_s, gain,
        success(summary),
    )  # fmt: skip
