"""All headlines that are held against a truth, in the order of the draft."""

from __future__ import annotations

from benchmarks.headlines import (
    capacity,
    cold_start,
    fairness,
    guardrail,
    itl,
    long_context,
    memory_pressure,
    tradeoff,
    ttft,
)
from benchmarks.headlines.headline import Headline

HEADLINES: dict[str, Headline] = {
    one.name: one
    for one in (
        ttft.HEADLINE,
        tradeoff.HEADLINE,
        tradeoff.FALLING,
        itl.HEADLINE,
        itl.BUSY,
        capacity.HEADLINE,
        capacity.NOISY,
        fairness.HEADLINE,
        memory_pressure.HEADLINE,
        memory_pressure.NEAR,
        long_context.HEADLINE,
        long_context.SEARCH,
        guardrail.HEADLINE,
        cold_start.HEADLINE,
    )
}
