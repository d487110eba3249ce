"""Systems that do less the more is asked of them: thrashing, congestion collapse.

| seen in                               | less is                                                                     |
| ------------------------------------- | --------------------------------------------------------------------------- |
| a climb, above the capacity           | less than COLLAPSED of it, by its interval and by that of the level         |
| an open loop that was not kept up with | in its last third less than COLLAPSED of the capacity, or of what was offered |
|                                       | if that is less, by more than chance explains                               |

A client in closed loop holds such a system where it does most. In open loop nothing does: a queue that came by chance makes it
slower, the queue grows, and what it then does is all that is sure. A load above that is met by either of two systems.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inferometer.documents.note import Fact, Note
from inferometer.plan.schema import Plan
from inferometer.procedures.plateau import COLLAPSED, LEAST_SUCCESS, Capacity, Rung, collapsed, plateau, rungs
from inferometer.procedures.same_load import changes
from inferometer.procedures.saturation import (
    BASE,
    Level,
    base_capacity,
    base_search,
    climb_of,
    filled_before,
    levels,
)
from inferometer.procedures.setup import Setup, variant, workload_key
from inferometer.procedures.step import Collapse, Performed
from inferometer.procedures.sustained import COMPLETIONS, third_chance


def in_climb(climbed: Sequence[Rung], at: Rung, found: Capacity) -> Collapse | None:
    """That more requests in flight than `at`, which the capacity is of, made the system slower."""
    worst = collapsed(climbed, at, found)
    if worst is None:
        return None
    left = worst.output_tok_s / found.output_tok_s
    sides: dict[str, Fact] = {"concurrency": at.concurrency, "more": worst.concurrency}
    return Collapse(
        Note("throughput_collapses", {**sides, "left": left}, capacity=True), left * found.arrival_s
    )


def with_backlog(found: Capacity, tried: Sequence[Level]) -> Collapse | None:
    """That a backlog made the system slower: of the levels that it did not keep up with, whose queues grow far beyond the
    climb's last number in flight, the one that did least in its last third."""
    worst: tuple[float, Level] | None = None
    for one in tried:
        summary = one.done.outcome.summary
        chance = third_chance(summary)
        if summary.steady is None or chance is None or not _behind(one, found):
            continue
        last, counts = summary.steady.output_thirds_tok_s[-1], summary.requests
        due = min(found.output_tok_s, one.rate * found.arrival_tokens)
        answered = counts.completed >= LEAST_SUCCESS * (counts.completed + counts.failed)
        left = last / found.output_tok_s
        if answered and last < (1 - max(1 - COLLAPSED, chance)) * due and (worst is None or left < worst[0]):
            worst = left, one
    if worst is None:
        return None
    facts: dict[str, Fact] = {"rate": worst[1].rate, "left": worst[0], "unit": found.arrivals.per_second}
    return Collapse(
        Note("throughput_collapses_with_backlog", facts, capacity=True), worst[0] * found.arrival_s
    )


def _behind(one: Level, found: Capacity) -> bool:
    """Whether a level had a backlog: above the capacity it has, below it only where completions fell behind."""
    fell = any(signal.code == COMPLETIONS and signal.saturated for signal in one.decision.signals)
    return one.rate > found.arrival_s or fell


def base_collapse(setup: Setup, plan: Plan, done: Sequence[Performed]) -> Collapse | None:
    """Of the search that a plan's 100 % is of (`saturation.find_base`), or of the earlier test that it is known by."""
    key = workload_key(plan)
    if key in setup.known.saturation:
        return setup.known.collapses.get(key)
    climb = climb_of(setup, variant(plan, slos=[]), BASE)
    climbed, found = rungs(climb, done), base_capacity(setup, plan, done)
    at = plateau(climb, climbed)
    if found is None or at is None:
        return None
    tried = [] if filled_before(setup) is not None else levels(base_search(setup, plan, found), done)
    # A system that is another at equal load is not known to be slow by its backlog.
    return in_climb(climbed, at, found) or (None if changes(done) else with_backlog(found, tried))


def base_notes(collapse: Collapse | None) -> tuple[Note, ...]:
    """What a test says of its 100 %."""
    return () if collapse is None else (collapse.seen,)


def unsure_loads(collapse: Collapse | None, base: float | None, percents: Sequence[float]) -> Iterator[Note]:
    """The loads, in per cent of `base`, that are more than the system does once it has collapsed: whether their latencies are
    those of one that has or has not is left to chance."""
    if collapse is None or not base:
        return
    left = 100.0 * collapse.arrival_s / base
    beyond = tuple(sorted({share for share in percents if share > left}))
    if beyond:
        yield Note("loads_beyond_collapse", {"percents": beyond, "left": left}, capacity=True)
