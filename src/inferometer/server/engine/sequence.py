"""One request inside the engine."""

from __future__ import annotations

from collections.abc import Sequence as Row
from typing import Generic

from inferometer.server.engine.blocks import Lease
from inferometer.server.engine.emission import K


class Sequence(Generic[K]):
    """A request with what was done for it.

    rank      its place in line: priority, instant of entering the queue, number. Lower is served sooner and preempted later.
    checked   its prompt's check is over, and it is in the queue or beyond
    hashes    its prompt's full blocks (blocks.py), those that may come from the cache
    target    tokens to be computed before the next one comes out: the prompt and, after a preemption, what was put out
    computed  of these, how many are
    emitted   tokens put out
    stop      `emitted` at which it has its length, or needs another block for the next step
    swapped   blocks it has in the host's memory
    preempted it was, once at least
    scheduled when the first iteration that computed a part of its prompt began, ns; None before
    """

    __slots__ = (
        *("cached", "checked", "computed", "emitted", "gone", "hashes", "key", "lease", "max_tokens"),
        *("preempted", "prompt_tokens", "rank", "scheduled", "stop", "swapped", "target"),
    )

    def __init__(
        self, key: K, prompt_tokens: int, max_tokens: int, hashes: Row[int], rank: tuple[int, int, int]
    ) -> None:
        self.key = key
        self.prompt_tokens = prompt_tokens
        self.max_tokens = max_tokens
        self.hashes = hashes
        self.rank = rank
        self.lease: Lease | None = None
        self.cached: int | None = None
        self.target = prompt_tokens
        self.computed = 0
        self.emitted = 0
        self.stop = 0
        self.swapped = 0
        self.preempted = False
        self.scheduled: int | None = None
        self.gone = False
        self.checked = False
