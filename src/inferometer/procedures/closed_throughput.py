"""Draft 5.2 in closed loop: the throughput beyond which more requests in flight only wait.

Queues cannot grow in closed loop, and completions cannot fall behind arrivals. Levels double until that adds less than 4 % to
throughput (plateau.py); the last level is run again with other seeds, and is the answer: the rate at which a backlog is worked
off, as in open loop.

Under a limit (the plan's objectives; without any, P99 of TTFT at most ten times the P50 of one request at a time; C.1's point)
the answer is the highest level that meets it. Between the highest that did and the lowest that did not the search bisects.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Axis, Figure, Mark, Series
from inferometer.procedures.arrivals import arrivals_of
from inferometer.procedures.collapse import in_climb
from inferometer.procedures.latency_limit import (
    PART,
    REFERENCE,
    SEEDS,
    Found,
    Limit,
    Seeking,
    left_open,
    reference,
    seen,
)
from inferometer.procedures.plateau import (
    ARRIVALS,
    GAIN,
    Capacity,
    Climb,
    Rung,
    ascend,
    capacity,
    distinct,
    no_plateau,
    output,
    plateau,
    refused,
    rungs,
    still_rose,
)
from inferometer.procedures.results import Results
from inferometer.procedures.saturation import search_table
from inferometer.procedures.setup import Setup, closed_loop, reseeded, without_warm_up
from inferometer.procedures.step import Measured, Performed, PerformedRun, Run, Steps, runs
from inferometer.procedures.summary_access import rate, rate_interval
from inferometer.procedures.throughput_results import (
    Maximum,
    Under,
    latency_table,
    limit_table,
    limits_of,
    summary_table,
    values,
    with_point,
)

CONFIRM = "confirm"
SEED = 50
RESOLUTION = 0.05
FULL_REQUESTS = 500


def steps(setup: Setup) -> Steps:
    """Levels that double; the last once more; levels under the limits."""
    done: list[Performed] = []
    done += yield from ascend(_climb(setup))
    found = rungs(_climb(setup), done)
    top = plateau(_climb(setup), found)
    if top is None:
        return
    for number in range(setup.tests.throughput.saturated_runs):
        run = _level(setup, top.concurrency, CONFIRM, SEED + number, _seconds(setup, top, FULL_REQUESTS), top)
        done.append(PerformedRun(run, (yield run)))
    seeking = _seeking(setup, done)
    low = _level(setup, 1, REFERENCE, SEEDS, None)
    done.append(PerformedRun(low, (yield low)))
    for limit in limits_of(setup):
        done = yield from _seek(setup, seeking, limit, done)


def _climb(setup: Setup) -> Climb:
    wanted, search = setup.tests.throughput, setup.tests.search
    return Climb(
        with_point(setup), wanted.min_concurrency, wanted.max_concurrency, search.pilot_requests,
        seconds=wanted.duration_s, part="level", step=wanted.concurrency_step,
    )  # fmt: skip


def _seconds(setup: Setup, like: Rung, requests: int) -> float:
    """How long a level lasts: as long as a test's level, and not shorter than so many requests take."""
    wanted = setup.tests.throughput
    request_s = rate(like.done.outcome.summary, "request_s") or 0.0
    least = min(requests, wanted.limit_requests)
    each = arrivals_of(setup.plan, [like.done.outcome.summary])
    lives = ARRIVALS * like.concurrency / each.rate(request_s) if request_s and not each.single else 0.0
    return max(wanted.duration_s, least / request_s if request_s else 0.0, lives)


def _level(
    setup: Setup, slots: int, part: str, seed: int, seconds: float | None, like: Rung | None = None
) -> Run:
    """`like`: a level that does as many requests a second, so that each of this one's is its own."""
    if seconds is None:
        count: int | None = setup.tests.throughput.reference_requests
    else:
        request_s = None if like is None else rate(like.done.outcome.summary, "request_s")
        count = distinct(seconds, request_s or 0.0)
    length = None if seconds is None else float(f"{seconds:.6g}")
    plan = closed_loop(without_warm_up(with_point(setup)), slots, seconds=length, requests=count)
    facts: dict[str, Fact] = {"concurrency": slots, "part": part}
    return Run(reseeded(plan, seed), part, Conditions(concurrency=slots), Note("concurrency_level", facts))


def _seeking(setup: Setup, done: Sequence[Performed]) -> Seeking:
    wanted, found = setup.tests.throughput, _capacity(setup, done)
    return Seeking(
        with_point(setup), 0.0 if found is None else found.request_s, wanted.duration_s, wanted.limit_requests,
        wanted.reference_requests, wanted.success_rate, wanted.limit_levels,
    )  # fmt: skip


def _capacity(setup: Setup, done: Sequence[Performed]) -> Capacity | None:
    found = rungs(_climb(setup), done)
    top = plateau(_climb(setup), found)
    return None if top is None else capacity(found, top, runs(done, CONFIRM))


def _seek(
    setup: Setup, seeking: Seeking, limit: Limit, before: Sequence[Performed]
) -> Generator[Run, Measured, list[Performed]]:
    done = list(before)
    while (slots := _following(setup, seeking, limit, done)) is not None:
        nearest = min(rungs(_climb(setup), done), key=lambda one: abs(math.log(one.concurrency / slots)))
        seconds = _seconds(setup, nearest, setup.tests.throughput.limit_requests)
        run = _level(setup, slots, PART, SEEDS + 1 + len(runs(done, PART)), seconds)
        done.append(PerformedRun(run, (yield run)))
    return done


def _sides(seeking: Seeking, limit: Limit, done: Sequence[Performed]) -> tuple[int | None, int | None, str]:
    """The highest level below the lowest that missed the limit, that one, and what it missed. A level's last word counts."""
    low = reference(done)
    last: dict[int, tuple[float, str]] = {}
    for one in runs(done, "level", CONFIRM, PART, REFERENCE):
        beyond = seen(one.outcome.summary, limit, low, seeking.success_rate)
        if beyond is not None:
            last[one.step.at.concurrency or 1] = beyond
    missed = min((slots for slots, (y, _) in last.items() if y > 0), default=None)
    met = max(
        (slots for slots, (y, _) in last.items() if y <= 0 and slots < (missed or math.inf)), default=None
    )
    return met, missed, "" if missed is None else last[missed][1]


def _following(setup: Setup, seeking: Seeking, limit: Limit, done: Sequence[Performed]) -> int | None:
    """The next concurrency under a limit; None: what is known is near enough, or enough was tried."""
    met, missed, _ = _sides(seeking, limit, done)
    tried = len(runs(done, PART))
    if missed is None or met is None or tried >= 2 * seeking.most or missed - met <= max(1, RESOLUTION * met):
        return None
    middle = _climb(setup).on_grid(round(math.sqrt(met * missed)))
    return middle if met < middle < missed else None


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """As in open loop: Tables 3 and 4, the levels, and their picture."""
    found = rungs(_climb(setup), done)
    if not found:
        return Results(undecided=(Note("no_concurrency_measured"),))
    full = _capacity(setup, done)
    table = search_table(found, (), "levels", "Load levels in the order they were run")
    top = _highest(setup, found, done)
    at = plateau(_climb(setup), found)
    if at is None or full is None:
        return Results(tables=(table,), undecided=(no_plateau(_climb(setup), found),))
    if top is None:
        return Results(tables=(table,), undecided=(Note("search_not_ended"),))
    binding = "success" if refused(found, at) else "gain"
    maximum = Maximum(
        full.output_tok_s, full.output_ci, full.request_s, full.request_ci, full.input_tok_s, full.concurrency, None, binding,
    )  # fmt: skip
    seeking = _seeking(setup, done)
    under = [_under(setup, seeking, one, full, done) for one in limits_of(setup)]
    return Results(
        values=values(setup, maximum, under, top, "in flight", "concurrency"),
        tables=(
            summary_table(setup, maximum, under, "in flight"),
            latency_table(top),
            table,
            *limit_table(seeking, under, done),
        ),
        figures=(_figure(found, full),),
        notes=(*_notes(setup, found, full), *_slower(found, at, full)),
        undecided=tuple(_undecided(found, under, done)),
    )


def _highest(setup: Setup, found: Sequence[Rung], done: Sequence[Performed]) -> PerformedRun | None:
    """The run whose latencies are those at the maximum: the last of the full system, or the climb's own where none was asked
    for. None: the search did not come to that."""
    if setup.tests.throughput.saturated_runs:
        return next(reversed(runs(done, CONFIRM)), None)
    at = plateau(_climb(setup), found)
    return None if at is None else at.done


def _under(setup: Setup, seeking: Seeking, limit: Limit, full: Capacity, done: Sequence[Performed]) -> Under:
    """The answer under a limit: the throughput of the highest level that meets it, below that of the lowest that misses."""
    met, missed, binding = _sides(seeking, limit, done)
    if reference(done) is None or _following(setup, seeking, limit, done) is not None:
        return Under(limit, Found(None, None, binding, "open"), 1.0)
    if met is None:
        return Under(limit, Found(None, None, binding, "missed" if missed is not None else "open"), 1.0)
    if missed is None:
        return Under(limit, Found(full.concurrency, None, "", "free"), 1.0, full.output_tok_s, full.output_ci)
    best, over = (_last(done, slots).outcome.summary for slots in (met, missed))
    ends = [span for one in (best, over) if (span := rate_interval(one, "output_tok_s")) is not None]
    low = min([output(best), *(span[0] for span in ends)])
    high = max([output(over), *(span[1] for span in ends)])
    return Under(limit, Found(met, (met, missed), binding, "crossed"), 1.0, output(best), (low, high))


def _last(done: Sequence[Performed], slots: int) -> PerformedRun:
    return [one for one in runs(done, "level", CONFIRM, PART, REFERENCE) if one.step.at.concurrency == slots][
        -1
    ]


def _figure(found: Sequence[Rung], full: Capacity) -> Figure:
    slots = sorted(found, key=lambda one: one.concurrency)
    series = Series(
        "achieved", tuple(float(one.concurrency) for one in slots), tuple(one.output_tok_s for one in slots)
    )
    marks = (Mark("sustainable", x=float(full.concurrency)),)
    axes = Axis("Requests in flight"), Axis("Output throughput", "tok/s")
    return Figure("achieved", "Throughput by concurrency", "lines", *axes, (series,), marks, capacity=True)


def _notes(setup: Setup, found: Sequence[Rung], full: Capacity) -> Iterator[Note]:
    wanted = setup.tests.throughput
    bounds = {"lowest": wanted.min_concurrency, "highest": wanted.max_concurrency}
    yield Note("closed_loop_saturation_rule", {"least_gain": GAIN})
    yield Note("concurrency_levels", bounds, capacity=True)
    facts: dict[str, Fact] = {"concurrency": full.concurrency, "gain": full.gain, "of": full.arrivals.unit}
    yield Note("capacity_measured", facts, capacity=True)
    if len(found) == 1 and wanted.min_concurrency != wanted.max_concurrency:
        yield Note("lowest_level_is_the_answer")


def _slower(found: Sequence[Rung], at: Rung, full: Capacity) -> Iterator[Note]:
    """That the maximum is one of a client that holds requests back: such a client is what this loop is."""
    slower = in_climb(found, at, full)
    if slower is not None:
        yield Note("slower_with_more_in_flight", {"of": "", **slower.seen.facts}, capacity=True)


def _undecided(found: Sequence[Rung], under: Sequence[Under], done: Sequence[Performed]) -> Iterator[Note]:
    if still_rose(found):
        highest = max(one.concurrency for one in found)
        yield Note("throughput_still_rose", {"concurrency": highest}, capacity=True)
    yield from left_open([(one.limit, one.found) for one in under], done)
