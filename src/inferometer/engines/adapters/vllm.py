"""vLLM: `/version`, `/v1/models` (owner `vllm`, `max_model_len`).

Format and quantization are not reported: `/server_info`, which has them, exists in its development mode only.
"""

from __future__ import annotations

from dataclasses import replace

from inferometer.engines.adapters.adapter import Adapter, Ask, Counters, EngineFacts, Replies
from inferometer.engines.adapters.fields import MODELS, listed, owned_by, version

_VERSION = "/version"


def _read(replies: Replies) -> EngineFacts:
    models = tuple(replace(model, loaded=True) for model in listed(replies))
    return EngineFacts("vllm", version(replies, _VERSION), None, models)


VLLM = Adapter(
    key="vllm",
    title="vLLM",
    ports=(8000,),
    processes=(r"\bvllm\s+serve\b", r"\bvllm\.entrypoints\b"),
    interface="chat",
    asks=(Ask(_VERSION), Ask(MODELS)),
    recognise=lambda replies: owned_by(replies, "vllm"),
    read=_read,
    documentation="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
    counters=Counters(
        output_tokens="vllm:generation_tokens",
        prompt_tokens="vllm:prompt_tokens",
        cached_tokens="vllm:prefix_cache_hits",
        ttft_s="vllm:time_to_first_token_seconds",
        decode_s="vllm:request_decode_time_seconds",
        decode_by_request=True,
    ),
    cached_tokens=True,
    tried="real",
    quirks=(
        "It reports cached tokens only if started with its option enable-prompt-tokens-details, in whole blocks.",
        "It lists LoRA adapters as models.",
        "It reserves its memory at the start, whatever the model needs.",
    ),
)
