"""TensorRT-LLM's `trtllm-serve`, from its documentation: `/version`, `/v1/models` (owner `tensorrt_llm`)."""

from __future__ import annotations

from dataclasses import replace

from inferometer.engines.adapters.adapter import Adapter, Ask, Counters, EngineFacts, Replies
from inferometer.engines.adapters.fields import MODELS, listed, owned_by, version

_VERSION = "/version"


def _read(replies: Replies) -> EngineFacts:
    models = tuple(replace(model, loaded=True) for model in listed(replies))
    return EngineFacts("tensorrt-llm", version(replies, _VERSION), None, models)


TENSORRT_LLM = Adapter(
    key="tensorrt-llm",
    title="TensorRT-LLM",
    ports=(8000,),
    processes=(r"\btrtllm-serve\b", r"\btensorrt_llm\.commands\.serve\b"),
    interface="chat",
    asks=(Ask(_VERSION), Ask(MODELS)),
    recognise=lambda replies: owned_by(replies, "tensorrt_llm"),
    read=_read,
    documentation="https://nvidia.github.io/TensorRT-LLM/commands/trtllm-serve.html",
    counters=Counters(path="/prometheus/metrics", ttft_s="trtllm_time_to_first_token_seconds"),
    cached_tokens=True,
    quirks=(
        "Its `/metrics` is JSON; the Prometheus text is at `/prometheus/metrics`.",
        "It reserves its memory at the start, whatever the model needs.",
    ),
)
