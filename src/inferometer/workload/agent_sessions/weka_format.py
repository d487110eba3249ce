"""Weka's traces of coding agents (kv-cache-tester): a conversation is one JSON object, a file has one of them or one a line.

    {"id": "c1", "block_size": 64, "requests": [
      {"t": 0.0, "type": "s", "in": 25259, "out": 86, "hash_ids": [1, 2, 3], "api_time": 2.1, "stop": "tool_use"},
      {"t": 2.5, "type": "subagent", "agent_id": "agent_001", "requests": [...]}]}

No texts are recorded: the hash ids of blocks of tokens become words (block_words.py). A request whose ids begin with all of an
earlier one's goes on with that one's conversation. What each waits for follows from the times (timeline.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from inferometer.plan.lengths import LONGEST
from inferometer.units import NS_PER_S
from inferometer.workload.agent_sessions.block_words import prompt_words
from inferometer.workload.agent_sessions.draft import Draft, finished
from inferometer.workload.agent_sessions.foreign_values import (
    LONGEST_S,
    Fault,
    Name,
    decoded,
    documents_of,
    refused,
)
from inferometer.workload.agent_sessions.session import MOST_STEPS, NONE, AgentSession, Delay
from inferometer.workload.agent_sessions.timeline import Recorded, waits

MOST_WORDS = 10_000_000
"""Of a session's new text, all steps together."""
_Clock = Annotated[float, msgspec.Meta(ge=0, le=100 * LONGEST_S)]
_KEYS = (re.compile(rb'"requests"\s*:'), re.compile(rb'"(block_size|hash_ids)"\s*:'))


class _Request(msgspec.Struct):
    t: _Clock
    type: Literal["n", "s", "subagent"]
    input_tokens: Annotated[int, msgspec.Meta(ge=1, le=LONGEST)] | None = msgspec.field(
        default=None, name="in"
    )
    output_tokens: Annotated[int, msgspec.Meta(ge=0, le=LONGEST)] | None = msgspec.field(
        default=None, name="out"
    )
    hash_ids: list[int] = []
    input_types: list[str] = []
    stop: str | None = None
    api_time: _Clock | None = None
    think_time: _Clock | None = None
    agent_id: Name | None = None
    requests: list[Any] = []


class _Trace(msgspec.Struct):
    id: Name
    block_size: Annotated[int, msgspec.Meta(ge=1, le=100_000)]
    requests: Annotated[list[_Request], msgspec.Meta(min_length=1)]
    hash_id_scope: Literal["local", "global"] = "local"


class WekaFormat:
    """See Reader."""

    name = "weka"

    def detect(self, begins: bytes) -> bool:
        """See Reader: an object with requests, and blocks of tokens."""
        return begins.startswith(b"{") and all(key.search(begins) for key in _KEYS)

    def sessions(self, path: Path) -> Iterator[AgentSession]:
        """See Reader."""
        for number, document in documents_of(path):
            trace = decoded(path, number, document, _Trace)
            try:
                drafts = _Conversation(trace).drafts()
            except Fault as fault:
                raise refused(path, number, fault) from None
            yield finished(path, number, trace.id, drafts, None)


class _Conversation:
    """The requests of a trace, its subagents' among them, in order of time."""

    def __init__(self, trace: _Trace) -> None:
        self._trace = trace
        self._agents: list[str] = ["main"]
        self._requests: list[tuple[float, int, _Request]] = []
        relative = _is_relative(trace)
        for at, one in enumerate(trace.requests):
            if one.type != "subagent":
                self._requests.append((_checked(one, f"requests[{at}]").t, 0, one))
                continue
            self._agents.append(one.agent_id or f"requests[{at}]")
            for inner_at, inner in enumerate(_inner(one, at)):
                checked = _checked(inner, f"requests[{at}].requests[{inner_at}]")
                self._requests.append((inner.t + (one.t if relative else 0), len(self._agents) - 1, checked))
        self._requests.sort(key=lambda one: one[0])
        if len(self._requests) > MOST_STEPS:
            raise Fault("requests", f"are {len(self._requests):,}: at most {MOST_STEPS:,}")
        self._ends: dict[int, list[int]] = {}
        self._words = 0
        self._drafts: list[Draft] = []

    def drafts(self) -> list[Draft]:
        """Raises Fault."""
        times = [
            Recorded(round(t * NS_PER_S), round((t + (one.api_time or 0)) * NS_PER_S), agent)
            for t, agent, one in self._requests
        ]
        awaited = waits(times, [-1] + [0] * (len(self._agents) - 1))
        for number, (_, agent, one) in enumerate(self._requests):
            extends = self._continued(number, times)
            after = awaited[number]
            if extends not in (NONE, *after):
                after = tuple(sorted((*after, extends)))
            self._drafts.append(
                Draft(
                    after, extends, [], output_tokens=one.output_tokens or None, input_tokens=one.input_tokens,
                    delay=self._delay(number, after, times), agent=self._agents[agent],
                )
            )  # fmt: skip
            self._say(number)
        return self._drafts

    def _delay(self, number: int, after: tuple[int, ...], times: list[Recorded]) -> Delay:
        one = self._requests[number][2]
        if not after:
            gap = times[number].start_ns - times[0].start_ns
        else:
            gap = times[number].start_ns - max(times[before].end_ns for before in after)
            timed = all(self._requests[before][2].api_time is not None for before in after)
            if not timed and one.think_time is not None:
                gap = round(one.think_time * NS_PER_S)
        if gap > LONGEST_S * NS_PER_S:
            raise Fault(f"requests[{number}].t", f"is more than {LONGEST_S:,} s after what it waits for")
        tools = "tool_result" in one.input_types or (
            not one.input_types and any(self._requests[before][2].stop == "tool_use" for before in after)
        )
        return Delay(tool_ns=gap) if tools else Delay(think_ns=gap)

    def _continued(self, number: int, times: list[Recorded]) -> int:
        """The earlier request whose conversation this one goes on with."""
        ids = self._requests[number][2].hash_ids
        digests, seen = [], 0
        for one in ids:
            seen = hash((seen, one))  # of whole numbers: the same everywhere
            digests.append(seen)
        found = NONE
        for at in range(len(ids) - 1, -1, -1):
            for before in reversed(self._ends.get(digests[at], ())):
                if times[before].end_ns <= times[number].start_ns and self._fits(before, number, at + 1):
                    found = before
                    break
            if found != NONE:
                break
        if ids:
            self._ends.setdefault(digests[-1], []).append(number)
            del self._ends[digests[-1]][:-64]
        return found

    def _fits(self, before: int, number: int, count: int) -> bool:
        """Whether a reply and a word more fit between two prompts."""
        earlier, later = self._requests[before][2], self._requests[number][2]
        if earlier.hash_ids != later.hash_ids[:count]:
            return False
        return (later.input_tokens or 0) - (earlier.input_tokens or 0) > self._reply_length(before, later)

    def _reply_length(self, before: int, later: _Request) -> int:
        """Words of a request's reply, as `later` repeats it; fixed by the first that does."""
        reply = self._drafts[before].reply
        if reply is not None:
            return str(reply["content"]).count(" ") + 1
        earlier = self._requests[before][2]
        room = (later.input_tokens or 0) - (earlier.input_tokens or 0) - 1
        return max(1, min(earlier.output_tokens or 1, room))

    def _say(self, number: int) -> None:
        """Put words to a step's own messages, and to the reply that it repeats."""
        draft, one = self._drafts[number], self._requests[number][2]
        start = 0
        if draft.extends != NONE:
            earlier = self._drafts[draft.extends]
            start = self._requests[draft.extends][2].input_tokens or 0
            length = self._reply_length(draft.extends, one)
            if earlier.reply is None:
                earlier.reply = {"role": "assistant", "content": self._text(number, start, start + length)}
            start += length
        draft.messages = [{"role": "user", "content": self._text(number, start, one.input_tokens or 0)}]

    def _text(self, number: int, start: int, stop: int) -> str:
        self._words += stop - start
        if self._words > MOST_WORDS:
            raise Fault(
                "requests", f"come to more than {MOST_WORDS:,} tokens of new text, which no session has"
            )
        trace, ids = self._trace, self._requests[number][2].hash_ids
        scope = trace.id if trace.hash_id_scope == "local" else ""
        return prompt_words(scope, ids, trace.block_size, start, stop, f"{trace.id} {number}")


def _inner(marker: _Request, at: int) -> list[_Request]:
    """A subagent's requests. Raises Fault."""
    try:
        return msgspec.convert(marker.requests, list[_Request])
    except msgspec.ValidationError:
        raise Fault(f"requests[{at}].requests", "hold one that is no request") from None


def _checked(one: _Request, field: str) -> _Request:
    if one.type == "subagent":
        raise Fault(f"{field}.type", "must be n or s: subagents of subagents are not in the format")
    if one.input_tokens is None:
        raise Fault(f"{field}.in", "is missing but required")
    return one


def _is_relative(trace: _Trace) -> bool:
    """Whether times within subagents count from the subagent's own start: one of them is earlier than its subagent."""
    markers = ((at, one) for at, one in enumerate(trace.requests) if one.type == "subagent")
    return any(inner.t < one.t for at, one in markers for inner in _inner(one, at))
