"""AIPerf's files of conversations (`dag_jsonl`, `multi_turn`): a conversation a line, which may fork or spawn others.

A conversation that no other names is a session, with all that it starts. A fork goes on with the conversation of the turn that
it leaves; a spawn begins its own, and the turn `join_at` waits for it, by default the next. Replies are the server's: the
format records none.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from inferometer.errors import PlanError
from inferometer.units import NS_PER_MS
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
from inferometer.workload.agent_sessions.recorded_lines import lines_of, refusal
from inferometer.workload.agent_sessions.session import MOST_STEPS, NONE, AgentSession, Delay


class _Fork(msgspec.Struct, forbid_unknown_fields=True):
    child: Name
    background: bool = False


class _Spawn(msgspec.Struct, forbid_unknown_fields=True):
    children: list[Name]
    join_at: int | None = None


class _Turn(msgspec.Struct, forbid_unknown_fields=True):
    messages: list[Object] | None = None
    model: Name | None = None
    max_tokens: Tokens | None = None
    tools: list[Object] | None = None
    extra: Object | None = None
    forks: list[Name | _Fork] = []
    spawns: list[Name | _Spawn] = []
    delay: Millis | None = None
    # multi_turn
    type: str | None = None
    role: str | None = None
    text: str | None = None
    texts: list[str] | None = None
    image: str | None = None
    images: list[str] | None = None
    timestamp: float | None = None
    output_length: Tokens | None = None


class _Round(msgspec.Struct, forbid_unknown_fields=True):
    spawns: list[Name]
    think_time_ms: Millis | None = None


class _Conversation(msgspec.Struct, forbid_unknown_fields=True):
    session_id: Name | None = None
    turns: list[_Turn] = []
    type: str | None = None
    context_mode: str | None = None
    pre_session_spawns: list[Name] = []
    orchestrator: bool = False
    spawns: list[Name] = []
    rounds: int | list[_Round] | None = None
    think_time_ms: Millis | None = None
    think_time_sigma: float | None = None
    think_time_min_ms: Millis | None = None
    think_time_max_ms: Millis | None = None

    def children(self) -> list[tuple[str, str]]:
        """The field that names each, and its name."""
        found = [("pre_session_spawns", one) for one in self.pre_session_spawns]
        found += [("spawns", one) for one in self.spawns]
        for one in self.rounds if isinstance(self.rounds, list) else ():
            found += [("rounds", child) for child in one.spawns]
        for turn in self.turns:
            found += [("forks", one if isinstance(one, str) else one.child) for one in turn.forks]
            for spawn in turn.spawns:
                found += [
                    ("spawns", child) for child in ([spawn] if isinstance(spawn, str) else spawn.children)
                ]
        return found


_Known = dict[str, tuple[int, _Conversation]]


def conversations(path: Path) -> Iterator[AgentSession]:
    """The sessions of a file. Raises PlanError."""
    groups = _Groups(path)
    open_: dict[str, _Known] = {}
    for number, line in lines_of(path):
        found = decoded(path, number, line, _Conversation)
        name = _name(number, found)
        group = groups.of(name)
        known = open_.setdefault(group, {})
        known[name] = number, found
        if groups.last.get(group) == number:
            for root in known:
                if root not in groups.children:
                    yield _Building(path, known, root).session()
            del open_[group]


def _name(number: int, conversation: _Conversation) -> str:
    return conversation.session_id or f"line {number}"


class _Groups:
    """Which conversations belong together, and the line at which the last of them stands. Raises PlanError."""

    def __init__(self, path: Path) -> None:
        self._above: dict[str, str] = {}
        self.last: dict[str, int] = {}
        self.children: dict[str, str] = {}
        lines: dict[str, int] = {}
        named: dict[str, tuple[int, str]] = {}
        for number, line in lines_of(path):
            found = decoded(path, number, line, _Conversation)
            name = _name(number, found)
            if name in lines:
                raise refusal(path, number, "session_id", "another line has it as well")
            lines[name] = number
            for way, child in found.children():
                if child in self.children and "forks" in (way, self.children[child]):
                    words = "names a conversation that something else starts, and a fork has one origin"
                    raise refusal(path, number, way, words)
                self.children[child] = way
                named.setdefault(child, (number, way))
                self._above[self.of(name)] = self.of(child)
        for child, (number, way) in named.items():
            if child not in lines:
                raise refusal(path, number, way, "names a conversation that the file does not have")
        if lines and len(self.children) == len(lines):
            raise refusal(
                path, 1, None, "every conversation is started by another: there is none to begin with"
            )
        for name, number in lines.items():
            self.last[self.of(name)] = number

    def of(self, name: str) -> str:
        """The group's name."""
        while (above := self._above.get(name, name)) != name:
            self._above[name] = self._above.get(above, above)
            name = above
        return name


@dataclass(slots=True)
class _Start:
    """A conversation that is to begin: behind these steps, going on with one, after a delay of its starter's; what it is
    waited for by is told to `then`."""

    name: str
    after: tuple[int, ...] = ()
    extends: int = NONE
    delay_ms: float = 0
    gate: list[int] = field(default_factory=list)


class _Building:
    """One session: the steps of a conversation and of all that it starts."""

    def __init__(self, path: Path, known: Mapping[str, tuple[int, _Conversation]], root: str) -> None:
        self._path, self._known, self._root = path, known, root
        self._drafts: list[Draft] = []
        self._gates: list[list[list[int]]] = []
        """Of each step, the ends of what it joins, beside its `after`."""
        self._waiting: list[_Start] = []
        self._started = 0

    def session(self) -> AgentSession:
        """Raises PlanError."""
        line = self._known[self._root][0]
        self._waiting.append(_Start(self._root))
        while self._waiting:
            start = self._waiting.pop(0)
            self._started += 1
            number, one = self._known[start.name]
            if max(self._started, len(self._drafts)) > MOST_STEPS:
                words = f"starts more than {MOST_STEPS:,} steps; is it started by itself?"
                raise refusal(self._path, line, None, words)
            try:
                if one.orchestrator:
                    self._orchestrate(one, start)
                else:
                    self._converse(one, start)
            except Fault as fault:
                raise refused(self._path, number, fault) from None
        return finished(self._path, line, self._root, self._ordered(line), None)

    def _orchestrate(self, one: _Conversation, start: _Start) -> None:
        if (
            one.turns
            or one.think_time_sigma is not None
            or start.gate
            or start.after
            or one.pre_session_spawns
        ):
            raise Fault(
                "orchestrator",
                "has turns, think times drawn at random or an origin of its own, which cannot be replayed",
            )
        rounds = one.rounds
        if rounds is None or isinstance(rounds, int):
            if not one.spawns or not 0 < (rounds or 1) <= MOST_STEPS:
                raise Fault(
                    "spawns" if not one.spawns else "rounds", "must name at least one, and a number from 1"
                )
            rounds = [_Round(one.spawns) for _ in range(rounds or 1)]
        if len(rounds) > 1 and any(
            self._known[child][1].orchestrator for one in rounds for child in one.spawns
        ):
            raise Fault("rounds", "start an orchestrator, which nothing can wait for")
        before: list[int] = []
        for turn in rounds:
            wait = turn.think_time_ms if turn.think_time_ms is not None else one.think_time_ms or 0
            gate: list[int] = []
            for child in turn.spawns:
                number, conversation = self._known[child]
                begin = _Start(child, tuple(before), NONE, wait, gate)
                try:
                    self._converse(conversation, begin)  # at once: the next round waits for its last step
                except Fault as fault:
                    raise refused(self._path, number, fault) from None
                if len(self._drafts) > MOST_STEPS:
                    raise Fault("rounds", f"start more than {MOST_STEPS:,} steps")
            before = gate

    def _converse(self, one: _Conversation, start: _Start) -> None:
        if one.orchestrator:
            raise Fault("orchestrator", "is started by another orchestrator's rounds")
        if not one.turns:
            raise Fault("turns", "must hold a turn")
        if one.context_mode not in (None, "deltas_without_responses", "message_array_with_responses"):
            raise Fault("context_mode", "must be deltas_without_responses or message_array_with_responses")
        apart = one.context_mode == "message_array_with_responses"
        self._waiting += [_Start(child) for child in one.pre_session_spawns]
        first = len(self._drafts)
        tools: list[Object] | None = None
        for at, turn in enumerate(one.turns):
            field_ = f"turns[{at}]"
            messages = _messages(turn, field_)
            if turn.tools is not None:
                tools = turn.tools
            begins = at == 0
            delay_ms = (turn.delay or 0) + (start.delay_ms if begins else 0)
            delay = {delay_kind(messages): round(delay_ms * NS_PER_MS)}
            before = len(self._drafts) - 1
            extends = NONE if apart else start.extends if begins else before
            inherited: Mapping[str, object] = self._drafts[extends].fields if extends != NONE else {}
            shared: Object = {"tools": inherited["tools"]} if tools is None and "tools" in inherited else {}
            fields = shared | ({} if tools is None else {"tools": tools}) | (turn.extra or {})
            self._drafts.append(
                Draft(
                    start.after if begins else (before,), extends, messages,
                    output_tokens=turn.max_tokens or turn.output_length, delay=Delay(**delay), model=turn.model,
                    fields=body_fields(fields, f"{field_}.extra") if fields else {}, agent=one.session_id,
                )
            )  # fmt: skip
            self._gates.append([])
        start.gate.append(len(self._drafts) - 1)
        for at, turn in enumerate(one.turns):
            self._branch(one, at, first + at, turn)

    def _branch(self, one: _Conversation, at: int, step: int, turn: _Turn) -> None:
        """What a turn starts, and the turn that waits for it."""
        last = len(one.turns) - 1
        for fork in turn.forks:
            child, background = (fork, False) if isinstance(fork, str) else (fork.child, fork.background)
            if at != last and not background:
                raise Fault(f"turns[{at}].forks", "end the conversation unless they are in the background")
            self._waiting.append(_Start(child, (step,), step))
        for spawn in turn.spawns:
            children, join = ([spawn], None) if isinstance(spawn, str) else (spawn.children, spawn.join_at)
            if join is not None and not at < join <= last:
                raise Fault(f"turns[{at}].spawns", "join_at must be a later turn of the conversation")
            gate: list[int] = []
            self._waiting += [_Start(child, (step,), gate=gate) for child in children]
            if at < last:
                self._gates[step - at + (join or at + 1)].append(gate)

    def _ordered(self, line: int) -> list[Draft]:
        """The steps so that each stands behind those that it waits for."""
        for draft, gates in zip(self._drafts, self._gates, strict=True):
            draft.after = tuple(dict.fromkeys((*draft.after, *(one for gate in gates for one in gate))))
        left = [len(draft.after) for draft in self._drafts]
        behind: list[list[int]] = [[] for _ in self._drafts]
        for number, draft in enumerate(self._drafts):
            for before in draft.after:
                behind[before].append(number)
        ready = [number for number, count in enumerate(left) if not count]
        order: dict[int, int] = {}
        while ready:
            number = heapq.heappop(ready)
            order[number] = len(order)
            for later in behind[number]:
                left[later] -= 1
                if not left[later]:
                    heapq.heappush(ready, later)
        if len(order) < len(self._drafts):
            raise self._circle(line)
        for draft in self._drafts:
            draft.after = tuple(sorted(order[one] for one in draft.after))
            draft.extends = order.get(draft.extends, NONE)
        return [self._drafts[number] for number in order]

    def _circle(self, line: int) -> PlanError:
        return refusal(self._path, line, None, "has turns that wait for each other in a circle")


def _messages(turn: _Turn, field_: str) -> list[Any]:
    """A turn's messages. Raises Fault."""
    if turn.messages is not None:
        check_messages(turn.messages, f"{field_}.messages")
        return turn.messages
    texts = [turn.text] if turn.text is not None else turn.texts or []
    images = [turn.image] if turn.image is not None else turn.images or []
    content: object = [
        *({"type": "text", "text": one} for one in texts),
        *({"type": "image_url", "image_url": {"url": one}} for one in images),
    ]
    if len(texts) == 1 and not images:
        content = texts[0]
    if not content:
        raise Fault(field_, "has neither messages nor text")
    message: Object = {"role": turn.role or "user", "content": content}
    check_messages([message], field_)
    return [message]
