"""Draft 5.8, Memory Pressure Behavior: what happens with more requests in flight than the system takes.

The 100 % is what 5.5's search (concurrency.py) finds on this test's own workload: Long Context, unless the test has lengths of
its own. It is the first level; the others follow ascending, in whole requests, rounded up. A system that falls over ends the
test, and that is a finding: the levels before stand.

| figure             | is                                                                                             |
| ------------------ | ---------------------------------------------------------------------------------------------- |
| completion         | succeeded / (succeeded + failed) requests; fail rate is the rest                               |
| preemption rate    | requests preempted once at least / sent requests, lead-in and lead-out included                |
| recovery rate      | of these, the share that ended with all their tokens                                           |
| preemption loss    | tokens lost from the KV cache / preemptions                                                    |

No client sees a preemption. They are as the server counts them (`preemption` of the summary): most count events at best, which
are no requests. What is not counted is not measured, and never 0.

How it degrades (this tool's own rule): of a system that takes 100 and is given p, 100 / p fit. It fails `gracefully` while at
least that share completes and throughput is half of the base level's or more; the first level with less is a `cliff`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Axis, Cell, Column, Figure, Interval, Series
from inferometer.documents.summary import Summary
from inferometer.plan.schema import Plan
from inferometer.plan.workload import StandardWorkload
from inferometer.procedures.capacity import search_table
from inferometer.procedures.concurrency import (
    BASE_LEVELS,
    Sought,
    answer,
    best,
    capacity_of,
    errors,
    interval,
    known_capacity,
    ladder_of,
    lasted,
    levels,
    seek,
)
from inferometer.procedures.results import Results, Table, Value
from inferometer.procedures.setup import (
    Setup,
    closed_loop,
    documents,
    level_of,
    variant,
    with_warm_up,
    without_warm_up,
)
from inferometer.procedures.step import Measured, Performed, PerformedRun, Run, Steps, runs
from inferometer.procedures.summary_access import percent, rate, stat, stat_interval

NAME, SECTION = "memory-pressure", "5.8"

LEAST_COMPLETION = 99.0
"""Per cent: draft 5.5.2's criterion."""
CLIFF_THROUGHPUT = 0.5
NOBODY = "nobody preempted"
WAVES = 1.5
"""A level lasts at least so many times what a request takes with as many others, at the rate of the capacity: one that is
shorter has no steady span."""
SPARE = 2.0
"""Prompts for so many times the rate at the capacity are made, for no system gets that much faster under pressure."""


def steps(setup: Setup) -> Steps:
    """The capacity, then the levels."""
    wanted = _sought(setup)
    done: Sequence[Performed] = []
    if capacity_of(setup, wanted, done) is None:
        done = yield from seek(wanted)
    capacity, top = capacity_of(setup, wanted, done), best(wanted, done)
    if capacity is None:
        return
    base: float | None = None
    if top is not None:
        found = top.done.outcome.summary
        base = rate(found, "request_s") or found.throughput.whole_run.request_s
    for number, share in enumerate(_percentages(setup)):
        run = _level_run(setup, share, capacity, base, first=number == 0)
        measured: Measured = yield replace(run, plan=level_of(run.plan, NAME, number))
        base = base or measured.summary.throughput.whole_run.request_s


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    return _level_run(setup, 100.0, setup.tests.memory_pressure.initial, None, first=True).plan


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Table 11, how it degrades, and the picture."""
    wanted = _sought(setup)
    capacity = capacity_of(setup, wanted, done)
    pressures = [_pressure(one) for one in runs(done, "level")]
    return Results(
        values=_values(capacity, interval(wanted, done), pressures),
        tables=(_table(pressures), *_base_table(wanted, done)),
        figures=(_figure(pressures),),
        notes=(*_notes(setup, wanted), *_of_preemption(pressures), *_changes(pressures)),
        undecided=_undecided(setup, wanted, capacity, pressures, done),
        known=known_capacity(wanted, answer(wanted, done)),
    )


def _base_table(wanted: Sought, done: Sequence[Performed]) -> tuple[Table, ...]:
    """How the 100 % of its percentages was found, level by level; none where it was known."""
    found = levels(wanted, done)
    title = "The search for 100 %, level by level"
    return (search_table(found, best(wanted, done), "base_levels", title),) if found else ()


def _sought(setup: Setup) -> Sought:
    wanted = setup.tests.memory_pressure
    return Sought(
        plan=documents(variant(setup.plan, slos=[]), wanted.input_tokens, wanted.output_tokens),
        ladder=ladder_of(setup, min(wanted.initial, wanted.maximum), wanted.maximum),
        seconds=wanted.level_s,
        completions=wanted.completions_per_slot,
        success_rate=wanted.success_rate,
        ttft_p99_ms=wanted.ttft_p99_ms,
        parts=BASE_LEVELS,
    )


def _percentages(setup: Setup) -> list[float]:
    """The base comes first, whatever was asked for."""
    return [100.0, *sorted({share for share in setup.tests.memory_pressure.percent if share != 100})]


def _level_run(setup: Setup, share: float, capacity: int, base: float | None, *, first: bool) -> Run:
    """`base`: requests a second at the capacity, if they were measured."""
    slots = math.ceil(capacity * share / 100 - 1e-9)
    asked = setup.tests.memory_pressure
    least = max(WAVES * slots, asked.requests) / base if base else 0.0
    seconds = max(asked.duration_s, float(f"{least:.4g}"))
    most = None if base is None else max(4 * slots, math.ceil(SPARE * base * seconds))
    plan: Plan = closed_loop(_sought(setup).plan, slots, seconds=seconds, requests=most)
    at = Conditions(percent=share, concurrency=slots)
    why = Note("pressure_level", {"concurrency": slots, "seconds": seconds, "percent": share})
    return Run(with_warm_up(plan) if first else without_warm_up(plan), "level", at, why)


@dataclass(frozen=True, slots=True)
class _Pressure:
    """A level, in numbers: per cent, but for the TTFT in ms, the throughput in tokens a second and the loss in tokens. Where
    nobody was preempted, recovery and loss say so."""

    run: PerformedRun
    share: float
    completion: float | None
    preempted: float | None
    recovered: Cell
    lost: Cell
    events: float | None
    source: str | None
    ttft_p99: float | None
    output_tok_s: float | None


def _completed(summary: Summary) -> float | None:
    """Of the requests that ended by themselves: those cut off at the end of a level had no time to."""
    counts = summary.requests
    ended = counts.completed + counts.failed
    return counts.completed / ended if ended else None


def _pressure(one: PerformedRun) -> _Pressure:
    summary = one.outcome.summary
    counts, sent = summary.preemption, summary.requests
    requests, events = (None, None) if counts is None else (counts.requests, counts.events)
    finished, discarded = (None, None) if counts is None else (counts.finished, counts.discarded)
    return _Pressure(
        run=one,
        share=(one.step.at.percent or 0),
        completion=percent(_completed(summary)),
        preempted=_ratio(requests, sent.sent + sent.lead_in + sent.lead_out, 100),
        recovered=NOBODY if requests == 0 else _ratio(finished, requests, 100),
        lost=NOBODY if requests == 0 else _ratio(discarded, events),
        events=events,
        source=None if counts is None else counts.source,
        ttft_p99=stat(summary, "ttft", "p99"),
        output_tok_s=_throughput(summary),
    )


def _ratio(part: float | None, total: float | None, times: float = 1.0) -> float | None:
    return None if part is None or not total else times * part / total


def _throughput(summary: Summary) -> float | None:
    """Over the steady span, or without one the whole run."""
    steady = rate(summary, "output_tok_s")
    return summary.throughput.whole_run.output_tok_s if steady is None else steady


def _table(pressures: Sequence[_Pressure]) -> Table:
    """Draft Table 11, with what else 5.8.3 and 5.8.4 ask for on its right."""
    columns = (
        Column("percent", "Oversub Level", "%"),
        Column("completion", "Complete", "%"),
        Column("preempted", "Preempt", "%"),
        Column("failed", "Fail Rate", "%"),
        Column("ttft_p99", "TTFT P99", "ms"),
        Column("recovered", "Preemption recovery", "%"),
        Column("lost", "Preemption loss", "tokens"),
        Column("events", "Preemptions"),
        Column("errors", "Errors"),
        Column("output_tok_s", "Throughput", "tok/s"),
        Column("concurrency", "In flight"),
        Column("requests", "Requests"),
        Column("cancelled", "Cut off at the end"),
        Column("seconds", "Run", "s"),
    )
    notes = (
        Note("percent_of_base_concurrency"),
        Note("errors_seen_by_client"),
    )
    rows = tuple(_row(one) for one in pressures)
    return Table("levels", "Memory pressure degradation", "5.8.5", columns, rows, notes, capacity=True)


def _row(one: _Pressure) -> tuple[Cell, ...]:
    summary = one.run.outcome.summary
    return (
        one.share,
        one.completion,
        one.preempted,
        None if one.completion is None else 100 - one.completion,
        one.ttft_p99,
        one.recovered,
        one.lost,
        one.events,
        errors(summary),
        one.output_tok_s,
        one.run.step.at.concurrency,
        summary.requests.sent,
        summary.requests.cancelled,
        lasted(summary),
    )


def _values(capacity: int | None, span: Interval | None, pressures: Sequence[_Pressure]) -> tuple[Value, ...]:
    never = "never" if pressures else None
    below: Cell = next((one.share for one in pressures if _incomplete(one)), never)
    note = None if pressures else Note("no_pressure_level_measured")
    growth = _ratio(pressures[-1].ttft_p99, pressures[0].ttft_p99) if len(pressures) > 1 else None
    ends = None if growth is None else _growth_interval(pressures[-1], pressures[0])
    fallen = next((one.share for one in pressures if _over_the_cliff(one, pressures[0])), None)
    pattern = None if not pressures else "graceful" if fallen is None else "cliff"
    return (
        Value(
            "base_concurrency", "Base: maximum concurrent requests", capacity, "in flight", span,
            Note("capacity_of_this_workload") if capacity is not None else Note("search_found_none"), capacity=True,
        ),
        Value("completion_below_99", "Completion below 99 % from", below, "% of the capacity", None, note, capacity=True),
        Value("degradation", "Degradation", pattern, "", None, Note("degradation_rule"), capacity=True),
        Value(
            "ttft_p99_growth", "TTFT P99 at the highest level / at the base", growth, "", ends,
            _growth_note(growth, ends), capacity=True,
        ),
    )  # fmt: skip


def _growth_interval(top: _Pressure, base: _Pressure) -> Interval | None:
    """From the lower end of the one P99 by the upper end of the other to the reverse: of two runs that are independent of each
    other 95 % at least. None where a P99 has no interval."""
    above, below = (stat_interval(one.run.outcome.summary, "ttft", "p99") for one in (top, base))
    if above is None or below is None or below[0] <= 0:
        return None
    return above[0] / below[1], above[1] / below[0]


def _growth_note(growth: float | None, ends: Interval | None) -> Note:
    if growth is None:
        return Note("fewer_than_two_p99")
    return Note("of_the_p99s_intervals") if ends is not None else Note("p99_without_interval")


def _incomplete(one: _Pressure) -> bool:
    return one.completion is not None and one.completion < LEAST_COMPLETION


def _over_the_cliff(one: _Pressure, base: _Pressure) -> bool:
    """Less than what fits completes, or throughput has broken down."""
    if one is base:
        return False
    fits = min(LEAST_COMPLETION, 100 * 100 / one.share)
    slow = _ratio(one.output_tok_s, base.output_tok_s)
    return (one.completion is not None and one.completion < fits) or (
        slow is not None and slow < CLIFF_THROUGHPUT
    )


def _changes(pressures: Sequence[_Pressure]) -> tuple[Note, ...]:
    """What changes from the base to each level; None: not measured at one of the two."""
    if len(pressures) < 2:
        return ()
    base = pressures[0]

    def pair(one: _Pressure, name: str) -> dict[str, Fact]:
        here, there = getattr(one, name), getattr(base, name)
        missing = here is None or there is None
        return {name: None if missing else here, f"base_{name}": None if missing else there}

    return tuple(
        Note(
            "change_from_base",
            {
                "percent": one.share,
                **pair(one, "completion"),
                **pair(one, "ttft_p99"),
                **pair(one, "output_tok_s"),
            },
            capacity=True,
        )
        for one in pressures[1:]
    )


def _figure(pressures: Sequence[_Pressure]) -> Figure:
    """All in per cent, for they have units of their own: of the requests, or of the base level."""
    shares = tuple(one.share for one in pressures)
    ttft, output = ([getattr(one, name) for one in pressures] for name in ("ttft_p99", "output_tok_s"))

    def series(label: str, values: Sequence[float | None]) -> Series:
        return Series(label, shares, tuple(value or None for value in values))  # 0 has no place on the axis

    def of_base(values: Sequence[float | None]) -> list[float | None]:
        return [_ratio(value, values[0], 100) for value in values]

    lines = (
        series("completion, of the requests", [one.completion for one in pressures]),
        series("TTFT P99, of the base", of_base(ttft)),
        series("throughput, of the base", of_base(output)),
        series("preempted, of the requests", [one.preempted for one in pressures]),
    )
    return Figure(
        "pressure", "Behavior by oversubscription", "lines", Axis("Requests in flight, of the capacity", "%"),
        Axis("Share", "%", log=True), lines, capacity=True,
    )  # fmt: skip


def _notes(setup: Setup, wanted: Sought) -> tuple[Note, ...]:
    workload = wanted.plan.workload
    assert isinstance(workload, StandardWorkload), "the recommended one"
    words: dict[str, Fact] = {
        "standard": workload.name == "long-context",
        "input_tokens": str(workload.input_tokens),
        "output_tokens": str(workload.output_tokens),
        "success_rate": wanted.success_rate,
        "ttft_p99_ms": wanted.ttft_p99_ms,
    }
    asked = setup.tests.memory_pressure
    lasting = {"seconds": asked.duration_s, "requests": asked.requests}
    return Note("pressure_workload", words, True), Note("pressure_levels", lasting, True)


def _of_preemption(pressures: Sequence[_Pressure]) -> tuple[Note, ...]:
    """Whose counts they are, and what is missing."""
    if not pressures:
        return ()
    sources = {one.source for one in pressures}
    if sources == {None}:
        return (Note("preemption_not_measured"),)
    notes = [
        Note("preemptions_counted_by", {"sources": tuple(sorted(source for source in sources if source))})
    ]
    if any(one.events is not None and one.preempted is None for one in pressures):
        notes.append(Note("preemption_events_only"))
    return tuple(notes)


def _undecided(
    setup: Setup,
    wanted: Sought,
    capacity: int | None,
    pressures: Sequence[_Pressure],
    done: Sequence[Performed],
) -> tuple[Note, ...]:
    ended = answer(wanted, done)
    if capacity is None:
        top = best(wanted, done)
        so_far = {"concurrency": None if top is None else top.concurrency}
        return (Note("no_base_capacity", so_far, capacity=True),)
    notes = []
    if ended is not None and ended.why == "ceiling":
        notes.append(Note("base_above_maximum", {"maximum": wanted.ladder.most}, capacity=True))
    missing = len(_percentages(setup)) - len(pressures)
    if missing:
        notes.append(
            Note("pressure_levels_missing", {"missing": missing, "levels": missing + len(pressures)})
        )
    return tuple(notes)
