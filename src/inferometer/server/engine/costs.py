"""How long an iteration takes.

    t = step_base
      + step_per_request * decoded requests * (1 + drafts)  + draft_per_token * drafts, if any request is decoded
      + kv_read_per_token * tokens in the context of the decoded requests
      + prefill_base * prompts begun  + prefill_per_token * prompt tokens computed  + prefill_attention * pairs
      + swap_per_block * blocks moved
      + input_check * prompts begun  + input_check_per_token * prompt tokens computed, if checks are the engine's
      + (output_check / output_check_tokens + output_check_per_token) * decoded requests, if checks are the engine's

`pairs`: a prompt token attends to all before it and to itself, so a chunk of c tokens behind s computed ones has
c * s + c * (c + 1) / 2. The sum is a roofline's upper edge: what a machine overlaps perfectly takes the larger part alone, so
the sum is at most twice that. It is linear in what was done, so that its terms can be told apart in a measured run.

The time is multiplied by a factor drawn uniformly from 1 - j to 1 + j, j = jitter + jitter_load * busy share of the batch, and
the noise (noise.py) is added to it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Generic

from inferometer.server.engine.emission import K
from inferometer.server.engine.noise import LEAST_SHARE, drawn, quantiles
from inferometer.server.engine.sequence import Sequence
from inferometer.server.engine.settings import Settings


@dataclass(slots=True)
class Work(Generic[K]):
    """What one iteration does. `context`: KV tokens read by decoding. `chunks`: prompts with the tokens computed of each."""

    decodes: int = 0
    context: int = 0
    begun: int = 0
    chunks: list[tuple[Sequence[K], int]] = field(default_factory=list)
    tokens: int = 0
    pairs: int = 0
    moved: int = 0

    def add(self, sequence: Sequence[K], tokens: int) -> None:
        """Compute `tokens` more of a prompt."""
        self.chunks.append((sequence, tokens))
        self.tokens += tokens
        self.pairs += tokens * sequence.computed + tokens * (tokens + 1) // 2


def duration(settings: Settings, work: Work[K], draw: random.Random) -> int:
    """ns, at least 1."""
    s = settings
    time = s.step_base_ns
    if work.decodes:
        time += (
            s.step_per_request_ns * work.decodes * (1 + s.draft_tokens)
            + s.draft_per_token_ns * s.draft_tokens
        )
        time += s.kv_read_per_token_ns * work.context
    if work.chunks:
        time += s.prefill_base_ns * work.begun + s.prefill_per_token_ns * work.tokens
        time += s.prefill_attention_ns * work.pairs
    time += s.swap_per_block_ns * work.moved
    if s.checks_on_engine:
        time += s.input_check_ns * work.begun + s.input_check_per_token_ns * work.tokens
        if s.output_check_tokens:
            time += (s.output_check_ns / s.output_check_tokens + s.output_check_per_token_ns) * work.decodes
    spread = s.jitter
    if s.jitter_load:
        spread += s.jitter_load * min(1.0, (work.decodes + len(work.chunks)) / s.max_batch)
    if spread:
        time *= draw.uniform(1 - spread, 1 + spread)
    if s.noise:
        time = max(time + drawn(quantiles(s.noise), draw), LEAST_SHARE * time)
    return max(1, round(time))
