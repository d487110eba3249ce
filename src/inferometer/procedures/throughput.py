"""Draft 5.2, Output Token Throughput: the highest rate of output tokens that the system sustains.

A pilot estimates where to look, unless the plan says; then search.py's search, whose answer is confirmed. Where the plan has
objectives, a load counts only if it meets them. Beside that the same levels, and some more, are searched for the highest load
with a P99 TTFT below 500 ms: a line of the minimum report (C.1), no threshold of this test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from inferometer.documents.note import Note
from inferometer.documents.results import Axis, Figure, Mark, Series
from inferometer.plan.schema import Plan
from inferometer.procedures import closed_throughput
from inferometer.procedures.results import Results
from inferometer.procedures.saturation import (
    SUCCESS_RATE,
    Level,
    Sought,
    answer,
    best,
    estimate,
    known_base,
    ladder_of,
    levels,
    levels_table,
    pilot,
    seek,
)
from inferometer.procedures.search import Answer, Ladder
from inferometer.procedures.setup import Setup, closed_loop, open_loop
from inferometer.procedures.step import KnownLimits, Performed, PerformedRun, Steps, runs
from inferometer.procedures.summary_access import rate
from inferometer.procedures.throughput_results import (
    latency_table,
    point_expression,
    summary_table,
    values,
    with_point,
)

NAME, SECTION = "throughput", "5.2"


def steps(setup: Setup) -> Steps:
    """Pilot, search, search at C.1's operating point."""
    if setup.tests.throughput.loop == "closed":
        yield from closed_throughput.steps(setup)
        return
    plan = with_point(setup)
    first = yield from pilot(setup, plan)
    if not estimate(first) and setup.tests.throughput.min_rate is None:
        return
    done: Sequence[Performed] = yield from seek(_sought(setup, estimate(first)), [first])
    yield from seek(_point(setup, estimate(first)), done)


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    wanted = setup.tests.throughput
    if wanted.loop == "closed":
        return closed_loop(setup.plan, wanted.min_concurrency, seconds=wanted.duration_s)
    return open_loop(setup.plan, wanted.min_rate or 1.0, seconds=wanted.duration_s)


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Tables 3 and 4, the levels, and their picture."""
    if setup.tests.throughput.loop == "closed":
        return closed_throughput.results(setup, done)
    pilots = runs(done, "pilot")
    if not pilots:
        return Results(undecided=(Note("no_pilot_measured"),))
    sought = _sought(setup, estimate(pilots[0]))
    top, ended = best(sought, done), answer(sought, done)
    point = best(_point(setup, estimate(pilots[0])), done)
    highest = None if top is None else top.done
    known = (
        known_base(setup.plan, ended.level) if ended is not None and _plain(setup, ended) else KnownLimits()
    )
    return Results(
        values=values(setup, highest, None if point is None else point.done, "req/s", "rate"),
        tables=(
            summary_table(setup, highest, "req/s", "rate"),
            latency_table(highest),
            levels_table(levels(sought, done)),
        ),
        figures=(_figure(levels(sought, done), top),),
        notes=notes(sought.ladder, ended),
        undecided=(*undecided(top, ended), *_unfilled(highest)),
        known=known,
    )


def _unfilled(highest: PerformedRun | None) -> tuple[Note, ...]:
    """That the beginning on an idle server keeps too much out of the throughput reported (check `filling`)."""
    checks = () if highest is None else highest.outcome.summary.verdict.checks
    missing = [one.value for one in checks if one.code == "filling" and one.status == "unsure"]
    return tuple(Note("throughput_of_filling_server", {"share": share}) for share in missing)


def _plain(setup: Setup, ended: Answer) -> bool:
    """Whether it is what `find_base` looks for: by no objectives, and not just the end of a range that was given."""
    usual = setup.tests.throughput.success_rate == SUCCESS_RATE and not setup.plan.slos
    return usual and ended.why == "bracketed"


def _sought(setup: Setup, estimated: float) -> Sought:
    wanted = setup.tests.throughput
    return Sought(
        with_point(setup),
        wanted.duration_s,
        setup.tests.search.least_requests,
        _ladder(setup, estimated),
        wanted.success_rate,
        tuple(str(slo) for slo in setup.plan.slos),
    )


def _point(setup: Setup, estimated: float) -> Sought:
    """The search at C.1's operating point: the test's own objectives hold there too. It goes no further down than to a quarter
    of its first load: a system that is beyond the point there is so by itself, and low loads take long."""
    whole = _sought(setup, estimated)
    objectives = dict.fromkeys((*whole.objectives, point_expression(setup)))
    ladder = whole.ladder
    least = max(ladder.least, min(ladder.first, ladder.first / 4))
    return replace(whole, objectives=tuple(objectives), ladder=replace(ladder, least=least))


def _ladder(setup: Setup, estimated: float) -> Ladder:
    """The plan's range and step (draft 5.2.2.2), or what the pilot suggests."""
    wanted, search = setup.tests.throughput, setup.tests.search
    guess = ladder_of(setup, estimated)
    first = wanted.min_rate if wanted.min_rate is not None else guess.first
    return Ladder(
        first=first,
        step=wanted.rate_step if wanted.rate_step is not None else guess.step,
        most=wanted.max_rate if wanted.max_rate is not None else max(guess.most, first),
        least=wanted.min_rate if wanted.min_rate is not None else guess.least,
        factor=1.0 if wanted.rate_step is not None else guess.factor,
        resolution=search.resolution,
        longer=search.longer,
    )


def _figure(levels: Sequence[Level], top: Level | None) -> Figure:
    """Achieved against offered: they part where the system saturates."""
    by_rate = {one.rate: one.done.outcome.summary for one in levels}
    rates = tuple(sorted(by_rate))
    achieved = tuple(rate(by_rate[level], "output_tok_s") for level in rates)
    marks = () if top is None else (Mark("sustainable", x=top.rate),)
    return Figure(
        "achieved", "Throughput by offered load", "lines", Axis("Offered load", "req/s"), Axis("Output throughput", "tok/s"),
        (Series("achieved", rates, achieved),), marks, capacity=True,
    )  # fmt: skip


def notes(ladder: Ladder, ended: Answer | None) -> tuple[Note, ...]:
    """How the search went."""
    given = [Note("search_resolution", {"resolution": ladder.resolution})]
    if ended is not None and ended.unsettled:
        given.append(Note("unsettled_taken_as_not_sustained", {"rates": ended.unsettled}, capacity=True))
    if ended is not None and ended.why == "ceiling":
        given.append(Note("highest_load_sustained"))
    return tuple(given)


def undecided(top: Level | None, ended: Answer | None) -> tuple[Note, ...]:
    """What keeps the test from an answer."""
    if ended is None:
        return (Note("search_not_ended"),)
    if ended.why == "endless":
        return (Note("search_given_up", {"tried": "loads", "held": "sustained"}),)
    if top is None:
        return (Note("lowest_load_not_sustained"),)
    return (Note("maximum_above_highest_load"),) if ended.why == "ceiling" else ()
