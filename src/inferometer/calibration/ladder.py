"""The ladder: which loads are tried, in which order, and when a rung counts as good. Pure.

Three ladders, since a client's work is per token and per request, and an answer that is not streamed is read as a whole:

| ladder   | load                                       | what it finds                             |
| -------- | ------------------------------------------ | ----------------------------------------- |
| streams  | closed loop, so many streams of one script | token events a second that are certified  |
| requests | open loop, Poisson, one token a request    | requests a second that are certified      |
| whole    | the same, ten tokens, not streamed         | whole answers a second that are certified |

    good                       -> the next load, if the server kept up
    not good, first time       -> the same load once more: other work on the machine is no property of the instrument
    not good, second time      -> once half-way (geometrically) between it and the highest good load, then the end
    good, but the server late  -> the end: higher loads would be about the server
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from inferometer.documents.certificate import ErrorSpread
from inferometer.errors import PlanError, Problem
from inferometer.plan.lengths import Distribution, fixed
from inferometer.plan.schema import REFERENCE_TOKENIZER, Load, Plan, Tokenizer
from inferometer.plan.target import Target
from inferometer.plan.workload import LengthsWorkload, StandardWorkload

Kind = Literal["streams", "requests", "whole", "plan"]

STREAMS = (64, 128, 256, 512, 1024, 2048, 4096)
REQUESTS = (250, 500, 1000, 2000, 4000, 8000, 16000)
STREAMS_QUICK = (64, 256, 1024)
REQUESTS_QUICK = (500, 2000)
"""Loads for one worker; several workers get as many times as much."""

TOKENS = 50
"""An answer of the streams ladder: a second at 20 ms, so that a rung has many beginnings and ends as well."""

WHOLE_TOKENS = 10
"""An answer of the whole ladder."""

PLAN_S, PLAN_TOKENS, PLAN_REQUESTS = 10.0, 250, 100_000
"""A plan's own load is tried for about so long, with answers and requests up to so many."""

TTFT_MEAN_MS = 0.1
"""The mean TTFT of a good server is 10 ms and more: this is a hundredth, and the least anybody prints."""
TTFT_P99_MS = 0.5
"""Twice the time in which a busy Linux machine wakes a process up; servers are not told apart by less at P99."""
ITL_P99_MS = 0.5
"""A fortieth of the 20 ms between tokens, and a tenth of what the quickest servers have."""
E2E_P99_MS = 1.0
"""A whole answer has two ends, each with the error allowed for the first token."""
MERGED = 0.01
"""As the check `receive_lag` has it: one gap in a hundred made zero moves no percentile printed."""
MISSING = 0.0
"""A token that was sent and is not in the record is a fault of the instrument, whatever the load."""
SERVER_LATE_MS = 5.0
"""The server is behind when half of its tokens leave later than this, or half of its requests wait as long to be read: then
the load is no longer the script's, and more of it would only be queued."""


@dataclass(frozen=True, slots=True)
class Rung:
    """A load to try: `load` streams, or requests a second; for `plan` whichever the plan's loop counts."""

    kind: Kind
    load: float
    requests: int
    tokens: int
    open_loop: bool
    streamed: bool = True


@dataclass(frozen=True, slots=True)
class Tried:
    """What became of one try."""

    load: float
    good: bool
    server_behind: bool


def next_load(loads: Sequence[float], tried: Sequence[Tried], *, refine: bool = True) -> float | None:
    """The load to try next, or None at the end; see the table above. `tried` in order, `loads` rising.

    `refine`: whether there is a half-way.
    """
    if not tried:
        return loads[0]
    last = tried[-1]
    if last.good:
        higher = [load for load in loads if load > last.load]
        halfway = last.load not in loads
        return None if last.server_behind or halfway or not higher else higher[0]
    if sum(one.load == last.load for one in tried) < 2:
        return last.load
    below = [one.load for one in tried if one.good]
    if not refine or last.load not in loads or not below:
        return None
    between = float(round(math.sqrt(max(below) * last.load)))
    return between if max(below) < between < last.load else None


def ended_by(tried: Sequence[Tried]) -> Literal["instrument", "server", "ladder"]:
    """What kept the ladder from going on: the lowest load that stayed bad, a server that fell behind, or its top.

    A bad rung is the server's where the server was behind in it: nobody knows what the instrument would have done.
    """
    stayed_bad = {one.load for one in tried if not one.good} - {one.load for one in tried if one.good}
    if stayed_bad:
        lowest = [one for one in tried if one.load == min(stayed_bad)]
        return "server" if any(one.server_behind for one in lowest) else "instrument"
    return "server" if any(one.server_behind for one in tried[-1:]) else "ladder"


def faults(
    ttft: ErrorSpread | None,
    itl: ErrorSpread | None,
    e2e: ErrorSpread | None,
    missing: float,
    merged: float,
    verdict: str,
) -> tuple[str, ...]:
    """Names of the limits a rung broke; empty if it is good. `itl` is None where answers have one token, it and `ttft` where
    they are whole."""
    found = [] if e2e is not None else ["nothing_measured"]
    limits = (
        ("ttft_mean", None if ttft is None else ttft.mean, TTFT_MEAN_MS),
        ("ttft_p99", None if ttft is None else ttft.p99, TTFT_P99_MS),
        ("itl_p99", None if itl is None else itl.p99, ITL_P99_MS),
        ("e2e_p99", None if e2e is None else e2e.p99, E2E_P99_MS),
        ("missing", missing, MISSING),
        ("merged", merged, MERGED),
    )
    found += [name for name, value, limit in limits if value is not None and not abs(value) <= limit]
    return (*found, *(["verdict"] if verdict == "INVALID" else []))


def stream_rung(streams: float, *, quick: bool) -> Rung:
    """So many streams, each answering at least twice (quick) or four times; low loads answer more often, to have samples."""
    count = round(streams)
    rounds, samples = (2, 200) if quick else (4, 400)
    return Rung("streams", streams, max(rounds * count, min(samples, 2 * rounds * count)), TOKENS, False)


def request_rung(rate: float, *, quick: bool) -> Rung:
    """So many requests a second, for two (quick) or three seconds, and 500 requests at least."""
    return Rung("requests", rate, max(round(rate * (2 if quick else 3)), 500), 1, True)


def whole_rung(rate: float, *, quick: bool) -> Rung:
    """As request_rung, with answers that come as a whole."""
    return replace(request_rung(rate, quick=quick), kind="whole", tokens=WHOLE_TOKENS, streamed=False)


def plan_rung(plan: Plan, ttft_ms: float, interval_ms: float) -> Rung:
    """A user's load for about PLAN_S seconds: its streams or its rate, and answers of its mean length, 250 tokens at most."""
    load = plan.load
    if plan.trace is not None:
        raise PlanError(
            [Problem("--like", "a trace has no one rate to calibrate for: give a plan with a rate")]
        )
    workload = plan.workload
    if not isinstance(workload, StandardWorkload | LengthsWorkload) or workload.file is not None:
        why = "prompts from a file or of several classes have no one length to calibrate for: give a plan with lengths"
        raise PlanError([Problem("--like", why)])
    mean = workload.output_tokens.mean()
    tokens = (
        PLAN_TOKENS if math.isnan(mean) else min(max(round(mean), 2), PLAN_TOKENS)
    )  # NaN: a dataset's own
    if load.model == "users" or workload.turns is not None:
        why = "users, and conversations of several turns, have no one load to calibrate for: give a plan with a rate"
        raise PlanError([Problem("--like", why)])
    if load.model == "open":
        assert load.rate is not None
        requests = min(max(round(load.rate * PLAN_S), 2), PLAN_REQUESTS)
        return Rung("plan", load.rate, requests, tokens, True, plan.target.stream)
    streams = load.concurrency or 1
    rounds = max(2, math.ceil(PLAN_S * 1_000 / (ttft_ms + tokens * interval_ms)))
    requests = max(min(streams * rounds, PLAN_REQUESTS), streams)
    return Rung("plan", float(streams), requests, tokens, False, plan.target.stream)


def plan_of(rung: Rung, server: Target, base: Plan) -> Plan:
    """The plan that puts a rung's load on `server`; prompts, arrivals, workers and use of connections are those of `base`."""
    warmup = min(round(rung.load) if not rung.open_loop else 100, 100, rung.requests)
    load = (
        Load(model="open", requests=rung.requests, warmup=warmup, rate=rung.load)
        if rung.open_loop
        else Load(model="closed", requests=rung.requests, warmup=warmup, concurrency=round(rung.load))
    )
    if rung.kind == "plan":
        load = load.model_copy(update={"arrival": base.load.arrival, "burstiness": base.load.burstiness})
    words = base.workload
    prompts: Distribution = fixed(64)
    if rung.kind == "plan":
        assert isinstance(words, StandardWorkload | LengthsWorkload), "see plan_rung"
        prompts = words.input_tokens
    workload = LengthsWorkload(input_tokens=prompts, output_tokens=fixed(rung.tokens), seed=words.seed)
    return Plan(
        name=f"calibrate-{rung.kind}-{round(rung.load)}",
        target=server.model_copy(
            update={
                "stream": rung.streamed,
                "connection": base.target.connection,
                "streams_per_connection": base.target.streams_per_connection,
            }
        ),
        load=load,
        workload=workload,
        tokenizer=Tokenizer(
            name=REFERENCE_TOKENIZER, method="native"
        ),  # the reference server counts with this one
        instrument=base.instrument,
    )


def interval_ms(plan: Plan, otherwise: float) -> float:
    """The token interval of a plan's server. Only an objective on `itl` or `tpot` tells it; else `otherwise`."""
    limits = [slo.limit for slo in plan.slos if slo.metric in ("itl", "tpot")]
    return min(limits) if limits else otherwise
