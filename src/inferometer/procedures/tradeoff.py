"""Draft 5.3, Throughput-Latency Tradeoff: levels in open loop from light load to beyond saturation, in ascending order.

| derived                 | is                                                                                                |
| ----------------------- | ------------------------------------------------------------------------------------------------- |
| knee                    | the first level, ascending, whose TTFT P99 is above twice the least TTFT P99 (also of TPOT, E2E)  |
| saturation point        | the first level with less output throughput than the level before it; there may be none           |
| optimal operating point | the level of the highest throughput among those that meet all of the plan's objectives            |

The knee's latency and the saturation point's order are settled here where the draft's example (Table 5) and its words differ:
its words count. Levels come in steps of 10 % beyond those asked for until throughput falls once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Axis, Cell, Column, Figure, Interval, Mark, Series
from inferometer.documents.summary import Summary
from inferometer.plan.schema import Plan
from inferometer.procedures.arrivals import REQUESTS, Arrivals, arrivals_in
from inferometer.procedures.collapse import base_collapse, base_notes, unsure_loads
from inferometer.procedures.knee import KNEE, behind, knee_interval
from inferometer.procedures.results import Results, Table, Value
from inferometer.procedures.saturation import base_life, base_of, find_base, known_base
from inferometer.procedures.setup import (
    Setup,
    lasting,
    level_of,
    open_loop,
    warm_up_run,
    without_warm_up,
    workload_key,
)
from inferometer.procedures.step import Performed, PerformedRun, Run, Steps, kept, runs
from inferometer.procedures.summary_access import (
    Metric,
    growth,
    rate,
    rate_interval,
    samples,
    stat,
    stat_interval,
    success,
)
from inferometer.procedures.thirds import output_interval

NAME, SECTION = "tradeoff", "5.3"

STEP = 10.0
"""Per cent; of the levels beyond those asked for."""
LEAST_SAMPLES = 1_000
MS_PER_S = 1_000.0
"""For a P99 within 10 % (draft 5.1.4.3)."""
LATENCIES: tuple[tuple[Metric, str], ...] = (("ttft", "TTFT"), ("tpot", "TPOT"), ("e2e", "E2E"))
PERCENTILES = ("p50", "p95", "p99")


@dataclass(frozen=True, slots=True)
class Point:
    """One level: its share of the estimated capacity, what was offered, and what came of it."""

    percent: float
    rate: float
    summary: Summary

    @property
    def achieved(self) -> float | None:
        """Output tokens a second."""
        return rate(self.summary, "output_tok_s")

    @property
    def interval(self) -> Interval | None:
        """Its 95 % interval (thirds.py)."""
        return output_interval(self.summary)


def steps(setup: Setup) -> Steps:
    """The capacity, and levels of it in ascending order until throughput falls."""
    published = setup.tests.tradeoff.capacity_rate
    before: list[Performed] = []
    base = published if published is not None else (yield from kept(find_base(setup, setup.plan), before))
    if published is not None or workload_key(setup.plan) in setup.known.saturation:
        ready = warm_up_run(setup.plan)  # nothing went before, and the first level is a low one
        before.append(PerformedRun(ready, (yield ready)))
    arrivals, life_s = arrivals_in(setup.plan, before), base_life(setup, setup.plan, before)
    done: list[Performed] = []
    while base is not None and (share := _following(setup, points(done))) is not None:
        level = float(f"{base * share / 100:.6g}")
        seconds = lasting(setup, level, setup.tests.tradeoff.duration_s, arrivals, life_s)
        run = Run(
            level_of(open_loop(without_warm_up(setup.plan), level, seconds=seconds), NAME, len(done)),
            "level",
            Conditions(percent=share, rate=level),
            Note(
                "tradeoff_level",
                {"percent": share, "rate": level, "seconds": seconds, "unit": arrivals.per_second},
            ),
        )
        done.append(PerformedRun(run, (yield run)))


def _following(setup: Setup, points: Sequence[Point]) -> float | None:
    """The next level in per cent; None: there is none."""
    wanted = setup.tests.tradeoff
    requested = sorted(set(wanted.percent))
    if len(points) < len(requested):
        return requested[len(points)]
    further = points[-1].percent + STEP
    return further if fall(points) is None and further <= wanted.most_percent else None


def points(done: Sequence[Performed]) -> list[Point]:
    """The levels that were measured, in their order."""
    return [
        Point(one.step.at.percent or 0.0, one.step.at.rate or 0.0, one.outcome.summary)
        for one in runs(done, "level")
    ]


def fall(points: Sequence[Point]) -> int | None:
    """Which level is the first with less throughput than the one before it (draft 5.3.4); None: none is. Levels at which
    nothing was achieved count as zero; before anything was, there is nothing to fall from."""
    achieved = [one.achieved or 0.0 for one in points]
    return next((at for at, (one, next_) in enumerate(pairwise(achieved), 1) if next_ < one), None)


def knee(points: Sequence[Point], metric: Metric) -> tuple[int | None, float | None]:
    """Which level is the first whose P99 is above twice the least P99, and that least one, ms (draft 5.3.4)."""
    p99s = [stat(one.summary, metric, "p99") for one in points]
    least = min((value for value in p99s if value is not None), default=None)
    if least is None:
        return None, None
    return next((at for at, p99 in enumerate(p99s) if p99 is not None and p99 > KNEE * least), None), least


def optimum(points: Sequence[Point], *, settled: bool = True) -> int | None:
    """Which level has the highest throughput among those that meet all objectives, by their intervals; with `settled` off,
    also those whose intervals say neither."""
    said = (True,) if settled else (True, None)
    meeting = [
        at
        for at, one in enumerate(points)
        if one.achieved is not None and all(slo.met in said for slo in one.summary.slos)
    ]
    return max(meeting, key=lambda at: points[at].achieved or 0.0, default=None)


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    wanted = setup.tests.tradeoff
    return open_loop(setup.plan, wanted.capacity_rate or 1.0, seconds=wanted.duration_s)


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Table 5 with all that 5.3.4 records, the derived points, and the curves."""
    wanted = setup.tests.tradeoff
    base = wanted.capacity_rate if wanted.capacity_rate is not None else base_of(setup, setup.plan, done)
    measured = points(done)
    slower = None if wanted.capacity_rate is not None else base_collapse(setup, setup.plan, done)
    life_s = base_life(setup, setup.plan, done)
    known = known_base(setup.plan, None if wanted.capacity_rate is not None else base, slower, life_s)
    if not measured:
        why = Note("no_level_measured") if base is not None else Note("no_capacity_rate")
        return Results(undecided=(why,), known=known)
    ended, unit = len(measured) >= len(set(wanted.percent)), arrivals_in(setup.plan, done)
    return Results(
        values=(_base(setup, base, unit.column), *_values(setup, measured, unit)),
        tables=(_table(measured, unit.column),),
        figures=(
            _curve(setup, measured, "ttft", "curve"),
            _curve(setup, measured, "tpot", "tpot_curve"),
            _offered(measured, unit),
            _per_user(setup, measured),
        ),
        notes=(*_notes(setup, measured), *base_notes(slower)),
        undecided=(
            *(() if ended else (Note("not_all_levels_measured"),)), *_unsettled(setup, measured),
            *unsure_loads(slower, base, _standing(measured)),
        ),
        known=known,
    )  # fmt: skip


def _standing(points: Sequence[Point]) -> list[float]:
    """The levels, in per cent, that the test's answers are of: those up to its peak, and the best that meets the objectives.
    Beyond the peak a level is to show what more load does."""
    best, met = _peak(points), optimum(points)
    return [points[at].percent for at in (best, met) if at is not None]


def _peak(points: Sequence[Point]) -> int:
    """Which level has the highest throughput."""
    return max(range(len(points)), key=lambda at: points[at].achieved or 0.0)


def _unsettled(setup: Setup, points: Sequence[Point]) -> Iterator[Note]:
    """That the point that stands for the test may be chance: the knee, or the saturation point where there is none; or that
    neither was reached, and the most throughput is that of the last level, which the system kept up with. An optimum is of
    levels whose intervals settle the objectives."""
    if setup.plan.slos and optimum(points) is not None:
        return
    found = (_knee(points, "ttft", "TTFT", REQUESTS), _saturation(points, REQUESTS))
    first = next((one for one in found if one.value is not None), None)
    if first is None and _rising(points):
        yield Note("peak_not_reached", {"percent": points[-1].percent})
    facts = {} if first is None or first.note is None else first.note.facts
    if facts.get("settled") is False:
        yield Note("knee_not_settled")
    elif "explained" in facts and facts["explained"] is not False:
        yield Note("fall_not_settled")


def _rising(points: Sequence[Point]) -> bool:
    """Whether the last level has the most throughput, and was not surely too much: then more load may give more."""
    last = points[-1]
    return last.achieved == max(one.achieved or 0.0 for one in points) and not behind(last.summary)


def _base(setup: Setup, base: float | None, unit: str) -> Value:
    published = setup.tests.tradeoff.capacity_rate is not None
    how = Note("given_with_the_plan") if published else Note("highest_sustainable_rate")
    return Value("capacity_rate", "Estimated capacity, 100 %", base, unit, None, how, capacity=True)


def _values(setup: Setup, points: Sequence[Point], arrivals: Arrivals) -> tuple[Value, ...]:
    top = points[_peak(points)]
    return (
        *(_knee(points, metric, label, arrivals) for metric, label in LATENCIES),
        _saturation(points, arrivals),
        Value("peak_rate", "Peak throughput at", top.rate, arrivals.column, None,
              Note("level_of_highest_throughput", {"percent": top.percent}), capacity=True),
        Value("peak_output_tok_s", "Peak throughput", top.achieved, "tok/s", top.interval,
              Note("at_rate", {"rate": top.rate, "unit": arrivals.per_second}, capacity=True), capacity=True),
        _optimal(setup, points, arrivals),
    )  # fmt: skip


def _knee(points: Sequence[Point], metric: Metric, label: str, arrivals: Arrivals) -> Value:
    at, least = knee(points, metric)
    name = "knee" if metric == "ttft" else f"knee_{metric}"
    title = "Knee point" if metric == "ttft" else f"Knee point of {label}"
    if least is None:
        return Value(
            name,
            title,
            None,
            arrivals.column,
            None,
            Note("latency_not_measured", {"latency": label}),
            capacity=True,
        )
    facts: dict[str, Fact] = {"latency": label, "least_ms": least}
    if at is None:
        return Value(name, title, None, arrivals.column, None, Note("not_reached_knee", facts), capacity=True)
    p99 = stat(points[at].summary, metric, "p99") or 0.0
    ends = knee_interval([(one.rate, one.summary) for one in points], metric)
    facts |= {"p99_ms": p99, "percent": points[at].percent, "settled": ends is not None}
    return Value(name, title, points[at].rate, arrivals.column, ends, Note("knee", facts), capacity=True)


def _saturation(points: Sequence[Point], arrivals: Arrivals) -> Value:
    at = fall(points)
    label = "Saturation point"
    if at is None:
        why = Note("not_reached_saturation", {"percent": points[-1].percent})
        return Value("saturation", label, None, arrivals.column, None, why, capacity=True)
    before, here = points[at - 1], points[at]
    facts: dict[str, Fact] = {
        "achieved": here.achieved or 0.0, "before": before.achieved or 0.0, "rate_before": before.rate,
        "unit": arrivals.per_second,
    }  # fmt: skip
    why = Note("first_fall_of_throughput", facts | _within(before, here), capacity=True)
    return Value("saturation", label, here.rate, arrivals.column, None, why, capacity=True)


def _within(before: Point, here: Point) -> dict[str, Fact]:
    """Whether a fall is more than chance: two intervals' half widths add as their squares do. `explained`: None where there
    are no intervals."""
    if before.interval is None or here.interval is None:
        return {"explained": None}
    spans = (before.interval, here.interval)
    chance = math.hypot(*((high - low) / 2 for low, high in spans))
    drop = (before.achieved or 0.0) - (here.achieved or 0.0)
    return {"interval_before": spans[0], "interval": spans[1], "explained": drop <= chance}


def _optimal(setup: Setup, points: Sequence[Point], arrivals: Arrivals) -> Value:
    label = "Optimal operating point"
    if not setup.plan.slos:
        return Value(
            "optimum", label, None, arrivals.column, None, Note("not_asked_without_objectives"), capacity=True
        )
    at, maybe = optimum(points), optimum(points, settled=False)
    facts: dict[str, Fact] = {
        "objectives": tuple(str(slo) for slo in setup.plan.slos),
        "achieved": None if at is None else points[at].achieved,
        "unsettled_rate": points[maybe].rate if maybe is not None and maybe != at else None,
        "unit": arrivals.per_second,
    }
    if at is None:
        none = Note("no_level_meets_objectives", facts, capacity=True)
        return Value("optimum", label, None, arrivals.column, None, none, capacity=True)
    why = Note("optimum", facts, capacity=True)
    return Value("optimum", label, points[at].rate, arrivals.column, _bracket(points, at), why, capacity=True)


def _bracket(points: Sequence[Point], at: int) -> Interval | None:
    """From a level that meets all objectives to the lowest above it that surely misses one, or is not kept up with."""
    missed = [
        one.rate
        for one in points[at + 1 :]
        if behind(one.summary) or any(slo.met is False for slo in one.summary.slos)
    ]
    return (points[at].rate, min(missed)) if missed else None


def _table(points: Sequence[Point], unit: str) -> Table:
    """Draft Table 5 with the columns that its example leaves out."""
    columns = (
        Column("rate", "Offered", unit),
        Column("achieved", "Achieved", "tok/s"),
        *(
            Column(f"{metric}_{name}", f"{label} {name.upper()}", "ms")
            for metric, label in LATENCIES
            for name in PERCENTILES
        ),
        Column("success", "Success", "%"),
        Column("queue", "Queue"),
        Column("percent", "Of capacity", "%"),
        Column("low", "Achieved, 95 % from", "tok/s"),
        Column("high", "to", "tok/s"),
        Column("samples", "Samples"),
    )
    rows = tuple(_row(one) for one in points)
    return Table("levels", "Throughput and latency by offered load", "5.3.5", columns, rows, capacity=True)


def _row(one: Point) -> tuple[Cell, ...]:
    return (
        one.rate,
        one.achieved,
        *(stat(one.summary, metric, name) for metric, _ in LATENCIES for name in PERCENTILES),
        success(one.summary),
        growth(one.summary),
        one.percent,
        *(one.interval or (None, None)),
        _samples(one),
    )


def _samples(one: Point) -> int:
    return samples(one.summary) or 0


def _curve(setup: Setup, points: Sequence[Point], metric: Metric, name: str) -> Figure:
    """Draft 5.3.3: latency against throughput, in the order of the load, so that the curve may turn back."""
    label = metric.upper()
    measured = [one for one in points if one.achieved is not None]
    x = tuple(one.achieved or 0.0 for one in measured)
    series = tuple(
        Series(
            f"{label} {which.upper()}",
            x,
            tuple(stat(one.summary, metric, which) for one in measured),
            ci=tuple(stat_interval(one.summary, metric, which) for one in measured),
        )
        for which in PERCENTILES
    )
    marked = [("knee", knee(points, metric)[0]), ("saturation", fall(points))]
    if setup.plan.slos:
        marked.insert(1, ("optimum", optimum(points)))
    marks = tuple(
        Mark(word, points[at].achieved, stat(points[at].summary, metric, "p99"))
        for word, at in marked
        if at is not None and points[at].achieved is not None
    )
    axes = Axis("Output throughput", "tok/s"), Axis(label, "ms", log=True)
    return Figure(name, f"{label} against throughput", "lines", *axes, series, marks, capacity=True)


def _offered(points: Sequence[Point], arrivals: Arrivals) -> Figure:
    """Achieved against offered; ideal is every request answered at once, with as many tokens as answers have on average."""
    rates = tuple(one.rate for one in points)
    achieved, intervals = tuple(one.achieved for one in points), tuple(one.interval for one in points)
    series = [Series("achieved", rates, achieved, ci=intervals)]
    lengths = [
        (stats.mean, stats.n) for one in points if (stats := one.summary.metrics.output_tokens) is not None
    ]
    if lengths:
        mean = math.fsum(mean * n for mean, n in lengths) / sum(n for _, n in lengths)
        series.append(Series("ideal", rates, tuple(mean * arrivals.requests(offered) for offered in rates)))
    axes = Axis("Offered load", arrivals.column), Axis("Output throughput", "tok/s")
    return Figure("offered", "Achieved and offered load", "lines", *axes, tuple(series), capacity=True)


def _per_user(setup: Setup, points: Sequence[Point]) -> Figure:
    """Throughput of each accelerator, or of the system where their number is not declared, against the tokens a second that a
    user sees: 1000 / the median TPOT. A level is on the front if no other gives more of both (Pareto)."""
    count = setup.plan.sut.accelerator_count or 1
    of_each = " per accelerator" if setup.plan.sut.accelerator_count else ""
    seen = [
        (MS_PER_S / tpot, one.achieved / count)
        for one in points
        if one.achieved is not None and (tpot := stat(one.summary, "tpot", "p50"))
    ]
    front = sorted(
        one
        for one in seen
        if not any(other != one and other[0] >= one[0] and other[1] >= one[1] for other in seen)
    )
    series = tuple(
        Series(label, tuple(x for x, _ in drawn), tuple(y for _, y in drawn))
        for label, drawn in (("levels", sorted(seen)), ("Pareto front", front))
    )
    axes = Axis("Tokens per second of a user", "tok/s"), Axis(f"Output throughput{of_each}", "tok/s")
    title = f"Throughput{of_each} against the speed that a user sees"
    return Figure("per_user", title, "points", *axes, series, capacity=True)


def _notes(setup: Setup, points: Sequence[Point]) -> tuple[Note, ...]:
    wanted = setup.tests.tradeoff
    given = [Note("knee_of_ttft")]
    if setup.plan.load.model != "open":
        given.append(Note("load_model_replaced", {"model": setup.plan.load.model}))
    if fall(points) is None and points[-1].percent + STEP > wanted.most_percent:
        given.append(
            Note(
                "throughput_did_not_fall",
                {"percent": points[-1].percent, "most_percent": wanted.most_percent},
            )
        )
    few = tuple(one.percent for one in points if _samples(one) < LEAST_SAMPLES)
    if few:
        given.append(Note("p99_unreliable_at_levels", {"least": LEAST_SAMPLES, "percent": few}))
    if any(one.interval is not None and rate_interval(one.summary, "output_tok_s") is None for one in points):
        given.append(Note("intervals_by_thirds"))
    silent = tuple(one.percent for one in points if one.achieved is None)
    if silent:
        given.append(Note("no_throughput_at_levels", {"percent": silent}))
    return tuple(given)
