"""AIPerf's recorded sessions: files of conversations (aiperf_conversations.py), or of requests with their messages.

A request a line, as `mooncake_trace` has them with `session_id` and `messages`: the whole conversation, or with `message_mode`
delta what is new. Lines without text, of `input_length` and `hash_ids`, are no sessions that can be sent: `--trace` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from inferometer.units import NS_PER_MS
from inferometer.workload.agent_sessions.aiperf_conversations import conversations
from inferometer.workload.agent_sessions.draft import Draft, finished
from inferometer.workload.agent_sessions.foreign_values import (
    Fault,
    Millis,
    Name,
    Object,
    Tokens,
    body_fields,
    check_messages,
    decoded,
    delay_kind,
    refused,
)
from inferometer.workload.agent_sessions.histories import Histories
from inferometer.workload.agent_sessions.recorded_lines import beginning, lines_of
from inferometer.workload.agent_sessions.session import NONE, AgentSession, Delay

_CONVERSATION = re.compile(rb'"(turns|orchestrator)"\s*:')
_REQUEST = re.compile(rb'"(messages|text_input|payload|input_length)"\s*:')
_LATEST_MS = 10**15


class _Row(msgspec.Struct):
    session_id: Name | None = None
    messages: list[Object] | None = None
    message_mode: Literal["history", "delta"] = "history"
    text_input: str | None = None
    tools: list[Object] | None = None
    output_length: Tokens | None = None
    timestamp: float | None = None
    delay: Millis | None = None
    extra: Object | None = None


class AIPerfFormat:
    """See Reader."""

    name = "aiperf"

    def detect(self, begins: bytes) -> bool:
        """See Reader: the first line has turns, or is a request."""
        first = begins.split(b"\n", 1)[0]
        return first.startswith(b"{") and bool(_CONVERSATION.search(first) or _REQUEST.search(first))

    def sessions(self, path: Path) -> Iterator[AgentSession]:
        """See Reader."""
        first = beginning(path).split(b"\n", 1)[0]
        return conversations(path) if _CONVERSATION.search(first) else _requests(path)


def _requests(path: Path) -> Iterator[AgentSession]:
    last: dict[str, int] = {}
    for number, line in lines_of(path):
        row = decoded(path, number, line, _Row)
        last[row.session_id or f"line {number}"] = number
    open_: dict[str, _Session] = {}
    for number, line in lines_of(path):
        row = decoded(path, number, line, _Row)
        name = row.session_id or f"line {number}"
        session = open_.setdefault(name, _Session(number))
        try:
            session.add(row)
        except Fault as fault:
            raise refused(path, number, fault) from None
        if last.get(name) == number:
            yield finished(path, session.line, name, session.steps, session.start_ns)
            del open_[name]


class _Session:
    """The requests of one session, as they come."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.start_ns: int | None = None
        self.steps: list[Draft] = []
        self._histories = Histories()
        self._mode: str | None = None
        self._tools: list[Object] | None = None

    def add(self, row: _Row) -> None:
        """The next line. Raises Fault."""
        messages = _messages(row)
        if self._mode not in (None, row.message_mode):
            raise Fault("message_mode", "must be the same on all lines of a session")
        self._mode = row.message_mode
        last = len(self.steps) - 1
        if row.message_mode == "delta":
            extends, own = last, messages
            self._tools = row.tools or self._tools
        else:
            extends, known = self._histories.add(messages, lambda _: True)
            if extends != NONE:
                self.steps[extends].reply = messages[known - 1]
            own = messages[known:]
            self._tools = row.tools
        if not self.steps and row.timestamp is not None:
            if not 0 <= row.timestamp < _LATEST_MS:
                raise Fault("timestamp", f"must be a number of milliseconds from 0 to {_LATEST_MS:,}")
            self.start_ns = round(row.timestamp * NS_PER_MS)
        delay = None if row.delay is None else round(row.delay * NS_PER_MS)
        fields: Object = ({"tools": self._tools} if self._tools else {}) | (row.extra or {})
        self.steps.append(
            Draft(
                (last,) if last >= 0 else (),
                extends,
                own,
                output_tokens=row.output_length,
                delay=Delay(**{delay_kind(own): delay}),
                fields=body_fields(fields, "extra") if fields else {},
            )
        )


def _messages(row: _Row) -> list[Object]:
    if row.messages is not None:
        check_messages(row.messages)
        return row.messages
    if row.text_input is None:
        words = "is missing: without text, as of input_length, hash_ids or payload, nothing can be sent again here"
        raise Fault("messages", f"{words}; --trace reads traces of lengths")
    return [{"role": "user", "content": row.text_input}]
