"""An engine without a model: every token at an instant fixed when its request arrives. For holding a client's figures against.

    token 0    ttft + a draw from [0, spread) after the request's arrival, from the seed
    token i    i * interval after token 0

A batching engine puts out the tokens of all its streams at one instant; here each stream keeps its own beat, and the spread
sets the beats apart. Instants are rounded up to a grid of GRID_NS, so that many streams share one look at the clock.
Nothing waits for anything: prompts cost no time and any number of requests run side by side.
"""

from __future__ import annotations

import heapq
import random
from collections import defaultdict
from collections.abc import Sequence as Row
from dataclasses import dataclass
from typing import Generic

from inferometer.server.engine.emission import GOES_ON, LENGTH, Emission, K, Tokens
from inferometer.server.engine.preemption import Preempted
from inferometer.units import Ns

GRID_NS = 250_000


@dataclass(frozen=True, slots=True)
class Beat:
    """The fixed script, in ns. Raises ValueError for a negative time or no interval."""

    interval_ns: int
    ttft_ns: int = 0
    spread_ns: int = 0

    def __post_init__(self) -> None:
        if self.interval_ns < 1:
            raise ValueError("the token interval must be at least 1 ns")
        if self.ttft_ns < 0 or self.spread_ns < 0:
            raise ValueError("ttft and its spread must not be negative")


class _Stream(Generic[K]):
    """One request. `at`: its next token's instant before rounding."""

    __slots__ = ("at", "emitted", "gone", "key", "left")

    def __init__(self, key: K, at: int, left: int) -> None:
        self.key = key
        self.at = at
        self.left = left
        self.emitted = 0
        self.gone = False


class Metronome(Generic[K]):
    """Stands in for engine.Engine: the same calls. Times are ns on any clock that does not run backwards."""

    waiting = 0
    """Requests in a queue: there is none."""
    kv_usage = 0.0
    prefix_queries = prefix_hits = preemptions = 0
    preempted = Preempted()
    """There is no cache either."""

    def __init__(self, beat: Beat, seed: int) -> None:
        self._beat = beat
        self._random = random.Random(seed)  # noqa: S311 - a script, not a secret
        self._streams: dict[int, _Stream[K]] = {}
        self._slots: defaultdict[int, list[_Stream[K]]] = defaultdict(list)  # by place on the grid
        self._places: list[int] = []  # a heap of the keys of _slots
        self._now = 0

    @property
    def now(self) -> int:
        """The latest instant it was told."""
        return self._now

    @property
    def running(self) -> int:
        """Requests under way."""
        return len(self._streams)

    @property
    def crowd(self) -> int:
        """How many requests have a token in what comes out next."""
        return len(self._slots[self._places[0]]) if self._places else 0

    def submit(
        self,
        key: K,
        prompt_tokens: int,  # noqa: ARG002 - prompts are free here
        max_tokens: int,
        now: int,
        *,
        hashes: Row[int] = (),  # noqa: ARG002 - and nothing is cached
        priority: int = 0,  # noqa: ARG002 - nobody waits
    ) -> bool:
        """A request arrives at `now`; always True. Raises ValueError for no tokens, a key in use, time that runs backwards."""
        if max_tokens < 1:
            raise ValueError("a request asks for at least one token")
        if id(key) in self._streams:
            raise ValueError("this key is in use")
        self._pass_time(now)
        beat = self._beat
        at = now + beat.ttft_ns + int(self._random.random() * beat.spread_ns)
        stream = _Stream(key, at, max_tokens)
        self._streams[id(key)] = stream
        self._put(stream)
        return True

    def cancel(self, key: K, now: int) -> bool:
        """The client is gone: no more tokens for it. False if it had ended already."""
        self._pass_time(now)
        stream = self._streams.pop(id(key), None)
        if stream is None:
            return False
        stream.gone = True
        return True

    def next_due(self) -> Ns | None:
        """When the next tokens are due; None while there is nothing to do."""
        return Ns(self._places[0] * GRID_NS) if self._places else None

    def advance(self, now: int) -> Emission[K] | None:
        """The tokens of the earliest instant due by `now`. None if nothing is due; empty if its clients are gone."""
        self._pass_time(now)
        if not self._places or self._places[0] * GRID_NS > now:
            return None
        place = heapq.heappop(self._places)
        tokens: list[Tokens[K]] = []
        for stream in self._slots.pop(place):
            if stream.gone:
                continue
            last = stream.left == 1
            tokens.append((stream.key, stream.emitted, 1, LENGTH if last else GOES_ON))
            if last:
                del self._streams[id(stream.key)]
                continue
            stream.left -= 1
            stream.emitted += 1
            stream.at += self._beat.interval_ns
            self._put(stream)
        return Emission(Ns(place * GRID_NS), tokens)

    def _put(self, stream: _Stream[K]) -> None:
        place = -(-stream.at // GRID_NS)
        slot = self._slots[place]
        if not slot:
            heapq.heappush(self._places, place)
        slot.append(stream)

    def _pass_time(self, now: int) -> None:
        if now < self._now:
            raise ValueError(f"time ran backwards: {now} ns after {self._now} ns")
        self._now = now
