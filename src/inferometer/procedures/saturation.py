"""The highest request rate that a system keeps up with: draft 5.2.3, step 4a, for its own test and as the 100 % of others.

climb to a plateau in closed loop (plateau.py: the capacity C) -> a level just below C, in open loop, has to be kept up with
-> a level just above must not be -> the answer is C. Where the level below is not kept up with (a system that collapses), or
the one above is, search.advance goes on from there, and the answer is the highest level that was kept up with.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Cell, Column
from inferometer.plan.schema import Plan
from inferometer.procedures.arrivals import REQUESTS, Arrivals, arrivals_of, unit_of
from inferometer.procedures.plateau import (
    MOST,
    MOST_SESSIONS,
    Capacity,
    Climb,
    Rung,
    ascend,
    capacity,
    plateau,
    rungs,
)
from inferometer.procedures.results import Table
from inferometer.procedures.search import Answer, Ask, Ladder, Trial, advance, reached, reason
from inferometer.procedures.setup import (
    LIVES,
    Setup,
    open_loop,
    reseeded,
    variant,
    without_warm_up,
    workload_key,
)
from inferometer.procedures.step import Collapse, KnownLimits, Measured, Performed, PerformedRun, Run, runs
from inferometer.procedures.summary_access import growth, rate, stat, success
from inferometer.procedures.sustained import Decision, decide

BELOW, STEP, FACTOR, MOST_OF, LEAST = 0.9, 0.3, 1.25, 64.0, 1 / 64
"""A ladder about a capacity: just below it first, then three tenths of it higher."""
BASE = "base-"
"""Parts of runs that only find the 100 % of a test's percentages begin with this."""
LEVEL_SEED = 1_000
"""No level sends what the climb or another level sent: a cache that looks past a prompt's beginning would know it."""
SUCCESS_RATE = 0.99
"""Of the search for the 100 %; a rate found by another one is none for other tests."""


@dataclass(frozen=True, slots=True)
class Sought:
    """One search: levels of this plan in open loop, `seconds` each, and longer where that makes fewer than `requests` or is
    less than LIVES times what an arrival takes, `life_s`. `arrivals`: what levels count."""

    plan: Plan
    seconds: float
    requests: int
    ladder: Ladder
    success_rate: float
    prefix: str = ""
    life_s: float = 0.0
    arrivals: Arrivals = REQUESTS


@dataclass(frozen=True, slots=True)
class Level:
    """A level that was run, and what it came to."""

    done: PerformedRun
    rate: float
    times: int
    confirms: bool
    decision: Decision

    @property
    def trial(self) -> Trial:
        """As the search sees it."""
        return Trial(self.rate, self.decision.sustained, self.times, self.confirms)


def filled_before(setup: Setup) -> int | None:
    """In a quick campaign: how many in flight filled the system in the search of 5.2, which showed that the capacity is kept up
    with. None: that is to be looked for."""
    return setup.known.full if setup.quick else None


def climb_of(setup: Setup, plan: Plan, prefix: str = "") -> Climb:
    """The climb before a search in open loop. A quick one for a 100 % begins and ends where that of 5.2 filled the system."""
    search = setup.tests.search
    full = filled_before(setup)
    if prefix and full is not None:
        return Climb(plan, full, full, search.pilot_requests, part=f"{prefix}pilot")
    most = max(MOST if unit_of(plan) == "requests" else MOST_SESSIONS, search.pilot_concurrency)
    return Climb(plan, search.pilot_concurrency, most, search.pilot_requests, part=f"{prefix}pilot", least=1)


def ladder_of(setup: Setup, expected: float, *, above: bool = True) -> Ladder:
    """Where to look about a capacity in arrivals a second. `above`: whether a level above it has to fail."""
    search = setup.tests.search
    return Ladder(
        first=BELOW * expected,
        step=STEP * expected,
        most=MOST_OF * expected,
        least=LEAST * expected,
        factor=FACTOR,
        resolution=search.resolution,
        longer=search.longer,
        expected=expected,
        above=above,
        confirm=not setup.quick,
    )


def levels(sought: Sought, done: Sequence[Performed]) -> list[Level]:
    """The levels of a search among what was done, each with what it came to at that point."""
    measured: list[Level] = []
    longest = 2**sought.ladder.longer
    for one in runs(done, f"{sought.prefix}level", f"{sought.prefix}confirm"):
        at, summary = one.step.at, one.outcome.summary
        times = at.times or 1
        capacity = sought.ladder.expected
        within = None if capacity is None else (at.rate or 0.0) <= capacity
        decision = decide(summary, success_rate=sought.success_rate, final=times >= longest, expected=within)
        measured.append(Level(one, at.rate or 0.0, times, one.step.part.endswith("confirm"), decision))
    return measured


def seek(sought: Sought, before: Sequence[Performed] = ()) -> Generator[Run, Measured, list[Performed]]:
    """Search, going on from the levels among what was done before; gives all that was done."""
    done = list(before)
    while isinstance(move := advance(sought.ladder, [one.trial for one in levels(sought, done)]), Ask):
        run = _run(sought, move, len(levels(sought, done)))
        done.append(PerformedRun(run, (yield run)))
    return done


def _run(sought: Sought, ask: Ask, before: int) -> Run:
    """`before`: levels of this search; each has requests of its own."""
    least = max(sought.seconds, sought.arrivals.seconds(sought.requests, ask.level), LIVES * sought.life_s)
    seconds = float(f"{least * ask.times:.6g}")
    plan = reseeded(open_loop(without_warm_up(sought.plan), ask.level, seconds=seconds), LEVEL_SEED + before)
    unit = sought.arrivals.per_second
    facts = {"rate": ask.level, "seconds": seconds, "reason": reason(ask), "unit": unit}
    return Run(
        plan,
        f"{sought.prefix}{'confirm' if ask.confirms else 'level'}",
        Conditions(rate=ask.level, times=ask.times),
        Note("rate_level", facts),
    )


def answer(sought: Sought, done: Sequence[Performed]) -> Answer | None:
    """What the search found; None: it has not come to its end."""
    move = advance(sought.ladder, [one.trial for one in levels(sought, done)])
    return move if isinstance(move, Answer) else None


def best(sought: Sought, done: Sequence[Performed]) -> Level | None:
    """The run at the highest load sustained: the one that confirmed it if there is one. Of a search that was cut short, the
    highest that was sustained below the lowest that was not."""
    found = levels(sought, done)
    highest = reached(sought.ladder, [one.trial for one in found])
    at = [one for one in found if one.rate == highest and one.decision.sustained]
    return at[-1] if at else None


def settled(sought: Sought, done: Sequence[Performed]) -> tuple[float, float] | None:
    """Between which rates the highest that is kept up with lies for certain: the highest that a run kept up with by the whole
    intervals of all signals, below the lowest that one did not so; and that one. None: no run settles one of them. A level
    that its values decided may as well be on the other side with other requests."""
    said = {
        (one.rate, decide(one.done.outcome.summary, success_rate=sought.success_rate).sustained)
        for one in levels(sought, done)
    }
    missed = min((rate for rate, kept in said if kept is False), default=None)
    met = max((rate for rate, kept in said if kept and missed is not None and rate < missed), default=None)
    return None if met is None or missed is None else (met, missed)


def base_capacity(setup: Setup, plan: Plan, done: Sequence[Performed]) -> Capacity | None:
    """What a climb before a search for 100 % came to; None: to nothing, or not yet to its end."""
    climb = climb_of(setup, variant(plan, slos=[]), BASE)
    found = rungs(climb, done)
    at = plateau(climb, found)
    return None if at is None else capacity(found, at, ())


def base_search(setup: Setup, plan: Plan, found: Capacity) -> Sought:
    """The search for the 100 % of a test's percentages: draft 5.2's, without objectives (docs/tests.md). It is cheap: one level
    just below the capacity shows that it is kept up with."""
    bare, search = variant(plan, slos=[]), setup.tests.search
    ladder = ladder_of(setup, found.arrival_s, above=False)
    return Sought(
        bare, search.level_s, search.least_requests, ladder, SUCCESS_RATE, BASE, found.life_s, found.arrivals
    )


def find_base(setup: Setup, plan: Plan) -> Generator[Run, Measured, float | None]:
    """The highest sustainable rate of a plan's arrivals: known already, or searched for. None: there is none. Where 5.2's
    search filled the system before, the capacity is taken for it without a level that shows that it is kept up with."""
    done: list[Performed] = []
    if workload_key(plan) not in setup.known.saturation:
        done = yield from ascend(climb_of(setup, variant(plan, slos=[]), BASE))
        found = base_capacity(setup, plan, done)
        if found is not None and filled_before(setup) is None:
            done = yield from seek(base_search(setup, plan, found), done)
    return base_of(setup, plan, done)


def base_of(setup: Setup, plan: Plan, done: Sequence[Performed]) -> float | None:
    """What `find_base` came to, out of what was done."""
    key = workload_key(plan)
    if key in setup.known.saturation:
        return setup.known.saturation[key]
    found = base_capacity(setup, plan, done)
    if found is None:
        return None
    if filled_before(setup) is not None:
        return found.arrival_s
    return bracketed_level(answer(base_search(setup, plan, found), done), found.arrival_s)


def bracketed_level(ended: Answer | None, expected: float | None = None) -> float | None:
    """The saturation rate that a search came to: only one that found both sides of it. The highest load tried, where that was
    sustained, is none, nor is what a search that was given up last took for it. `expected`: the capacity, which is the rate
    where it lies between the two sides."""
    if ended is None or ended.level is None or ended.why != "bracketed":
        return None
    return expected if expected is not None and holds(ended, expected) else ended.level


def holds(ended: Answer, expected: float) -> bool:
    """Whether a capacity lies between the highest level that was kept up with and the lowest that was not."""
    return (
        ended.level is not None
        and ended.level <= expected
        and (ended.below is None or expected <= ended.below)
    )


def known_base(
    plan: Plan, base: float | None, collapse: Collapse | None = None, life_s: float = 0.0
) -> KnownLimits:
    """For other tests of the campaign. `collapse`: what the search for it saw of one; `life_s`: of a session, 0: of none."""
    if base is None:
        return KnownLimits()
    key = workload_key(plan)
    return KnownLimits(
        {key: base},
        collapses={} if collapse is None else {key: collapse},
        lives={key: life_s} if life_s else {},
    )


def base_life(setup: Setup, plan: Plan, done: Sequence[Performed]) -> float:
    """How long a conversation or session of a plan takes at its 100 %, s; 0: its arrivals are requests, or nothing tells."""
    known = setup.known.lives.get(workload_key(plan))
    if known is not None:
        return known
    found = base_capacity(setup, plan, done)
    return 0.0 if found is None or found.arrivals.single else found.life_s


def base_table(setup: Setup, plan: Plan, done: Sequence[Performed]) -> tuple[Table, ...]:
    """How the 100 % of a test's percentages was found for a plan's workload: the runs of `find_base` among what was done, each
    with what refused it. None where the test did not look for it, because it was known."""
    climbed = rungs(climb_of(setup, variant(plan, slos=[]), BASE), done)
    found = base_capacity(setup, plan, done)
    tried = [] if found is None else levels(base_search(setup, plan, found), done)
    if not climbed:
        return ()
    unit = arrivals_of(plan, [one.done.outcome.summary for one in climbed]).column
    return (search_table(climbed, tried, "base_levels", "The search for 100 %, level by level", unit),)


def search_table(
    climbed: Sequence[Rung], tried: Sequence[Level], name: str, title: str, unit: str = REQUESTS.column
) -> Table:
    """The runs of a search: what was in flight or offered, what was achieved, whether it was sustained, and what refused it.
    `unit`: of what is offered."""
    columns = (
        Column("concurrency", "In flight"),
        Column("rate", "Offered", unit),
        Column("seconds", "Run", "s"),
        Column("achieved", "Achieved", "tok/s"),
        Column("gain", "Added by doubling", "%"),
        Column("ratio", "Completed / arrived"),
        Column("ttft_p50", "TTFT P50", "ms"),
        Column("ttft_p99", "TTFT P99", "ms"),
        Column("tpot_p99", "TPOT P99", "ms"),
        Column("success", "Success", "%"),
        Column("queue", "Queue"),
        Column("sustained", "Sustained"),
        Column("because", "Because of"),
    )
    rows = (*map(_rung_row, climbed), *map(_level_row, tried))
    return Table(name, title, "5.2.3", columns, rows, capacity=True)


def _rung_row(one: Rung) -> tuple[Cell, ...]:
    summary = one.done.outcome.summary
    gain = "" if one.gain is None else 100.0 * one.gain
    return (
        one.concurrency, "", summary.window.duration_s, one.output_tok_s, gain, "",
        stat(summary, "ttft", "p50"), stat(summary, "ttft", "p99"), stat(summary, "tpot", "p99"), success(summary),
        "", "", "" if one.answered else "success",
    )  # fmt: skip


def _queue(one: Level) -> str | None:
    """What the queue's thirds do, and whether that counts: a rise that chance explains, or that is worked off as fast as it
    comes, refuses no level."""
    seen = growth(one.done.outcome.summary)
    by_chance = any(signal.code == "queue" and signal.saturated is False for signal in one.decision.signals)
    return "rising, by chance" if seen == "rising" and by_chance else seen


def _level_row(one: Level) -> tuple[Cell, ...]:
    summary = one.done.outcome.summary
    sustained = {True: "yes", False: "no", None: "not settled"}[one.decision.sustained]
    refused = one.decision.reasons if one.decision.sustained is not True else ()
    return (
        "", one.rate, one.done.step.plan.load.duration_s, rate(summary, "output_tok_s"), "",
        None if summary.steady is None else summary.steady.completion_ratio,
        stat(summary, "ttft", "p50"), stat(summary, "ttft", "p99"), stat(summary, "tpot", "p99"), success(summary),
        _queue(one),
        sustained + (" (confirmed)" if one.confirms and one.decision.sustained else ""),
        ", ".join(signal.code for signal in refused),
    )  # fmt: skip
