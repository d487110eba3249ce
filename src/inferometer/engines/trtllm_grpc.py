"""TensorRT-LLM's gRPC service: `trtllm.TrtllmService/Generate`, token ids in and out (trtllm_service.proto).

Chunks hold new ids, the end all of them. Unless a request wants otherwise, ids that stop an answer are stripped; the published
file leaves open whether `completion_tokens` counts them.
"""

from __future__ import annotations

from inferometer.engines.grpc_service import Ending, Part, Service, dialect_of

_REQUEST = {
    "max_tokens": 5,
    "stop": 21,
    "stop_token_ids": 22,
    "ignore_eos": 23,
    "bad": 24,
    "bad_token_ids": 25,
    "include_stop_token_in_output": 26,
}
"""Fields of the request itself."""
_SAMPLING = {
    "beam_width": 1,
    "num_return_sequences": 2,
    "top_k": 3,
    "top_p": 4,
    "top_p_min": 5,
    "top_p_reset_ids": 6,
    "top_p_decay": 7,
    "seed": 8,
    "temperature": 9,
    "min_tokens": 10,
    "repetition_penalty": 12,
    "presence_penalty": 13,
    "frequency_penalty": 14,
    "prompt_ignore_length": 15,
    "no_repeat_ngram_size": 18,
    "min_p": 19,
}
"""Fields of SamplingConfig."""
_OUTPUT = {"logprobs": 1, "prompt_logprobs": 2, "exclude_input_from_output": 5}
"""Fields of OutputConfig."""

SERVICE = Service(
    api="trtllm-grpc",
    vendor="TensorRT-LLM",
    stream=6,
    parameters={name: (0, number) for name, number in _REQUEST.items()}
    | {name: (3, number) for name, number in _SAMPLING.items()}
    | {name: (4, number) for name, number in _OUTPUT.items()},
    # Without the last, the prompt's ids would come with the answer's.
    implied={"beam_width": 1, "num_return_sequences": 1, "exclude_input_from_output": True},
    chunk=Part(number=2, prompt=3, completion=4, cached=5, sequence=2),
    complete=Part(number=3, reason=3, prompt=5, completion=6, cached=7, sequence=2),
    echoes=True,
    ending=Ending.ALL,
    reasons={"stop_word": "stop"},
    names=(1,),
    context=3,
    vocabulary=5,
    server=1,
)
TRTLLM_GRPC = dialect_of(SERVICE)
