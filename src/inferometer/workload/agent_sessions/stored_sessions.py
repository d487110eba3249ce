"""Sessions as they are sent, on disk until they are: a file is read and validated once, and memory does not grow with it.

Each step's own messages are encoded here, in the order that a body has them:

    {"model":"m","messages":[ ...repeated... | own messages ],...}
                                              ^ nonce_at: where the first text begins, of a step that goes on with none
"""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from inferometer.workload.agent_sessions.session import NONE, AgentSession, MessageObject, Step

MOST_OWN = 2_000_000
"""Bytes of a step's own messages and reply: as many rows as a batch of the schedule has must fit into it."""
_MARK = "inferometer-nonce-goes-here"
_CONTENT = "inferometer-text-goes-here"
_SYSTEM_ROLES = ("system", "developer")
_PLAIN_ROLES = (*_SYSTEM_ROLES, "user", "assistant")


class StoredStep(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A step. `own`: its messages as JSON without the list's brackets. `nonce_at`: offset in them, or -1. `reply`: the recorded
    one, and `hole` where in it the server's text goes, or -1; None: all of it is the server's. `fields`: which of the
    session's. `output`: tokens recorded, or 0. `tool_ns`, `think_ns`: as recorded, or 0. `adds_results`: among its messages are
    results of tools. `systems`: role and text of system prompts up to it, where they are no messages of a body.
    """

    after: list[int]
    extends: int
    own: bytes
    nonce_at: int
    reply: bytes | None
    hole: int
    fields: int
    output: int
    tool_ns: int
    think_ns: int
    adds_results: bool
    visible: bool
    model: str | None
    name: str | None
    agent: str | None
    systems: list[tuple[str, str]]


class StoredSession(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A session. `fields`: the different fields of its steps' bodies, as JSON."""

    line: int
    fields: list[bytes]
    steps: list[StoredStep]


class Unsendable(ValueError):
    """A step that cannot be sent: its number, the field at fault, and why."""

    def __init__(self, step: int, field: str, words: str) -> None:
        super().__init__(words)
        self.step, self.field = step, field


@dataclass(frozen=True, slots=True)
class Encoding:
    """How sessions are to be sent: with the `server`'s replies, or the recorded ones; to an interface that takes no more than
    `plain` text; whose system prompts are no messages (`system_apart`)."""

    server: bool
    plain: bool = False
    system_apart: bool = False

    def stored(self, session: AgentSession) -> StoredSession:
        """A session as it is sent. Raises Unsendable."""
        fields: dict[bytes, int] = {}
        of_object: dict[int, int] = {}
        systems: list[list[tuple[str, str]]] = []
        steps = []
        for number, step in enumerate(session.steps):
            at = of_object.get(id(step.fields))
            if at is None:
                at = fields.setdefault(_encode(step.fields), len(fields))
                of_object[id(step.fields)] = at
            if self.plain:
                _check_plain(number, step)
            if self.system_apart:
                before = systems[step.extends] if step.extends != NONE else []
                systems.append([*before, *_systems(step.messages)])
            steps.append(self._step(number, step, at, systems[-1] if self.system_apart else []))
        return StoredSession(session.line, list(fields), steps)

    def _step(self, number: int, step: Step, fields: int, systems: list[tuple[str, str]]) -> StoredStep:
        messages: Sequence[MessageObject] = step.messages
        if self.system_apart:
            messages = [one for one in messages if one["role"] not in _SYSTEM_ROLES]
            if not messages:
                raise Unsendable(number, "messages", "hold nothing but a system prompt")
        own, nonce_at = _marked(messages) if step.extends == NONE else (_listed(messages), -1)
        reply, hole = self._reply(step.reply)
        if len(own) + len(reply or b"") > MOST_OWN:
            raise Unsendable(number, "messages", f"are longer than {MOST_OWN:,} bytes with their reply")
        return StoredStep(
            list(step.after), step.extends, own, nonce_at, reply, hole, fields, step.output_tokens or 0,
            step.delay.tool_ns or 0, step.delay.think_ns or 0, "tool" in [one["role"] for one in step.messages],
            step.visible, step.model, step.name, step.agent, systems,
        )  # fmt: skip

    def _reply(self, reply: MessageObject | None) -> tuple[bytes | None, int]:
        """As it is repeated, and where in it the server's text goes; -1: nowhere."""
        if reply is None:
            return None, -1
        if not self.server:
            return _encode(reply), -1
        if not reply.get("tool_calls"):
            return None, -1
        before, _, behind = _encode({**reply, "content": _CONTENT}).partition(b'"' + _CONTENT.encode() + b'"')
        return before + behind, len(before)


_encode = msgspec.json.Encoder().encode


def _listed(messages: Sequence[MessageObject]) -> bytes:
    return _encode(messages)[1:-1]


def _marked(messages: Sequence[MessageObject]) -> tuple[bytes, int]:
    """The messages, and where in them the first text begins; -1: there is none."""
    for at, message in enumerate(messages):
        content = message.get("content")
        if isinstance(content, str):
            marked: object = _MARK + content
        elif isinstance(content, list):
            text = next((n for n, part in enumerate(content) if part.get("type") == "text"), None)
            if text is None:
                continue
            part = {**content[text], "text": f"{_MARK}{content[text]['text']}"}
            marked = [*content[:text], part, *content[text + 1 :]]
        else:
            continue
        data = _listed([*messages[:at], {**message, "content": marked}, *messages[at + 1 :]])
        begin = data.index(_MARK.encode())
        return data[:begin] + data[begin + len(_MARK) :], begin
    return _listed(messages), -1


def _systems(messages: Sequence[MessageObject]) -> list[tuple[str, str]]:
    return [(str(one["role"]), str(one["content"])) for one in messages if one["role"] in _SYSTEM_ROLES]


def _check_plain(number: int, step: Step) -> None:
    """That a step is role and text and nothing else. Raises Unsendable."""
    only = "hold more than texts, which only --api chat takes"
    for message in (*step.messages, *([] if step.reply is None else [step.reply])):
        if message.keys() != {"role", "content"} or not isinstance(message["content"], str):
            raise Unsendable(number, "messages", only)
        if message["role"] not in _PLAIN_ROLES:
            raise Unsendable(number, "messages", only)
    if "tools" in step.fields:
        raise Unsendable(number, "tools", "are known by --api chat only")


def bound(session: StoredSession) -> int:
    """The largest sum of a step's prompt in bytes and its answer in tokens; more than its tokens in any case."""
    held = array("q", bytes(8 * len(session.steps)))
    most = 0
    for at, step in enumerate(session.steps):
        prompt = len(step.own) + (held[step.extends] if step.extends >= 0 else 0)
        most = max(most, prompt + step.output)
        held[at] = prompt + (step.output if step.reply is None else len(step.reply))
    return most


class SessionStore:
    """Sessions by number, from 0, in a file of their own that is gone when the program is. `steps`: how many each has;
    `bounds`: see `bound`."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this
        self._at = array("q", [0])
        self.steps = array("i")
        self.bounds = array("q")
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(StoredSession).decode

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, session: StoredSession) -> None:
        """One more."""
        data = self._encode(session)
        self._file.write(data)
        self._at.append(self._at[-1] + len(data))
        self.steps.append(len(session.steps))
        self.bounds.append(bound(session))

    def session(self, number: int) -> StoredSession:
        """The session with this number."""
        self._file.seek(self._at[number])
        return self._decode(self._file.read(self._at[number + 1] - self._at[number]))
