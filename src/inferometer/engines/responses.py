"""OpenAI's Responses API: `/v1/responses`, streamed as typed events or whole
(platform.openai.com/docs/api-reference/responses-streaming).

| event, `response.` left out                                       | is read as                                         |
| ----------------------------------------------------------------- | -------------------------------------------------- |
| `output_text.delta`                                               | content                                            |
| `refusal.delta`                                                   | content, and the answer is a refusal               |
| `reasoning_text.delta`, `reasoning_summary_text.delta`            | reasoning                                          |
| `function_call_arguments.delta`, and those of other tools         | tool call                                          |
| `output_item.added` of a `function_call`                          | tool call: its name                                |
| `completed`, `incomplete`                                         | done, with usage and a finish reason               |
| `failed`; and `error`, which has no prefix; `{"error": ...}`      | error                                              |
| a `delta` that is empty or no text                                | empty                                              |
| everything else: `created`, `in_progress`, `*.added`, `*.done`    | role: it opens or closes a part, and has no text   |

There is no `[DONE]`; a server that sends one all the same does no harm. Finish reasons are recorded in the words of chat
completions: `completed` is `stop`, `incomplete` for `max_output_tokens` is `length`, for `content_filter` is that.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from inferometer.engines.answer import Answer
from inferometer.engines.dialect import Dialect, GenerationRequest, as_objects, encode
from inferometer.engines.interface import INTERFACES, JsonObject
from inferometer.engines.openai import InputDetails, OutputDetails, read_models
from inferometer.journal.schema import EventClass

_ROLE, _CONTENT, _REASONING = int(EventClass.ROLE), int(EventClass.CONTENT), int(EventClass.REASONING)
_TOOL_CALL, _ERROR = int(EventClass.TOOL_CALL), int(EventClass.ERROR)
_EMPTY, _DONE = int(EventClass.EMPTY), int(EventClass.DONE)

_TEXT, _REFUSAL = "response.output_text.delta", "response.refusal.delta"
_CLASSES = {
    _TEXT: _CONTENT,
    _REFUSAL: _CONTENT,
    "response.reasoning_text.delta": _REASONING,
    "response.reasoning_summary_text.delta": _REASONING,
    "response.function_call_arguments.delta": _TOOL_CALL,
    "response.custom_tool_call_input.delta": _TOOL_CALL,
    "response.mcp_call_arguments.delta": _TOOL_CALL,
}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})
_FINISH = {"completed": "stop", "max_output_tokens": "length"}
_CALLS = frozenset({"function_call", "custom_tool_call", "mcp_call"})


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class _Part(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct, gc=False):
    type: str = ""
    name: str | None = None
    arguments: str | None = None
    content: list[_Part] | None = None
    summary: list[_Part] | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class _Response(msgspec.Struct, gc=False):
    object: str | None = None
    status: str | None = None
    error: Any = None
    incomplete_details: _Incomplete | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    error: Any = None
    delta: Any = None  # text, with one vendor's server an object
    # Large, and of use in few events: decoded only there.
    item: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Event).decode
_decode_item = msgspec.json.Decoder(_Item).decode
_decode_whole = msgspec.json.Decoder(_Response).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _body(request: GenerationRequest) -> bytes:
    fields: JsonObject = {
        "model": request.model,
        "input": as_objects(request.conversation),
        request.length_field or "max_output_tokens": request.max_tokens,
        "temperature": request.temperature,
        "stream": request.stream,
        "store": False,  # the server would keep every answer to be asked for later
    }
    if request.ignore_eos:
        fields["ignore_eos"] = True
    if request.min_tokens:
        fields["min_tokens"] = request.max_tokens
    return encode(fields | dict(request.extra))


def read_event(answer: Answer, payload: bytes, at: int) -> None:
    """Write one streamed event that arrived at `at` into the answer. Never raises: what is wrong becomes data."""
    try:
        event = _decode(payload)
        if event.type == _TEXT and answer.first_answer >= 0 and event.delta and type(event.delta) is str:
            # Nearly every event ends here. What `_read` would do, less three calls.
            answer.event_ns.append(at)
            answer.event_class.append(_CONTENT)
            answer.texts.append(event.delta)
            return
        _read(answer, event, payload, at)
    except _UNREADABLE as cause:
        if payload == b"[DONE]":
            answer.done = True
            answer.mark(_DONE, at)
        else:
            answer.malformed = answer.malformed or str(cause) or type(cause).__name__
            answer.mark(_ERROR, at)


def read_whole(answer: Answer, payload: bytes, at: int) -> None:
    """Write a whole (not streamed) response into the answer, as events at `at`."""
    try:
        response = _decode_whole(payload)
    except _UNREADABLE as cause:
        answer.malformed = str(cause) or type(cause).__name__
        return
    for item in response.output or ():
        _item(answer, item, at)
    if response.output is not None or response.object == "response":
        _end(answer, response)
    elif response.error is not None:
        answer.error = json.dumps(response.error, ensure_ascii=False)


def _read(answer: Answer, event: _Event, payload: bytes, at: int) -> None:
    if (kind := _CLASSES.get(event.type)) is not None:
        if event.type == _REFUSAL:
            answer.refused = True
        if event.delta and isinstance(event.delta, str):
            answer.text(kind, event.delta, at)
        else:
            answer.mark(_EMPTY, at)
    elif event.type == "error" or event.error is not None:
        answer.error = payload.decode()
        answer.mark(_ERROR, at)
    elif event.type in _ENDS:
        _end(answer, _decode_whole(event.response))
        answer.mark(_DONE if answer.error is None else _ERROR, at)
    elif event.type == "response.output_item.added" and (name := _called(_decode_item(event.item))):
        answer.text(_TOOL_CALL, name, at)
    else:
        answer.mark(_EMPTY if event.type.endswith(".delta") else _ROLE, at)


def _called(item: _Item) -> str | None:
    """The name of the tool that an item calls, if it does."""
    return item.name if item.type in _CALLS else None


def _item(answer: Answer, item: _Item, at: int) -> None:
    """One item of a whole response's output."""
    if item.type in _CALLS:
        answer.text(_TOOL_CALL, (item.name or "") + (item.arguments or ""), at)
        return
    kind = _REASONING if item.type == "reasoning" else _CONTENT
    for part in [*(item.content or ()), *(item.summary or ())]:
        if part.refusal:
            answer.refused = True
        if text := part.refusal or part.text:
            answer.text(kind, text, at)


def _end(answer: Answer, response: _Response) -> None:
    """The response's status, and the usage that comes with it."""
    reason = None if response.incomplete_details is None else response.incomplete_details.reason
    if response.error is not None or response.status == "failed":
        answer.error = json.dumps(response.error or "the response failed", ensure_ascii=False)
    word = reason or response.status
    answer.finish_reason = None if word is None else _FINISH.get(word, word)
    answer.refused = answer.refused or reason == "content_filter"
    answer.done = True
    usage = response.usage
    if usage is None:
        return
    answer.input_tokens, answer.output_tokens = usage.input_tokens, usage.output_tokens
    if usage.input_tokens_details is not None:
        answer.cached_tokens = usage.input_tokens_details.cached_tokens
    if usage.output_tokens_details is not None:
        answer.reasoning_tokens = usage.output_tokens_details.reasoning_tokens


RESPONSES = Dialect(
    INTERFACES["responses"],
    vendor="OpenAI",
    body=_body,
    read_event=read_event,
    read_whole=read_whole,
    end="response.completed",
    models_path="/v1/models",
    read_models=read_models,
    length_fields=("max_output_tokens",),
)
