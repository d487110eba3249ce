"""A dialect made of a plan's description of messages (message_form.py), once for a run.

A message that is only text is recognised by being decoded as a type that no other message fits:

    text: data.token, where kind = piece           class Message: kind: Literal["piece"]; data: Data; usage: Any = None
    completion_tokens: usage.out              ->   class Data: token: str

It is one if nothing true is in the members that may hold more, which here is `usage`, and it has no common shape of an error,
unless errors are described. Every other message is decoded as it is, and looked at path by path.

| a message                                              | is read as                                               |
| ------------------------------------------------------ | -------------------------------------------------------- |
| an error by the description; without one by answer.py  | error                                                    |
| with text                                              | content                                                  |
| with something else in the text's place, not the last  | malformed                                                |
| that ends the answer                                   | done; content if it has text too                         |
| any other                                              | usage if it has a count, finish if a reason, else empty  |
| that is no JSON                                        | as in every dialect (`Answer.unreadable`)                |

Counts and reasons are read of every message, of which the last ones stand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Literal, get_args

import msgspec

from inferometer.engines.answer import NO_REASON, Answer, error_in, states_error, words_of
from inferometer.engines.dialect import Dialect, GenerationRequest, Read
from inferometer.engines.interface import Interface, JsonObject
from inferometer.engines.message_form import PLACEHOLDERS, Mark, MessageForm, Path, Scalar
from inferometer.engines.openai import read_models
from inferometer.journal.schema import EventClass

_CONTENT, _EMPTY, _DONE = int(EventClass.CONTENT), int(EventClass.EMPTY), int(EventClass.DONE)
_USAGE, _FINISH, _ERROR = int(EventClass.USAGE), int(EventClass.FINISH), int(EventClass.ERROR)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_PLACE = re.compile("|".join(map(re.escape, PLACEHOLDERS)))


def dialect(interface: Interface, form: MessageForm) -> Dialect:
    """The dialect of a server with these messages."""
    read = _reader(form)
    return Dialect(
        interface.described(form.target, greets=form.greets),
        vendor="plan",
        body=_body_of(form),
        read_event=read,
        read_whole=read,
        end="the end that target.websocket describes",
        models_path="/v1/models",
        read_models=read_models,
        length_fields=("max_tokens",),
    )


def _body_of(form: MessageForm) -> Callable[[GenerationRequest], bytes]:
    template = json.loads(form.request)
    has_temperature = "{temperature}" in form.request

    def body(request: GenerationRequest) -> bytes:
        extra: JsonObject = dict(request.extra)
        temperature: object = request.temperature
        if has_temperature:  # a class's own stands where the plan's would
            temperature = extra.pop("temperature", temperature)
        values = {
            "{prompt}": request.prompt,
            "{model}": request.model,
            "{max_tokens}": request.max_tokens,
            "{temperature}": temperature,
        }
        fields = {**_filled(template, values), **extra}
        kept = {name: value for name, value in fields.items() if name not in extra or value is not None}
        return json.dumps(kept, separators=(",", ":"), ensure_ascii=False).encode()

    return body


def _filled(value: Any, values: dict[str, Any]) -> Any:
    """A template with its placeholders replaced: alone by the value itself, within a text by its words."""
    if isinstance(value, dict):
        return {name: _filled(inner, values) for name, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values) for inner in value]
    if not isinstance(value, str):
        return value
    return values[value] if value in values else _PLACE.sub(lambda found: str(values[found[0]]), value)


def _inside(value: Any, path: Path) -> Any:
    """What stands at a path in JSON; None: nothing."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _holds(mark: Mark, message: Any) -> bool:
    """Whether a message is of this kind."""
    return all(_inside(message, path) == wanted for path, wanted in mark.where) and (
        not mark.path or bool(_inside(message, mark.path))
    )


def _reader(form: MessageForm) -> Read:
    plain = _plain(form)

    def read_event(answer: Answer, payload: bytes, at: int) -> None:
        """Write one message that arrived at `at` into the answer. Never raises: what is wrong becomes data."""
        if answer.flowing and plain is not None and (text := plain(payload)):
            # Nearly every message ends here. What `_read` would do, less ten calls.
            answer.event_ns.append(at)
            answer.event_class.append(_CONTENT)
            answer.texts.append(text)
            return
        try:
            message = msgspec.json.decode(payload)
        except _UNREADABLE as cause:
            answer.unreadable(payload, cause, at)
            return
        if answer.done:
            answer.mark(_DONE, at)
        else:
            _read(form, answer, message, payload, at)

    return read_event


class _NotPlain(Exception):
    """No type can tell the messages of this form that are only text."""


def _plain(form: MessageForm) -> Callable[[bytes], str | None] | None:
    """What gives the text of a message that is only text, and None of all others; None: no such thing can be had."""
    members: _Members = {}
    try:
        first, rest = _insert_text(members, form.text.path)
        falses = [_insert(members, path, bool) for path, value in form.text.where if value is False]
        for path, value in form.text.where:
            if value is not False:
                _insert(members, path, _type_of(value))
        odd = list(dict.fromkeys([*falses, *_insert_oddities(members, form)]))
    except _NotPlain:
        return None
    stated = [] if form.error is not None else _stating(members)
    decode = msgspec.json.Decoder(_struct(members)).decode
    if len(odd) == 1 and not stated:
        odd *= 2  # of one name attrgetter gives no tuple
    count, nothing = len(odd), (None,) * (len(odd) + len(stated))
    holder_of, more_of = attrgetter(first), attrgetter(*odd, *stated) if nothing else None

    def plain(payload: bytes) -> str | None:
        try:
            message = decode(payload)
        except _UNREADABLE:
            return None
        more = nothing if more_of is None else more_of(message)
        if more != nothing and (any(more[:count]) or states_error(*more[count:])):
            return None
        text = holder_of(message)
        if rest:
            text = _inside(text, rest)
        return text if text.__class__ is str else None

    return plain


def _insert_oddities(members: _Members, form: MessageForm) -> Iterator[str]:
    """Take in what makes a message more than text, be it even the first member on the way there: that may only be null, or
    only nothing true, which is for the attributes given to show. Raises _NotPlain."""
    for path in filter(None, (form.prompt_tokens, form.completion_tokens, form.finish_reason)):
        _insert(members, path, None)
    wanted = dict(form.text.where)
    for mark in (form.end, *([] if form.error is None else [form.error])):
        if any(path in wanted and wanted[path] != value for path, value in mark.where):
            continue  # no message is both
        present = mark.path or next((path for path, value in mark.where if value), ())
        if not present:
            raise _NotPlain
        yield _insert(members, present, Any)


_Members = dict[str, Any]
"""Members of a message by name: those of another object, or a type; `attribute` gives the name in Python."""


def _attribute(members: _Members, name: str) -> str:
    return f"m{list(members).index(name)}"


def _insert(members: _Members, path: Path, kind: Any) -> str:
    """Take in a member of this type; where the type may be null, and no other leads that far, the first on the way to it. The
    attribute that has it. Raises _NotPlain."""
    name, optional = path[0], kind in (None, Any)
    if not isinstance(name, str):
        raise _NotPlain
    inner = members.setdefault(name, kind if len(path) == 1 or optional else {})
    attribute = _attribute(members, name)
    if isinstance(inner, dict) and len(path) > 1:
        return f"{attribute}.{_insert(inner, path[1:], kind)}"
    if inner is not kind and not (optional and inner in (None, Any)):
        raise _NotPlain
    return attribute


def _stating(members: _Members) -> list[str]:
    """Take in what may state an error in one of the common shapes, whatever its type; the attributes of what still may."""
    for name in ("error", "object", "type"):
        members.setdefault(name, Any)
    fixed = get_args(members["type"])  # where a condition gives its only value
    names = ("error", "object") if fixed and not states_error(kind=fixed[0]) else ("error", "object", "type")
    return [_attribute(members, name) for name in names]


def _insert_text(members: _Members, path: Path) -> tuple[str, Path]:
    """The attribute of the text, or of the list that holds it, and the way from there."""
    at = next((at for at, step in enumerate(path) if isinstance(step, int)), len(path))
    if not at:
        raise _NotPlain
    kind = str if at == len(path) else list
    return _insert(members, path[:at], kind), path[at:]


def _type_of(wanted: Scalar) -> Any:
    """The type of this value alone, if it has one. Raises _NotPlain."""
    if isinstance(wanted, bool | float) or (isinstance(wanted, int) and not -(1 << 63) <= wanted < 1 << 63):
        raise _NotPlain
    return None if wanted is None else Literal[wanted]


def _struct(members: _Members) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any, Any]] = []
    for name, kind in members.items():
        absent = None if kind in (Any, None) else msgspec.NODEFAULT
        inner = _struct(kind) if isinstance(kind, dict) else kind
        fields.append((_attribute(members, name), inner, msgspec.field(default=absent, name=name)))
    return msgspec.defstruct("Message", fields, gc=False, kw_only=True)


def _read(form: MessageForm, answer: Answer, message: Any, payload: bytes, at: int) -> None:
    if form.error is None:
        failed = error_in(payload, alone=False)
    elif failed := _holds(form.error, message):
        words = words_of(_inside(message, form.error.path)) if form.error.path else None
        answer.error = answer.error or words
    if failed:
        answer.fail(payload, at)
        return
    prompt, output, reason = (
        _inside(message, path) if path else None
        for path in (form.prompt_tokens, form.completion_tokens, form.finish_reason)
    )
    answer.count(prompt, output)
    if isinstance(reason, str):
        answer.finish(reason)
    before, ended = len(answer.event_class), _holds(form.end, message)
    if _holds(form.text, message):
        text = _inside(message, form.text.path)
        if isinstance(text, str):
            answer.text(_CONTENT, text, at)
        elif not ended:  # a token that would be left out of every figure
            answer.malformed = answer.malformed or "what target.websocket.text leads to is no text"
            answer.mark(_ERROR, at)
    if ended:
        answer.done, answer.flowing = True, False
    if len(answer.event_class) == before:
        counted = prompt is not None or output is not None
        finished = isinstance(reason, str) and reason not in NO_REASON
        answer.mark(_DONE if ended else _FINISH if finished else _USAGE if counted else _EMPTY, at)
