"""The reference server's own messages over a WebSocket: `/v1/ws` (server/websocket_messages.py). A message is a JSON object.

| `type`                   | is read as                                                               |
| ------------------------ | ------------------------------------------------------------------------ |
| `begin`                  | role: the request is accepted, by a model of this name                   |
| `token`                  | content: its `text`                                                      |
| `reasoning`, `tool_call` | that class: its `text`                                                   |
| `end`                    | done: `finish_reason`, `usage` as a chat completion has it               |
| `answer`                 | a whole answer, which was not streamed: its texts, and all that `end` has |
| `error`                  | error                                                                    |
| anything else            | empty                                                                    |
"""

from __future__ import annotations

from typing import Any

import msgspec

from inferometer.engines.answer import Answer, error_in
from inferometer.engines.dialect import Dialect, GenerationRequest, as_objects, encode
from inferometer.engines.interface import INTERFACES, JsonObject
from inferometer.engines.openai import count_usage, read_models
from inferometer.journal.schema import EventClass

_ROLE, _CONTENT, _REASONING = int(EventClass.ROLE), int(EventClass.CONTENT), int(EventClass.REASONING)
_TOOL_CALL, _EMPTY, _DONE = int(EventClass.TOOL_CALL), int(EventClass.EMPTY), int(EventClass.DONE)
_CLASSES = {"token": _CONTENT, "reasoning": _REASONING, "tool_call": _TOOL_CALL}


class _Message(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    reasoning: str | None = None
    tool_call: str | None = None
    model: Any = None
    finish_reason: str | None = None
    usage: Any = None  # a wrong type in it is no reason to lose the end
    error: Any = None
    emitted_monotonic_ns: Any = None  # of the reference server


_decode = msgspec.json.Decoder(_Message).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _body(request: GenerationRequest) -> bytes:
    fields: JsonObject = {
        "model": request.model,
        "messages": as_objects(request.conversation),
        request.length_field or "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream": request.stream,
    }
    if request.ignore_eos:
        fields["ignore_eos"] = True
    if request.min_tokens:
        fields["min_tokens"] = request.max_tokens
    return encode(fields | dict(request.extra))


def read_event(answer: Answer, payload: bytes, at: int) -> None:
    """Write one message that arrived at `at` into the answer. Never raises: what is wrong becomes data."""
    try:
        message = _decode(payload)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, at)
        return
    text = message.text
    if answer.flowing and text and message.type == "token" and message.error is None:
        # Nearly every message ends here. What `_read` would do, less three calls.
        answer.event_ns.append(at)
        answer.event_class.append(_CONTENT)
        answer.texts.append(text)
        return
    if answer.done:
        answer.mark(_DONE, at)
        return
    before = len(answer.texts)
    _read(answer, message, payload, at)
    if message.emitted_monotonic_ns is not None:
        answer.stamp(message.emitted_monotonic_ns, before)


def read_whole(answer: Answer, payload: bytes, at: int) -> None:
    """Write a whole (not streamed) answer into `answer`, as events at `at`."""
    try:
        message = _decode(payload)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, None)
        return
    _read(answer, message, payload, at)


def _read(answer: Answer, message: _Message, payload: bytes, at: int) -> None:
    answer.named(message.model)
    if message.error is not None and error_in(payload, alone=False):
        answer.fail(payload, at)
    elif (kind := _CLASSES.get(message.type)) is not None:
        if message.text:
            answer.text(kind, message.text, at)
        else:
            answer.mark(_EMPTY, at)
    elif message.type == "begin":
        answer.mark(_ROLE, at)
    elif message.type == "answer":
        parts = ((_REASONING, message.reasoning), (_CONTENT, message.text), (_TOOL_CALL, message.tool_call))
        answer.together([(kind, text) for kind, text in parts if text], at)
        _end(answer, message)
    elif message.type == "end":
        _end(answer, message)
        answer.mark(_DONE, at)
    elif error_in(payload, alone=not message.type):
        answer.fail(payload, at)
    else:
        answer.mark(_EMPTY, at)


def _end(answer: Answer, message: _Message) -> None:
    """The reason, and the counts."""
    answer.done, answer.flowing = True, False
    if message.finish_reason is not None:
        answer.finish(message.finish_reason)
    count_usage(answer, message.usage)


WEBSOCKET = Dialect(
    INTERFACES["websocket"],
    vendor="inferometer",
    body=_body,
    read_event=read_event,
    read_whole=read_whole,
    end='a message of type "end"',
    models_path="/v1/models",
    read_models=read_models,
    length_fields=("max_tokens",),
)
