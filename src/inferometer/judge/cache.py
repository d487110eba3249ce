"""The check of the prefix cache: did the server find what it was not meant to find, or not what it was said to hold?

| prompts                              | cache before the run | held to                                                    |
| ------------------------------------ | -------------------- | ---------------------------------------------------------- |
| share nothing                        | any                  | nothing                                                    |
| share prefixes, as drawn             | any                  | the best share possible within the run                     |
| share what is not known beforehand   | cold                 | what each request is known to share with others and repeat |
| the same                             | otherwise            | not judged                                                 |
| steps of agent sessions              | cold                 | what earlier steps of the same session had computed        |
| those of an earlier run (repeatable) | cold                 | as above, as if they were new                              |
| the same                             | warm                 | WARM_SHARE of them at least                                |
| the same                             | unknown              | not judged                                                 |

Who says it: the usage of each answer; where that has no cached tokens (vLLM's, unless it is asked to), the server's metrics, of
which nothing but their sum is known. A chat template is among those hits, and TEMPLATE_TOKENS a prompt are left to it.
"""

from __future__ import annotations

from inferometer.documents.verdict import CheckStatus
from inferometer.documents.workload import RequestStatistics
from inferometer.judge.verdict import Check, Facts
from inferometer.measure.agent_sessions import AgentSessions
from inferometer.measure.lengths import TEMPLATE_TOKENS
from inferometer.measure.measurement import Measurement
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan
from inferometer.plan.session_workload import SessionsWorkload

CACHE_SHARE = 0.05
"""Prompts are made to share nothing; a chat template's own tokens may still hit and are left out where they can be told."""

WARM_SHARE = 0.5
"""A cache that holds the prompts finds all of each but its last block. One that finds less than half of them is nearer to a
cold one, and so is TTFT."""


TEMPLATE_SHARE = 0.5
"""In prompts of which a template may be half, hits are more likely its own."""


def cache_hits(
    plan: Plan,
    measurement: Measurement,
    record: Record,
    drawn: RequestStatistics | None,
    sessions: AgentSessions | None = None,
) -> Check:
    """Share of prompt tokens the server took from a cache, where none or most were meant to be found in one; see above.
    `sessions`: recorded agent sessions, if that is what was sent."""
    if measurement.tokens.system is not None:
        return Check("cache_hits", "na", None, CACHE_SHARE, facts={"of": "inside"})
    found = _hits(plan, measurement, record, drawn, sessions)
    if record.cached_overstated and found.status in ("pass", "na"):
        facts: Facts = {"of": "overstated", "requests": record.cached_overstated}
        return Check("cache_hits", "note", found.value, found.limit, facts=facts)
    return found


def _hits(
    plan: Plan,
    measurement: Measurement,
    record: Record,
    drawn: RequestStatistics | None,
    sessions: AgentSessions | None,
) -> Check:
    if sessions is not None and not _again(plan, record):
        return _of_sessions(plan, sessions)
    if measurement.throughput.cached_beyond_template is None:
        by_metrics = _by_metrics(plan, measurement, record, drawn)
        if by_metrics is not None:
            return by_metrics
    return _by_usage(plan, measurement, record, drawn)


def _by_metrics(
    plan: Plan, measurement: Measurement, record: Record, drawn: RequestStatistics | None
) -> Check | None:
    """The same by the counters of an engine whose names are known; unsure where usage would fail, since another client may have
    had these hits. None: they say nothing. Of a request that was preempted an engine finds its own tokens again."""
    server, mean = measurement.server, measurement.tokens.prompt.server_mean
    if server is None or not server.seen or server.prefix_hit_share is None or server.preemptions or not mean:
        return None
    template, found = TEMPLATE_TOKENS / mean, server.prefix_hit_share
    if _again(plan, record):
        if plan.sut.cache_state != "warm":
            return None
        status: CheckStatus = "pass" if found >= WARM_SHARE else "unsure"
        return Check("cache_hits", status, found, WARM_SHARE, facts={"of": "warm_metrics"})
    best = _best(record, drawn) if _shares(plan, record) else 0.0
    if best is None or _answers(plan) or template > TEMPLATE_SHARE:
        return None
    limit, beyond = min(1.0, best + CACHE_SHARE), max(0.0, found - template)
    status = "pass" if beyond <= limit else "unsure"
    return Check("cache_hits", status, beyond, limit, facts={"of": "metrics"})


def _again(plan: Plan, record: Record) -> bool:
    """Whether prompts are those of an earlier run, or of an earlier cycle, by plan."""
    cold = plan.sut.cache_state == "cold"
    # A schedule that began anew repeats its own prompts, if they are repeatable.
    return plan.workload.repeatable_prompts and (not cold or bool((record.cycle > 0).any()))


def _shares(plan: Plan, record: Record) -> bool:
    return plan.workload.shares or (record.replay is not None and record.replay.shares_prefixes)


def _best(record: Record, drawn: RequestStatistics | None) -> float | None:
    """The best share of hits possible within the run; None: not known."""
    if record.replay is not None:
        return record.replay.best_hits
    return None if drawn is None else drawn.prefix_hits.exact


def _answers(plan: Plan) -> bool:
    """Whether there are the server's own replies to repeat: how much of them is not known beforehand."""
    of_sessions = isinstance(plan.workload, SessionsWorkload)
    return (plan.workload.turns is not None or of_sessions) and plan.workload.replies == "server"


def _by_usage(plan: Plan, measurement: Measurement, record: Record, drawn: RequestStatistics | None) -> Check:
    """The same by the cached tokens in each answer's usage; see the head."""
    share = measurement.throughput.cached_beyond_template
    replay = record.replay
    best = _best(record, drawn)
    if replay is not None and replay.shares_prefixes and best is None:
        return Check("cache_hits", "na", share, CACHE_SHARE, facts={"of": "trace"})
    cold = plan.sut.cache_state == "cold"
    again = _again(plan, record)
    if share is not None and again and plan.sut.cache_state == "warm":
        # The template counts too: in prompts of one short length it cannot be told from them.
        found = measurement.throughput.cached_input_share or 0.0
        return Check(
            "cache_hits", "pass" if found >= WARM_SHARE else "fail", found, WARM_SHARE, facts={"of": "warm"}
        )
    if share is None or again:
        return Check("cache_hits", "na", share, CACHE_SHARE)
    if not _shares(plan, record):
        return _held(share, CACHE_SHARE, {"of": "cold"} if plan.workload.repeatable_prompts else {})
    if best is not None and not _answers(plan):
        limit = min(1.0, best + CACHE_SHARE)
        return _held(share, limit, {"of": "shared", "best_share": best})
    beyond = measurement.throughput.cached_beyond_shared
    if cold and beyond is not None:
        return _held(beyond, CACHE_SHARE, {"of": "cold"})
    return Check("cache_hits", "na", share, CACHE_SHARE)


def _of_sessions(plan: Plan, sessions: AgentSessions) -> Check:
    """Beyond what each session had computed before itself. A chat template may put tools in front of the nonce, and they are
    then the same in many sessions of one run: more than the limit is a note."""
    tokens = sessions.reused_tokens
    if tokens is None or not tokens.prompt or plan.sut.cache_state != "cold":
        return Check("cache_hits", "na", None, CACHE_SHARE, facts={"of": "sessions"})
    share = tokens.beyond / tokens.prompt
    status: CheckStatus = "pass" if share <= CACHE_SHARE else "note"
    return Check("cache_hits", status, share, CACHE_SHARE, facts={"of": "sessions"})


def _held(share: float, limit: float, facts: Facts) -> Check:
    return Check("cache_hits", "pass" if share <= limit else "fail", share, limit, facts=facts)
