"""Draft 5.2, Output Token Throughput: the highest rate of output tokens that the system sustains.

| answer                          | is at the highest rate                                              | found by         |
| ------------------------------- | ------------------------------------------------------------------- | ---------------- |
| Max Output Throughput           | at which completions keep up with arrivals (step 4a)                | saturation.py    |
| the same within the limit       | that meets the plan's objectives (step 4b); without any, the        | latency_limit.py |
|                                 | ten-times rule of 5.2.3.1                                           |                  |
| Throughput at P99 TTFT < 500 ms | of a line of the minimum report (C.1); objectives hold there, too   | latency_limit.py |

Each names what refuses a higher load.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Axis, Figure, Mark, Series
from inferometer.plan.schema import Plan
from inferometer.procedures import closed_throughput, collapse, latency_limit
from inferometer.procedures.arrivals import arrivals_of
from inferometer.procedures.latency_limit import Seeking
from inferometer.procedures.plateau import (
    ARRIVALS,
    Capacity,
    Climb,
    Rung,
    ascend,
    capacity,
    distinct,
    filled,
    no_plateau,
    output,
    plateau,
    refused,
    rungs,
    still_rose,
)
from inferometer.procedures.results import Results
from inferometer.procedures.same_load import changes
from inferometer.procedures.saturation import (
    SUCCESS_RATE,
    Level,
    Sought,
    answer,
    best,
    climb_of,
    holds,
    known_base,
    ladder_of,
    levels,
    search_table,
    seek,
    settled,
)
from inferometer.procedures.search import Answer, Ladder
from inferometer.procedures.setup import Setup, closed_loop, open_loop, reseeded, without_warm_up
from inferometer.procedures.step import KnownLimits, Performed, PerformedRun, Run, Steps, runs
from inferometer.procedures.summary_access import rate, rate_interval
from inferometer.procedures.throughput_results import (
    NO_MAXIMUM,
    Maximum,
    Under,
    latency_table,
    limit_table,
    limits_of,
    summary_table,
    values,
    with_point,
)

NAME, SECTION = "throughput", "5.2"
SATURATED = "saturated"
"""Runs with as many requests in flight as the climb ended at."""
LEVEL_REQUESTS, FULL_REQUESTS = 400, 500
"""Of a level, and of a run with a full system, at least; a quick run has as few as its levels under a limit."""
FULL_WAVES = 2
"""Of a run with a full system, for each in flight, at least: a shorter one has no steady span."""
SURE = 0.95
"""Of the highest level that was kept up with, where the answer is that; less where fewer of its requests may have been done."""
SEED = 50


def steps(setup: Setup) -> Steps:
    """Climb, runs with a full system, levels about the capacity, and the searches under a limit."""
    if setup.tests.throughput.loop == "closed":
        yield from closed_throughput.steps(setup)
        return
    done: list[Performed] = []
    done += yield from ascend(_climb(setup))
    top = plateau(_climb(setup), rungs(_climb(setup), done))
    if top is None:
        return
    for number in range(setup.tests.throughput.saturated_runs):
        run = _full(setup, top, number)
        done.append(PerformedRun(run, (yield run)))
    found = _capacity(setup, done)
    assert found is not None
    done = yield from seek(_sought(setup, found), done)
    for limit in limits_of(setup):
        done = yield from latency_limit.seek(_seeking(setup, found), limit, done)


def planned(setup: Setup) -> Plan:
    """One of its levels, as far as it is known before the start."""
    wanted = setup.tests.throughput
    if wanted.loop == "closed":
        return closed_loop(setup.plan, wanted.min_concurrency, seconds=wanted.duration_s)
    return open_loop(setup.plan, wanted.min_rate or 1.0, seconds=wanted.duration_s)


def _climb(setup: Setup) -> Climb:
    return climb_of(setup, with_point(setup))


def _full(setup: Setup, top: Rung, number: int) -> Run:
    """One of the runs that the capacity is measured by: not shorter than FULL_REQUESTS take, of its own seed."""
    wanted = setup.tests.throughput
    least = min(FULL_REQUESTS, setup.tests.throughput.limit_requests)
    request_s = rate(top.done.outcome.summary, "request_s") or 0.0
    each = arrivals_of(setup.plan, [top.done.outcome.summary])
    waves = FULL_WAVES if each.single else ARRIVALS
    least = max(least, math.ceil(waves * top.concurrency * each.each))
    seconds = max(wanted.duration_s, least / request_s if request_s else 0.0)
    plan = closed_loop(
        without_warm_up(with_point(setup)),
        top.concurrency,
        seconds=float(f"{seconds:.6g}"),
        requests=distinct(seconds, request_s),
    )
    facts = {"concurrency": top.concurrency, "seconds": seconds}
    at = Conditions(concurrency=top.concurrency)
    return Run(reseeded(plan, SEED + number), SATURATED, at, Note("full_system", facts))


def _capacity(setup: Setup, done: Sequence[Performed]) -> Capacity | None:
    """What the system can do at all, by what was done before the levels: it must not change while they are tried."""
    found = rungs(_climb(setup), done)
    top = plateau(_climb(setup), found)
    full = runs(done, SATURATED)
    return None if top is None else capacity(found, top, full)


def _sought(setup: Setup, found: Capacity) -> Sought:
    wanted = setup.tests.throughput
    ladder = _ladder(setup, found.arrival_s)
    least = max(setup.tests.search.least_requests, min(LEVEL_REQUESTS, wanted.limit_requests))
    plan = with_point(setup)
    return Sought(
        plan,
        wanted.duration_s,
        least,
        ladder,
        wanted.success_rate,
        life_s=found.life_s,
        arrivals=found.arrivals,
    )


def _ladder(setup: Setup, expected: float) -> Ladder:
    """About the capacity, within the plan's range and by its step (draft 5.2.2.2), where it has them."""
    wanted, search = setup.tests.throughput, setup.tests.search
    guess = ladder_of(setup, expected)
    least = wanted.min_rate if wanted.min_rate is not None else guess.least
    most = wanted.max_rate if wanted.max_rate is not None else max(guess.most, least)
    return Ladder(
        first=min(max(guess.first, least), most),
        step=wanted.rate_step if wanted.rate_step is not None else guess.step,
        most=most,
        least=least,
        factor=1.0 if wanted.rate_step is not None else guess.factor,
        resolution=search.resolution,
        longer=search.longer,
        expected=expected,
        confirm=guess.confirm,
    )


def _seeking(setup: Setup, found: Capacity) -> Seeking:
    wanted = setup.tests.throughput
    return Seeking(
        with_point(setup),
        found.arrival_s,
        wanted.duration_s,
        wanted.limit_requests,
        wanted.reference_requests,
        wanted.success_rate,
        wanted.limit_levels,
        0.0 if found.arrivals.single else found.life_s,
        found.arrivals,
    )


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Tables 3 and 4, the levels, and their picture."""
    if setup.tests.throughput.loop == "closed":
        return closed_throughput.results(setup, done)
    climbed = rungs(_climb(setup), done)
    if not climbed:
        return Results(undecided=(Note("no_pilot_measured"),))
    found = _capacity(setup, done)
    if found is None:
        table = search_table(climbed, (), "levels", "Load levels in the order they were run")
        return Results(tables=(table,), undecided=(no_plateau(_climb(setup), climbed),))
    sought, unit = _sought(setup, found), found.arrivals.column
    ended, top, tried = answer(sought, done), best(sought, done), levels(sought, done)
    maximum = _maximum(found, ended, top, tried, settled(sought, done))
    measured = ended is not None and ended.why == "bracketed" and holds(ended, found.arrival_s)
    at = plateau(_climb(setup), climbed)
    crowded = None if at is None else collapse.in_climb(climbed, at, found)
    backlog = None if changes(done) else collapse.with_backlog(found, tried)
    slowed = () if backlog is None else (backlog.seen,)
    seeking = _seeking(setup, found)
    under = [
        Under(one, latency_limit.find(seeking, one, done), found.arrival_tokens) for one in limits_of(setup)
    ]
    known, highest = KnownLimits(), None if top is None else top.done
    if ended is not None and _plain(setup, ended) and isinstance(maximum.load, float):
        slower = crowded or backlog
        # What fills a system that collapses is not what fills it with other words: those climb for themselves.
        full = filled(climbed) if slower is None else None
        known = known_base(setup.plan, maximum.load, slower, seeking.life_s) | KnownLimits(full=full)
    return Results(
        values=values(setup, maximum, under, highest, unit, "rate"),
        tables=(
            summary_table(setup, maximum, under, unit),
            latency_table(highest),
            search_table(
                [*climbed, *_full_rungs(done)],
                tried,
                "levels",
                "Load levels in the order they were run",
                unit,
            ),
            *limit_table(seeking, under, done),
        ),
        figures=(_figure(tried, done, maximum, unit),),
        notes=(*_notes(sought, found, ended), *(() if measured else slowed)),
        undecided=(
            *undecided(top, ended, climbed),
            *(() if crowded is None else (crowded.seen,)),
            *(slowed if measured else ()),
            *_never_full(setup, climbed, ended, found),
            *latency_limit.left_open([(one.limit, one.found) for one in under], done),
            *_unfilled(top, ended, found),
        ),
        known=known,
    )


def _maximum(
    found: Capacity,
    ended: Answer | None,
    top: Level | None,
    tried: Sequence[Level],
    sure: tuple[float, float] | None,
) -> Maximum:
    """The capacity, where the levels show that load is kept up with up to there and no further; else the highest that was.
    `sure`: between which rates that lies for certain."""
    if ended is None or ended.level is None or top is None:
        return NO_MAXIMUM
    over = [one for one in tried if ended.below is not None and one.rate == ended.below]
    binding = ", ".join(signal.code for signal in over[-1].decision.reasons) if over else ""
    if ended.why == "bracketed" and holds(ended, found.arrival_s):
        return Maximum(
            found.output_tok_s, found.output_ci, found.request_s, found.request_ci, found.input_tok_s,
            found.arrival_s, found.arrival_ci, binding,
        )  # fmt: skip
    summary = top.done.outcome.summary
    tokens = output(summary)
    ends = None if summary.steady is None else summary.steady.completion_ratio_ci95
    least = ended.level * min(SURE, 1.0 if ends is None else ends[0])
    rates = None if sure is None else (min(sure[0], least), max(sure[1], ended.level))
    span = (
        None
        if rates is None
        else (tokens * rates[0] / ended.level, max(tokens, rates[1] * found.arrival_tokens))
    )
    requests = (
        None if rates is None else (found.arrivals.requests(rates[0]), found.arrivals.requests(rates[1]))
    )
    return Maximum(
        tokens, span, rate(summary, "request_s"), requests, rate(summary, "input_tok_s"), ended.level, rates, binding,
    )  # fmt: skip


def _never_full(
    setup: Setup, climbed: Sequence[Rung], ended: Answer | None, found: Capacity
) -> Iterator[Note]:
    """That the answer is of as many in flight as were not turned away: nobody saw what a full system does."""
    at = plateau(_climb(setup), climbed)
    answered = ended is not None and ended.why == "bracketed" and holds(ended, found.arrival_s)
    if answered and at is not None and refused(climbed, at):
        yield Note("system_never_full", {"concurrency": at.concurrency}, capacity=True)


def _full_rungs(done: Sequence[Performed]) -> list[Rung]:
    """The runs with a full system, as rows of the table of levels."""
    full = runs(done, SATURATED)
    return [Rung(one, one.step.at.concurrency or 1, output(one.outcome.summary), None) for one in full]


def _unfilled(top: Level | None, ended: Answer | None, found: Capacity) -> tuple[Note, ...]:
    """Where the answer is a level's throughput: that its beginning on an idle server keeps too much out of that (check
    `filling`)."""
    if ended is not None and ended.why == "bracketed" and holds(ended, found.arrival_s):
        return ()
    checks = () if top is None else top.done.outcome.summary.verdict.checks
    missing = [one.value for one in checks if one.code == "filling" and one.status == "unsure"]
    return tuple(Note("throughput_of_filling_server", {"share": share}) for share in missing)


def _plain(setup: Setup, ended: Answer) -> bool:
    """Whether it is what `find_base` looks for, and not just the end of a range that was given."""
    return setup.tests.throughput.success_rate == SUCCESS_RATE and ended.why == "bracketed"


def _figure(tried: Sequence[Level], done: Sequence[Performed], maximum: Maximum, unit: str) -> Figure:
    """Achieved against offered: they part where the system saturates."""
    by_rate = {one.rate: one.done.outcome.summary for one in tried}
    under = runs(done, latency_limit.REFERENCE, latency_limit.PART)
    by_rate |= {one.step.at.rate or 0.0: one.outcome.summary for one in under}
    rates = tuple(sorted(by_rate))
    achieved = tuple(rate(by_rate[level], "output_tok_s") for level in rates)
    intervals = tuple(rate_interval(by_rate[level], "output_tok_s") for level in rates)
    marks = (Mark("sustainable", x=maximum.load),) if isinstance(maximum.load, float) else ()
    return Figure(
        "achieved", "Throughput by offered load", "lines", Axis("Offered load", unit), Axis("Output throughput", "tok/s"),
        (Series("achieved", rates, achieved, ci=intervals),), marks, capacity=True,
    )  # fmt: skip


def _notes(sought: Sought, found: Capacity, ended: Answer | None) -> Iterator[Note]:
    """How the search went."""
    facts: dict[str, Fact] = {"concurrency": found.concurrency, "gain": found.gain, "of": found.arrivals.unit}
    yield Note("capacity_measured", facts, capacity=True)
    if ended is not None and ended.level is not None and ended.below is not None:
        expected = sought.ladder.expected
        inside = expected is not None and holds(ended, expected)
        sides: dict[str, Fact] = {
            "kept": ended.level,
            "refused": ended.below,
            "unit": found.arrivals.per_second,
        }
        yield Note("capacity_between", sides, True) if inside else Note("capacity_not_sustained", sides, True)
    if ended is not None and ended.unsettled:
        yield Note("unsettled_taken_as_not_sustained", {"rates": ended.unsettled}, capacity=True)
    if ended is not None and ended.why == "ceiling":
        yield Note("highest_load_sustained")


def undecided(top: Level | None, ended: Answer | None, climbed: Sequence[Rung]) -> tuple[Note, ...]:
    """What keeps the test from an answer."""
    if ended is None:
        return (Note("search_not_ended"),)
    if ended.why == "endless":
        return (Note("search_given_up", {"tried": "loads", "held": "sustained"}),)
    if top is None:
        return (Note("lowest_load_not_sustained"),)
    if ended.why == "ceiling":
        return (Note("maximum_above_highest_load"),)
    if still_rose(climbed):
        highest = max(one.concurrency for one in climbed)
        return (Note("throughput_still_rose", {"concurrency": highest}, capacity=True),)
    return ()
