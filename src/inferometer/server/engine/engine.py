"""A serving engine in virtual time: continuous batching by iteration. Pure: no clock, no sockets, no bytes.

The engine does one iteration at a time, back to back, and idles only when it has nothing to do. scheduler.py says who takes
part, costs.py how long it takes. When it ends,

- every decoded request has put out one token; with speculative decoding one more for each of `draft_tokens` drafts up to the
  first that is rejected (each is accepted with probability `acceptance`), all at once;
- every request whose prompt was finished has put out its first token.

Three kinds of event happen, each at an instant: an iteration ends and the next begins; an idle engine wakes up, because a
prompt has been checked or the model is loaded; tokens come from their check. The whole schedule is a function of the settings,
the seed, and the submissions, cancellations and changes with their instants. It does not depend on how often `advance` is
called: before anything else, `submit`, `cancel`, `change` and `flush` let happen what is due, and keep what came out. Who
arrives at the very instant at which an iteration begins is too late for it.

An iteration begins where the one before ends, but who takes part is settled in a call of its own. So a caller that had to send
what came out first can still tell of a request that arrived before that instant.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Sequence as Row
from typing import Generic

from inferometer.server.engine.costs import Work, duration
from inferometer.server.engine.emission import GOES_ON, LENGTH, Emission, K, Tokens
from inferometer.server.engine.guard import Guard
from inferometer.server.engine.preemption import Preempted
from inferometer.server.engine.scheduler import Scheduler
from inferometer.server.engine.sequence import Sequence
from inferometer.server.engine.settings import GUARDRAILS, Settings
from inferometer.units import Ns


class Engine(Generic[K]):
    """The model. Times are ns on any clock that does not run backwards."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings = settings
        self._random = random.Random(seed)  # noqa: S311 - a simulation, not a secret
        self._scheduler: Scheduler[K] = Scheduler(settings)
        self._guard: Guard[K] = Guard(settings)
        self._sequences: dict[int, Sequence[K]] = {}
        self._number = 0
        self._now = 0  # nothing can be told of what happened before
        self._work: Work[K] | None = None
        self._due: int | None = None  # when the iteration under way ends
        self._next_begin: int | None = None  # when the next one begins, whose work is not settled yet
        self._wake: int | None = None  # when an idle engine looks again
        self._checking: deque[tuple[int, Sequence[K]]] = deque()  # prompts in their check, and when it ends
        self._held: list[
            tuple[int, int, list[Tokens[K]]]
        ] = []  # a heap: tokens in their check, and when it ends
        self._out: deque[Emission[K]] = deque()  # what came out and was not fetched
        self._cancelled: dict[int, K] = {}  # requests of which that may hold tokens, by their identity
        self._ended: dict[
            int, K
        ] = {}  # requests whose last token came out and was not fetched, by their identity
        self._ready: int | None = 0 if settings.preloaded else None  # when the model is or was loaded
        self._cold = settings.cold_steps  # iterations to come that are slow

    @property
    def now(self) -> int:
        """The earliest instant at which something may be told to have happened."""
        return self._now

    @property
    def crowd(self) -> int:
        """About how many requests have tokens in what comes out next."""
        return len(self._scheduler.decoding)

    @property
    def running(self) -> int:
        """Requests in the batch, in prefill or decoded."""
        return self._scheduler.running

    @property
    def waiting(self) -> int:
        """Requests in the queue, or in the check before it."""
        return len(self._scheduler.queue) + sum(not sequence.gone for _, sequence in self._checking)

    @property
    def kv_usage(self) -> float:
        """The share of the KV cache's blocks that requests hold."""
        return self._scheduler.pool.used / self._scheduler.pool.blocks

    @property
    def prefix_queries(self) -> int:
        """Prompt tokens looked for in the prefix cache so far."""
        return self._scheduler.prefix_queries

    @property
    def prefix_hits(self) -> int:
        """Of these, how many were there."""
        return self._scheduler.prefix_hits

    @property
    def preemptions(self) -> int:
        """Times a request lost its blocks so far."""
        return self._scheduler.preemptions

    @property
    def preempted(self) -> Preempted:
        """Whom that met, and what was lost."""
        seen = self._scheduler
        return Preempted(seen.preemptions, seen.preempted, seen.recovered, seen.discarded)

    @property
    def blocks(self) -> dict[str, int]:
        """The KV cache's blocks by state (blocks.py)."""
        pool = self._scheduler.pool
        return {"free": pool.free, "own": pool.own, "shared": pool.shared, "idle": pool.idle}

    def submit(
        self,
        key: K,
        prompt_tokens: int,
        max_tokens: int,
        now: int,
        *,
        hashes: Row[int] = (),
        priority: int = 0,
    ) -> bool:
        """A request arrives at `now`. False if the queue is full: nothing comes of it then.

        `hashes`: of the prompt's full blocks (blocks.chain), so that equal beginnings are found. `priority`: lower is sooner,
        where the policy asks for it. Raises ValueError for lengths below 1 or beyond the cache, for a key in use, and for a
        `now` before an earlier call's.
        """
        settings = self.settings
        if prompt_tokens < 1 or max_tokens < 1:
            raise ValueError("a request has at least one prompt token and asks for at least one token")
        if prompt_tokens + max_tokens > settings.capacity_tokens:
            raise ValueError(f"the KV cache holds {settings.capacity_tokens} tokens")
        if id(key) in self._sequences:
            raise ValueError("this key is in use")
        self._pass_time(now)
        self._catch_up(now)
        if id(key) in self._cancelled:  # what its first life left is not of its second
            for emission in self._out:
                self._strike(emission)
            self._cancelled.clear()
        if settings.queue_limit and self.waiting >= settings.queue_limit:
            return False
        checked = self._guard.checked_at(prompt_tokens, now)
        refused = self._guard.refused(key, max_tokens, self._random)
        if refused is not None:
            self._hold(checked, [refused])
            return True
        self._number += 1
        rank = (priority if settings.policy == "priority" else 0, checked, self._number)
        known = hashes[: (prompt_tokens - 1) // settings.block_tokens]
        sequence = Sequence(key, prompt_tokens, max_tokens, known, rank)
        self._sequences[id(key)] = sequence
        self._checking.append((checked, sequence))
        if self._ready is None:
            self.load(now)
        if self._due is None and self._next_begin is None:
            self._begin(now)
        return True

    def cancel(self, key: K, now: int) -> bool:
        """The client is gone: no more tokens for it. False if it had ended already.

        An iteration under way keeps its duration: the engine notices at its end. Tokens due before `now` but not yet
        fetched by `advance` are withheld too.
        """
        self._pass_time(now)
        self._catch_up(now)
        self._guard.forget(key)
        sequence = self._sequences.pop(id(key), None)
        held = self._withhold(key, *(one[2] for one in self._held))
        if sequence is None:
            left = self._ended.pop(id(key), None) is not None or held
            if left:
                self._cancelled[id(key)] = key
            return left
        self._cancelled[id(key)] = key
        if sequence.checked:
            self._scheduler.drop(sequence)
        else:
            sequence.gone = True
        return True

    def next_due(self) -> Ns | None:
        """When the next tokens are due, or something that leads to them; None while there is nothing to do."""
        at = self._out[0].at if self._out else self._next()
        return None if at is None else Ns(at)

    def advance(self, now: int) -> Emission[K] | None:
        """What came out of the earliest event due by `now`, with no tokens if that was nothing. None if nothing is due.

        One event a call: call again for the next.
        """
        if not self._out:
            at = self._next()
            if at is None or at > now:
                return None
            self._happen(at)
            if not self._out:
                return Emission(Ns(at), [])
        emission = self._out.popleft()
        for key in emission.ended:
            self._ended.pop(id(key), None)
        if self._cancelled:
            self._strike(emission)
            if not self._out:
                self._cancelled.clear()
        return emission

    def load(self, now: int) -> Ns:
        """Load the model, unless it is loaded or being loaded. When it is there; its first iterations are slow."""
        if self._ready is None:
            self._ready = now + round(self.settings.load_ns)
            self._cold = self.settings.cold_steps
        return Ns(self._ready)

    def unload(self, now: int) -> bool:
        """Let the model and what it has cached go; the next request loads it. False, and nothing done, while it has work."""
        self._pass_time(now)
        self._catch_up(now)
        if self.running or self.waiting:
            return False
        self.flush(now)
        self._ready = None
        return True

    def loaded(self, now: int) -> bool:
        """Whether the model is there."""
        return self._ready is not None and self._ready <= now

    def change(self, settings: Settings, now: int, longest: int = 0) -> None:
        """Go on with other settings, from the next iteration on. Where a check is switched off, whatever is in one, or held
        back for one, comes out at once. `now` is no earlier than any token that `advance` has given.

        Raises ValueError, and nothing has changed, where they differ in the size of a block or the number of drafts, or leave a
        cache too small for a request under way or for one of `longest` tokens (prompt and answer) that is to be submitted.
        """
        for name in ("block_tokens", "draft_tokens"):
            if getattr(settings, name) != getattr(self.settings, name):
                raise ValueError(f"{name} cannot be changed while the engine runs")
        self._pass_time(now)
        self._catch_up(now)
        under_way = (one.prompt_tokens + one.max_tokens for one in self._sequences.values())
        longest = max(longest, max(under_way, default=0))
        if settings.capacity_tokens < longest:
            raise ValueError(
                f"a request under way has {longest} tokens, prompt and answer together, and {settings.kv_blocks} blocks hold "
                f"{settings.capacity_tokens}: let it end or cancel it, or ask for more kv_blocks"
            )
        uncheck = any(getattr(self.settings, name) and not getattr(settings, name) for name in GUARDRAILS)
        self.settings = self._guard.settings = settings
        self._scheduler.change(settings)
        if uncheck:
            self._uncheck(now)

    def flush(self, now: int) -> None:
        """Empty the prefix cache, but for what running requests use."""
        self._pass_time(now)
        self._catch_up(now)
        self._scheduler.pool.flush()

    # Events.

    def _pass_time(self, now: int) -> None:
        if now < self._now:
            raise ValueError(f"time ran backwards: {now} ns after {self._now} ns")
        self._now = now

    def _next(self) -> int | None:
        if self._next_begin is not None:
            return self._next_begin
        at = self._wake if self._due is None else self._due
        if self._held and (at is None or self._held[0][0] < at):
            return self._held[0][0]
        return at

    def _catch_up(self, now: int) -> None:
        while (at := self._next()) is not None and at <= now:
            self._happen(at)

    def _happen(self, at: int) -> None:
        if at == self._next_begin:
            self._begin(at)
        elif at == self._due:
            self._end(at)
            self._due, self._next_begin = None, at
        elif self._due is None and at == self._wake:
            self._begin(at)
        else:
            self._let_out(at, heapq.heappop(self._held)[2])

    def _begin(self, at: int) -> None:
        """Start what there is to do at `at`."""
        self._now = max(self._now, at)
        self._due = self._wake = self._next_begin = None
        checking = self._checking
        while checking and checking[0][0] <= at:
            sequence = checking.popleft()[1]
            sequence.checked = True
            if not sequence.gone:
                self._scheduler.queue.push(sequence)
        if self._ready is None or at < self._ready:
            self._wake = self._ready
            return
        self._work = work = self._scheduler.plan()
        if work is None:
            self._wake = checking[0][0] if checking else None
            return
        for sequence, _ in work.chunks:
            if sequence.scheduled is None:
                sequence.scheduled = at
        time = duration(self.settings, work, self._random)
        if self._cold:
            self._cold -= 1
            time = round(time * self.settings.cold_factor)
        self._due = at + time

    def _end(self, at: int) -> None:
        """The iteration under way is done: put out what came of it."""
        work = self._work
        assert work is not None
        tokens = self._drafted() if self.settings.draft_tokens else self._decoded()
        cached: list[tuple[K, int]] = []
        prefilled: list[tuple[K, int]] = []
        if work.chunks:
            tokens = self._prefilled(work, cached, prefilled) + tokens
        ended = [sequence.key for sequence in self._scheduler.sweep()]
        for key in ended:
            del self._sequences[id(key)]
        if not self.settings.output_check_tokens:
            self._put_out(Emission(Ns(at), tokens, cached, prefilled, ended))
            return
        for release, some in self._guard.hold(at, tokens).items():
            self._hold(release, some)
        if prefilled:  # whatever is cached is of these
            self._out.append(Emission(Ns(at), [], cached, prefilled))

    def _put_out(self, emission: Emission[K]) -> None:
        self._out.append(emission)
        for key in emission.ended:
            self._ended[id(key)] = key

    def _let_out(self, at: int, tokens: list[Tokens[K]]) -> None:
        """Tokens that were in a check come out."""
        self._put_out(Emission(Ns(at), tokens, ended=[one[0] for one in tokens if one[3] != GOES_ON]))

    def _decoded(self) -> list[Tokens[K]]:
        """One token of each. The loop that is run for every token: nothing else may be in it."""
        scheduler = self._scheduler
        decoding = scheduler.decoding
        scheduler.context += len(decoding)
        tokens = []
        for sequence in decoding:
            index = sequence.emitted
            sequence.emitted = after = index + 1
            end = LENGTH if after == sequence.stop and scheduler.turn(sequence) else GOES_ON
            tokens.append((sequence.key, index, 1, end))
        return tokens

    def _drafted(self) -> list[Tokens[K]]:
        """One token of each and the drafts accepted: their number is geometric, cut at `draft_tokens`."""
        scheduler = self._scheduler
        drafts, acceptance = self.settings.draft_tokens, self.settings.acceptance
        slope = 1 / math.log(acceptance) if 0 < acceptance < 1 else 0.0
        tokens = []
        for sequence in scheduler.decoding:
            accepted = drafts if acceptance == 1 else 0
            if slope:
                accepted = min(drafts, int(math.log(1 - self._random.random()) * slope))
            index = sequence.emitted
            count = min(1 + accepted, sequence.max_tokens - index)
            sequence.emitted = index + count
            scheduler.context += count
            end = LENGTH if sequence.emitted >= sequence.stop and scheduler.turn(sequence) else GOES_ON
            tokens.append((sequence.key, index, count, end))
        return tokens

    def _prefilled(
        self, work: Work[K], cached: list[tuple[K, int]], prefilled: list[tuple[K, int]]
    ) -> list[Tokens[K]]:
        """First tokens of the prompts that are finished; what an emission says of them goes into the two lists."""
        scheduler = self._scheduler
        tokens = []
        for sequence, computed in work.chunks:
            if sequence.gone or not scheduler.computed(sequence, computed):
                continue
            if not sequence.emitted:
                assert sequence.scheduled is not None
                prefilled.append((sequence.key, sequence.scheduled))
                if sequence.cached:
                    cached.append((sequence.key, sequence.cached))
            index = sequence.emitted
            sequence.emitted = index + 1
            scheduler.context += 1
            end = LENGTH if sequence.emitted >= sequence.stop and scheduler.turn(sequence) else GOES_ON
            tokens.append((sequence.key, index, 1, end))
        return tokens

    def _uncheck(self, now: int) -> None:
        """Prompts in their check stand in line from now on, and tokens in theirs come out, each answer's in their order."""
        at = now if self._next_begin is None else max(now, self._next_begin)  # no token before it came to be
        for _, _, tokens in sorted(self._held):
            self._let_out(at, tokens)
        self._held.clear()
        if rest := self._guard.release(now):
            self._let_out(at, rest)
        for _, sequence in self._checking:
            priority, checked, number = sequence.rank
            sequence.rank = priority, min(checked, now), number
        self._checking = deque((min(end, now), sequence) for end, sequence in self._checking)
        if self._checking and self._due is None:
            self._wake = now

    def _hold(self, at: int, tokens: list[Tokens[K]]) -> None:
        self._number += 1
        heapq.heappush(self._held, (at, self._number, tokens))

    def _strike(self, emission: Emission[K]) -> None:
        """Take out of an emission what is of cancelled requests. Not when they are cancelled: a thousand clients that go at
        once, while a thousand iterations have not left, would take a million looks."""
        cancelled = self._cancelled
        emission.tokens[:] = [one for one in emission.tokens if id(one[0]) not in cancelled]

    @staticmethod
    def _withhold(key: K, *places: list[Tokens[K]]) -> bool:
        """Take back what came out for a request and has not left. Whether there was any."""
        found = False
        for tokens in places:
            kept = [one for one in tokens if one[0] is not key]
            found = found or len(kept) < len(tokens)
            tokens[:] = kept
        return found
