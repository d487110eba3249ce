"""Ollama's own interface: `/api/generate` and `/api/chat`, streamed as one JSON object a line, or whole
(github.com/ollama/ollama, docs/api.md).

| a line                                   | is read as                                                                       |
| ---------------------------------------- | -------------------------------------------------------------------------------- |
| `response`, or `message.content`         | content                                                                          |
| `thinking`, `message.thinking`           | reasoning                                                                        |
| `message.tool_calls`                     | tool call: each comes whole, its arguments as an object                          |
| `"done": true`                           | done: `done_reason`, counts and durations                                        |
| `error`                                  | error; Ollama sends it inside a 200 when the model fails on the way              |
| anything else                            | empty                                                                            |

| Ollama's field, of the last line         | is recorded as                                                                   |
| ---------------------------------------- | -------------------------------------------------------------------------------- |
| `prompt_eval_count`, `eval_count`        | tokens of prompt and answer; the first is missing if the whole prompt was cached |
| `total_duration`, `load_duration`        | `server_total_ns`, `server_load_ns`                                              |
| `prompt_eval_duration`, `eval_duration`  | `server_prefill_ns`, `server_decode_ns`                                          |

Sampling fields stand in `options`, so those of a plan are moved there; what `--extra-body` has under `options` wins. Ollama has
no `ignore_eos`. It cuts a prompt that is longer than `options.num_ctx` without an error: only the count tells.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import msgspec

from inferometer.engines.answer import MOST_NS, Answer, arguments_text, error_in, number
from inferometer.engines.dialect import Dialect, GenerationRequest, Models, as_objects, encode
from inferometer.engines.interface import INTERFACES, JsonObject
from inferometer.journal.schema import EventClass

_CONTENT, _REASONING, _TOOL_CALL = (
    int(EventClass.CONTENT),
    int(EventClass.REASONING),
    int(EventClass.TOOL_CALL),
)
_EMPTY, _DONE = int(EventClass.EMPTY), int(EventClass.DONE)

_OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "stop": "stop",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repetition_penalty": "repeat_penalty",
    "priority": "priority",
}
"""A plan's sampling fields, and what Ollama calls them inside `options`."""


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class _ToolCall(msgspec.Struct, gc=False):
    function: _Function | None = None


class _Message(msgspec.Struct, gc=False):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Line(msgspec.Struct, gc=False):
    message: _Message | None = None
    response: str | None = None
    thinking: str | None = None
    done: bool | None = None
    done_reason: str | None = None
    error: Any = None
    emitted_monotonic_ns: Any = None  # of the reference server
    created_at: Any = None  # of each token
    # A wrong type in these is no reason to lose the end.
    total_duration: Any = None
    load_duration: Any = None
    prompt_eval_count: Any = None
    prompt_eval_duration: Any = None
    eval_count: Any = None
    eval_duration: Any = None


class _Named(_Line, gc=False):
    """The same with the model's name, which every line repeats: looked for until it is known or the answer flows."""

    model: Any = None


_INSTANT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_decode = msgspec.json.Decoder(_Line).decode
_decode_named = msgspec.json.Decoder(_Named).decode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _generate_body(request: GenerationRequest) -> bytes:
    return _body(request, {"prompt": request.prompt})


def _chat_body(request: GenerationRequest) -> bytes:
    return _body(request, {"messages": as_objects(request.conversation)})


def _body(request: GenerationRequest, prompt: JsonObject) -> bytes:
    extra = dict(request.extra)
    options: JsonObject = {"num_predict": request.max_tokens, "temperature": request.temperature}
    options |= {theirs: extra.pop(ours) for ours, theirs in _OPTIONS.items() if ours in extra}
    given = extra.pop("options", None)
    options |= given if isinstance(given, dict) else {}
    options = {name: value for name, value in options.items() if value is not None}
    return encode({"model": request.model, **prompt, "stream": request.stream, "options": options} | extra)


def read_event(answer: Answer, payload: bytes, at: int) -> None:
    """Write one line that arrived at `at` into the answer. Never raises: what is wrong becomes data."""
    try:
        if answer.flowing or answer.model is not None:
            line = _decode(payload)
        else:
            line = named = _decode_named(payload)
            answer.named(named.model)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, at)
        return
    message = line.message
    if answer.flowing and not line.done and line.error is None:
        text = line.response if message is None else message.content
        thought = line.thinking if message is None else message.thinking
        if text and not thought and (message is None or not message.tool_calls):
            # Nearly every line ends here. What `_read` would do, less three calls.
            answer.event_ns.append(at)
            answer.event_class.append(_CONTENT)
            answer.texts.append(text)
            return
    if answer.done:
        answer.mark(_DONE, at)
        return
    before = len(answer.texts)
    _read(answer, line, payload, at)
    if len(answer.texts) > before:
        precise = line.emitted_monotonic_ns
        instant = instant_ns(line.created_at) if precise is None else precise
        if instant is not None:
            answer.stamp(instant, before)


def read_whole(answer: Answer, payload: bytes, at: int) -> None:
    """Write a whole (not streamed) answer into `answer`, as events at `at`."""
    try:
        line = _decode_named(payload)
    except _UNREADABLE as cause:
        answer.unreadable(payload, cause, None)
        return
    answer.named(line.model)
    _read(answer, line, payload, at)


def _read(answer: Answer, line: _Line, payload: bytes, at: int) -> None:
    nothing = line.message is None and line.response is None and line.thinking is None and not line.done
    if (nothing or line.error is not None) and error_in(payload, alone=nothing):
        answer.fail(payload, at)
        return
    before = len(answer.event_class)
    message = line.message or _Message(line.response, line.thinking)
    parts: list[tuple[int, str]] = []  # nearly always one at most
    if message.thinking:
        parts.append((_REASONING, message.thinking))
    if message.tool_calls:
        calls = [call.function for call in message.tool_calls if call.function is not None]
        if text := "".join((call.name or "") + arguments_text(call.arguments) for call in calls):
            parts.append((_TOOL_CALL, text))
    if message.content:
        parts.append((_CONTENT, message.content))
    answer.together(parts, at)
    if line.done:
        _end(answer, line)
    if len(answer.event_class) == before:
        answer.mark(_DONE if line.done else _EMPTY, at)


def instant_ns(text: object) -> int | None:
    """An instant of RFC 3339 with up to nine digits of a second in ns since 1970; None for anything else."""
    form = _INSTANT.fullmatch(text) if isinstance(text, str) else None
    if form is None:
        return None
    try:
        seconds = datetime.fromisoformat(form[1] + form[3].replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return None
    return int(seconds) * 1_000_000_000 + int((form[2] or "").ljust(9, "0")) if seconds >= 0 else None


def _end(answer: Answer, line: _Line) -> None:
    """The last line's reason, counts and durations."""
    answer.done, answer.flowing = True, False
    answer.finish(line.done_reason or "stop")  # versions before 0.2 name no reason
    answer.count(line.prompt_eval_count, line.eval_count)
    answer.server_total_ns = number(line.total_duration, MOST_NS)
    answer.server_load_ns = number(line.load_duration, MOST_NS)
    answer.server_prefill_ns = number(line.prompt_eval_duration, MOST_NS)
    answer.server_decode_ns = number(line.eval_duration, MOST_NS)


def _models(listing: Any) -> Models:
    """The listing of `/api/tags`."""
    return Models(tuple(str(item["name"]) for item in listing["models"]))


GENERATE = Dialect(
    INTERFACES["ollama-generate"],
    vendor="Ollama",
    body=_generate_body,
    read_event=read_event,
    read_whole=read_whole,
    end='a line with "done": true',
    models_path="/api/tags",
    read_models=_models,
    length_fields=("options.num_predict",),
)
CHAT = Dialect(
    INTERFACES["ollama-chat"],
    vendor="Ollama",
    body=_chat_body,
    read_event=read_event,
    read_whole=read_whole,
    end='a line with "done": true',
    models_path="/api/tags",
    read_models=_models,
    length_fields=("options.num_predict",),
)
