"""The interfaces that can be measured: one entry registers one, and a plan is checked against it without loading its code.

| entry               | decides                                                                                   |
| ------------------- | ----------------------------------------------------------------------------------------- |
| `path`              | where a request goes, below the base URL                                                  |
| `framing`           | how a stream is cut into events; MESSAGES: the load goes over WebSockets                  |
| `model_in_url`      | the model's name is a parameter of the URL                                                |
| `only_streams`      | answers cannot be requested whole                                                         |
| `greets`            | a WebSocket's server says something of its own accord, before a request or after it       |
| `takes_messages`    | a prompt may be a list of messages: system prompts and conversations need that            |
| `takes_tools`       | messages may hold more than texts: tools, their calls and results, images                 |
| `system_apart`      | a system prompt is a field of the body, not a message                                     |
| `takes_text`        | a prompt may be text                                                                      |
| `takes_ids`         | a prompt may be a list of token ids                                                       |
| `applies_template`  | the server puts its chat template around a prompt, whose tokens it then counts            |
| `takes_ignore_eos`  | a request may ask for an answer of full length: `ignore_eos`, `min_tokens`                |
| `fields`            | what `--extra-body` may set, with its kind; None: whatever JSON holds                     |
| `history_field`     | the field with which a server puts earlier requests before a prompt, and what asks for none |
| `mapped`            | the plan describes where requests go and how messages are read (message_form.py)          |
| `stamp_field`       | what to set in a request so that an engine puts its own times into each event (llama.cpp) |
| `embedded`          | the reference server speaks it, and so a simulation                                       |
| `home`              | the `Dialect` (dialect.py) that does the rest, as `module:name` in this room              |

This file imports nothing of this program, so that `plan` may read it; `dialect.load` imports the one dialect that a run needs.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote

JsonObject = dict[str, object]
"""A JSON object on its way to the wire, or from there."""


class Framing(enum.StrEnum):
    """How a stream is cut into events. The value is the format's name."""

    SSE = "server-sent events"
    NDJSON = "newline-delimited JSON"
    GRPC = "gRPC messages"
    MESSAGES = "WebSocket messages"


@dataclass(frozen=True, slots=True)
class Interface:
    """One interface over HTTP, as far as a plan and a report need to know it; see the table above."""

    name: str
    title: str
    path: str
    home: str
    framing: Framing = Framing.SSE
    takes_messages: bool = False
    takes_tools: bool = False
    system_apart: bool = False
    takes_text: bool = True
    takes_ids: bool = False
    applies_template: bool = True
    takes_ignore_eos: bool = True
    stamp_field: str | None = None
    fields: Mapping[str, str] | None = None
    greets: bool = False
    model_in_url: bool = False
    only_streams: bool = False
    history_field: tuple[str, str | None] | None = None
    mapped: bool = False
    embedded: bool = True

    def target(self, model: str) -> str:
        """Where a request for this model goes, below the base URL."""
        name = quote(model, safe="")
        return f"{self.path}?model={name}" if self.model_in_url else self.path.replace("{model}", name)

    def described(self, path: str, *, greets: bool) -> Interface:
        """The same, as a plan describes it."""
        return replace(self, path=path, greets=greets)

    @property
    def grpc(self) -> bool:
        """It is a method of a gRPC service, and so needs HTTP/2."""
        return self.framing is Framing.GRPC

    @property
    def over_websocket(self) -> bool:
        """Whether a request and its answer are messages of a WebSocket."""
        return self.framing is Framing.MESSAGES

    @property
    def scheme(self) -> str | None:
        """How its URLs may begin, beside http: with an s behind for TLS."""
        return "grpc" if self.grpc else "ws" if self.over_websocket else None


_SAMPLING_FIELDS = {
    "temperature": "real",
    "top_p": "real",
    "top_k": "integer",
    "min_p": "real",
    "frequency_penalty": "real",
    "presence_penalty": "real",
    "repetition_penalty": "real",
    "stop": "texts",
    "stop_token_ids": "ids",
    "ignore_eos": "truth",
}
"""Sampling parameters that every gRPC service has, by name, and of which kind each is (`fits`)."""
_VLLM_FIELDS = _SAMPLING_FIELDS | {
    "skip_special_tokens": "truth",
    "spaces_between_special_tokens": "truth",
    "min_tokens": "count",
    "logprobs": "integer",
    "prompt_logprobs": "integer",
    "seed": "integer",
    "include_stop_str_in_output": "truth",
    "truncate_prompt_tokens": "integer",
}
"""All of vLLM's."""
_SGLANG_FIELDS = _SAMPLING_FIELDS | {
    "skip_special_tokens": "truth",
    "spaces_between_special_tokens": "truth",
    "min_new_tokens": "count",
    "no_stop_trim": "truth",
    "stream_interval": "integer",
    "return_logprob": "truth",
    "logprob_start_len": "integer",
    "top_logprobs_num": "integer",
}
"""Those of SGLang's."""
_TRTLLM_FIELDS = _SAMPLING_FIELDS | {
    "top_p_min": "real",
    "top_p_reset_ids": "integer",
    "top_p_decay": "real",
    "prompt_ignore_length": "integer",
    "no_repeat_ngram_size": "integer",
    "bad": "texts",
    "bad_token_ids": "ids",
    "include_stop_token_in_output": "truth",
    "min_tokens": "count",
    "seed": "count",
    "logprobs": "integer",
    "prompt_logprobs": "integer",
}
"""Those of TensorRT-LLM's."""


def fits(kind: str, value: object) -> bool:
    """Whether a value of JSON can be a parameter of this kind, of which "" is none. Null leaves a parameter out."""
    if not kind:
        return False
    if value is None:
        return True
    if kind == "truth":
        return isinstance(value, bool)
    if kind == "texts":
        listed = value if isinstance(value, list | tuple) else [value]
        return all(isinstance(one, str) for one in listed)
    if kind == "ids":
        return isinstance(value, list | tuple) and all(fits("count", one) for one in value)
    if kind == "real":
        return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 3e38
    low, high = (0, 1 << 32) if kind == "count" else (-(1 << 31), 1 << 31)
    return type(value) is int and low <= value < high


_REGISTERED = (
    Interface(
        "chat",
        "OpenAI's chat completions",
        "/v1/chat/completions",
        "openai:CHAT",
        takes_messages=True,
        takes_tools=True,
        stamp_field="timings_per_token",
    ),
    Interface(
        "completions",
        "OpenAI's completions",
        "/v1/completions",
        "openai:COMPLETIONS",
        takes_ids=True,
        applies_template=False,
        stamp_field="timings_per_token",
    ),
    Interface(
        "responses",
        "OpenAI's responses",
        "/v1/responses",
        "responses:RESPONSES",
        takes_messages=True,
        history_field=("conversation", None),
    ),
    Interface(
        "anthropic",
        "Anthropic's messages",
        "/v1/messages",
        "anthropic:ANTHROPIC",
        takes_messages=True,
        system_apart=True,
        takes_ignore_eos=False,
    ),
    Interface(
        "ollama-generate",
        "Ollama's generate",
        "/api/generate",
        "ollama:GENERATE",
        framing=Framing.NDJSON,
        takes_ignore_eos=False,
    ),
    Interface(
        "ollama-chat",
        "Ollama's chat",
        "/api/chat",
        "ollama:CHAT",
        framing=Framing.NDJSON,
        takes_messages=True,
        takes_ignore_eos=False,
    ),
    Interface(
        "vllm-grpc",
        "vLLM's gRPC",
        "/vllm.grpc.engine.VllmEngine/Generate",
        "vllm_grpc:VLLM_GRPC",
        framing=Framing.GRPC,
        takes_ids=True,
        applies_template=False,
        fields=_VLLM_FIELDS,
    ),
    Interface(
        "sglang-grpc",
        "SGLang's gRPC",
        "/sglang.grpc.scheduler.SglangScheduler/Generate",
        "sglang_grpc:SGLANG_GRPC",
        framing=Framing.GRPC,
        takes_text=False,
        takes_ids=True,
        applies_template=False,
        embedded=False,
        fields=_SGLANG_FIELDS,
    ),
    Interface(
        "trtllm-grpc",
        "TensorRT-LLM's gRPC",
        "/trtllm.TrtllmService/Generate",
        "trtllm_grpc:TRTLLM_GRPC",
        framing=Framing.GRPC,
        takes_text=False,
        takes_ids=True,
        applies_template=False,
        embedded=False,
        fields=_TRTLLM_FIELDS,
    ),
    Interface(
        "websocket",
        "the reference server's messages over a WebSocket",
        "/v1/ws",
        "websocket:WEBSOCKET",
        framing=Framing.MESSAGES,
        takes_messages=True,
    ),
    Interface(
        "realtime",
        "OpenAI's Realtime events for text, over a WebSocket",
        "/v1/realtime",
        "realtime:REALTIME",
        framing=Framing.MESSAGES,
        takes_ignore_eos=False,
        greets=True,
        model_in_url=True,
        only_streams=True,
        history_field=("conversation", "none"),
    ),
    Interface(
        "websocket-mapped",
        "messages over a WebSocket that the plan describes (`target.websocket`)",
        "/",
        "mapped:dialect",
        framing=Framing.MESSAGES,
        takes_ignore_eos=False,
        only_streams=True,
        mapped=True,
    ),
)

INTERFACES: dict[str, Interface] = {one.name: one for one in _REGISTERED}
"""Every interface by the name that `--api` has for it."""


def takers(*, messages: bool = False, ids: bool = False) -> str:
    """The names of the interfaces that take messages, or token ids, for an error's remedy: "a, b or c"."""
    names = [
        one.name for one in _REGISTERED if (one.takes_messages or not messages) and (one.takes_ids or not ids)
    ]
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
