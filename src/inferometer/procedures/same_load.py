"""Runs of one test at one load, held against each other: whether the system did the same in all of them.

| runs are       | where                                                                                             |
| -------------- | ------------------------------------------------------------------------------------------------- |
| at one load    | equal: what is asked but for the seed, and how (workload_key); open or closed loop; requests a    |
|                | second or in flight; the test's own conditions; the states switched to before them                |
| apart          | the 95 % intervals of their output tokens a second (thirds.py, and in open loop the chance of how |
|                | many requests came) are disjoint, and the values differ by more than SHARE of the lesser          |

A search goes from level to level, and takes what it sees for one system's. Where that became slower or faster meanwhile, each
level may be right and the answer none. Runs without an interval and runs that lost requests say nothing here. A change between
two loads that are run once each is not seen, nor is one of SHARE or less.

A level in open loop at up to HELD of the 100 % that the test found, or knows, has to be kept up with: where surely fewer of its
requests ended, that 100 % is not the system's any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from inferometer.documents.note import Fact, Note
from inferometer.documents.results import Interval
from inferometer.procedures.arrivals import arrivals_in
from inferometer.procedures.plateau import SIZING
from inferometer.procedures.results import Results, joined
from inferometer.procedures.setup import Setup, workload_key
from inferometer.procedures.step import Performed, PerformedRun, Run, Switch, Switched, is_run
from inferometer.procedures.summary_access import rate, samples
from inferometer.procedures.thirds import output_interval

Z95 = 1.96
SHARE = 0.05
ANSWERED = 0.99
"""Of a run's requests: one that lost more was not at the load that it offered."""
HELD = 0.9
"""Draft 5.2.3.1: the share of requests that a sustained load completes; and the level that shows a 100 % to be kept up with."""
USUAL = (None, "baseline")
"""Configurations of guardrails that the 100 % is of: what filters make of it is their subject."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a run did."""

    run: PerformedRun
    output_tok_s: float
    ends: Interval


def changes(done: Sequence[Performed]) -> tuple[Note, ...]:
    """That the system did not do the same at the same load: of the load at which two runs are farthest apart, with how many
    loads show it. Nothing where none does."""
    worst: dict[object, tuple[_Seen, _Seen]] = {}
    for load, seen in _by_load(done).items():
        apart = [pair for pair in combinations(seen, 2) if _apart(*pair)]
        if apart:
            worst[load] = max(apart, key=lambda pair: _factor(*pair))
    if not worst:
        return ()
    first, then = max(worst.values(), key=lambda pair: _factor(*pair))
    load = first.run.step.plan.load
    facts: dict[str, Fact] = {
        "rate": load.rate if load.model == "open" else None,
        "concurrency": load.concurrency if load.model == "closed" else None,
        "unit": arrivals_in(first.run.step.plan, [first.run]).per_second,
        "first": first.output_tok_s,
        "then": then.output_tok_s,
        "loads": len(worst),
    }
    return (Note("changed_at_equal_load", facts, capacity=True),)


def not_held(done: Sequence[Performed]) -> Iterator[Note]:
    """That the system fell behind at a load well within its 100 %: the lowest such level."""
    behind: list[tuple[float, float, float, str]] = []
    for one in filter(is_run, done):
        at, steady = one.step.at, one.outcome.summary.steady
        if at.percent is None or at.percent > 100 * HELD or at.rate is None or at.configuration not in USUAL:
            continue
        ends = None if steady is None else steady.completion_ratio_ci95
        if steady is not None and steady.completion_ratio is not None and ends is not None and ends[1] < HELD:
            unit = arrivals_in(one.step.plan, [one]).per_second
            behind.append((at.percent, at.rate, steady.completion_ratio, unit))
    if behind:
        percent, offered, ratio, unit = min(behind)
        facts: dict[str, Fact] = {
            "percent": percent,
            "rate": offered,
            "completed": 100.0 * ratio,
            "unit": unit,
        }
        yield Note("base_not_held", facts, capacity=True)


Reckoned = Callable[[Setup, Sequence[Performed]], Results]
"""A test's results by what was done."""


def held_together(results: Reckoned) -> Reckoned:
    """The results of a test, undecided where its runs were not of one system."""

    def reckoned(setup: Setup, done: Sequence[Performed]) -> Results:
        return joined([results(setup, done), Results(undecided=(*changes(done), *not_held(done)))])

    return reckoned


def _by_load(done: Sequence[Performed]) -> dict[object, list[_Seen]]:
    """The runs that say how much the system does, by their load, in their order."""
    found: dict[object, list[_Seen]] = {}
    states: dict[str, str] = {}
    for one in done:
        if isinstance(one.step, Run) and one.step.part == SIZING:
            continue  # it ends by its requests, and is about how long they take
        if isinstance(one.step, Switch) and isinstance(one.outcome, Switched):
            states[one.step.what] = one.step.state
        if is_run(one) and (seen := _seen(one)) is not None:
            load, at = one.step.plan.load, one.step.at
            how = load.model, load.rate, load.concurrency, workload_key(one.step.plan)
            own = at.cache, at.configuration, at.class_name, at.context
            found.setdefault((how, own, tuple(sorted(states.items()))), []).append(seen)
    return found


def _seen(one: PerformedRun) -> _Seen | None:
    summary = one.outcome.summary
    output, ends = rate(summary, "output_tok_s"), output_interval(summary)
    answered = summary.success_rate.value
    if output is None or ends is None or answered is None or answered < ANSWERED:
        return None
    chance = _chance_of_arrivals(one) * output
    low, high = (math.hypot(end - output, chance) for end in ends)
    return _Seen(one, output, (output - low, output + high))


def _chance_of_arrivals(one: PerformedRun) -> float:
    """By what share the number of arrivals may differ, by 95 %: in open loop what a system does that keeps up is what came, and
    one that is full of what came by chance does the same in each third."""
    load = one.step.plan.load
    count = (samples(one.outcome.summary) or 0) / arrivals_in(one.step.plan, [one]).each
    if load.model != "open" or load.arrival == "constant" or not count:
        return 0.0
    return Z95 / math.sqrt(count * load.burstiness)


def _apart(first: _Seen, then: _Seen) -> bool:
    disjoint = first.ends[1] < then.ends[0] or then.ends[1] < first.ends[0]
    return disjoint and _factor(first, then) > 1 + SHARE


def _factor(first: _Seen, then: _Seen) -> float:
    less, more = sorted((first.output_tok_s, then.output_tok_s))
    return more / less if less > 0 else 0.0
