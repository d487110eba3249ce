"""What engines call the same thing, and what it is now: the few figures that say how a server is.

Names are families' (a counter's without `_total`), the newest first; the first that a body has is taken. Sources: each engine's
page of production metrics, or its /metrics where there is none.

| engine | prefix | lacks |
| --- | --- | --- |
| vLLM, and the reference server | `vllm:` | |
| SGLang | `sglang:` | preemptions |
| TensorRT-LLM | `trtllm_` | preemptions, token counters |
| TGI | `tgi_` | KV cache, preemptions, prefix cache |
| llama.cpp | `llamacpp:` | preemptions, prefix cache, latencies; newer ones the KV cache too |
| Dynamo's frontend | `dynamo_frontend_` | what its workers show at their own endpoints |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from inferometer.telemetry.metrics.exposition import Layout

Totals = Mapping[tuple[str, str], tuple[float, int]]
"""By family and part: the sum over its series, and how many those are."""


@dataclass(frozen=True, slots=True)
class Term:
    """One figure. `level`: a sum over series. `share`: their mean, 0 to 1. `rate`: growth a second. `mean`: of what a histogram
    counted since the last scrape, in seconds. `ratio`: growth of `names` over growth of `of`, by place."""

    key: str
    kind: Literal["level", "share", "rate", "mean", "ratio"]
    names: tuple[str, ...]
    of: tuple[str, ...] = ()


TERMS = (
    Term(
        "running",
        "level",
        (
            *("vllm:num_requests_running", "sglang:num_running_reqs", "trtllm_num_requests_running"),
            *("tgi_batch_current_size", "llamacpp:requests_processing", "dynamo_frontend_inflight_requests"),
        ),
    ),
    Term(
        "waiting",
        "level",
        (
            *("vllm:num_requests_waiting", "sglang:num_queue_reqs", "trtllm_num_requests_waiting"),
            *("tgi_queue_size", "llamacpp:requests_deferred", "dynamo_frontend_queued_requests"),
        ),
    ),
    Term(
        "kv_usage",
        "share",
        (
            *("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
            *("trtllm_kv_cache_utilization", "llamacpp:kv_cache_usage_ratio"),
        ),
    ),
    Term(
        "prefix_hits",
        "ratio",
        ("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
        ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    ),
    Term("prefix_hit_rate", "share", ("sglang:cache_hit_rate", "trtllm_kv_cache_hit_rate")),
    Term("preemptions_s", "rate", ("vllm:num_preemptions",)),
    Term("input_tok_s", "rate", ("vllm:prompt_tokens", "sglang:prompt_tokens", "llamacpp:prompt_tokens")),
    Term(
        "output_tok_s",
        "rate",
        ("vllm:generation_tokens", "sglang:generation_tokens", "llamacpp:tokens_predicted"),
    ),
    Term(
        "requests_s",
        "rate",
        ("vllm:request_success", "sglang:num_requests", "trtllm_request_success", "tgi_request_success"),
    ),
    Term(
        "ttft",
        "mean",
        (
            *("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
            *("trtllm_time_to_first_token_seconds", "dynamo_frontend_time_to_first_token_seconds"),
        ),
    ),
    Term(
        "itl",
        "mean",
        (
            *("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
            *("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
            *("trtllm_time_per_output_token_seconds", "tgi_request_mean_time_per_token_duration"),
            "dynamo_frontend_inter_token_latency_seconds",
        ),
    ),
)


def totals(layout: Layout) -> Totals:
    """What a body says, summed over labels; buckets and numbers that are not finite are left out."""
    found: dict[tuple[str, str], tuple[float, int]] = {}
    for cell, value in zip(layout.cells, layout.values, strict=True):
        if cell is not None and cell.part in ("value", "sum", "count") and abs(value) < float("inf"):
            total, series = found.get((cell.family, cell.part), (0.0, 0))
            found[cell.family, cell.part] = (total + value, series + 1)
    return found


def figures(now: Totals, before: Totals | None, seconds: float) -> dict[str, float]:
    """The figures that a body has, by key. Those about growth need the body `seconds` before, and no reset since."""
    found = {}
    for term in TERMS:
        value = _figure(term, now, before, seconds)
        if value is not None:
            found[term.key] = value
    return found


def _figure(term: Term, now: Totals, before: Totals | None, seconds: float) -> float | None:
    if term.kind in ("level", "share"):
        here = next((now[name, "value"] for name in term.names if (name, "value") in now), None)
        return None if here is None else here[0] if term.kind == "level" else here[0] / here[1]
    if before is None or seconds <= 0:
        return None
    for place, name in enumerate(term.names):
        if term.kind == "rate":
            grown, over = _growth(now, before, name, "value"), seconds
        elif term.kind == "mean":
            grown, over = _growth(now, before, name, "sum"), _growth(now, before, name, "count") or 0
        else:
            grown, over = (
                _growth(now, before, name, "value"),
                _growth(now, before, term.of[place], "value") or 0,
            )
        if grown is not None:
            return grown / over if over > 0 else None
    return None


def _growth(now: Totals, before: Totals, name: str, part: str) -> float | None:
    """None where it is not there or has gone back."""
    here, there = now.get((name, part)), before.get((name, part), (0.0, 0))
    return None if here is None or here[0] < there[0] else here[0] - there[0]
