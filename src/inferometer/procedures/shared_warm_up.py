"""A test's steps with one warm-up for each state of the system, in a run that other tests of the campaign can rely on.

Draft 4.5.1 asks for a warm-up before measurement begins, not before each test: a system that stays in its state stays warm. So
a quick campaign warms up once in a state (studies/campaign.py gives later tests the run again), and with requests that make
4.5.1's amounts in the least time, whatever the workload, unless that is tasks or recorded sessions.

| a test's run                                        | comes                                                      |
| --------------------------------------------------- | ---------------------------------------------------------- |
| is nothing but a warm-up                            | as the shared one                                          |
| has a warm-up before it                             | without it, after the shared one if that has not been      |
| has one that fills a prefix cache (4.5.1, item 4)   | as it is; the next one in that state only fills            |
| passes over an emptied cache                        | without any: the state before warmed the rest              |
| follows a switch                                    | after the shared warm-up of the new state                  |
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.errors import CannotSwitch, PlanError
from inferometer.plan.lengths import fixed
from inferometer.plan.schema import Plan
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.plan.workload import TasksWorkload
from inferometer.procedures.setup import (
    WARMUP_PART,
    WARMUP_REQUESTS,
    WARMUP_TOKENS,
    another_workload,
    closed_loop,
    variant,
    with_warm_up,
    without_warm_up,
)
from inferometer.procedures.step import Measured, Run, Step, Steps, Switch, Switched

IN_FLIGHT = 25
PROMPT = 128
"""Tokens; below the shortest context of 5.9, whose warm-up has to be of short ones."""
ANSWER = WARMUP_TOKENS // WARMUP_REQUESTS
MEASURED = 4
"""Requests behind the warm-up: a run has some, and nothing is told by them."""

Outcome = Measured | Switched | PlanError | CannotSwitch | None


def sharing(steps: Steps) -> Generator[Step, Measured | Switched, None]:
    """The steps of a test, changed as the table above says."""
    ready: Measured | None = None
    warm = False
    outcome: Outcome = None
    while True:
        try:
            step: Step = steps.throw(outcome) if isinstance(outcome, Exception) else steps.send(outcome)
        except StopIteration:
            return
        if isinstance(step, Switch):
            ready, warm = None, False
        elif _fills(step.plan):
            step, warm = (replace(step, plan=_only_filling(step.plan)) if warm else step), True
        elif step.plan.load.warmup:
            if ready is None and not _emptied(step.plan):
                given = yield warm_up(step.plan)
                assert isinstance(given, Measured)
                ready, warm = given, True
            if step.part == WARMUP_PART and ready is not None:
                outcome = ready
                continue
            step = replace(step, plan=without_warm_up(step.plan))
        try:
            outcome = yield step
        except (PlanError, CannotSwitch) as why:
            outcome = why


def warm_up(plan: Plan) -> Run:
    """The warm-up of a state, of the system that a plan names. A compound system gets its tasks, and an agent its sessions:
    random tokens are none (draft 4.1.3)."""
    bare = variant(plan, slos=[])
    own = isinstance(plan.workload, TasksWorkload | SessionsWorkload)
    words = bare if own else _quickest(bare)
    ready = closed_loop(with_warm_up(words, prefixes=False), IN_FLIGHT, requests=MEASURED)
    return Run(ready, WARMUP_PART, Conditions(concurrency=IN_FLIGHT), Note("warming_up"))


def _quickest(plan: Plan) -> Plan:
    return another_workload(
        plan,
        name="custom",
        based_on="synthetic-uniform",
        input_tokens=str(fixed(PROMPT)),
        output_tokens=str(fixed(ANSWER)),
    )


def _fills(plan: Plan) -> bool:
    """Whether the warm-up is to leave a prefix cache with what the measured requests share."""
    return plan.load.warmup > 0 and plan.load.warmup_prefixes and plan.sut.cache_state == "warm"


def _only_filling(plan: Plan) -> Plan:
    """With as many requests before it as it takes to send each shared prefix once."""
    return variant(plan, load={"warmup": 1, "warmup_tokens": 0, "warmup_probes": 0})


def _emptied(plan: Plan) -> bool:
    """Whether the run is a pass over a prefix cache that was emptied for it (Q-cold-cache-row)."""
    return plan.sut.prefix_caching == "enabled" and plan.sut.cache_state == "cold"
