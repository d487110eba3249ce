"""Truthful runs: the reference engine in virtual time, and the record that a good client would have made of it.

The engine decides when tokens leave; a client that is never late adds hundredths of a millisecond to each send and each read.
A `Scene` says which engine, load and lengths; whatever is drawn is drawn from its seed. The engine's clock may be bent
(`pace`): after the share x of the requests it takes pace(x) times as long for everything, queue and batches included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inferometer.journal.schema import EventClass
from inferometer.plan.arrivals import phase_instants
from inferometer.plan.schema import Plan
from inferometer.server.engine.engine import Engine
from inferometer.server.engine.settings import Settings

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Columns = dict[str, Any]
"""Columns of the record by name (journal/schema.py); a list where a request has many values."""
Pace = Callable[[float], float]
"""From the share of the measured requests sent so far, 0 to 1, to how many times as long everything takes."""
Arrivals = Callable[[Floats, np.random.Generator], Floats]
"""From the instants at which the plan has the measured requests due, s from the first, to those at which they are sent;
NaN where one is dropped."""

MS = 1_000_000
NS_PER_S = 1_000_000_000
START_NS = 10**12
TEMPLATE = 9
"""Tokens that the server's chat template adds to each prompt."""
ENGINE = Settings(
    step_base_ns=4_000_000, step_per_request_ns=50_000, prefill_per_token_ns=20_000, max_batch=32
)
"""TTFT some 10 ms, a token every 4 ms and more; at most some 110 requests of 60 tokens a second."""
WORDS = ("some ", "words ", "that ", "are ", "read ", "as ", "they ", "come ")


@dataclass(frozen=True, slots=True)
class Scene:
    """One engine under one load. Open loop at `rate` a second, or closed loop with `slots` in flight.

    `prompts`, `answers`: shortest and longest, in tokens. `arrivals`: what the client makes of the plan's instants.
    `drained`: nothing is in flight when the measurement begins.
    """

    seed: int = 1
    rate: float | None = 20.0
    slots: int = 0
    requests: int = 1_000
    warm: int = 150
    prompts: tuple[int, int] = (100, 500)
    answers: tuple[int, int] = (30, 90)
    engine: Settings = ENGINE
    pace: Pace | None = None
    arrivals: Arrivals | None = None
    drained: bool = False

    @property
    def total(self) -> int:
        """Warm-up included."""
        return self.warm + self.requests


class Call:
    """A request inside the engine."""

    __slots__ = ("at", "number", "tokens")

    def __init__(self, number: int, at: int) -> None:
        self.number = number
        self.at = at
        self.tokens: list[int] = []


class Clock:
    """The engine's own time and the run's, both in ns from the start. The engine is `factor` times as slow as it was built."""

    def __init__(self) -> None:
        self._wall = self._own = 0.0
        self._factor = 1.0

    def change(self, wall: int, factor: float) -> None:
        """From this instant of the run on."""
        self._own += (wall - self._wall) / self._factor
        self._wall, self._factor = wall, factor

    def own(self, wall: int) -> int:
        """The engine's time at an instant of the run, no earlier than the last change."""
        return round(self._own + (wall - self._wall) / self._factor)

    def wall(self, own: int) -> int:
        """The instant of the run at which the engine's time is this, if nothing changes before."""
        return round(self._wall + (own - self._own) * self._factor)


def load_of(scene: Scene) -> dict[str, Any]:
    """The load as a plan says it."""
    load: dict[str, Any] = {"requests": scene.requests, "warmup": scene.warm}
    if scene.rate is not None:
        return load | {"model": "open", "rate": scene.rate}
    return load | {"model": "closed", "concurrency": scene.slots}


def planned_ns(scene: Scene) -> Ints:
    """The plan's own instants of the measured requests, ns from the first phase's start."""
    plan = Plan.model_validate({"load": load_of(scene), "workload": {"seed": scene.seed}})
    return np.asarray(phase_instants(plan.load, scene.seed), np.int64)


def play(scene: Scene) -> Columns:
    """The record of the scene: every request that the engine answered, as a good client notes it."""
    random = np.random.default_rng(scene.seed)
    prompts = random.integers(scene.prompts[0], scene.prompts[1] + 1, scene.total)
    answers = random.integers(scene.answers[0], scene.answers[1] + 1, scene.total)
    played = Played(scene, prompts, answers)
    if scene.rate is None:
        if scene.drained:
            end = played.closed(scene.slots, scene.warm, START)
            played.closed(scene.slots, scene.total, end + DRAINED_NS)
        else:
            played.closed(scene.slots, scene.total, START)
        return noted(scene, played, random, None)
    due = planned_ns(scene)
    warm = np.round(np.cumsum(random.exponential(1 / scene.rate, scene.warm)) * NS_PER_S).astype(np.int64)
    begin = (int(warm[-1]) if len(warm) else 0) + DRAINED_NS
    sends = due / NS_PER_S if scene.arrivals is None else scene.arrivals(due / NS_PER_S, random)
    kept = ~np.isnan(sends)
    instants = due if scene.arrivals is None else np.round(sends[kept] * NS_PER_S).astype(np.int64)
    played.open([*warm.tolist(), *(instants + begin).tolist()])
    return noted(scene, played, random, due[kept])


class Played:
    """A scene on its way through the engine."""

    def __init__(self, scene: Scene, prompts: Ints, answers: Ints) -> None:
        self.scene = scene
        self.prompts: list[int] = prompts.tolist()
        self.answers: list[int] = answers.tolist()
        self.engine: Engine[Call] = Engine(scene.engine, scene.seed)
        self.clock = Clock()
        self.calls: list[Call] = []

    def send(self, at: int) -> None:
        """The next request reaches the server."""
        scene, number = self.scene, len(self.calls)
        if scene.pace is not None and number >= scene.warm:
            self.clock.change(at, scene.pace((number - scene.warm) / scene.requests))
        call = Call(number, at)
        self.calls.append(call)
        self.engine.submit(
            call,
            self.prompts[number] + TEMPLATE,
            self.answers[number],
            max(self.clock.own(at), self.engine.now),
        )

    def next_event(self) -> int | None:
        """When the engine emits next, in the run's time."""
        due = self.engine.next_due()
        return None if due is None else self.clock.wall(due)

    def emit(self) -> list[int]:
        """What the engine emits next; the instants at which its requests ended."""
        due = self.engine.next_due()
        assert due is not None
        at, ended = self.clock.wall(due), []
        while (emission := self.engine.advance(due)) is not None:
            for call, _, count, how in emission.tokens:
                call.tokens.extend([at] * count)
                if how:
                    ended.append(at)
        return ended

    def open(self, instants: Sequence[int]) -> None:
        """Requests are sent at these instants."""
        while len(self.calls) < len(instants) or self.next_event() is not None:
            due = self.next_event()
            if len(self.calls) < len(instants) and (due is None or instants[len(self.calls)] <= due):
                self.send(instants[len(self.calls)])
            else:
                self.emit()

    def closed(self, slots: int, until: int, begin: int) -> int:
        """So many in flight until `until` requests have been sent; the instant of the last end."""
        last = begin
        for _ in range(slots):
            self.send(begin)
        while self.next_event() is not None:
            for at in self.emit():
                last = at
                if len(self.calls) < until:
                    self.send(at + REACTION_NS)
        return last


START = MS
DRAINED_NS = 20 * MS
REACTION_NS = 40_000
"""From the end of an answer to taking up the next request."""


def noted(scene: Scene, played: Played, random: np.random.Generator, due: Ints | None) -> Columns:
    """What a client notes that is never late. `due`: the plan's instants of the measured requests that were sent."""
    calls, total = played.calls, len(played.calls)
    prompts, answers = np.array(played.prompts[:total]), np.array(played.answers[:total])
    submitted = np.array([call.at for call in calls], np.int64) + START_NS
    arrived = [np.array(call.tokens, np.int64) + START_NS + 20_000 for call in calls]
    role = [times[:1] - 2_000 for times in arrived]
    lengths = np.array([len(times) for times in arrived])
    measured = np.arange(total) >= scene.warm
    late = random.integers(2_000, 20_000, total)
    # In open loop the instant due is the engine's, and the client is a little later; the server then seems as much quicker.
    intended = submitted if due is not None else submitted - 12_000 - late
    taken = intended + late
    return {
        "index": np.arange(total),
        "phase": measured.astype(np.int8),
        "worker": np.arange(total) % 2,
        "t_intended": intended,
        "t_taken": taken,
        "t_send": taken + 2_000,
        "t_submit": taken + 12_000,
        "t_first_byte": np.array([times[0] for times in role]),
        "t_end": np.array([times[-1] for times in arrived]) + 5_000,
        "event_ns": [np.concatenate(pair) for pair in zip(role, arrived, strict=True)],
        "event_class": [bytes([EventClass.ROLE]) + bytes([EventClass.CONTENT]) * int(n) for n in lengths],
        "first_text": np.ones(total),
        "first_visible": np.ones(total),
        "first_answer": np.ones(total),
        "outcome": ["ok"] * total,
        "status": np.full(total, 200),
        "finish_reason": ["length"] * total,
        "text": [text(int(n)) for n in lengths],
        "usage_input": prompts + TEMPLATE,
        "usage_output": lengths,
        "usage_cached": np.zeros(total),
        "attempts": np.ones(total),
        "merged_event": [[] for _ in range(total)],
        "merged_ns": [[] for _ in range(total)],
        "submit_ns": np.full(total, 9_000),
        "lag_ns": 10_000 + np.round(random.exponential(15_000, total)).astype(np.int64),
        "input_tokens_asked": prompts,
        "input_tokens_sent": prompts,
        "output_tokens_asked": answers,
        "output_tokens_local": lengths,
        "due_ns": _due_ns(scene, due, total),
    }


def _due_ns(scene: Scene, due: Ints | None, total: int) -> list[int | None]:
    """From the start of the measurement, by the plan; the warm-up's is of no matter."""
    if due is None:
        return [None] * total
    found: list[int | None] = [0] * scene.warm + due.tolist()
    return found


def text(tokens: int) -> str:
    """That many words, each a token."""
    return "".join(WORDS[at % len(WORDS)] for at in range(tokens))
