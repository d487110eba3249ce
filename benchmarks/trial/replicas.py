"""Replicas behind a balancer that assigns connections, not requests: which of them a kept connection meets is one draw a run.

Two replicas, one twice as slow, with no queue in either; SLOTS slots of a closed loop, each with its connection. The run has
its connections tied to replicas by a toss each; the truth is that of requests assigned one by one, half to each.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.trial.defects import Case, Defect
from benchmarks.trial.playing import MS, REACTION_NS, START, Call, Played, Scene, load_of, noted
from benchmarks.trial.records import Recorded, headlines, judged, sure

SLOTS, SLOWER = 8, 2.0
SCENE = Scene(seed=41, rate=None, slots=SLOTS, requests=1_100, warm=4 * SLOTS)
LONG = 4
"""The truth has so many times as many requests."""

Assigned = Callable[[int, np.random.Generator], bool]
"""Whether a request of this slot meets the slow replica."""


def recorded(scene: Scene, slow: Assigned) -> Recorded:
    """The record of such a run."""
    random = np.random.default_rng(scene.seed)
    prompts = random.integers(scene.prompts[0], scene.prompts[1] + 1, scene.total)
    answers = random.integers(scene.answers[0], scene.answers[1] + 1, scene.total)
    played = Played(scene, prompts, answers)
    free = [(START + slot * 1_000, slot) for slot in range(scene.slots)]
    while len(played.calls) < scene.total:
        at, slot = heapq.heappop(free)
        call = Call(len(played.calls), at)
        played.calls.append(call)
        factor = SLOWER if slow(slot, random) else 1.0
        paces = factor * 4 * MS * random.uniform(0.8, 1.2, played.answers[call.number])
        paces[0] = factor * (4 * MS + 20_000 * played.prompts[call.number])
        call.tokens = (at + np.cumsum(paces)).astype(np.int64).tolist()
        heapq.heappush(free, (call.tokens[-1] + REACTION_NS, slot))
    return Recorded(
        scene, noted(scene, played, random, None), {"load": load_of(scene), "workload": {"seed": scene.seed}}
    )


def _tied() -> Case:
    said = judged(
        recorded(SCENE, lambda slot, _: slot % 4 == 0)
    )  # a toss gives a quarter or less in one run of seven
    truth = Scene(seed=42, rate=None, slots=SLOTS, requests=LONG * SCENE.requests, warm=SCENE.warm)

    def toss(_: int, random: np.random.Generator) -> bool:
        return bool(random.random() < 0.5)

    return Case(
        said.status,
        said.reasons,
        lambda: sure(headlines(said.measurement), headlines(judged(recorded(truth, toss)).measurement)),
    )


def defects() -> Iterator[Defect]:
    """The one."""
    yield Defect("kept connections tied to replicas, 2 of 8 to the slow one", "balancer", (), _tied)
