"""What a defect is: how it is planted, what it does to the headlines, and what the instrument says of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from benchmarks.trial.playing import Pace, Scene
from benchmarks.trial.records import (
    Bent,
    Headline,
    Judged,
    Recorded,
    bent,
    headlines,
    judged,
    sure,
    truthful,
)

MUCH = 0.05
"""A headline that is off by more than a twentieth is another number."""

OPEN = Scene(seed=11, requests=1_100)
CLOSED = Scene(seed=12, rate=None, slots=16, requests=1_100)
"""A tenth more than P99 asks for, so that a defect that costs requests is not taken for a small sample."""

Plant = Callable[[Recorded, np.random.Generator], Recorded]
"""From a truthful record to what the defect makes of it."""


@dataclass(frozen=True, slots=True)
class Case:
    """What came of one planting: the instrument's words, and how far the headlines are from the truth, which takes longer.
    `notes`: what it says beside the verdict."""

    status: str
    reasons: tuple[str, ...]
    bend: Callable[[], Bent]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Defect:
    """`name` says what it is; `expects`: the checks whose matter it is. `quick`: it belongs to the short form."""

    name: str
    family: str
    expects: tuple[str, ...]
    carry_out: Callable[[], Case]
    quick: bool = False


@dataclass(frozen=True)
class Found:
    """A defect and what came of it."""

    defect: Defect
    case: Case

    @cached_property
    def bent(self) -> Bent:
        """How far the headlines are from the truth."""
        return self.case.bend()

    @property
    def bends(self) -> bool:
        """Whether a headline is off by more than MUCH."""
        return abs(self.bent.share) > MUCH

    @property
    def believed(self) -> bool:
        """Whether the instrument vouches for it. What is the system's own word it does not where it says so in a note."""
        return self.case.status == "VALID" and not (self.bent.of_system and self.case.notes)

    @property
    def expected(self) -> bool:
        """Whether a check decided whose matter it is."""
        return bool(set(self.case.reasons) & set(self.defect.expects))


@lru_cache(maxsize=24)
def base(scene: Scene) -> Recorded:
    """A truthful record of the scene."""
    return truthful(scene)


@lru_cache(maxsize=48)
def truth_of(scene: Scene) -> Mapping[str, Headline]:
    """The headlines of the scene as they are."""
    return headlines(judged(truthful(scene)).measurement)


def seen(said: Judged, truth: Callable[[], Mapping[str, Headline]]) -> Case:
    """What the instrument says, beside the truth."""
    return Case(said.status, said.reasons, lambda: bent(headlines(said.measurement), truth()))


def chosen(random: np.random.Generator, n: int, share: float) -> Any:
    """A mask of that share of `n`, to the request."""
    mask = np.zeros(n, np.bool_)
    mask[random.permutation(n)[: round(share * n)]] = True
    return mask


def random_of(name: str) -> np.random.Generator:
    """A defect's own random numbers."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def in_record(
    name: str,
    family: str,
    plant: Plant,
    expects: Sequence[str],
    scene: Scene = OPEN,
    *,
    honest: Plant | None = None,
    quick: bool = False,
) -> Defect:
    """A defect that bends the record of a truthful run of `scene`, whose headlines are the truth; or those of `honest`, what
    happened as it would be recorded in truth."""

    def carry_out() -> Case:
        recorded = base(scene)

        def truth() -> Mapping[str, Headline]:
            if honest is None:
                return truth_of(scene)
            return headlines(judged(honest(recorded, random_of(name))).measurement)

        return seen(judged(plant(recorded, random_of(name))), truth)

    return Defect(name, family, tuple(expects), carry_out, quick)


def in_scene(
    name: str,
    family: str,
    scene: Scene,
    truth: Scene,
    expects: Sequence[str],
    *,
    long: int = 1,
    sampled: bool = False,
    quick: bool = False,
) -> Defect:
    """A defect that changes what happens: the truth is that of another scene.

    `long`: both are compared over so many times as many requests, so that it is not chance what differs; the verdict is that of
    the scene. `sampled`: the defect is in the sample alone, and a headline is bent where its interval leaves the truth out.
    """

    def carry_out() -> Case:
        said = judged(truthful(scene))

        def bend() -> Bent:
            if sampled:
                return sure(headlines(said.measurement), truth_of(truth))
            much, true = (replace(one, requests=long * one.requests) for one in (scene, truth))
            there = said if long == 1 else judged(truthful(much))
            return bent(headlines(there.measurement), truth_of(true))

        return Case(said.status, said.reasons, bend)

    return Defect(name, family, tuple(expects), carry_out, quick)


def both(first: Plant, second: Plant) -> Plant:
    """Two at once, one after the other."""
    return lambda recorded, random: second(first(recorded, random), random)


def slower(scene: Scene, factor: float) -> Scene:
    """The scene with a server that is as slow all the time."""
    return replace(scene, pace=steady_pace(factor))


@lru_cache
def steady_pace(factor: float) -> Pace:
    """A pace that does not change."""
    return lambda _: factor
