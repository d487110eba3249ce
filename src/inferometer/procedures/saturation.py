"""The highest request rate that is sustained, in open loop: draft 5.2's search, for its own test and as the 100 % of others.

pilot (closed loop, an estimate) -> search.advance -> one run a level -> sustained.decide -> search.advance -> ...
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Cell, Column
from inferometer.plan.schema import Plan
from inferometer.procedures.results import Table
from inferometer.procedures.search import Answer, Ask, Ladder, Trial, advance, reached, reason
from inferometer.procedures.setup import (
    Setup,
    closed_loop,
    open_loop,
    reseeded,
    variant,
    with_warm_up,
    without_warm_up,
    workload_key,
)
from inferometer.procedures.step import KnownLimits, Measured, Performed, PerformedRun, Run, runs
from inferometer.procedures.summary_access import growth, held_to, rate, stat, success
from inferometer.procedures.sustained import Decision, decide

FIRST, STEP, FACTOR, MOST, LEAST = 0.5, 0.25, 1.25, 64.0, 1 / 64
"""A ladder out of an estimate: from half of it in steps of a quarter; then by a quarter of the level itself."""
BASE = "base-"
"""Parts of runs that only find the 100 % of a test's percentages begin with this."""
CONFIRMING_SEED = 1_000
SUCCESS_RATE = 0.99
"""Of the search for the 100 %; a rate found by another one is none for other tests."""


@dataclass(frozen=True, slots=True)
class Sought:
    """One search: levels of this plan in open loop, `seconds` each and longer where that makes fewer than `requests`;
    `objectives`: those of the plan's that have to be met."""

    plan: Plan
    seconds: float
    requests: int
    ladder: Ladder
    success_rate: float
    objectives: tuple[str, ...] = ()
    prefix: str = ""


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


def pilot(setup: Setup, plan: Plan, prefix: str = "") -> Generator[Run, Measured, PerformedRun]:
    """An estimate of the capacity, with the warm-up before it: a little while of closed loop."""
    search = setup.tests.search
    closed = closed_loop(with_warm_up(plan), search.pilot_concurrency, requests=search.pilot_requests)
    run = Run(
        closed, f"{prefix}pilot", Conditions(concurrency=search.pilot_concurrency),
        Note("pilot"),
    )  # fmt: skip
    return PerformedRun(run, (yield run))


def estimate(done: PerformedRun) -> float:
    """Requests a second that a pilot saw complete. 0 if none did."""
    summary = done.outcome.summary
    return rate(summary, "request_s") or summary.throughput.whole_run.request_s or 0.0


def ladder_of(setup: Setup, estimated: float) -> Ladder:
    """Where to look, given an estimate in requests a second."""
    search = setup.tests.search
    return Ladder(
        first=FIRST * estimated,
        step=STEP * estimated,
        most=MOST * estimated,
        least=LEAST * estimated,
        factor=FACTOR,
        resolution=search.resolution,
        longer=search.longer,
    )


def levels(sought: Sought, done: Sequence[Performed]) -> list[Level]:
    """The levels of a search among what was done, each with what it came to at that point."""
    measured: list[Level] = []
    lowest: tuple[float, float] | None = None
    longest = 2**sought.ladder.longer
    for one in runs(done, f"{sought.prefix}level", f"{sought.prefix}confirm"):
        at, summary = one.step.at, one.outcome.summary
        level, times = at.rate or 0.0, at.times or 1
        p50 = stat(summary, "ttft", "p50")
        if p50 is not None and (lowest is None or level < lowest[0]):
            lowest = level, p50
        held = held_to(summary, sought.objectives)
        decision = decide(
            held, lowest and lowest[1], success_rate=sought.success_rate, final=times >= longest
        )
        measured.append(Level(one, level, times, one.step.part.endswith("confirm"), decision))
    return measured


def seek(sought: Sought, before: Sequence[Performed] = ()) -> Generator[Run, Measured, list[Performed]]:
    """Search, going on from the levels among what was done before; gives all that was done."""
    done = list(before)
    while isinstance(move := advance(sought.ladder, [one.trial for one in levels(sought, done)]), Ask):
        run = _run(sought, move)
        done.append(PerformedRun(run, (yield run)))
    return done


def _run(sought: Sought, ask: Ask) -> Run:
    seconds = max(sought.seconds, sought.requests / ask.level) * ask.times
    plan = reseeded(
        open_loop(without_warm_up(sought.plan), ask.level, seconds=seconds), CONFIRMING_SEED * ask.confirms
    )
    facts = {"rate": ask.level, "seconds": seconds, "reason": reason(ask)}
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


def base_search(setup: Setup, plan: Plan, estimated: float) -> Sought:
    """The search for the 100 % of a test's percentages: draft 5.2's, without objectives (docs/tests.md)."""
    bare = variant(plan, slos=[])
    search = setup.tests.search
    return Sought(
        bare, search.level_s, search.least_requests, ladder_of(setup, estimated), SUCCESS_RATE, prefix=BASE
    )


def find_base(setup: Setup, plan: Plan) -> Generator[Run, Measured, float | None]:
    """The highest sustainable request rate for a plan's workload: known already, or searched for. None: there is none."""
    done: list[Performed] = []
    if workload_key(plan) not in setup.known.saturation:
        first = yield from pilot(setup, variant(plan, slos=[]), BASE)
        done.append(first)
        if estimate(first):
            done = yield from seek(base_search(setup, plan, estimate(first)), done)
    return base_of(setup, plan, done)


def base_of(setup: Setup, plan: Plan, done: Sequence[Performed]) -> float | None:
    """What `find_base` came to, out of what was done."""
    key = workload_key(plan)
    if key in setup.known.saturation:
        return setup.known.saturation[key]
    pilots = runs(done, f"{BASE}pilot")
    if not pilots or not estimate(pilots[0]):
        return None
    return bracketed_level(answer(base_search(setup, plan, estimate(pilots[0])), done))


def bracketed_level(ended: Answer | None) -> float | None:
    """The saturation rate that a search came to: only one that found both sides of it. The highest load tried, where that was
    sustained, is none, nor is what a search that was given up last took for it."""
    return ended.level if ended is not None and ended.why == "bracketed" else None


def known_base(plan: Plan, base: float | None) -> KnownLimits:
    """For other tests of the campaign."""
    return KnownLimits() if base is None else KnownLimits(saturation={workload_key(plan): base})


def base_table(setup: Setup, plan: Plan, done: Sequence[Performed]) -> tuple[Table, ...]:
    """How the 100 % of a test's percentages was found for a plan's workload: the levels of `find_base` among what was done,
    each with what refused it. None where the test did not look for it, because it was known, or came to no level."""
    pilots = runs(done, f"{BASE}pilot")
    if not pilots or not estimate(pilots[0]):
        return ()
    found = levels(base_search(setup, plan, estimate(pilots[0])), done)
    return (levels_table(found, "base_levels", "The search for 100 %, level by level"),) if found else ()


def levels_table(
    levels: Sequence[Level], name: str = "levels", title: str = "Load levels in the order they were run"
) -> Table:
    """The levels of a search: what was offered and achieved, whether it was sustained, and what refused it."""
    columns = (
        Column("rate", "Offered", "req/s"),
        Column("seconds", "Run", "s"),
        Column("achieved", "Achieved", "tok/s"),
        Column("ratio", "Completed / arrived"),
        Column("ttft_p50", "TTFT P50", "ms"),
        Column("ttft_p99", "TTFT P99", "ms"),
        Column("tpot_p99", "TPOT P99", "ms"),
        Column("success", "Success", "%"),
        Column("queue", "Queue"),
        Column("sustained", "Sustained"),
        Column("because", "Because of"),
    )
    rows = tuple(_level_row(one) for one in levels)
    return Table(name, title, "5.2.3", columns, rows, capacity=True)


def _level_row(one: Level) -> tuple[Cell, ...]:
    summary = one.done.outcome.summary
    sustained = {True: "yes", False: "no", None: "not settled"}[one.decision.sustained]
    because = (
        ", ".join(signal.code for signal in one.decision.reasons)
        if one.decision.sustained is not True
        else ""
    )
    return (
        one.rate,
        one.done.step.plan.load.duration_s,
        rate(summary, "output_tok_s"),
        None if summary.steady is None else summary.steady.completion_ratio,
        stat(summary, "ttft", "p50"),
        stat(summary, "ttft", "p99"),
        stat(summary, "tpot", "p99"),
        success(summary),
        growth(summary),
        sustained + (" (confirmed)" if one.confirms and one.decision.sustained else ""),
        because,
    )
