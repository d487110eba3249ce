"""Our own format of recorded sessions: JSON Lines in UTF-8, a session a line (docs/agent-sessions.md has it in words).

    {"session": "s1", "tools": [...], "steps": [
      {"name": "plan", "messages": [{"role": "user", "content": "..."}], "reply": {"content": null, "tool_calls": [...]},
       "output_tokens": 40},
      {"name": "answer", "tool_ms": 120, "messages": [{"role": "tool", "tool_call_id": "c1", "content": "..."}]}]}

| of a step | unless given                                                                                             |
| --------- | -------------------------------------------------------------------------------------------------------- |
| `after`   | the step before; of the first none                                                                       |
| `extends` | the step it waits for, if it is one; none where it waits for none; of several the file has to say which  |
| `visible` | its reply, if one is recorded, calls no tools, and no step waits for it or goes on with it               |

Steps are named by their `name` or by their number, from 0. `tools` of the session are a field of each step's body, unless the
step's own `fields` have some.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import TypeAdapter, ValidationError

from inferometer.errors import PlanError
from inferometer.plan.lengths import LONGEST
from inferometer.plan.target import Body
from inferometer.units import NS_PER_MS
from inferometer.workload.agent_sessions.decode_faults import worded
from inferometer.workload.agent_sessions.recorded_lines import lines_of, refusal
from inferometer.workload.agent_sessions.session import MOST_STEPS, NONE, AgentSession, Delay, Step

ROLES = ("system", "developer", "user", "assistant", "tool")
LONGEST_MS = 7 * 86_400_000
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Millis = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_MS)]


class _Url(msgspec.Struct, forbid_unknown_fields=True):
    url: Annotated[str, msgspec.Meta(min_length=1)]
    detail: str | None = None


class _Part(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text", "image_url"]
    text: str | None = None
    image_url: _Url | None = None

    def __post_init__(self) -> None:
        if getattr(self, self.type) is None:
            raise ValueError(f"has no {self.type}, though that is its type")


class _Function(msgspec.Struct, forbid_unknown_fields=True):
    name: Name
    arguments: str


class _ToolCall(msgspec.Struct, forbid_unknown_fields=True):
    id: Name
    type: Literal["function"]
    function: _Function


class _Reply(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["assistant"] = "assistant"
    content: str | None = None
    tool_calls: Annotated[list[_ToolCall], msgspec.Meta(min_length=1)] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.content is None and self.tool_calls is None:
            raise ValueError("has neither content nor tool_calls")


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[_Part], msgspec.Meta(min_length=1)] | None = None
    tool_calls: Annotated[list[_ToolCall], msgspec.Meta(min_length=1)] | None = None
    tool_call_id: Name | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.role == "tool":
            if self.tool_call_id is None:
                raise ValueError("is of role tool and has no tool_call_id")
        elif self.tool_call_id is not None:
            raise ValueError("has a tool_call_id, which only messages of role tool have")
        if self.content is None and (self.role != "assistant" or self.tool_calls is None):
            raise ValueError("has no content")
        if self.tool_calls is not None and self.role != "assistant":
            raise ValueError("has tool_calls, which only messages of role assistant have")


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    name: Name | None = None
    agent: Name | None = None
    after: list[str | int] | None = None
    extends: str | int | msgspec.UnsetType | None = msgspec.UNSET
    reply: _Reply | None = None
    output_tokens: Annotated[int, msgspec.Meta(ge=1, le=LONGEST)] | None = None
    tool_ms: Millis | None = None
    think_ms: Millis | None = None
    model: Name | None = None
    fields: dict[str, Any] | None = None
    visible: bool | None = None


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """A line of a file. Its JSON Schema is docs/agent-session.schema.json."""

    session: Name
    steps: Annotated[list[_Step], msgspec.Meta(min_length=1, max_length=MOST_STEPS)]
    tools: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)] | None = None
    start_ms: Millis | None = None


_FIELDS = {kind: tuple(one.name for one in msgspec.structs.fields(kind)) for kind in (Line, _Step)}


class OwnFormat:
    """See Reader."""

    name = "inferometer"

    def detect(self, begins: bytes) -> bool:
        """See Reader: the first line is an object that names a session and lists steps."""
        first = begins.split(b"\n", 1)[0]
        return first.startswith(b"{") and b'"session"' in first and b'"steps"' in first

    def sessions(self, path: Path) -> Iterator[AgentSession]:
        """See Reader."""
        decode, convert = msgspec.json.Decoder().decode, msgspec.convert
        for number, line in lines_of(path):
            try:
                values = decode(line)
                found = convert(values, Line)
            except UnicodeDecodeError:
                raise refusal(path, number, None, "is not UTF-8 text") from None
            except RecursionError:
                raise refusal(path, number, None, "is nested too deeply") from None
            except msgspec.ValidationError as cause:
                raise refusal(path, number, *worded(str(cause), _otherwise)) from None
            except msgspec.DecodeError as cause:
                raise refusal(path, number, None, f"is no JSON: {cause}") from None
            yield _Reading(path, number, found, values).session()


def _otherwise(place: str, what: str) -> str:
    """Words for a value that is none of those allowed; the others are our own (`__post_init__`)."""
    if not what.startswith("Invalid enum value"):
        return what
    if place.endswith(".role"):
        return f"must be {'assistant' if place.endswith('reply.role') else ' or '.join(ROLES)}"
    return f"must be {'function' if 'tool_calls' in place else 'text or image_url'}"


class _Reading:
    """One line: `found`, typed, and `values`, as it stands there."""

    def __init__(self, path: Path, line: int, found: Line, values: dict[str, Any]) -> None:
        self._path, self._line, self._found, self._values = path, line, found, values
        self._numbers: dict[str, int] = {}
        self._plain = True  # a step follows on another, each on the one before it

    def session(self) -> AgentSession:
        """What it holds. Raises PlanError."""
        found = self._found
        shared = {} if found.tools is None else {"tools": found.tools}
        steps = [self._step(number, shared) for number in range(len(found.steps))]
        self._show(steps)
        start = None if found.start_ms is None else round(found.start_ms * NS_PER_MS)
        session = AgentSession(found.session, tuple(steps), self._line, start)
        if not self._plain and (fault := session.fault()) is not None:
            raise self._refused(None, fault)
        return session

    def _step(self, number: int, shared: dict[str, Any]) -> Step:
        found, values = self._found.steps[number], self._values["steps"][number]
        after: tuple[int, ...]
        if found.after is None and found.extends is msgspec.UNSET:
            after, extends = ((number - 1,), number - 1) if number else ((), NONE)
        else:
            self._plain = False
            after = self._after(number, found)
            extends = self._extends(number, found, after)
        name = found.name
        if name is not None:
            if name in self._numbers:
                raise self._refused(f"steps[{number}].name", "another step of the session has it as well")
            self._numbers[name] = number
        reply = values.get("reply")
        return Step(
            after,
            extends,
            tuple(values["messages"]),
            None if reply is None else {"role": "assistant", **reply},
            found.output_tokens,
            None,
            _delay(found),
            found.model,
            shared if found.fields is None else shared | self._fields(number, found.fields),
            name,
            found.agent,
            bool(found.visible),
        )

    def _after(self, number: int, found: _Step) -> tuple[int, ...]:
        if found.after is None:
            return (number - 1,) if number else ()
        named = [
            self._numbered(number, one, f"steps[{number}].after[{at}]") for at, one in enumerate(found.after)
        ]
        return tuple(dict.fromkeys(named))

    def _extends(self, number: int, found: _Step, after: Sequence[int]) -> int:
        if found.extends is None:
            return NONE
        if found.extends is not msgspec.UNSET:
            return self._numbered(number, found.extends, f"steps[{number}].extends")
        if len(after) > 1:
            raise self._refused(
                f"steps[{number}].extends",
                "is missing: the step waits for several, so name the one whose conversation it goes on with, or null",
            )
        return after[0] if after else NONE

    def _numbered(self, number: int, named: str | int, field: str) -> int:
        """The number of a step that is named, or numbered, by step `number`."""
        at = named if isinstance(named, int) else self._numbers.get(named, number)
        if not 0 <= at < number:
            raise self._refused(field, "names no step before this one")
        return at

    def _fields(self, number: int, fields: dict[str, Any]) -> dict[str, Any]:
        try:
            return _body_fields(json.dumps(fields))
        except ValueError as cause:
            raise self._refused(f"steps[{number}].fields", str(cause)) from None

    def _show(self, steps: list[Step]) -> None:
        """Decide of the steps that do not say it whether a user sees their answers."""
        awaited = {before for step in steps for before in (*step.after, step.extends)}
        for number, step in enumerate(steps):
            ends = number not in awaited and not (step.reply or {}).get("tool_calls")
            if ends and self._found.steps[number].visible is None:
                step.visible = True

    def _refused(self, field: str | None, message: str) -> PlanError:
        return refusal(self._path, self._line, field, message)


def _delay(found: _Step) -> Delay:
    if found.tool_ms is None and found.think_ms is None:
        return _NO_DELAY
    tool, think = found.tool_ms, found.think_ms
    return Delay(
        None if tool is None else round(tool * NS_PER_MS), None if think is None else round(think * NS_PER_MS)
    )


_NO_DELAY = Delay()
_BODY: TypeAdapter[dict[str, Any]] = TypeAdapter(Body)


@functools.lru_cache(maxsize=256)
def _body_fields(text: str) -> dict[str, Any]:
    """Fields that a body may have; the same for many steps. Raises ValueError."""
    try:
        return _BODY.validate_python(json.loads(text))
    except ValidationError as cause:
        raise ValueError(cause.errors()[0]["msg"].removeprefix("Value error, ")) from None
