"""Measured requests with planted times."""

from __future__ import annotations

from inferometer.measure.measured_requests import MeasuredRequest
from inferometer.units import NS_PER_MS


def measured(
    row: int = 0,
    *,
    outcome: str = "ok",
    ttft_ms: float | None = 10.0,
    total_ms: float = 110.0,
    output_tokens: int | None = 100,
    own_ms: tuple[float, float, float] | None = None,
) -> MeasuredRequest:
    """One sent at the instant 0. `ttft_ms`: None of an answer that came whole; `own_ms`: the engine's own prefill, decode and
    total."""
    own = (None, None, None) if own_ms is None else tuple(round(one * NS_PER_MS) for one in own_ms)
    return MeasuredRequest(
        row=row,
        index=row,
        outcome=outcome,
        submitted_ns=0,
        first_text_ns=None if ttft_ms is None else round(ttft_ms * NS_PER_MS),
        ended_ns=round(total_ms * NS_PER_MS),
        finish_reason="stop",
        characters=400,
        prompt_tokens=20,
        output_tokens=output_tokens,
        cached_tokens=0,
        own_prefill_ns=own[0],
        own_decode_ns=own[1],
        own_total_ns=own[2],
    )
