"""The most requests in flight that meet the criteria, in closed loop: draft 5.5's search, for its own test and as 5.8's 100 %.

pilot (the first level, a little while) -> search.advance -> one run a level, long enough -> criteria -> search.advance -> ...

| criterion | not met when                                                                                      |
| --------- | ------------------------------------------------------------------------------------------------- |
| success   | the success rate is below the one asked for, by its interval                                      |
| TTFT P99  | above the threshold, by its interval; without a threshold it is not held                          |
| errors    | there is a single out-of-memory or other system error: SYSTEM_ERRORS                              |

How long a level lasts: at least as many seconds, and at least as many completions a slot, as are asked for, whichever is longer
(draft 5.5.3). A closed loop ends by its requests or by time, whichever is first, and one that ends by time may send prompts
twice. So each level ends by its requests, and has as many as the rate at the next lower level, or of the pilot, makes of the
seconds, and a fifth more. A run that was too short all the same does not count, unless it fails; the next goes by its own rate.

The interval of the answer goes from the highest level that meets every criterion by its whole interval to just below the lowest
that misses one so: the system is taken to do no better with more in flight. Levels that chance decides lie within it.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Interval
from inferometer.documents.summary import Summary
from inferometer.plan.rules import MOST_REQUESTS
from inferometer.plan.schema import Plan
from inferometer.plan.slo import Slo
from inferometer.procedures.arrivals import arrivals_in
from inferometer.procedures.plateau import ARRIVALS
from inferometer.procedures.saturation import BASE, LEVEL_SEED
from inferometer.procedures.search import Answer, Ask, Ladder, Trial, advance, reached, reason
from inferometer.procedures.setup import (
    Setup,
    closed_loop,
    reseeded,
    variant,
    with_warm_up,
    without_warm_up,
    workload_key,
)
from inferometer.procedures.step import KnownLimits, Measured, Performed, PerformedRun, Run, runs
from inferometer.procedures.summary_access import held_to
from inferometer.procedures.sustained import Decision, Signal, decision, objectives

SYSTEM_ERRORS = (
    "http_5xx",
    "connect_refused",
    "connect_error",
    "reset",
    "truncated",
    "error_event",
    "bad_http",
    "bad_event",
    "not_json",
)
"""How a server that runs out of memory, or over, ends requests, as far as a client sees it. Timeouts, refusals and requests
that it turned away (429, other 4xx) only lower the completion rate."""
FACTOR = 2.0
RESERVE = 1.2
"""Requests over those that the next lower level's rate makes of the seconds."""
TOO_SHORT = 2
"""Runs of a level that may be too short; after so many, the next counts as it is."""
SUCCESS_RATE = 0.99
"""Draft 5.5.2's: a capacity by another one is no knowledge for other tests."""

PILOT_WAVES, PILOT_LEAST = 4, 16
"""Requests of a pilot: so many a slot, unless levels have fewer, and so many at least."""
LEVELS = ("level", "confirm", "pilot")
BASE_LEVELS = (f"{BASE}capacity", f"{BASE}capacity-confirm", f"{BASE}pilot")
"""Of a search that only finds the 100 % of another test's percentages."""


@dataclass(frozen=True, slots=True)
class Sought:
    """One search: the plan with this many requests in flight, each level at least `seconds` and `completions` a slot.

    `ttft_p99_ms`: the threshold, None: none is held. `parts`: what the runs of levels, of the confirmation and of the pilot are
    called.
    """

    plan: Plan
    ladder: Ladder
    seconds: float
    completions: int
    success_rate: float = SUCCESS_RATE
    ttft_p99_ms: float | None = None
    parts: tuple[str, str, str] = LEVELS


@dataclass(frozen=True, slots=True)
class Level:
    """A level that was run, and what it came to. `short`: it did not last as long as asked, and does not count."""

    done: PerformedRun
    concurrency: int
    times: int
    confirms: bool
    decision: Decision
    short: bool

    @property
    def trial(self) -> Trial:
        """As the search sees it."""
        return Trial(float(self.concurrency), self.decision.sustained, self.times, self.confirms)


def ladder_of(setup: Setup, initial: int, maximum: int) -> Ladder:
    """Doubling, then bisecting to a gap of 1 or of the search's resolution, whichever is wider (draft 5.5.3)."""
    search = setup.tests.search
    return Ladder(
        first=initial,
        step=1,
        most=maximum,
        least=1,
        factor=FACTOR,
        resolution=search.resolution,
        longer=search.longer,
        integral=True,
        confirm=not setup.quick,
    )


def errors(summary: Summary) -> int:
    """Out-of-memory and other system errors of a run."""
    return sum(summary.requests.by_error.get(name, 0) for name in SYSTEM_ERRORS)


def criteria(
    summary: Summary, success_rate: float, ttft_p99_ms: float | None, *, final: bool = False
) -> Decision:
    """Whether a run meets the criteria above; the threshold is among its plan's objectives. `final`: it will not be made
    longer."""
    held = held_to(summary, () if ttft_p99_ms is None else (threshold(ttft_p99_ms),))
    failed = errors(summary)
    system = Signal("errors", failed > 0, float(failed), 0.0)
    return decision([system, *objectives(held, success_rate, final=final)], final=final)


def threshold(ttft_p99_ms: float) -> str:
    """The threshold as a plan's objective."""
    return str(Slo.parse(f"ttft_p99<={ttft_p99_ms!r}ms"))


def levels(sought: Sought, done: Sequence[Performed]) -> list[Level]:
    """The levels of a search among what was done, each with what it came to at that point."""
    measured: list[Level] = []
    longest = 2**sought.ladder.longer
    for one in runs(done, *sought.parts[:2]):
        at, summary = one.step.at, one.outcome.summary
        slots, times = at.concurrency or 0, at.times or 1
        outcome = criteria(summary, sought.success_rate, sought.ttft_p99_ms, final=times >= longest)
        before = 0
        while before < len(measured) and measured[-1 - before].short:
            before += 1
        short = outcome.sustained is not False and before < TOO_SHORT and lasted(summary) < sought.seconds
        measured.append(Level(one, slots, times, one.step.part == sought.parts[1], outcome, short))
    return measured


def lasted(summary: Summary) -> float:
    """Seconds of a run, without its warm-up."""
    return summary.window.duration_s or 0.0


def seek(sought: Sought, before: Sequence[Performed] = ()) -> Generator[Run, Measured, list[Performed]]:
    """Search, going on from the levels among what was done before; gives all that was done. The pilot has the warm-up before
    it."""
    done = list(before)
    if not done:
        first = _pilot(sought)
        done.append(PerformedRun(first, (yield first)))
    while isinstance(move := _next(sought, done), Ask):
        run = _run(sought, move, done)
        done.append(PerformedRun(run, (yield run)))
    return done


def answer(sought: Sought, done: Sequence[Performed]) -> Answer | None:
    """What the search found; None: it has not come to its end."""
    move = _next(sought, done)
    return move if isinstance(move, Answer) else None


def _next(sought: Sought, done: Sequence[Performed]) -> Ask | Answer:
    found = levels(sought, done)
    if found and found[-1].short:
        return Ask(float(found[-1].concurrency), found[-1].times, found[-1].confirms)
    return advance(sought.ladder, [one.trial for one in found if not one.short])


def _pilot(sought: Sought) -> Run:
    slots = int(sought.ladder.first)
    count = max(min(PILOT_WAVES, sought.completions) * slots, PILOT_LEAST)
    plan = closed_loop(with_warm_up(_with_thresholds(sought)), slots, requests=count)
    why = Note("capacity_pilot", {"requests": count, "concurrency": slots})
    return Run(plan, sought.parts[2], Conditions(concurrency=slots), why)


def _run(sought: Sought, ask: Ask, done: Sequence[Performed]) -> Run:
    slots = int(ask.level)
    count = min(requests(sought, slots, done) * ask.times, MOST_REQUESTS)
    plan = reseeded(
        closed_loop(without_warm_up(_with_thresholds(sought)), slots, requests=count),
        LEVEL_SEED + len(runs(done, *sought.parts)),
    )
    facts = {"concurrency": slots, "requests": count, "reason": reason(ask)}
    return Run(
        plan,
        sought.parts[ask.confirms],
        Conditions(concurrency=slots, times=ask.times),
        Note("capacity_level", facts),
    )


def _with_thresholds(sought: Sought) -> Plan:
    slos = [] if sought.ttft_p99_ms is None else [threshold(sought.ttft_p99_ms)]
    return variant(sought.plan, slos=slos)


def requests(sought: Sought, slots: int, done: Sequence[Performed]) -> int:
    """How many a level has, so that it lasts as long as asked, by the rate seen last at the nearest level at or below it,
    or else above it. A service only gets slower with more in flight, so this is seldom too few."""
    completions = math.ceil(sought.completions * slots / sought.success_rate)
    arrivals = arrivals_in(sought.plan, done)
    if (
        not arrivals.single
    ):  # fewer sessions than slots would leave slots empty, and the level be one of fewer in flight
        completions = max(completions, math.ceil(ARRIVALS * slots * arrivals.each))
    rates = {one.step.at.concurrency or 1: _rate(one.outcome.summary) for one in runs(done, *sought.parts)}
    near = max((level for level in rates if level <= slots), default=min(rates, default=None))
    if near is None:
        return completions
    return max(completions, math.ceil(RESERVE * rates[near] * sought.seconds * slots / near))


def _rate(summary: Summary) -> float:
    """Requests a second over the whole run, which is what has to last."""
    return summary.throughput.whole_run.request_s or 0.0


def best(sought: Sought, done: Sequence[Performed]) -> Level | None:
    """The run at the highest concurrency that met the criteria: the one that confirmed it if there is one. Of a search that was
    cut short, the highest that met them below the lowest that did not."""
    found = [one for one in levels(sought, done) if not one.short]
    highest = reached(sought.ladder, [one.trial for one in found])
    at = [one for one in found if one.concurrency == highest and one.decision.sustained]
    return at[-1] if at else None


def interval(sought: Sought, done: Sequence[Performed]) -> Interval | None:
    """The 95 % interval of the highest concurrency that meets the criteria; None where no level settles one of its ends."""
    found, top = [one for one in levels(sought, done) if not one.short], best(sought, done)
    said = {
        (
            one.concurrency,
            criteria(one.done.outcome.summary, sought.success_rate, sought.ttft_p99_ms).sustained,
        )
        for one in found
    }
    missed = min((level for level, met in said if met is False), default=None)
    if top is None or missed is None:
        return None
    met = max((level for level, met in said if met and level < missed), default=None)
    return (
        None if met is None else (float(min(met, top.concurrency)), float(max(missed - 1, top.concurrency)))
    )


def find_capacity(setup: Setup, sought: Sought) -> Generator[Run, Measured, int | None]:
    """The highest concurrency that meets the criteria: known already, or searched for. None: there is none."""
    done = [] if _known(setup, sought) is not None else (yield from seek(sought))
    return capacity_of(setup, sought, done)


def capacity_of(setup: Setup, sought: Sought, done: Sequence[Performed]) -> int | None:
    """What `find_capacity` came to, out of what was done."""
    known = _known(setup, sought)
    if known is not None:
        return known
    ended = answer(sought, done)
    return None if ended is None or ended.level is None or ended.why == "endless" else int(ended.level)


def known_capacity(sought: Sought, ended: Answer | None) -> KnownLimits:
    """For other tests of the campaign: of a search that found both sides, by the draft's criteria alone."""
    if ended is None or ended.why != "bracketed" or ended.level is None or not _plain(sought):
        return KnownLimits()
    return KnownLimits(capacity={workload_key(sought.plan): int(ended.level)})


def _known(setup: Setup, sought: Sought) -> int | None:
    return setup.known.capacity.get(workload_key(sought.plan)) if _plain(sought) else None


def _plain(sought: Sought) -> bool:
    """Without a threshold of the tester's: what is found then holds for any test of the workload."""
    return sought.ttft_p99_ms is None and sought.success_rate == SUCCESS_RATE
