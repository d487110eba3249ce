"""A preset that gives 16 tokens a step: a sixteenth of the steps to simulate, and prompts, queues and batches as they were."""

from __future__ import annotations

from dataclasses import replace

from inferometer.server.presets import PRESETS
from inferometer.simulation.engine import Chosen

TOKENS = 16


def few_steps(preset: str, slower: int = 1) -> Chosen:
    """`slower`: how many times as long everything takes. By 16 a token takes what it takes in the preset."""
    own = PRESETS[preset]
    return Chosen(
        preset,
        replace(
            own,
            draft_tokens=TOKENS - 1,
            acceptance=1,
            step_base_ns=own.step_base_ns * slower,
            step_per_request_ns=own.step_per_request_ns * slower,
            prefill_base_ns=own.prefill_base_ns * slower,
            prefill_per_token_ns=own.prefill_per_token_ns * slower,
            prefill_attention_ns=own.prefill_attention_ns * slower,
        ),
    )
