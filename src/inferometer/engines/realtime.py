"""OpenAI's Realtime API for text: `/v1/realtime`, events over a WebSocket
(platform.openai.com/docs/api-reference/realtime-server-events).

A request is one `response.create` outside of the session's conversation, with its own input, so that no request carries those
before it. The model stands in the URL.

| event                                                              | is read as                                      |
| ------------------------------------------------------------------ | ----------------------------------------------- |
| `response.output_text.delta`, in the beta `response.text.delta`    | content                                         |
| `response.function_call_arguments.delta`                           | tool call                                       |
| `response.done`                                                    | done, with usage and a finish reason; see below |
| `error`                                                            | error                                           |
| one of another response than those before it                       | malformed: two answers are mixed                |
| everything else of a response                                      | role: it opens or closes a part, and has no text |
| `session.*`, `conversation.*`, `rate_limits.*` and the like        | empty                                           |

Of a response that ends without any text, what `response.done` has in `output` is the text. Its status decides: `completed` is
`stop`; `incomplete` for `max_output_tokens` is `length`, for `content_filter` is that; all others are errors.
"""

from __future__ import annotations

from typing import Any

import msgspec

from inferometer.engines.answer import Answer, error_in, inside, words_of
from inferometer.engines.dialect import Dialect, GenerationRequest, encode
from inferometer.engines.interface import INTERFACES, JsonObject
from inferometer.engines.openai import read_models
from inferometer.engines.responses import INCOMPLETE, count_usage
from inferometer.journal.schema import EventClass

_ROLE, _CONTENT, _TOOL_CALL = int(EventClass.ROLE), int(EventClass.CONTENT), int(EventClass.TOOL_CALL)
_ERROR, _EMPTY, _DONE = int(EventClass.ERROR), int(EventClass.EMPTY), int(EventClass.DONE)
_WITH_ID = frozenset({"response.created", "response.done"})
_TEXTS = frozenset({"response.output_text.delta", "response.text.delta"})
_CALL, _END, _PREFIX = "response.function_call_arguments.delta", "response.done", "response."


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    delta: Any = None
    error: Any = None
    response_id: str | None = None
    emitted_monotonic_ns: Any = None  # of the reference server
    response: msgspec.Raw = msgspec.Raw()  # large, and of use at the end


class _Part(msgspec.Struct, gc=False):
    text: str | None = None
    transcript: str | None = None


class _Item(msgspec.Struct, gc=False):
    type: str = ""
    name: str | None = None
    arguments: str | None = None
    content: list[_Part] | None = None


class _Response(msgspec.Struct, gc=False):
    id: str | None = None
    status: str | None = None
    status_details: Any = None
    output: list[_Item] | None = None
    model: Any = None
    usage: Any = None  # a wrong type in it is no reason to lose the end


_decode = msgspec.json.Decoder(_Event).decode
_decode_response = msgspec.json.Decoder(_Response).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _body(request: GenerationRequest) -> bytes:
    content = [{"type": "input_text", "text": request.prompt}]
    response: JsonObject = {
        "conversation": "none",
        "output_modalities": ["text"],
        "input": [{"type": "message", "role": "user", "content": content}],
        request.length_field or "max_output_tokens": request.max_tokens,
    }
    given = {name: value for name, value in (response | dict(request.extra)).items() if value is not None}
    return encode({"type": "response.create", "response": given})


def read_event(answer: Answer, payload: bytes, at: int) -> None:
    """Write one event that arrived at `at` into the answer. Never raises: what is wrong becomes data."""
    try:
        event = _decode(payload)
        text = event.delta
        plain = text and type(text) is str and event.type in _TEXTS and event.error is None
        if answer.flowing and plain and event.response_id == answer.source:
            # Nearly every event ends here. What `_read` would do, less three calls.
            answer.event_ns.append(at)
            answer.event_class.append(_CONTENT)
            answer.texts.append(text)
            return
        if answer.done:
            answer.mark(_DONE, at)
            return
        before = len(answer.texts)
        _read(answer, event, payload, at)
        if event.emitted_monotonic_ns is not None:
            answer.stamp(event.emitted_monotonic_ns, before)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, at)


def read_whole(answer: Answer, payload: bytes, at: int) -> None:
    """Write an answer that is one `response.done` into `answer`, as events at `at`."""
    try:
        event = _decode(payload)
        if event.type == _END and event.error is None:
            _end(answer, _decode_response(event.response), at)
        elif error_in(payload, alone=True):
            answer.fail(payload, None)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, None)


def _read(answer: Answer, event: _Event, payload: bytes, at: int) -> None:
    own = event.type.startswith(_PREFIX)
    if (event.error is not None or not own) and error_in(payload, alone=not event.type):
        answer.fail(payload, at)
    elif own and not _of_this(answer, event):
        answer.malformed = answer.malformed or "an event of another response"
        answer.mark(_ERROR, at)
    elif event.type in _TEXTS or event.type == _CALL:
        if event.delta and isinstance(event.delta, str):
            answer.text(_CONTENT if event.type in _TEXTS else _TOOL_CALL, event.delta, at)
        else:
            answer.mark(_EMPTY, at)
    elif event.type == _END:
        _end(answer, _decode_response(event.response), at)
        answer.mark(_DONE if answer.done else _ROLE if answer.error is None else _ERROR, at)
    else:
        failed = event.type == "response.failed" and error_in(payload, alone=False)
        if failed:
            answer.fail(payload, at)
        else:
            answer.mark(_ROLE if own else _EMPTY, at)


def _of_this(answer: Answer, event: _Event) -> bool:
    """Whether an event is of the response that the first event with an id was of, or has no id."""
    ident = event.response_id
    if ident is None and event.type in _WITH_ID and bytes(event.response):
        ident = _decode_response(event.response).id
    if answer.source is None:
        answer.source = ident
    return ident is None or ident == answer.source


def _end(answer: Answer, response: _Response, at: int) -> None:
    """The last event: a text that came in no delta, the status, the model and usage."""
    if not answer.texts and not answer.unseen:
        answer.together([part for item in response.output or () if (part := _text(item))[1]], at)
    answer.named(response.model)
    count_usage(answer, response.usage, "token_details")
    reason = inside(response.status_details, "reason")
    if response.status == "completed":
        answer.finish("stop")
    elif response.status == "incomplete" and isinstance(reason, str) and reason in INCOMPLETE:
        answer.finish(INCOMPLETE[reason])
    elif response.status is not None and response.status != "in_progress":
        words = words_of(inside(response.status_details, "error")) if response.status_details else None
        said = f"the response is {response.status}" + (f" ({reason})" if isinstance(reason, str) else "")
        answer.error = answer.error or (words if words not in (None, "None") else said)
        answer.finish_reason = response.status
        return
    else:
        return
    answer.done, answer.flowing = True, False


def _text(item: _Item) -> tuple[int, str]:
    """The text of one item of the output, with its class."""
    if item.type == "function_call":
        return _TOOL_CALL, (item.name or "") + (item.arguments or "")
    return _CONTENT, "".join(part.text or part.transcript or "" for part in item.content or ())


REALTIME = Dialect(
    INTERFACES["realtime"],
    vendor="OpenAI",
    body=_body,
    read_event=read_event,
    read_whole=read_whole,
    end="response.done",
    models_path="/v1/models",
    read_models=read_models,
    length_fields=("max_output_tokens",),
    typed_events=True,
)
