"""Anthropic's Messages API: `/v1/messages`, streamed as typed events or whole (docs.anthropic.com/en/api/messages-streaming).

| event                                               | is read as                                                       |
| --------------------------------------------------- | ---------------------------------------------------------------- |
| `message_start`                                     | role, with the prompt's usage                                    |
| `content_block_start`                               | role, or the text it has; of a `tool_use`, tool call: its name   |
| `content_block_delta` of `text_delta`               | content                                                          |
| ... `thinking_delta`                                | reasoning                                                        |
| ... `input_json_delta`                              | tool call                                                        |
| ... of another type (`signature_delta`, citations)  | role: it has no text of the model's                              |
| a delta whose text is empty                         | empty                                                            |
| `content_block_stop`                                | role                                                             |
| `ping`                                              | comment                                                          |
| `message_delta`                                     | finish, with the answer's usage                                  |
| `message_stop`                                      | done                                                             |
| `error`, or an error of another shape (answer.py)   | error                                                            |
| an unknown type, which the vendor reserves          | role                                                             |

**Usage.** `input_tokens` leaves out what was read from the cache or written to it, so the prompt's tokens are the sum of the
three, each as it was reported last; cached are those that were read. Counts are cumulative. The `output_tokens` of
`message_start` are no count of the answer, which has only begun. Thinking is part of `output_tokens`, and not counted apart.
**Finish reasons** are recorded in the words of chat completions: `end_turn` and `stop_sequence` are `stop`,
`max_tokens` is `length`, `tool_use` is `tool_calls`; `refusal` and all others stay.

System prompts are a field of the body, not messages. There is no `ignore_eos`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from inferometer.engines.answer import Answer, arguments_text, error_in, inside, stands
from inferometer.engines.dialect import (
    Dialect,
    GenerationRequest,
    as_objects,
    bearer,
    encode,
    is_system,
)
from inferometer.engines.interface import INTERFACES, JsonObject
from inferometer.engines.openai import read_models
from inferometer.journal.schema import EventClass

VERSION = "2023-06-01"
"""The version of the interface that is asked for, in the header `anthropic-version`."""

_ROLE, _CONTENT, _REASONING = int(EventClass.ROLE), int(EventClass.CONTENT), int(EventClass.REASONING)
_TOOL_CALL, _FINISH = int(EventClass.TOOL_CALL), int(EventClass.FINISH)
_COMMENT, _EMPTY, _DONE = int(EventClass.COMMENT), int(EventClass.EMPTY), int(EventClass.DONE)

_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
}
_TYPES = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    }
)
_CACHED = "cache_read_input_tokens"
_PROMPT = ("input_tokens", "cache_creation_input_tokens", _CACHED)
"""The counts whose sum is the prompt's."""


class _Delta(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Block(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    name: str | None = None
    input: Any = None


class _Message(msgspec.Struct, gc=False):
    usage: Any = None
    model: Any = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    error: Any = None
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: Any = None  # a wrong type in it is no reason to lose the event
    content: list[_Block] | None = None
    stop_reason: str | None = None
    emitted_monotonic_ns: Any = None  # of the reference server


class _Whole(_Event, gc=False):
    model: Any = None


_decode = msgspec.json.Decoder(_Event).decode
_decode_whole = msgspec.json.Decoder(_Whole).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _body(request: GenerationRequest) -> bytes:
    messages = request.conversation
    extra = dict(request.extra)
    if "stop" in extra:
        stop = extra.pop("stop")
        extra["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    fields: JsonObject = {
        "model": request.model,
        "system": "\n\n".join(text for role, text in messages if is_system(role)) or None,
        "messages": as_objects(messages, system_apart=True),
        request.length_field or "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream": request.stream,
    }
    return encode(fields | extra)


def read_event(answer: Answer, payload: bytes, at: int) -> None:
    """Write one streamed event that arrived at `at` into the answer. Never raises: what is wrong becomes data."""
    try:
        event = _decode(payload)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, at)
        return
    delta = event.delta
    if (
        answer.flowing
        and delta is not None
        and delta.text
        and event.type == "content_block_delta"
        and event.error is None
    ):
        # Nearly every event ends here. What `_read` would do, less four calls.
        answer.event_ns.append(at)
        answer.event_class.append(_CONTENT)
        answer.texts.append(delta.text)
        return
    if answer.done:
        answer.mark(_DONE, at)
    elif (event.error is not None or event.type not in _TYPES) and error_in(payload, alone=not event.type):
        answer.fail(payload, at)
    else:
        before = len(answer.texts)
        _read(answer, event, at)
        if event.emitted_monotonic_ns is not None:
            answer.stamp(event.emitted_monotonic_ns, before)


def read_whole(answer: Answer, payload: bytes, at: int) -> None:
    """Write a whole (not streamed) message into the answer, as events at `at`."""
    try:
        message = _decode_whole(payload)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, None)
        return
    odd = message.error is not None or message.type != "message"
    if odd and error_in(payload, alone=message.content is None):
        answer.fail(payload, None)
        return
    parts: list[tuple[int, str]] = []
    for block in message.content or ():
        if block.thinking:
            parts.append((_REASONING, block.thinking))
        if block.text:
            parts.append((_CONTENT, block.text))
        if block.type == "tool_use" and (call := (block.name or "") + arguments_text(block.input)):
            parts.append((_TOOL_CALL, call))
    answer.together(parts, at)
    answer.named(message.model)
    _usage(answer, message.usage)
    if message.stop_reason is not None:
        _finish(answer, message.stop_reason)
    answer.done = message.type == "message"


def _read(answer: Answer, event: _Event, at: int) -> None:
    kind = event.type
    if kind == "content_block_delta":
        _text(answer, event.delta or _Delta(), at)
    elif kind == "content_block_start":
        block = event.content_block or _Block()
        if block.type == "tool_use" and block.name:
            answer.text(_TOOL_CALL, block.name, at)
        elif block.text:
            answer.text(_CONTENT, block.text, at)
        elif block.thinking:
            answer.text(_REASONING, block.thinking, at)
        else:
            answer.mark(_ROLE, at)
    elif kind == "message_start":
        if event.message is not None:
            _usage(answer, event.message.usage, begun=True)
            answer.named(event.message.model)
        answer.mark(_ROLE, at)
    elif kind == "message_delta":
        _usage(answer, event.usage)
        if event.delta is not None and event.delta.stop_reason is not None:
            _finish(answer, event.delta.stop_reason)
        answer.mark(_FINISH, at)
    elif kind == "message_stop":
        answer.end(at)
    else:
        answer.mark(_COMMENT if kind == "ping" else _ROLE, at)


def _text(answer: Answer, delta: _Delta, at: int) -> None:
    if delta.text:
        answer.text(_CONTENT, delta.text, at)
    elif delta.thinking:
        answer.text(_REASONING, delta.thinking, at)
    elif delta.partial_json:
        answer.text(_TOOL_CALL, delta.partial_json, at)
    else:
        texts = (delta.text, delta.thinking, delta.partial_json)
        answer.mark(_ROLE if all(text is None for text in texts) else _EMPTY, at)


def _finish(answer: Answer, reason: str) -> None:
    answer.finish(_REASONS.get(reason, reason))


def _usage(answer: Answer, usage: object, *, begun: bool = False) -> None:
    """Counts of the whole message, or of one that has only begun."""
    reported = answer.reported
    for name in _PROMPT:
        count = stands(reported.get(name), inside(usage, name))
        if count is not None:
            reported[name] = count
    answer.count(
        sum(reported.values()) if _PROMPT[0] in reported else None,
        None if begun else inside(usage, "output_tokens"),
        cached=reported.get(_CACHED),
    )


def _key_headers(key: str, host: str) -> dict[str, str]:
    # Servers that imitate this interface, vLLM for one, may accept a bearer token only; the vendor's refuses a key as such.
    vendors = f".{host}".endswith(".anthropic.com")
    return {"x-api-key": key, **({} if vendors else bearer(key))}


ANTHROPIC = Dialect(
    INTERFACES["anthropic"],
    vendor="Anthropic",
    body=_body,
    read_event=read_event,
    read_whole=read_whole,
    end="message_stop",
    models_path="/v1/models",
    read_models=read_models,
    length_fields=("max_tokens",),
    headers={"anthropic-version": VERSION},
    key_headers=_key_headers,
    typed_events=True,
)
