"""The OpenAI dialects: `/v1/chat/completions` and `/v1/completions`, streamed and whole.

What servers make of it, all of it read here (tests/vectors/streams holds recordings):

| first event     | role with empty or null content (vLLM, llama.cpp), or role and text at once                     |
| thinking        | `reasoning_content` (SGLang, DeepSeek, llama.cpp) or `reasoning` (vLLM, OpenRouter)              |
| usage           | an event with empty `choices`; a last one of the odd `object`; on the finish event; on every event |
| cached tokens   | `usage.prompt_tokens_details.cached_tokens`                                                     |
| errors in a 200 | `{"error": {...}}` or `{"error": "..."}`, `choices` or not; `{"object": "error"}`          |
| end             | `finish_reason`, then `data: [DONE]`                                                             |

Typed decoding reads the fields used and skips the rest without building it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from inferometer.engines.answer import Answer
from inferometer.journal.schema import EventClass

PATHS = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}

_ROLE, _CONTENT, _REASONING = int(EventClass.ROLE), int(EventClass.CONTENT), int(EventClass.REASONING)
_TOOL_CALL, _FINISH, _USAGE = int(EventClass.TOOL_CALL), int(EventClass.FINISH), int(EventClass.USAGE)
_ERROR, _EMPTY, _DONE = int(EventClass.ERROR), int(EventClass.EMPTY), int(EventClass.DONE)

_REFUSAL_REASONS = frozenset({"content_filter", "refusal"})
_ERROR_REASONS = frozenset({"error", "abort"})


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


class _PromptDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None


class _CompletionDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _CompletionDetails | None = None


class _Reply(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    object: str | None = None
    message: str | None = None


_decode: Callable[[bytes], _Reply] = msgspec.json.Decoder(_Reply).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def body(
    api: str,
    model: str,
    prompt: str | list[int],
    max_tokens: int,
    *,
    stream: bool = True,
    temperature: float = 0.0,
    ignore_eos: bool = True,
    min_tokens: bool = False,
    extra: dict[str, Any] | None = None,
    length_field: str = "max_tokens",
    messages: Sequence[tuple[str, str]] | None = None,
) -> bytes:
    """The JSON of one request. `extra` wins over every field, and null there leaves a field out.

    Token ids as a prompt go to `completions` only, `messages` (role and text of each) in its place to `chat` only.
    """
    fields: dict[str, Any] = {"model": model}
    if api == "chat":
        chat: Sequence[tuple[str, str | list[int]]] = messages or [("user", prompt)]
        fields["messages"] = [{"role": role, "content": content} for role, content in chat]
    else:
        fields["prompt"] = prompt
    # Chat renamed max_tokens to max_completion_tokens; nearly all servers take the old name, some know it alone.
    fields[length_field] = max_tokens
    fields["temperature"] = temperature
    fields["stream"] = stream
    if stream:
        fields["stream_options"] = {"include_usage": True}
    if ignore_eos:
        fields["ignore_eos"] = True
    if min_tokens:
        fields["min_tokens"] = max_tokens
    fields.update(extra or {})
    fields = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def messages_json(messages: Sequence[tuple[str, str]]) -> bytes:
    """Role and text of each message as they stand in the body of a chat, without the list's brackets."""
    said = [{"role": role, "content": content} for role, content in messages]
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)[1:-1].encode()


def read_event(answer: Answer, payload: bytes, at: int) -> None:
    """Write one streamed event that arrived at `at` into the answer. Never raises: what is wrong becomes data."""
    try:
        reply = _decode(payload)
    except _UNREADABLE as cause:
        if payload == b"[DONE]":
            answer.done = True
            answer.mark(_DONE, at)
        else:
            answer.malformed = answer.malformed or str(cause) or type(cause).__name__
            answer.mark(_ERROR, at)
        return
    choices = reply.choices
    if choices and reply.usage is None and reply.error is None and answer.first_answer >= 0:
        choice = choices[0]
        delta = choice.delta
        text = choice.text if delta is None else delta.content
        alone = delta is None or (delta.reasoning is None and delta.reasoning_content is None)
        if text and alone and choice.finish_reason is None:
            # Nearly every event ends here. What `_read` would do, less five calls.
            answer.event_ns.append(at)
            answer.event_class.append(_CONTENT)
            answer.texts.append(text)
            return
    _read(answer, reply, at)


def read_whole(answer: Answer, payload: bytes, at: int) -> None:
    """Write a whole (not streamed) response into the answer, as events at `at`."""
    try:
        reply = _decode(payload)
    except _UNREADABLE as cause:
        answer.malformed = str(cause) or type(cause).__name__
        return
    _read(answer, reply, at)
    answer.done = bool(reply.choices)


def _read(answer: Answer, reply: _Reply, at: int) -> None:
    if reply.usage is not None:
        _usage(answer, reply.usage)
    if not reply.choices or reply.error is not None:
        _no_choices(answer, reply, at)
        return
    choice = reply.choices[0]
    if choice.finish_reason is not None:
        _finish(answer, choice.finish_reason)
    delta = choice.delta or choice.message
    before = len(answer.event_class)
    if delta is None:
        if choice.text:
            answer.text(_CONTENT, choice.text, at)
    else:
        _texts(answer, delta, at)
    if len(answer.event_class) == before:
        role = delta is not None and delta.role is not None
        answer.mark(_FINISH if choice.finish_reason is not None else _ROLE if role else _EMPTY, at)


def _texts(answer: Answer, delta: _Delta, at: int) -> None:
    """One event a kind of text in this delta; nearly always there is one at most."""
    if thought := delta.reasoning_content or delta.reasoning:
        answer.text(_REASONING, thought, at)
    if delta.tool_calls:
        functions = [call.function for call in delta.tool_calls if call.function is not None]
        if call_text := "".join((one.name or "") + (one.arguments or "") for one in functions):
            answer.text(_TOOL_CALL, call_text, at)
    if delta.refusal:
        answer.refused = True
        answer.text(_CONTENT, delta.refusal, at)
    if delta.content:
        answer.text(_CONTENT, delta.content, at)


def _no_choices(answer: Answer, reply: _Reply, at: int) -> None:
    if reply.error is not None:
        answer.error = json.dumps(reply.error, ensure_ascii=False)
        answer.mark(_ERROR, at)
    elif reply.object == "error":
        answer.error = reply.message or "error"
        answer.mark(_ERROR, at)
    else:
        answer.mark(_USAGE if reply.usage is not None else _EMPTY, at)


def _finish(answer: Answer, reason: str) -> None:
    answer.finish_reason = reason
    if reason in _REFUSAL_REASONS:
        answer.refused = True
    elif reason in _ERROR_REASONS:
        answer.error = answer.error or f"finish_reason {reason}"


def _usage(answer: Answer, usage: _Usage) -> None:
    # Some servers repeat usage on every event; the last one stands.
    if usage.prompt_tokens is not None:
        answer.input_tokens = usage.prompt_tokens
    if usage.completion_tokens is not None:
        answer.output_tokens = usage.completion_tokens
    details = usage.prompt_tokens_details
    if details is not None and details.cached_tokens is not None:
        answer.cached_tokens = details.cached_tokens
    thinking = usage.completion_tokens_details
    if thinking is not None and thinking.reasoning_tokens is not None:
        answer.reasoning_tokens = thinking.reasoning_tokens
