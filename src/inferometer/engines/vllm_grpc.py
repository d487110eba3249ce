"""vLLM's gRPC service: `vllm.grpc.engine.VllmEngine/Generate`, token ids or text in, ids out (vllm_engine.proto).

Each message counts itself alone, and the end of a stream repeats the ids of the last chunk.
"""

from __future__ import annotations

from inferometer.engines.grpc_service import Ending, Part, Service, dialect_of

_SAMPLING = {
    "temperature": 1,
    "top_p": 2,
    "top_k": 3,
    "min_p": 4,
    "frequency_penalty": 5,
    "presence_penalty": 6,
    "repetition_penalty": 7,
    "max_tokens": 8,
    "min_tokens": 9,
    "stop": 10,
    "stop_token_ids": 11,
    "skip_special_tokens": 12,
    "spaces_between_special_tokens": 13,
    "ignore_eos": 14,
    "logprobs": 22,
    "prompt_logprobs": 23,
    "seed": 24,
    "include_stop_str_in_output": 25,
    "truncate_prompt_tokens": 27,
}
"""Fields of SamplingParams by the names that OpenAI's interface and vLLM give them."""

SERVICE = Service(
    api="vllm-grpc",
    vendor="vLLM",
    text=3,
    stream=5,
    parameters={name: (4, number) for name, number in _SAMPLING.items()},
    chunk=Part(number=1, prompt=2, completion=3, cached=4, sequence=7),
    complete=Part(number=2, reason=2, prompt=3, completion=4, cached=5, sequence=8),
    echoes=False,
    ending=Ending.OWN,
    names=(6, 1),
    context=3,
    vocabulary=4,
    server=5,
    server_is_version=False,
)
VLLM_GRPC = dialect_of(SERVICE)
