"""What each engine calls what: from the names it exposes to the terms of a report. Data, and how to tell whose names they are.

| term                             | is                                                                    |
| -------------------------------- | --------------------------------------------------------------------- |
| running, waiting                 | requests that are worked on, and that wait for it (the queue depth)   |
| kv_usage                         | share of the KV cache in use, 0 to 1                                  |
| prefix_hit_rate                  | share of prompt tokens found in the prefix cache, as a gauge, 0 to 1  |
| preemptions                      | requests that lost their place in the KV cache, counted               |
| preempted_requests               | requests that did so once at least, counted                           |
| preempted_finished               | of these, ended with all their tokens, counted                        |
| discarded_tokens                 | tokens that such requests lost from the KV cache, counted             |
| prefix_queries, prefix_hits      | tokens looked for in the prefix cache, and found there                |
| prompt_tokens, generation_tokens | tokens read and written, counted; cached prompt tokens among them     |
| succeeded, failed                | requests that ended, counted                                          |
| ttft, itl, tpot, e2e, queue,     | histograms in s; tpot has one observation a request, itl one a token; |
| prefill                          | prefill is from the first of a prompt's work to the first token       |

Names are families' (a counter's without `_total`), the newest first; the first that an endpoint has is taken. The names of an
engine that is not `seen` are from its documentation: they were never held against a server, and decide no verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from inferometer.telemetry.metrics.exposition import LARGEST_VALUE

LEVELS = ("running", "waiting")
SHARES = ("kv_usage", "prefix_hit_rate")
COUNTERS = (
    *("preempted_requests", "preempted_finished", "discarded_tokens"),
    *("preemptions", "prefix_queries", "prefix_hits", "prompt_tokens", "generation_tokens"),
    *("succeeded", "failed"),
)
HISTOGRAMS = ("ttft", "itl", "tpot", "e2e", "queue", "prefill")
TERMS = (*LEVELS, *SHARES, *COUNTERS, *HISTOGRAMS)

WHOLE = 1.0 + 1e-6
"""The largest share, but for a rounding."""


def least_and_most(term: str) -> tuple[float, float]:
    """Between which numbers a gauge's sample of this term is one: no count is below nothing and no share above all."""
    return 0.0, WHOLE if term in SHARES else LARGEST_VALUE


@dataclass(frozen=True, slots=True)
class Source:
    """Where a term's numbers are.

    `families` are alternatives. Of a histogram that serves as a counter, `part` says which of its numbers. `where` are labels
    and the values that count. `plus` are families whose values are added, where they are there.
    """

    families: tuple[str, ...]
    part: Literal["value", "sum", "count"] = "value"
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plus: tuple[str, ...] = ()

    def present(self, names: Collection[str]) -> tuple[str, ...]:
        """The families to add up, none if the term is not there."""
        first = next((name for name in self.families if name in names), None)
        return () if first is None else (first, *(name for name in self.plus if name in names))


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine's names. `verified`: they were held against a running server (docs/server-metrics.md)."""

    name: str
    verified: bool
    terms: Mapping[str, Source]


def _of(*families: str) -> Source:
    return Source(families)


def _labelled(family: str, label: str, *values: str) -> Source:
    return Source((family,), where={label: values})


_VLLM = {
    "running": _of("vllm:num_requests_running"),
    "waiting": _of("vllm:num_requests_waiting"),
    "kv_usage": _of("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "preemptions": _of("vllm:num_preemptions"),
    # Of the reference server alone.
    "preempted_requests": _of("inferometer:preempted_requests"),
    "preempted_finished": _of("inferometer:preempted_finished"),
    "discarded_tokens": _of("inferometer:preempted_tokens"),
    "prefix_queries": _of("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    "prefix_hits": _of("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
    "prompt_tokens": _of("vllm:prompt_tokens"),
    "generation_tokens": _of("vllm:generation_tokens"),
    "succeeded": _labelled("vllm:request_success", "finished_reason", "stop", "length", "repetition"),
    "failed": _labelled("vllm:request_success", "finished_reason", "abort", "error"),
    "ttft": _of("vllm:time_to_first_token_seconds"),
    "itl": _of("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "tpot": _of("vllm:request_time_per_output_token_seconds"),
    "e2e": _of("vllm:e2e_request_latency_seconds"),
    "queue": _of("vllm:request_queue_time_seconds"),
    "prefill": _of("vllm:request_prefill_time_seconds"),
}
_SGLANG = {
    "running": _of("sglang:num_running_reqs"),
    "waiting": _of("sglang:num_queue_reqs"),
    "kv_usage": _of("sglang:token_usage"),
    "prefix_hit_rate": _of("sglang:cache_hit_rate"),
    "prefix_queries": _of("sglang:prompt_tokens"),
    "prefix_hits": _of("sglang:cached_tokens"),
    "prompt_tokens": _of("sglang:prompt_tokens"),
    "generation_tokens": _of("sglang:generation_tokens"),
    "succeeded": _of("sglang:num_requests"),
    "failed": _of("sglang:num_aborted_requests"),
    "ttft": _of("sglang:time_to_first_token_seconds"),
    "itl": _of("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds"),
    "e2e": _of("sglang:e2e_request_latency_seconds"),
    "queue": _of("sglang:queue_time_seconds"),
}
_TGI = {
    "running": _of("tgi_batch_current_size"),
    "waiting": _of("tgi_queue_size"),
    "prompt_tokens": Source(("tgi_request_input_length",), part="sum"),
    "generation_tokens": Source(("tgi_request_generated_tokens",), part="sum"),
    "succeeded": _of("tgi_request_success"),
    "failed": _of("tgi_request_failure"),
    "tpot": _of("tgi_request_mean_time_per_token_duration"),
    "e2e": _of("tgi_request_duration"),
    "queue": _of("tgi_request_queue_duration"),
}
_TRTLLM = {
    "running": _of("trtllm_num_requests_running"),
    "waiting": _of("trtllm_num_requests_waiting"),
    "kv_usage": _of("trtllm_kv_cache_utilization"),
    "prefix_hit_rate": _of("trtllm_kv_cache_hit_rate"),
    "succeeded": _of("trtllm_request_success"),
    "ttft": _of("trtllm_time_to_first_token_seconds"),
    "tpot": _of("trtllm_time_per_output_token_seconds"),
    "e2e": _of("trtllm_e2e_request_latency_seconds"),
    "queue": _of("trtllm_request_queue_time_seconds"),
}
_TRITON = {
    "running": _labelled("nv_trt_llm_request_metrics", "request_type", "scheduled"),
    "waiting": _labelled("nv_trt_llm_request_metrics", "request_type", "waiting"),
    "kv_usage": _labelled("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", "fraction"),
    "succeeded": _of("nv_inference_request_success"),
    "failed": _of("nv_inference_request_failure"),
}
_LLAMACPP = {
    "running": _of("llamacpp:requests_processing"),
    "waiting": _of("llamacpp:requests_deferred"),
    "kv_usage": _of("llamacpp:kv_cache_usage_ratio"),
    "prefix_queries": Source(("llamacpp:prompt_tokens_cached",), plus=("llamacpp:prompt_tokens",)),
    "prefix_hits": _of("llamacpp:prompt_tokens_cached"),
    # It leaves the tokens out that it took from its cache, and newer ones count them apart.
    "prompt_tokens": Source(("llamacpp:prompt_tokens",), plus=("llamacpp:prompt_tokens_cached",)),
    "generation_tokens": _of("llamacpp:tokens_predicted"),
}
_DYNAMO = {
    "running": _of("dynamo_frontend_inflight_requests"),
    "waiting": _of("dynamo_frontend_queued_requests"),
    "prompt_tokens": Source(("dynamo_frontend_input_sequence_tokens",), part="sum"),
    "generation_tokens": Source(("dynamo_frontend_output_sequence_tokens",), part="sum"),
    "succeeded": _labelled("dynamo_frontend_requests", "status", "success"),
    "failed": _labelled("dynamo_frontend_requests", "status", "error"),
    "ttft": _of("dynamo_frontend_time_to_first_token_seconds"),
    "itl": _of("dynamo_frontend_inter_token_latency_seconds"),
    "e2e": _of("dynamo_frontend_request_duration_seconds"),
}
_DYNAMO_WORKER = {
    "kv_usage": _of("dynamo_component_kvstats_gpu_cache_usage_percent"),
    "prefix_hit_rate": _of("dynamo_component_kvstats_gpu_prefix_cache_hit_rate"),
}

ENGINES = (
    Engine("vLLM", True, _VLLM),
    Engine("SGLang", False, _SGLANG),
    Engine("TGI", False, _TGI),
    Engine("TensorRT-LLM", False, _TRTLLM),
    Engine("TensorRT-LLM in Triton", False, _TRITON),
    Engine("llama.cpp", True, _LLAMACPP),
    Engine("Dynamo", False, _DYNAMO),
    Engine("Dynamo's worker", False, _DYNAMO_WORKER),
)
"""The reference server shows vLLM's names."""


def detect(names: Collection[str]) -> Engine | None:
    """The engine most of whose terms are there; the first of equals, None where none is."""
    matches = [(sum(bool(source.present(names)) for source in one.terms.values()), one) for one in ENGINES]
    most = max(count for count, _ in matches)
    return next(one for count, one in matches if count == most) if most else None
