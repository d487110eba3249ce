"""SGLang's gRPC service: `sglang.grpc.scheduler.SglangScheduler/Generate`, token ids in and out (sglang_scheduler.proto).

Chunks hold new ids, and counts that are cumulative. The published file leaves open which ids the end of a stream repeats.
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
    "max_new_tokens": 8,
    "stop": 9,
    "stop_token_ids": 10,
    "skip_special_tokens": 11,
    "spaces_between_special_tokens": 12,
    "n": 17,
    "min_new_tokens": 18,
    "ignore_eos": 19,
    "no_stop_trim": 20,
    "stream_interval": 21,
}
"""Fields of SamplingParams by their own names."""
_REQUEST = {"return_logprob": 5, "logprob_start_len": 6, "top_logprobs_num": 7}
"""Fields of the request itself."""

SERVICE = Service(
    api="sglang-grpc",
    vendor="SGLang",
    stream=17,
    length="max_new_tokens",
    least="min_new_tokens",
    parameters={name: (4, number) for name, number in _SAMPLING.items()}
    | {name: (0, number) for name, number in _REQUEST.items()},
    # "The proto3 defaults do NOT match the semantic defaults."
    implied={
        "top_p": 1.0,
        "top_k": -1,
        "repetition_penalty": 1.0,
        "skip_special_tokens": True,
        "spaces_between_special_tokens": True,
        "n": 1,
    },
    all_tokens=-1,
    chunk=Part(number=2, prompt=2, completion=3, cached=4, reasoning=9, sequence=8),
    complete=Part(number=3, reason=2, prompt=3, completion=4, cached=5, reasoning=12, sequence=11),
    echoes=True,
    ending=Ending.LAST,
    names=(6, 1),
    context=7,
    vocabulary=8,
    server=7,
)
SGLANG_GRPC = dialect_of(SERVICE)
