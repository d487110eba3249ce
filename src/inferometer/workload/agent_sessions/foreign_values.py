"""Values of recorded sessions in others' formats: lines decoded into types, and messages validated.

What is wrong is reported with file, line and field; the values themselves, which may be somebody's words, never are.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import TypeAdapter, ValidationError

from inferometer import whole_file
from inferometer.errors import PlanError
from inferometer.foreign_json import NotJSON, check_depth, check_size, surely_shallow
from inferometer.plan.lengths import LONGEST
from inferometer.plan.target import Body
from inferometer.workload.agent_sessions.decode_faults import worded
from inferometer.workload.agent_sessions.recorded_lines import lines_of, refusal, unreadable

ROLES = ("system", "developer", "user", "assistant", "tool")
LONGEST_S = 7 * 86_400
"""Of one delay."""
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_S)]
Millis = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_S * 1000)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=LONGEST)]
Object = dict[str, Any]

T = TypeVar("T")


class Fault(ValueError):
    """A value at fault; `field`: where it is, as `messages[0].role`."""

    def __init__(self, field: str | None, words: str) -> None:
        super().__init__(words)
        self.field = field


def decoded(path: Path, number: int, line: bytes, kind: type[T]) -> T:
    """A line's JSON as a value of this type. Raises PlanError, which names line and field."""
    try:
        check_size(line)
        if not surely_shallow(line):
            check_depth(msgspec.json.decode(line))
        return msgspec.json.decode(line, type=kind)
    except NotJSON as cause:
        raise refusal(path, number, None, str(cause)) from None
    except UnicodeDecodeError:
        raise refusal(path, number, None, "is not UTF-8 text") from None
    except RecursionError:
        raise refusal(path, number, None, "is nested too deeply") from None
    except msgspec.ValidationError as cause:
        raise refusal(path, number, *worded(str(cause), _unknown)) from None
    except msgspec.DecodeError:
        raise refusal(path, number, None, "is no JSON, or is cut off") from None


def documents_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The JSON documents of a file with their lines: one a line, or the whole file as one where its first line is none.

    Raises PlanError.
    """
    lines = lines_of(path)
    first = next(lines, None)
    if first is None:
        return
    if _is_json(first[1]):
        yield from chain((first,), lines)
        return
    try:
        yield first[0], whole_file.read(path).removeprefix(b"\xef\xbb\xbf").strip()
    except OSError as cause:
        raise unreadable(path, cause) from cause


def _is_json(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return not line.startswith((b"{", b"[")) or line.rstrip().endswith((b"}", b"]"))
    return True


def _unknown(_place: str, _what: str) -> str:
    return "has a value that the format does not know"


def check_messages(messages: Sequence[Object], field: str = "messages") -> None:
    """That these are messages as OpenAI's chat takes them; their further members pass as they are. Raises Fault."""
    if not messages:
        raise Fault(field, "must hold a message")
    for at, message in enumerate(messages):
        _check_message(message, f"{field}[{at}]")


def _check_message(message: Object, field: str) -> None:
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if role not in ROLES:
        raise Fault(f"{field}.role", f"must be {' or '.join(ROLES)}")
    if calls is not None:
        if role != "assistant" or not isinstance(calls, list) or not calls:
            raise Fault(f"{field}.tool_calls", "must be a list of calls, in a message of role assistant")
        if not all(isinstance(one, dict) and isinstance(one.get("function"), dict) for one in calls):
            raise Fault(f"{field}.tool_calls", "must be calls of functions")
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        raise Fault(
            f"{field}.tool_call_id", "is missing: a message of role tool names the call that it answers"
        )
    if content is None and role == "assistant" and calls:
        return
    if isinstance(content, list) and content:
        for at, part in enumerate(content):
            _check_part(part, f"{field}.content[{at}]")
    elif not isinstance(content, str):
        raise Fault(f"{field}.content", "must be text, or a list of parts")


def _check_part(part: object, field: str) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part, dict) and isinstance(part.get("text"), str):
        return
    image = part.get("image_url") if kind == "image_url" and isinstance(part, dict) else None
    if not (isinstance(image, dict) and isinstance(image.get("url"), str)):
        raise Fault(field, "must be a part of type text with its text, or of type image_url with its url")


def delay_kind(messages: Sequence[Mapping[str, object]]) -> str:
    """Of a delay before these messages: a tool's time where a tool's result is among them, else thinking."""
    return "tool_ns" if any(one.get("role") == "tool" for one in messages) else "think_ns"


_BODY: TypeAdapter[Object] = TypeAdapter(Body)


def body_fields(fields: Mapping[str, object], field: str) -> Object:
    """Fields that a body may have beside what the plan sets. Raises Fault."""
    try:
        return _validated(json.dumps(fields, sort_keys=True))
    except ValidationError as cause:
        raise Fault(field, cause.errors()[0]["msg"].removeprefix("Value error, ")) from None


@functools.lru_cache(maxsize=256)
def _validated(text: str) -> Object:
    return _BODY.validate_python(json.loads(text))


def refused(path: Path, line: int, fault: Fault) -> PlanError:
    """A fault with its place."""
    return refusal(path, line, fault.field, str(fault))
