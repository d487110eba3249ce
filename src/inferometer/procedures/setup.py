"""What a procedure starts from, and the plans it makes out of that: the same system, another load or workload."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.errors import PlanError, Problem
from inferometer.foreign_json import dotted
from inferometer.plan.lengths import Distribution
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.saved import part_values, resolved
from inferometer.plan.schema import Plan
from inferometer.plan.standard import STANDARD
from inferometer.plan.wording import located, reason, refused
from inferometer.plan.workload import MixtureWorkload
from inferometer.procedures.arrivals import REQUESTS, Arrivals
from inferometer.procedures.step import KnownLimits, Run

WARMUP_REQUESTS, WARMUP_TOKENS = 100, 10_000
"""Draft 4.5.1's amounts; both are reached."""
LIVES = 4.0
"""A level that is shorter than this many lives of an arrival ends before what it offered shows at its end."""
SESSION_LIVES = 6.0
"""The same of a level whose throughput or latencies are shown: check `filling` lets 5 % of it be missing."""
WARMUP_PROBES = 12
"""Probes after the warm-up, at most, of which three in a row have to agree (draft 4.5.2)."""
WARMUP_CONCURRENCY = 16
WARMUP_PART = "warm-up"
LONG_CONTEXT = "long-context"
"""The standard workload of documents and questions (draft 4.3.2.5, A.5)."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The plan that says which system is tested with which words, the parameters of all tests, and what is known already.

    `max_batch`: the largest batch of the reference engine, where that is tested. `quick`: as little as may do.
    """

    plan: Plan
    tests: Tests
    known: KnownLimits = field(default_factory=KnownLimits)
    max_batch: int | None = None
    quick: bool = False


def variant(plan: Plan, **parts: Mapping[str, Any] | Sequence[Any]) -> Plan:
    """A plan with some keys of some parts changed: `variant(plan, load={...}, workload={...})`. Raises PlanError.

    None takes a key's implied value.
    """
    document = resolved(plan)
    for part, changes in parts.items():
        if isinstance(changes, Mapping):
            document[part] = {**document[part], **changes}
            if document[part].get("kind") == "file":
                del document[part][
                    "kind"
                ]  # it is of another, which the file says: what changes is held to it
        else:
            document[part] = changes
    return _valid(document)


def _valid(document: Mapping[str, Any]) -> Plan:
    """The plan that a procedure made. Raises PlanError: what was measured, or asked of a test, can lead to a load that no plan
    has, as a rate of next to nothing."""
    try:
        return Plan.model_validate(document)
    except ValidationError as cause:
        raise PlanError(
            [
                Problem(f"a level's {dotted(located(one.place)) or 'plan'}", reason(one))
                for one in refused(cause)
            ]
        ) from cause


HOW = (
    "seed", "prompt_format", "repeatable_prompts", "count_template", "ignore_eos", "min_tokens", "temperature",
)  # fmt: skip
"""Of a workload, what is about how requests are made and asked, not about what they say."""


def another_workload(plan: Plan, **words: Any) -> Plan:
    """The plan with other words altogether, asked in the same way: `another_workload(plan, name="conversation")`. Raises
    PlanError."""
    asked = part_values(plan.workload)
    kept = {key: asked[key] for key in HOW if key in asked}
    return _valid({**resolved(plan), "workload": {**kept, **words}})


def documents(plan: Plan, inputs: Distribution | None = None, outputs: Distribution | None = None) -> Plan:
    """The plan with Long Context in place of its workload; None: the standard's lengths. With others it is custom, based on
    Long Context."""
    standard = STANDARD[LONG_CONTEXT]
    return another_workload(
        plan,
        name="custom",
        based_on=LONG_CONTEXT,
        input_tokens=str(inputs or standard[0]),
        output_tokens=str(outputs or standard[1]),
    )


def answering(plan: Plan, output_tokens: Any) -> Plan:
    """The plan with answers of this length, a fixed one or a distribution, whatever its classes say. A workload that was made
    before keeps its own, and so do prompts of a file that name one."""
    if plan.workload.file is not None:
        return plan
    if not isinstance(plan.workload, MixtureWorkload):
        return variant(plan, workload={"output_tokens": output_tokens})
    classes = [part_values(one) | {"output_tokens": output_tokens} for one in plan.workload.classes]
    return variant(plan, workload={"classes": classes})


def with_warm_up(plan: Plan, *, prefixes: bool = True) -> Plan:
    """The plan with draft 4.5's warm-up before it, verified. `prefixes`: whether it fills a prefix cache (4.5.1)."""
    asked = max(WARMUP_REQUESTS, plan.load.warmup)
    amounts = {"warmup": asked, "warmup_tokens": WARMUP_TOKENS, "warmup_probes": WARMUP_PROBES}
    return variant(plan, load={**amounts, "warmup_prefixes": prefixes})


def warm_up_run(plan: Plan, *, prefixes: bool = True) -> Run:
    """A run that is nothing but the warm-up, for a test whose first load is so low that a warm-up under it would take long: in
    closed loop, with a few requests behind it."""
    ready = closed_loop(
        with_warm_up(plan, prefixes=prefixes), WARMUP_CONCURRENCY, requests=WARMUP_CONCURRENCY
    )
    return Run(ready, WARMUP_PART, Conditions(concurrency=WARMUP_CONCURRENCY), Note("warming_up"))


def without_warm_up(plan: Plan) -> Plan:
    """The plan without a warm-up: the system has had it, in the same test and the same state."""
    return variant(plan, load={"warmup": 0, "warmup_tokens": 0, "warmup_probes": 0})


def open_loop(plan: Plan, rate: float, *, seconds: float | None = None, requests: int | None = None) -> Plan:
    """The plan with so many arrivals a second (arrivals.py), by its own arrival process if it has one, else Poisson."""
    arrival = plan.load.arrival if plan.load.model == "open" else "poisson"
    load = {
        "model": "open",
        "rate": rate,
        "arrival": arrival,
        "concurrency": None,
        "users": None,
        "user_rate": None,
    }
    return variant(plan, load={**load, "duration_s": seconds, "requests": requests, "drain_s": waiting(plan)})


def waiting(plan: Plan) -> float:
    """How long a run of a test waits for what is in flight at its end: as long as a request may take, so that none fails that
    the system would have answered. A run that cuts requests off takes those that are long for failures of the system."""
    return max(plan.load.drain_s, plan.target.timeout_s)


def lasting(
    setup: Setup, rate: float, seconds: float, arrivals: Arrivals = REQUESTS, life_s: float = 0.0
) -> float:
    """How long a level lasts in open loop: as long as asked, and longer where that makes too few requests, or is less than
    SESSION_LIVES times what a session takes, `life_s`."""
    least = max(arrivals.seconds(setup.tests.search.least_requests, rate), SESSION_LIVES * life_s)
    return max(seconds, float(f"{least:.4g}"))


def closed_loop(
    plan: Plan, concurrency: int, *, seconds: float | None = None, requests: int | None = None
) -> Plan:
    """The plan with so many requests in flight."""
    load = {"model": "closed", "concurrency": concurrency, "rate": None, "users": None, "user_rate": None}
    arrivals = {"arrival": "poisson", "burstiness": 1.0}
    ends = {"duration_s": seconds, "requests": requests, "drain_s": waiting(plan)}
    return variant(plan, load={**load, **arrivals, **ends})


TEST_SEEDS = {
    "ttft": 10_000,
    "itl": 20_000,
    "tradeoff": 30_000,
    "memory-pressure": 40_000,
    "long-context": 50_000,
}
"""How far the seeds of a test's levels are from the plan's: those of searches (saturation.py, plateau.py, latency_limit.py) and
of other tests are elsewhere, so that no two runs of a campaign send the same, but where a method compares equal requests."""


def level_of(plan: Plan, test: str, number: int) -> Plan:
    """The plan with the requests of a test's level, by its number from 0."""
    return reseeded(plan, TEST_SEEDS[test] + number)


def reseeded(plan: Plan, by: int) -> Plan:
    """The plan with another seed: other requests of the same kind, at other instants. One with a workload file as it is: the
    file decides what is sent, and so the seed."""
    if not by or plan.workload.file is not None:
        return plan
    return variant(plan, workload={"seed": plan.workload.seed + by})


def workload_key(plan: Plan) -> str:
    """What two plans must share for what one system sustains to be known for the other: what is asked, but for the seed,
    and how, and the states that the system is in by what its plan declares."""
    sut, load = plan.sut, plan.load
    caching, filters = sut.prefix_caching, (sut.guardrails.input_filter, sut.guardrails.output_filter)
    if plan.target.url is None:  # how the reference engine begins
        caching, filters = caching or "disabled", (bool(filters[0]), bool(filters[1]))
    asked = [
        {key: value for key, value in part_values(plan.workload).items() if key != "seed"},
        caching,
        filters,
        part_values(plan.target),
        part_values(plan.tokenizer),
        load.arrival,
        load.burstiness,
    ]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
