"""A serving engine in miniature: continuous batching in virtual time. Pure: no clock, no sockets, no bytes.

The engine does one operation at a time, back to back, and idles only when it has nothing to do:

| operation  | takes                                                    | when it ends                         |
| ---------- | -------------------------------------------------------- | ------------------------------------ |
| prefill(r) | prefill_base + prefill_per_token * prompt tokens of r    | r emits token 0 and joins the batch  |
| step       | step_base + step_per_request * size of the batch         | every request in the batch emits one |

Between two steps the queue is served, oldest first, while the batch has room, the next request had arrived before, and the
prompts prefilled since the last step stay within `prefill_budget` tokens (one request always fits). So newcomers stall the
running streams for a bounded time, a crowd of them waits in line, and nobody is overtaken. (Real engines draw this line in
different places: prefill before anything else, or in chunks beside the step.)

Each duration is multiplied by a factor drawn uniformly from 1 - jitter to 1 + jitter, one draw an operation, from the seed.
Hence the whole schedule is a function of the seed and of the submissions and cancellations with their instants. It does not
depend on how often `advance` is called: a server that comes late finds the tokens' instants unchanged.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import Generic, TypeVar

from inferometer.units import Ns

K = TypeVar("K")
"""Whatever the caller uses to know a request again. Compared by identity."""


@dataclass(frozen=True, slots=True)
class Speeds:
    """How long operations take, in ns, how many requests decode together, and how many prompt tokens go between steps."""

    prefill_base_ns: int = 4_000_000
    prefill_per_token_ns: int = 12_000
    step_base_ns: int = 2_000_000
    step_per_request_ns: int = 25_000
    max_batch: int = 256
    prefill_budget: int = 2048
    jitter: float = 0.02

    def __post_init__(self) -> None:
        for name in ("prefill_base_ns", "prefill_per_token_ns", "step_per_request_ns"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative")
        if self.step_base_ns < 1:
            raise ValueError(
                "step_base_ns must be at least 1: a step that takes no time never lets time pass"
            )
        if self.max_batch < 1:
            raise ValueError("max_batch must be at least 1")
        if self.prefill_budget < 1:
            raise ValueError("prefill_budget must be at least 1")
        if not 0 <= self.jitter < 1:
            raise ValueError("jitter must be at least 0 and below 1")


class _Sequence(Generic[K]):
    """One request inside the engine."""

    __slots__ = ("arrived", "emitted", "gone", "key", "max_tokens", "prompt_tokens")

    def __init__(self, key: K, prompt_tokens: int, max_tokens: int, arrived: int) -> None:
        self.key = key
        self.prompt_tokens = prompt_tokens
        self.max_tokens = max_tokens
        self.arrived = arrived
        self.emitted = 0
        self.gone = False


@dataclass(frozen=True, slots=True)
class Emission(Generic[K]):
    """What one operation produced: at instant `at`, for each (request, index of its token, whether it is the last)."""

    at: Ns
    tokens: list[tuple[K, int, bool]]


class Engine(Generic[K]):
    """The model. Times are ns on any clock that does not run backwards."""

    def __init__(self, speeds: Speeds, seed: int) -> None:
        self.speeds = speeds
        self._random = random.Random(seed)  # noqa: S311 - a simulation, not a secret
        self._waiting: deque[_Sequence[K]] = deque()
        self._running: list[_Sequence[K]] = []
        self._prefilling: _Sequence[K] | None = None
        self._spent = 0  # prompt tokens prefilled since the last step
        self._due: int | None = None  # when the operation under way ends
        self._now = 0  # the latest instant the caller named
        self._sequences: dict[int, _Sequence[K]] = {}

    @property
    def now(self) -> int:
        """The latest instant it was told."""
        return self._now

    @property
    def running(self) -> int:
        """Requests in the batch or in prefill."""
        return len(self._sequences) - self.waiting

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._waiting)

    def submit(self, key: K, prompt_tokens: int, max_tokens: int, now: int) -> None:
        """A request arrives at `now`.

        Raises ValueError for lengths below 1, for a key in use, and for a `now` before an earlier call's.
        """
        if prompt_tokens < 1 or max_tokens < 1:
            raise ValueError("a request has at least one prompt token and asks for at least one token")
        if id(key) in self._sequences:
            raise ValueError("this key is in use")
        self._pass_time(now)
        sequence = _Sequence(key, prompt_tokens, max_tokens, now)
        self._sequences[id(key)] = sequence
        self._waiting.append(sequence)
        if self._due is None:
            self._begin(now)

    def cancel(self, key: K, now: int) -> bool:
        """The client is gone: no more tokens for it. False if it had ended already.

        An operation under way keeps its duration: the engine notices at its end. Tokens due before `now` but not yet
        fetched by `advance` are withheld too.
        """
        self._pass_time(now)
        sequence = self._sequences.pop(id(key), None)
        if sequence is None:
            return False
        sequence.gone = True
        if sequence in self._waiting:
            self._waiting.remove(sequence)
        elif sequence is not self._prefilling:
            self._running.remove(sequence)
        return True

    def next_due(self) -> Ns | None:
        """When the next tokens are due; None while there is nothing to do."""
        return None if self._due is None else Ns(self._due)

    def advance(self, now: int) -> Emission[K] | None:
        """End the operation under way if it is due by `now`, and begin the next at its end. None if nothing is due.

        One operation a call: call again for the next. An operation whose requests are all gone emits an empty list.
        """
        self._pass_time(now)
        due = self._due
        if due is None or due > now:
            return None
        prefilled = self._prefilling
        if prefilled is not None:
            self._prefilling = None
            if not prefilled.gone:
                self._running.append(prefilled)
                tokens = self._emit([prefilled])
            else:
                tokens = []
        else:
            self._spent = 0
            tokens = self._emit(self._running)
        self._begin(due)
        return Emission(Ns(due), tokens)

    def _pass_time(self, now: int) -> None:
        if now < self._now:
            raise ValueError(f"time ran backwards: {now} ns after {self._now} ns")
        self._now = now

    def _emit(self, sequences: list[_Sequence[K]]) -> list[tuple[K, int, bool]]:
        tokens = []
        ended = False
        for sequence in sequences:
            index = sequence.emitted
            sequence.emitted = index + 1
            last = sequence.emitted == sequence.max_tokens
            ended = ended or last
            tokens.append((sequence.key, index, last))
        if ended:
            for key, _, last in tokens:
                if last:
                    del self._sequences[id(key)]
            self._running = [s for s in self._running if s.emitted < s.max_tokens]
        return tokens

    def _begin(self, at: int) -> None:
        """Choose the operation that starts at `at`, with what had arrived before."""
        speeds = self.speeds
        waiting = self._waiting
        running = self._running
        if not running:
            self._spent = 0
        if waiting and (not running or self._admits(waiting[0], at)):
            self._prefilling = waiting.popleft()
            self._spent += self._prefilling.prompt_tokens
            duration = speeds.prefill_base_ns + speeds.prefill_per_token_ns * self._prefilling.prompt_tokens
            at = max(at, self._prefilling.arrived)  # it may have been idle until then
        elif running:
            duration = speeds.step_base_ns + speeds.step_per_request_ns * len(running)
        else:
            self._due = None
            return
        self._due = at + max(1, round(duration * self._random.uniform(1 - speeds.jitter, 1 + speeds.jitter)))

    def _admits(self, oldest: _Sequence[K], at: int) -> bool:
        """Whether the queue's oldest is prefilled at `at`, between two steps of a batch.

        One that arrives at that very instant is too late: else the answer would depend on who is asked first, the queue
        or the operation that ends.
        """
        speeds = self.speeds
        affordable = self._spent == 0 or self._spent + oldest.prompt_tokens <= speeds.prefill_budget
        return oldest.arrived < at and len(self._running) < speeds.max_batch and affordable
