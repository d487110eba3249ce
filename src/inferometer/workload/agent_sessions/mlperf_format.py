"""Agentic datasets of MLPerf Endpoints: JSON Lines, a message a line, the lines of a conversation together and by turn.

    {"conversation_id": "c1", "turn": 1, "role": "user", "system": "...", "content": "...", "tools": [...]}
    {"conversation_id": "c1", "turn": 2, "role": "assistant", "tool_calls": [...]}
    {"conversation_id": "c1", "turn": 3, "role": "tool", "tool_results": [...], "delay_seconds": 1.2}

A line of role user or tool is a request, one of role assistant the reply to it (docs/agent-session-formats.md has the fields).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from inferometer.units import NS_PER_S
from inferometer.workload.agent_sessions.draft import Draft, finished
from inferometer.workload.agent_sessions.foreign_values import (
    Fault,
    Name,
    Object,
    Seconds,
    Tokens,
    body_fields,
    check_messages,
    decoded,
    refused,
)
from inferometer.workload.agent_sessions.recorded_lines import lines_of, refusal
from inferometer.workload.agent_sessions.session import NONE, AgentSession, Delay

_KEY = re.compile(rb'"conversation_id"\s*:|"_type"\s*:\s*"dataset_metadata"')
_AFTER = {
    None: ("user",),
    "user": ("assistant",),
    "assistant": ("tool", "user"),
    "tool": ("assistant", "user"),
}


class _Result(msgspec.Struct):
    tool_call_id: Name
    content: str | list[Object]


class _Row(msgspec.Struct):
    conversation_id: Name | int
    turn: int
    role: Literal["user", "assistant", "tool"]
    content: str | list[Object] | None = None
    system: str | None = None
    name: str | None = None
    tools: list[Object] | None = None
    tool_calls: list[Object] | None = None
    tool_results: list[_Result] | None = None
    reasoning_content: str | None = None
    delay_seconds: Seconds | None = None
    model: Name | None = None
    max_new_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None

    @property
    def most_tokens(self) -> int | None:
        return self.max_new_tokens or self.max_completion_tokens


class _Begin(msgspec.Struct):
    """Whether a line is of the conversations at all."""

    type_: Any = msgspec.field(default=None, name="_type")


class MLPerfFormat:
    """See Reader."""

    name = "mlperf"

    def detect(self, begins: bytes) -> bool:
        """See Reader: the first line names a conversation, or is the dataset's metadata."""
        return _KEY.search(begins.split(b"\n", 1)[0]) is not None

    def sessions(self, path: Path) -> Iterator[AgentSession]:
        """See Reader."""
        current: _Conversation | None = None
        known: set[str] = set()
        for number, line in lines_of(path):
            if b"_type" in line and decoded(path, number, line, _Begin).type_ == "dataset_metadata":
                continue
            row = decoded(path, number, line, _Row)
            if current is None or current.name != str(row.conversation_id):
                if current is not None:
                    yield current.session()
                current = _Conversation(path, number, str(row.conversation_id))
                if current.name in known:
                    words = "stands apart from the other lines of its conversation: they must be together"
                    raise refusal(path, number, "conversation_id", words)
                known.add(current.name)
            try:
                current.add(row)
            except Fault as fault:
                raise refused(path, number, fault) from None
        if current is not None:
            yield current.session()


class _Conversation:
    """The lines of one conversation, as they come."""

    def __init__(self, path: Path, line: int, name: str) -> None:
        self.name = name
        self._path, self._line = path, line
        self._role: str | None = None
        self._turn = 0
        self._first: _Row | None = None
        self._system: str | None = None
        self._steps: list[Draft] = []
        self._bodies: tuple[list[Object] | None, Object] = (
            None,
            {},
        )  # the latest tools, and what they are of a body
        self._history: list[Object] = []

    def add(self, row: _Row) -> None:
        """The next line. Raises Fault."""
        self._turn += 1
        if row.turn != self._turn:
            raise Fault("turn", f"must be {self._turn}: turns count from 1, in order")
        if row.role not in _AFTER[self._role]:
            behind = "first" if self._role is None else f"behind one of role {self._role}"
            raise Fault("role", f"must be {' or '.join(_AFTER[self._role])} {behind}")
        self._system = self._system or row.system or None
        messages = _messages(row)
        if row.role == "assistant":
            check_messages(messages, "line")
            self._steps[-1].reply = messages[0]
        else:
            check_messages(messages, "tool_results" if row.role == "tool" else "line")
            self._request(row, messages)
        self._history += messages
        self._role = row.role

    def _request(self, row: _Row, messages: list[Object]) -> None:
        first = self._first = self._first or row
        last = len(self._steps) - 1
        unanswered = last >= 0 and self._steps[last].reply is None
        delay = None if row.delay_seconds is None else round(row.delay_seconds * NS_PER_S)
        tools = row.tools or first.tools
        if tools is not self._bodies[0]:
            self._bodies = tools, body_fields({"tools": tools}, "tools") if tools else {}
        self._steps.append(
            Draft(
                (last,) if last >= 0 else (),
                NONE if unanswered else last,  # a reply that nobody recorded is not in what follows
                [*self._history, *messages] if unanswered else messages,
                output_tokens=row.most_tokens or first.most_tokens,
                delay=Delay(tool_ns=delay) if row.role == "tool" else Delay(think_ns=delay),
                model=row.model or first.model,
                fields=self._bodies[1],
            )
        )

    def session(self) -> AgentSession:
        """All of it. Raises PlanError."""
        if self._system is not None:
            for step in self._steps:
                if step.extends == NONE:
                    step.messages = [{"role": "system", "content": self._system}, *step.messages]
        return finished(self._path, self._line, self.name, self._steps, None)


def _messages(row: _Row) -> list[Object]:
    """The messages of a line. Raises Fault."""
    if row.role == "tool":
        if not row.tool_results:
            raise Fault("tool_results", "is missing: a line of role tool has results")
        return [
            {"role": "tool", "tool_call_id": one.tool_call_id, "content": one.content}
            for one in row.tool_results
        ]
    message: Object = {"role": row.role, "content": row.content}
    for key in ("name", "tool_calls", "reasoning_content"):
        if (value := getattr(row, key)) is not None:
            message[key] = value
    calls = row.tool_calls if row.role == "assistant" else None
    for at, call in enumerate(calls or ()):
        function = call.get("function")
        if isinstance(function, dict) and isinstance(function.get("arguments"), dict):
            text = msgspec.json.encode(function["arguments"]).decode()
            message["tool_calls"][at] = {**call, "function": {**function, "arguments": text}}
    if not row.content and not calls:
        raise Fault("content", "is missing or empty")
    return [message]
