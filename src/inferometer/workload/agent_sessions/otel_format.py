"""Spans of OpenTelemetry's GenAI conventions as OTLP JSON: one document, or one a line as the Collector's file exporter writes.

| span (`gen_ai.operation.name`)     | becomes                                                                             |
| ---------------------------------- | ----------------------------------------------------------------------------------- |
| `chat`, `generate_content`         | a step                                                                              |
| `invoke_agent`, `invoke_workflow`  | the agent of the steps below it                                                     |
| `execute_tool`                     | of the wait before its agent's next step, the part that is tool time                |
| any other                          | nothing; the spans below it belong to what is above it                              |

A session is a trace, or all traces of one `gen_ai.conversation.id`. Steps wait for each other as timeline.py says.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from inferometer.plan.lengths import LONGEST
from inferometer.units import NS_PER_S
from inferometer.workload.agent_sessions.draft import Draft, finished
from inferometer.workload.agent_sessions.foreign_values import (
    LONGEST_S,
    Fault,
    body_fields,
    decoded,
    documents_of,
    refused,
)
from inferometer.workload.agent_sessions.histories import Histories
from inferometer.workload.agent_sessions.otel_messages import (
    Attributes,
    attributes,
    input_messages,
    reply,
    tools,
)
from inferometer.workload.agent_sessions.session import MOST_STEPS, NONE, AgentSession, Delay
from inferometer.workload.agent_sessions.timeline import MOST_DEPTH, Busy, Recorded, waits

STEPS = ("chat", "generate_content")
AGENTS = ("invoke_agent", "invoke_workflow")
_KEY = re.compile(rb'"resourceSpans"\s*:')
_LATEST_NS = 2**63


class _Event(msgspec.Struct):
    name: str = ""
    attributes: list[Any] = []


class _Span(msgspec.Struct, rename="camel"):
    trace_id: str
    span_id: str
    start_time_unix_nano: str | int
    end_time_unix_nano: str | int
    parent_span_id: str | None = None
    attributes: list[Any] = []
    events: list[_Event] = []


class _ScopeSpans(msgspec.Struct, rename="camel"):
    spans: list[_Span] = []


class _ResourceSpans(msgspec.Struct, rename="camel"):
    scope_spans: list[_ScopeSpans] = []


class _Document(msgspec.Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] = []

    def spans(self) -> Iterator[_Span]:
        for resource in self.resource_spans:
            for scope in resource.scope_spans:
                yield from scope.spans


@dataclass(slots=True)
class Span:
    """One span, as far as it matters here."""

    line: int
    trace: str
    id: str
    parent: str
    start_ns: int
    end_ns: int
    operation: str
    values: Attributes = field(repr=False)


class OTelFormat:
    """See Reader."""

    name = "otel"

    def detect(self, begins: bytes) -> bool:
        """See Reader: an object of spans by resource."""
        return begins.startswith(b"{") and _KEY.search(begins) is not None

    def sessions(self, path: Path) -> Iterator[AgentSession]:
        """See Reader."""
        conversation: dict[str, str] = {}
        for span in _spans(path):
            named = span.values.get("gen_ai.conversation.id")
            if isinstance(named, str) and named:
                conversation.setdefault(span.trace, named[:200])
        last: dict[str, int] = {}
        has_steps: set[str] = set()
        for span in _spans(path):
            key = conversation.get(span.trace, span.trace)
            last[key] = span.line
            if span.operation in STEPS:
                has_steps.add(key)
        ends: dict[int, list[str]] = {}
        for key, line in last.items():
            ends.setdefault(line, []).append(key)
        open_: dict[str, list[Span]] = {}
        line = 0
        for span in _spans(path):
            if span.line != line:
                yield from _ended(path, open_, ends.get(line, ()))
                line = span.line
            key = conversation.get(span.trace, span.trace)
            if key in has_steps:
                open_.setdefault(key, []).append(span)
        yield from _ended(path, open_, ends.get(line, ()))


def _ended(path: Path, open_: dict[str, list[Span]], keys: Sequence[str]) -> Iterator[AgentSession]:
    for key in keys:
        if (spans := open_.pop(key, None)) is not None:
            yield _session(path, key, spans)


def _spans(path: Path) -> Iterator[Span]:
    for number, document in documents_of(path):
        for one in decoded(path, number, document, _Document).spans():
            try:
                yield _span(number, one)
            except Fault as fault:
                raise refused(path, number, fault) from None


def _span(line: int, one: _Span) -> Span:
    values = attributes(one.attributes)
    for event in one.events:
        if event.name == "gen_ai.client.inference.operation.details":
            values = attributes(event.attributes) | values
    start, end = (
        _instant(one.start_time_unix_nano, "startTimeUnixNano"),
        _instant(one.end_time_unix_nano, "endTimeUnixNano"),
    )
    if end < start:
        raise Fault("endTimeUnixNano", "is earlier than startTimeUnixNano")
    operation = values.get("gen_ai.operation.name")
    if not one.trace_id or len(one.trace_id) > 200:
        raise Fault("traceId", "must be from 1 to 200 characters")
    return Span(
        line, one.trace_id.lower(), one.span_id.lower(), (one.parent_span_id or "").lower(), start, end,
        operation if isinstance(operation, str) else "", values,
    )  # fmt: skip


def _instant(value: str | int, name: str) -> int:
    text = str(value)
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) < _LATEST_NS):
        raise Fault(name, "must be a whole number of nanoseconds since 1970")
    return int(text)


def _session(path: Path, name: str, spans: list[Span]) -> AgentSession:
    steps = sorted((one for one in spans if one.operation in STEPS), key=lambda one: one.start_ns)
    try:
        if len(steps) > MOST_STEPS:
            raise Fault("resourceSpans", f"a trace has {len(steps):,} requests: at most {MOST_STEPS:,}")
        drafts = _drafts(path, steps, _Agents(spans))
    except Fault as fault:
        raise refused(path, steps[0].line, fault) from None
    return finished(path, steps[0].line, name, drafts, None)


def _drafts(path: Path, steps: list[Span], agents: _Agents) -> list[Draft]:
    times = [Recorded(one.start_ns, one.end_ns, agents.of(one)) for one in steps]
    awaited = waits(times, agents.above)
    histories, drafts = Histories(), list[Draft]()
    for number, one in enumerate(steps):
        try:
            messages = input_messages(one.values)
            extends, known = histories.add(messages, functools.partial(_ended_by, times, one.start_ns))
            after = awaited[number]
            if extends not in (NONE, *after):
                after = tuple(sorted((*after, extends)))
            if extends != NONE:
                drafts[extends].reply = messages[
                    known - 1
                ]  # as it is repeated, whatever was recorded as answered
            begin = max((times[at].end_ns for at in after), default=times[0].start_ns)
            definitions = tools(one.values)
            drafts.append(
                Draft(
                    after, extends, messages[known:], reply(one.values),
                    _tokens(one, "gen_ai.usage.output_tokens") or _tokens(one, "gen_ai.request.max_tokens"),
                    _tokens(one, "gen_ai.usage.input_tokens"),
                    _delay(begin, one.start_ns, agents.tools(times[number].agent)),
                    fields=body_fields({"tools": definitions}, "gen_ai.tool.definitions") if definitions else {},
                    agent=agents.names[times[number].agent],
                )
            )  # fmt: skip
        except Fault as fault:
            raise refused(path, one.line, fault) from None
    return drafts


def _ended_by(times: Sequence[Recorded], now_ns: int, number: int) -> bool:
    return times[number].end_ns <= now_ns


def _delay(begin: int, start: int, busy: Busy) -> Delay:
    if start - begin > LONGEST_S * NS_PER_S:
        raise Fault("startTimeUnixNano", f"is more than {LONGEST_S:,} s after what the request waits for")
    tool = busy.within(begin, start)
    return Delay(tool_ns=tool, think_ns=start - begin - tool)


def _tokens(span: Span, name: str) -> int | None:
    value = span.values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LONGEST else None


class _Agents:
    """The agents of a session: which is above which, and when the tools of each ran. Number 0: the session's own."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._by_id = {(one.trace, one.id): one for one in spans}
        self._numbers: dict[tuple[str, str], int] = {}
        self.names: list[str | None] = [None]
        self.above = [-1]
        self._ran: dict[int, list[tuple[int, int]]] = {}
        self._busy: dict[int, Busy] = {}
        for one in spans:
            if one.operation == "execute_tool":
                self._ran.setdefault(self.of(one), []).append((one.start_ns, one.end_ns))

    def of(self, span: Span) -> int:
        """The agent that a span belongs to: the nearest above it. Raises Fault."""
        passed: list[Span] = []
        walk, known = span, 0
        seen = {span.id}
        while (above := self._by_id.get((walk.trace, walk.parent))) is not None:
            if above.id in seen:
                raise Fault("parentSpanId", "leads back to the span itself")
            seen.add(above.id)
            if above.operation in AGENTS:
                if (number := self._numbers.get((above.trace, above.id))) is not None:
                    known = number
                    break
                passed.append(above)
                if len(passed) > MOST_DEPTH:
                    raise Fault("parentSpanId", f"leads through more than {MOST_DEPTH} agents")
            walk = above
        for one in reversed(passed):
            self.above.append(known)
            name = one.values.get("gen_ai.agent.name") or one.values.get("gen_ai.workflow.name")
            self.names.append(name[:200] if isinstance(name, str) else None)
            known = self._numbers[one.trace, one.id] = len(self.names) - 1
        return known

    def tools(self, agent: int) -> Busy:
        """When the tools of an agent ran."""
        if agent not in self._busy:
            self._busy[agent] = Busy(self._ran.get(agent, ()))
        return self._busy[agent]
