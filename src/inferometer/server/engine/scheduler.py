"""Who takes part in the next iteration, after the manner of vLLM's scheduler (V1).

    1  every decoded request, if it has a block for its next token. Where there is no block, or the cache has been made smaller
       than what is in use, the request of the highest rank is preempted: all its blocks are given back, it waits for its turn
       again, and
         recompute   its prompt and what it has put out are computed anew (what is still cached is not)
         swap        its blocks are moved to the host's memory and back
    2  prompts under way, oldest first, while the token budget lasts; a prompt larger than what is left is cut into chunks
    3  those in line, unless somebody was preempted: while the batch has room and tokens are left in the budget, and until the
       first that finds no blocks. Nobody is overtaken.

A decoded request uses one token of the budget, and one for each draft. Without chunked prefill a prompt is computed whole,
beside others only within the budget. Blocks for a whole prompt are taken when it is admitted. Its full blocks are known to
others when all of it is computed; its last token is always computed, for it yields the first of the answer. Answers are not
cached.
"""

from __future__ import annotations

from typing import Generic

from inferometer.server.engine.blocks import BlockPool
from inferometer.server.engine.costs import Work
from inferometer.server.engine.emission import K
from inferometer.server.engine.queue import Queue
from inferometer.server.engine.sequence import Sequence
from inferometer.server.engine.settings import Settings


class Scheduler(Generic[K]):
    """The queue, the batch and the blocks."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.queue: Queue[K] = Queue()
        self.pool = BlockPool(settings.kv_blocks)
        self.decoding: list[Sequence[K]] = []
        self.prefilling: list[Sequence[K]] = []
        self.context = 0  # tokens in the context of those that are decoded
        self.preemptions = 0
        self.preempted = 0  # requests that were, once at least
        self.recovered = 0  # of these, ended with all their tokens
        self.discarded = 0  # tokens whose keys and values were lost
        self.prefix_queries = 0
        self.prefix_hits = 0
        self._needy: list[Sequence[K]] = []  # decoded ones without a block for their next token
        self._ended: list[Sequence[K]] = []  # since the last sweep

    @property
    def running(self) -> int:
        """Requests in the batch, those in prefill included."""
        return len(self.decoding) + len(self.prefilling)

    def plan(self) -> Work[K] | None:
        """The next iteration; None if there is nothing to do."""
        settings = self.settings
        work: Work[K] = Work()
        preempted = self.pool.excess and self._retreat(work)
        if self._needy:
            preempted = self._feed(work) or preempted
        budget = settings.token_budget - len(self.decoding) * (1 + settings.draft_tokens)
        for sequence in self.prefilling:
            budget = self._prefill(sequence, budget, work)
        while not preempted and budget > 0 and self.running < settings.max_batch:
            first = self.queue.first()
            if first is None or not self._fits(first, budget, work) or not self._admit(first):
                break
            self.queue.pop()
            if first.swapped:
                work.moved += first.swapped
                first.swapped = 0
                self._join(first)
                budget -= 1 + settings.draft_tokens
            else:
                self.prefilling.append(first)
                work.begun += 1
                budget = self._prefill(first, budget, work)
        work.decodes = len(self.decoding)
        work.context = self.context
        return work if work.decodes or work.chunks else None

    def change(self, settings: Settings) -> None:
        """Go on with other settings from the next iteration on. Blocks that nobody uses go now."""
        self.settings = settings
        self.pool.resize(settings.kv_blocks)

    def computed(self, sequence: Sequence[K], tokens: int) -> bool:
        """A chunk of a prompt is done. Whether that was the last: then the prompt's owner is decoded from now on."""
        sequence.computed += tokens
        if sequence.computed < sequence.target:
            return False
        assert sequence.lease is not None
        if self.settings.prefix_caching:
            self.pool.publish(sequence.lease, sequence.hashes)
        self.prefilling.remove(sequence)  # one of the first few: prompts are computed in their order
        self._join(sequence)
        return True

    def turn(self, sequence: Sequence[K]) -> bool:
        """A decoded request has reached its `stop`. Whether it has ended; else it needs a block."""
        if sequence.emitted < sequence.max_tokens:
            self._needy.append(sequence)
            return False
        self._give_back(sequence)
        self.recovered += sequence.preempted
        self.context -= sequence.prompt_tokens + sequence.emitted
        self._ended.append(sequence)
        return True

    def sweep(self) -> list[Sequence[K]]:
        """Take those that have ended out of the batch."""
        ended = self._ended
        if ended:
            self._ended = []
            self.decoding = [sequence for sequence in self.decoding if sequence.emitted < sequence.max_tokens]
        return ended

    def drop(self, sequence: Sequence[K]) -> None:
        """A request in the queue or the batch is gone."""
        sequence.gone = True
        if sequence.lease is None:
            self.queue.give_up()
        else:
            self._leave(sequence)

    def _join(self, sequence: Sequence[K]) -> None:
        self.decoding.append(sequence)
        self.context += sequence.prompt_tokens + sequence.emitted
        self._set_stop(sequence)

    def _set_stop(self, sequence: Sequence[K]) -> None:
        """The step from n tokens put out to n + 1 writes prompt + n tokens and the drafts into the cache."""
        assert sequence.lease is not None
        room = (
            sequence.lease.blocks * self.settings.block_tokens
            - sequence.prompt_tokens
            - self.settings.draft_tokens
        )
        sequence.stop = min(sequence.max_tokens, room + 1)

    def _blocks_for(self, sequence: Sequence[K]) -> int:
        tokens = sequence.prompt_tokens + sequence.emitted + self.settings.draft_tokens
        return -(-tokens // self.settings.block_tokens)

    def _retreat(self, work: Work[K]) -> bool:
        """Preempt until the pool has shrunk to its size. The first in rank fits by itself, so it always stays."""
        while self.pool.excess:
            self._preempt_last(work)
        return True

    def _feed(self, work: Work[K]) -> bool:
        """Give blocks to those that need one, in the order of their rank. Whether somebody was preempted."""
        needy = sorted(self._needy, key=lambda sequence: sequence.rank)
        self._needy = []
        preempted = False
        for sequence in needy:
            while sequence.lease is not None:  # it may have gone, or have been preempted just now
                if self.pool.grow(sequence.lease, self._blocks_for(sequence) - sequence.lease.blocks):
                    self._set_stop(sequence)
                    break
                self._preempt_last(work)
                preempted = True
        return preempted

    def _preempt_last(self, work: Work[K]) -> None:
        sequence = max([*self.decoding, *self.prefilling], key=lambda one: one.rank)
        self.preemptions += 1
        self.preempted += not sequence.preempted
        sequence.preempted = True
        decoded = sequence in self.decoding
        assert sequence.lease is not None
        if decoded and self.settings.preemption == "swap":
            sequence.swapped = sequence.lease.blocks
            work.moved += sequence.swapped
        else:  # the latest token is not in the cache yet: the step to the next one would have written it
            held = sequence.prompt_tokens + sequence.emitted - 1
            self.discarded += held if decoded else sequence.computed
        sequence.target = sequence.prompt_tokens + sequence.emitted
        sequence.computed = 0
        self._leave(sequence)
        self.queue.push(sequence)

    def _leave(self, sequence: Sequence[K]) -> None:
        """Out of the batch, before its end."""
        if sequence in self.prefilling:
            self.prefilling.remove(sequence)
        else:
            self.decoding.remove(sequence)
            self.context -= sequence.prompt_tokens + sequence.emitted
        self._give_back(sequence)

    def _give_back(self, sequence: Sequence[K]) -> None:
        assert sequence.lease is not None
        self.pool.release(sequence.lease)
        sequence.lease = None

    def _prefill(self, sequence: Sequence[K], budget: int, work: Work[K]) -> int:
        """Compute as much of a prompt as the budget allows; what is left of it."""
        tokens = sequence.target - sequence.computed
        if self.settings.chunked_prefill:
            tokens = max(0, min(tokens, budget))
        if tokens:
            work.add(sequence, tokens)
        return budget - tokens

    def _fits(self, sequence: Sequence[K], budget: int, work: Work[K]) -> bool:
        """Whether a whole prompt may be computed now, where prompts are not cut."""
        alone = not work.chunks
        return self.settings.chunked_prefill or bool(sequence.swapped) or alone or sequence.target <= budget

    def _admit(self, sequence: Sequence[K]) -> bool:
        """Give a request its blocks. False where there are not enough."""
        blocks = self._blocks_for(sequence)
        if sequence.swapped:
            sequence.lease = self.pool.take((), blocks)
            return sequence.lease is not None
        known: int = 0
        if self.settings.prefix_caching:
            known = self.pool.match(sequence.hashes)
        lease = self.pool.take(sequence.hashes[:known], blocks - known)
        if lease is None:
            return False
        sequence.lease = lease
        sequence.computed = known * self.settings.block_tokens
        if sequence.cached is None:
            sequence.cached = sequence.computed
            if self.settings.prefix_caching:
                self.prefix_queries += sequence.prompt_tokens
                self.prefix_hits += sequence.computed
        return True
