"""All headlines that are held against a truth, in the order of the draft."""

from __future__ import annotations

from benchmarks.headlines import capacity, cold_start, itl, long_context, tradeoff, ttft
from benchmarks.headlines.headline import Headline

HEADLINES: dict[str, Headline] = {
    one.HEADLINE.test: one.HEADLINE for one in (ttft, tradeoff, itl, capacity, long_context, cold_start)
}
