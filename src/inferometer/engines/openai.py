"""The OpenAI dialects: `/v1/chat/completions` and `/v1/completions`, streamed and whole.

What servers make of it, all of it read here (tests/vectors/streams holds recordings):

| first event     | role with empty or null content (vLLM, llama.cpp), or role and text at once                     |
| thinking        | `reasoning_content` (SGLang, DeepSeek, llama.cpp) or `reasoning` (vLLM, OpenRouter)              |
| usage           | an event with empty `choices`; a last one of the odd `object`; on the finish event; on every event |
| cached tokens   | `usage.prompt_tokens_details.cached_tokens`; `timings.cache_n` where usage lacks it (llama.cpp)  |
| durations       | `timings.prompt_ms` and `.predicted_ms`, usage asked for or not (llama.cpp)                      |
| instants        | the sum of the two, where each event has them: with `timings_per_token` in the request           |
| errors in a 200 | `{"error": {...}}` or `{"error": "..."}`, `choices` or not; those of others (answer.py)           |
| end             | `finish_reason`, then `data: [DONE]`                                                             |

Typed decoding reads the fields used and skips the rest without building it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from inferometer.engines.answer import MOST_NS, NO_REASON, Answer, error_in, inside, number
from inferometer.engines.dialect import Dialect, GenerationRequest, Models, as_objects, encode
from inferometer.engines.interface import INTERFACES, JsonObject
from inferometer.journal.schema import EventClass
from inferometer.units import NS_PER_MS

LENGTH_FIELDS = ("max_tokens", "max_completion_tokens")
"""Chat renamed the first to the second; nearly all servers take the old name, some know it alone, OpenAI's newer models refuse
it."""

_ROLE, _CONTENT, _REASONING = int(EventClass.ROLE), int(EventClass.CONTENT), int(EventClass.REASONING)
_TOOL_CALL, _FINISH, _USAGE = int(EventClass.TOOL_CALL), int(EventClass.FINISH), int(EventClass.USAGE)
_EMPTY, _DONE = int(EventClass.EMPTY), int(EventClass.DONE)


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct, gc=False):
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    role: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None
    text: str | None = None
    finish_reason: str | None = None
    index: Any = 0


class _Reply(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: Any = None  # a wrong type in it is no reason to lose the event
    error: Any = None
    message: Any = None  # beside `choices` only in an error
    emitted_monotonic_ns: Any = None  # of the reference server
    timings: Any = None  # of llama.cpp


class _Named(_Reply, gc=False):
    """The same with the model's name, which every event repeats: looked for until it is known or the answer flows."""

    model: Any = None


_decode: Callable[[bytes], _Reply] = msgspec.json.Decoder(_Reply).decode
_decode_named: Callable[[bytes], _Named] = msgspec.json.Decoder(_Named).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _chat_body(generation: GenerationRequest) -> bytes:
    return _body(generation, {"messages": as_objects(generation.conversation)})


def _completion_body(generation: GenerationRequest) -> bytes:
    return _body(generation, {"prompt": generation.prompt})


def _body(generation: GenerationRequest, prompt: JsonObject) -> bytes:
    limit = generation.max_tokens
    fields: JsonObject = {
        "model": generation.model,
        **prompt,
        generation.length_field or LENGTH_FIELDS[0]: limit,
        "temperature": generation.temperature,
        "stream": generation.stream,
    }
    if generation.stream:
        fields["stream_options"] = {"include_usage": True}
    if generation.ignore_eos:
        fields["ignore_eos"] = True
    if generation.min_tokens:
        fields["min_tokens"] = limit
    return encode(fields | dict(generation.extra))


def read_models(listing: Any) -> Models:
    """The listing of `/v1/models`. vLLM adds `max_model_len`, llama.cpp `meta.n_vocab`."""
    listed = listing["data"]
    return Models(
        tuple(str(item["id"]) for item in listed),
        {
            str(item["id"]): item["max_model_len"]
            for item in listed
            if type(item.get("max_model_len")) is int and item["max_model_len"] > 0
        },
        {
            str(item["id"]): item["meta"]["n_vocab"]
            for item in listed
            if isinstance(item.get("meta"), dict) and type(item["meta"].get("n_vocab")) is int
        },
    )


def read_event(answer: Answer, payload: bytes, at: int) -> None:
    """Write one streamed event that arrived at `at` into the answer. Never raises: what is wrong becomes data."""
    if payload == b"[DONE]":  # first, since a failed decoding costs as much as several events
        answer.end(at)
        return
    try:
        if answer.flowing or answer.model is not None:
            reply = _decode(payload)
        else:
            reply = named = _decode_named(payload)
            answer.named(named.model)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, at)
        return
    choices = reply.choices
    if answer.flowing and choices and reply.usage is None and reply.error is None and reply.message is None:
        choice = choices[0]
        if choice.finish_reason is None and choice.index == answer.choice:
            delta = choice.delta
            if delta is None:
                text = choice.text
            elif (
                delta.reasoning is None
                and delta.reasoning_content is None
                and delta.tool_calls is None
                and delta.refusal is None
            ):
                text = delta.content
            else:
                text = None
            if text:
                # Nearly every event ends here. What `_read` would do, less five calls.
                answer.event_ns.append(at)
                answer.event_class.append(_CONTENT)
                answer.texts.append(text)
                return
    if answer.done:
        answer.mark(_DONE, at)
        return
    before = len(answer.texts)
    _read(answer, reply, payload, at)
    if reply.emitted_monotonic_ns is not None:
        answer.stamp(reply.emitted_monotonic_ns, before)
    elif reply.timings is not None and len(answer.texts) > before:
        answer.stamp(_emitted(reply.timings), before)


def read_whole(answer: Answer, payload: bytes, at: int) -> None:
    """Write a whole (not streamed) response into the answer, as events at `at`."""
    try:
        reply = _decode_named(payload)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, None)
        return
    answer.named(reply.model)
    _read(answer, reply, payload, at)
    answer.done = bool(reply.choices)


def _read(answer: Answer, reply: _Reply, payload: bytes, at: int) -> None:
    if reply.usage is not None:
        count_usage(answer, reply.usage)
    if reply.timings is not None:
        _timings(answer, reply.timings)
    choices = reply.choices
    odd = not choices or reply.error is not None or reply.message is not None
    if odd and error_in(payload, alone=not choices and reply.usage is None):
        answer.fail(payload, at)
        return
    if not choices:
        answer.mark(_USAGE if reply.usage is not None else _EMPTY, at)
        return
    choice = choices[0]
    told, ended = len(answer.texts), answer.finish_reason is not None
    reason = None if choice.finish_reason in NO_REASON else choice.finish_reason
    if reason is not None:
        answer.finish(reason)
    delta = choice.delta or choice.message
    before = len(answer.event_class)
    if delta is None:
        if choice.text:
            answer.text(_CONTENT, choice.text, at)
    else:
        _texts(answer, delta, at)
    if len(answer.texts) > told and (choice.index != answer.choice or len(choices) > 1):
        answer.of_choice(choice.index, several=len(choices) > 1 or (ended and told > 0), first=not told)
    if len(answer.event_class) == before:
        role = delta is not None and delta.role is not None
        answer.mark(_FINISH if reason is not None else _ROLE if role else _EMPTY, at)


def _texts(answer: Answer, delta: _Delta, at: int) -> None:
    parts: list[tuple[int, str]] = []  # nearly always one at most
    if thought := delta.reasoning_content or delta.reasoning:
        parts.append((_REASONING, thought))
    if delta.tool_calls:
        functions = [call.function for call in delta.tool_calls if call.function is not None]
        if call_text := "".join((one.name or "") + (one.arguments or "") for one in functions):
            parts.append((_TOOL_CALL, call_text))
    if delta.refusal:
        answer.refused = True
        parts.append((_CONTENT, delta.refusal))
    if delta.content:
        parts.append((_CONTENT, delta.content))
    answer.together(parts, at)


def count_usage(answer: Answer, usage: object) -> None:
    """Usage as a chat completion has it."""
    # Some servers repeat usage on every event; the last one stands.
    if isinstance(usage, dict):
        answer.count(usage.get("prompt_tokens"), usage.get("completion_tokens"))
        read, written = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
        if read or written:
            answer.count(cached=inside(read, "cached_tokens"), reasoning=inside(written, "reasoning_tokens"))
        if "steps" in usage:
            answer.list_steps(usage["steps"])


def _timings(answer: Answer, timings: object) -> None:
    """llama.cpp's own durations. Its counts there replace no usage; cached tokens are read if usage leaves them out."""
    # They may be on every event (`timings_per_token`); the last ones stand.
    prefill, decode = _ns(inside(timings, "prompt_ms")), _ns(inside(timings, "predicted_ms"))
    answer.server_prefill_ns = answer.server_prefill_ns if prefill is None else prefill
    answer.server_decode_ns = answer.server_decode_ns if decode is None else decode
    if answer.cached_tokens is None and answer.input_tokens is not None:
        answer.count(cached=inside(timings, "cache_n"))


def _emitted(timings: object) -> int | None:
    """When llama.cpp emitted the latest token, ns since it took up the prompt."""
    prefill, decode = _ns(inside(timings, "prompt_ms")), _ns(inside(timings, "predicted_ms"))
    return None if prefill is None or decode is None else prefill + decode


def _ns(milliseconds: object) -> int | None:
    """A duration of JSON in ns; None for what is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        return None
    if not 0 <= milliseconds <= MOST_NS / NS_PER_MS:  # neither is NaN, nor what is too large for a float
        return None
    return number(round(milliseconds * NS_PER_MS), MOST_NS)


CHAT = Dialect(
    INTERFACES["chat"],
    vendor="OpenAI",
    body=_chat_body,
    read_event=read_event,
    read_whole=read_whole,
    end="[DONE]",
    models_path="/v1/models",
    read_models=read_models,
    length_fields=LENGTH_FIELDS,
)
COMPLETIONS = Dialect(
    INTERFACES["completions"],
    vendor="OpenAI",
    body=_completion_body,
    read_event=read_event,
    read_whole=read_whole,
    end="[DONE]",
    models_path="/v1/models",
    read_models=read_models,
    length_fields=LENGTH_FIELDS,
)
