"""The check of the prefix cache: did the server find what it was not meant to find, or not what it was said to hold?

| prompts                              | cache before the run | held to                                                    |
| ------------------------------------ | -------------------- | ---------------------------------------------------------- |
| share nothing                        | any                  | nothing                                                    |
| share prefixes, as drawn             | any                  | the best share possible within the run                     |
| share what is not known beforehand   | cold                 | what each request is known to share with others and repeat |
| the same                             | otherwise            | not judged                                                 |
| those of an earlier run (repeatable) | cold                 | as above, as if they were new                              |
| the same                             | warm                 | WARM_SHARE of them at least                                |
| the same                             | unknown              | not judged                                                 |
"""

from __future__ import annotations

from inferometer.documents.workload import RequestStatistics
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.measurement import Measurement
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan

CACHE_SHARE = 0.05
"""Prompts are made to share nothing; a chat template's own tokens may still hit and are left out where they can be told."""

WARM_SHARE = 0.5
"""A cache that holds the prompts finds all of each but its last block. One that finds less than half of them is nearer to a
cold one, and so is TTFT."""


def cache_hits(
    plan: Plan, measurement: Measurement, record: Record, drawn: RequestStatistics | None
) -> Check:
    """Share of prompt tokens the server took from a cache, where none or most were meant to be found in one; see above."""
    share = measurement.throughput.cached_beyond_template
    replay = record.replay
    hits = None if drawn is None else drawn.prefix_hits.exact
    best = hits if replay is None else replay.best_hits
    if replay is not None and replay.shares_prefixes and best is None:
        return Check("cache_hits", "na", share, CACHE_SHARE, facts={"of": "trace"})
    cold = plan.sut.cache_state == "cold"
    # A schedule that began anew repeats its own prompts, if they are repeatable.
    again = plan.workload.repeatable_prompts and (not cold or bool((record.cycle > 0).any()))
    if share is not None and again and plan.sut.cache_state == "warm":
        # The template counts too: in prompts of one short length it cannot be told from them.
        found = measurement.throughput.cached_input_share or 0.0
        return Check(
            "cache_hits", "pass" if found >= WARM_SHARE else "fail", found, WARM_SHARE, facts={"of": "warm"}
        )
    if share is None or again:
        return Check("cache_hits", "na", share, CACHE_SHARE)
    shares = plan.workload.shares or (replay is not None and replay.shares_prefixes)
    if not shares:
        return _held(share, CACHE_SHARE, {"of": "cold"} if plan.workload.repeatable_prompts else {})
    # How much of the server's own replies there was to repeat is not known beforehand.
    answers = plan.workload.turns is not None and plan.workload.replies == "server"
    if best is not None and not answers:
        limit = min(1.0, best + CACHE_SHARE)
        return _held(share, limit, {"of": "shared", "best_share": best})
    beyond = measurement.throughput.cached_beyond_shared
    if cold and beyond is not None:
        return _held(beyond, CACHE_SHARE, {"of": "cold"})
    return Check("cache_hits", "na", share, CACHE_SHARE)


def _held(share: float, limit: float, facts: Facts) -> Check:
    return Check("cache_hits", "pass" if share <= limit else "fail", share, limit, facts=facts)
