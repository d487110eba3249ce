"""OpenAI's Responses API: `/v1/responses`, streamed as typed events or whole
(platform.openai.com/docs/api-reference/responses-streaming).

| event, `response.` left out                                       | is read as                                         |
| ----------------------------------------------------------------- | -------------------------------------------------- |
| `output_text.delta`                                               | content                                            |
| `refusal.delta`                                                   | content, and the answer is a refusal               |
| `reasoning_text.delta`, `reasoning_summary_text.delta`            | reasoning                                          |
| `function_call_arguments.delta`, and those of other tools         | tool call                                          |
| `output_item.added` of a `function_call`                          | tool call: its name                                |
| `completed`, `incomplete`                                         | done, with usage and a finish reason; see below    |
| `failed`, `cancelled`; `error`, which has no prefix; other errors | error                                              |
| a `delta` that is empty or no text                                | empty                                              |
| `output_text.done` and those of the other deltas                  | role; without a delta before it, its text          |
| everything else: `created`, `in_progress`, `*.added`, `*.done`    | role: it opens or closes a part, and has no text   |

Parts are streamed one after the other, so a part whose end comes without a text since the part before it had no delta. Of a
response that ends without any text, what its last event has in `output` is the text.

There is no `[DONE]`; a server that sends one all the same does no harm. Finish reasons are recorded in the words of chat
completions: `completed` is `stop`, `incomplete` for `max_output_tokens` is `length`, for `content_filter` is that.

**Status.** The response object decides, the event's type only where it has none: `completed`, and `incomplete` for one of these
two reasons, are the end of an answer. `failed`, `cancelled` and `incomplete` for another reason are errors. A response that is
still `in_progress` or `queued`, or `incomplete` without a reason, has no end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from inferometer.engines.answer import Answer, error_in, inside, words_of
from inferometer.engines.dialect import Dialect, GenerationRequest, as_objects, encode
from inferometer.engines.interface import INTERFACES, JsonObject
from inferometer.engines.openai import read_models
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
_CLOSING = {name.removesuffix(".delta") + ".done": kind for name, kind in _CLASSES.items()}
_REFUSED = "response.refusal.done"
_PREFIX = "response."
_ENDS = frozenset(_PREFIX + status for status in ("completed", "incomplete", "failed", "cancelled"))
INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""Reasons why a response that is `incomplete` has ended all the same, in the words of chat completions."""
_FINISH = {"completed": "stop", **INCOMPLETE}
_FAILED = {"failed": "the response failed", "cancelled": "the response was cancelled"}
_CALLS = frozenset({"function_call", "custom_tool_call", "mcp_call"})
_PARTS = frozenset({"response.content_part.added", "response.content_part.done"})
_NULL = (b"", b"null")


class _Part(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Closed(msgspec.Struct, gc=False):
    """The whole text of a part, under the name that its kind has for it."""

    text: Any = None
    refusal: Any = None
    arguments: Any = None
    input: Any = None


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
    model: Any = None
    usage: Any = None  # a wrong type in it is no reason to lose the end


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    error: Any = None
    delta: Any = None  # text, with one vendor's server an object
    emitted_monotonic_ns: Any = None  # of the reference server
    # Large, and of use in few events: decoded only there.
    item: msgspec.Raw = msgspec.Raw()
    part: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()


_decode = msgspec.json.Decoder(_Event).decode
_decode_item = msgspec.json.Decoder(_Item).decode
_decode_closed = msgspec.json.Decoder(_Closed).decode
_decode_part = msgspec.json.Decoder(_Part).decode
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
        text = event.delta
        if answer.flowing and text and type(text) is str and event.type == _TEXT and event.error is None:
            # Nearly every event ends here. What `_read` would do, less three calls.
            answer.event_ns.append(at)
            answer.event_class.append(_CONTENT)
            answer.texts.append(text)
            return
        if answer.done:
            answer.mark(_DONE, at)
        elif _odd(event) and error_in(payload, alone=not event.type):
            answer.fail(payload, at)
        else:
            before = len(answer.texts)
            _read(answer, event, payload, at)
            if event.emitted_monotonic_ns is not None:
                answer.stamp(event.emitted_monotonic_ns, before)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, at)


def read_whole(answer: Answer, payload: bytes, at: int) -> None:
    """Write a whole (not streamed) response into the answer, as events at `at`."""
    try:
        response = _decode_whole(payload)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, None)
        return
    answer.together([part for item in response.output or () for part in _texts(answer, item)], at)
    if response.output is not None or response.object == "response":
        _end(answer, response, response.status)
    elif error_in(payload, alone=True):
        answer.fail(payload, None)


def _odd(event: _Event) -> bool:
    """Whether an event may be an error in the shape of others."""
    return event.error is not None or not event.type.startswith(_PREFIX)


def _read(answer: Answer, event: _Event, payload: bytes, at: int) -> None:
    if (kind := _CLASSES.get(event.type)) is not None:
        if event.type == _REFUSAL:
            answer.refused = True
        if event.delta and isinstance(event.delta, str):
            answer.text(kind, event.delta, at)
        else:
            answer.mark(_EMPTY, at)
    elif (kind := _CLOSING.get(event.type)) is not None:
        _close(answer, event, kind, payload, at)
    elif event.type in _ENDS:
        response = _Response() if bytes(event.response) in _NULL else _decode_whole(event.response)
        answer.refused = answer.refused or any(map(_refuses, response.output or ()))
        if not answer.texts and not answer.unseen:
            answer.together([part for item in response.output or () for part in _texts(answer, item)], at)
        _end(answer, response, response.status or event.type.removeprefix(_PREFIX))
        answer.mark(_DONE if answer.done else _ROLE if answer.error is None else _ERROR, at)
    elif event.type in _PARTS:
        part = _Part() if bytes(event.part) in _NULL else _decode_part(event.part)
        answer.refused = answer.refused or part.type == "refusal"
        answer.mark(_ROLE, at)
    elif event.type == "response.output_item.added" and (name := _called(_decode_item(event.item))):
        answer.text(_TOOL_CALL, name, at)
        answer.closed = len(answer.texts)
    else:
        answer.mark(_EMPTY if event.type.endswith(".delta") else _ROLE, at)


def _close(answer: Answer, event: _Event, kind: int, payload: bytes, at: int) -> None:
    """The end of a part: its text, if no delta had any."""
    part = _decode_closed(payload)
    text = part.text or part.refusal or part.arguments or part.input
    if event.type == _REFUSED:
        answer.refused = True
    missing = len(answer.texts) == answer.closed and text != answer.unseen
    if missing and text and isinstance(text, str):
        answer.text(kind, text, at)
    else:
        answer.mark(_ROLE, at)
    answer.closed = len(answer.texts)


def _refuses(item: _Item) -> bool:
    """Whether a message is a refusal, or has one in it."""
    return any(part.type == "refusal" for part in item.content or ())


def _called(item: _Item) -> str | None:
    """The name of the tool that an item calls, if it does."""
    return item.name if item.type in _CALLS else None


def _texts(answer: Answer, item: _Item) -> Iterator[tuple[int, str]]:
    """The texts of one item of a whole response's output, with their classes."""
    if item.type in _CALLS:
        if call := (item.name or "") + (item.arguments or ""):
            yield _TOOL_CALL, call
        return
    kind = _REASONING if item.type == "reasoning" else _CONTENT
    for part in [*(item.content or ()), *(item.summary or ())]:
        if part.refusal:
            answer.refused = True
        if text := part.refusal or part.text:
            yield kind, text


def _end(answer: Answer, response: _Response, status: str | None) -> None:
    """The response's status, and the model and usage that come with it."""
    answer.named(response.model)
    count_usage(answer, response.usage)
    reason = None if response.incomplete_details is None else response.incomplete_details.reason
    if response.error or status in _FAILED:
        words = words_of(response.error) if response.error else _FAILED[status or ""]
        answer.error = answer.error or words or "error"
        answer.finish_reason = status
    elif status == "completed" or (status == "incomplete" and reason in _FINISH):
        # vLLM says completed, and why it is not.
        answer.finish(_FINISH.get(reason or status, reason or status))
        answer.done, answer.flowing = True, False
    elif status == "incomplete" and reason is not None:
        answer.error = answer.error or f"incomplete: {reason}"


def count_usage(answer: Answer, usage: object, details: str = "tokens_details") -> None:
    """Usage as a response has it. `details`: how the names of the members end that Realtime calls otherwise."""
    answer.count(
        inside(usage, "input_tokens"),
        inside(usage, "output_tokens"),
        cached=inside(usage, f"input_{details}", "cached_tokens"),
        reasoning=inside(usage, f"output_{details}", "reasoning_tokens"),
    )


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
    typed_events=True,
)
