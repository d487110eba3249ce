"""What a dialect has to know: everything that differs between HTTP interfaces to a model, and nothing else.

| when             | what a dialect provides                                                                    |
| ---------------- | ------------------------------------------------------------------------------------------ |
| before the clock | the models listing; whether a reply to a short request is one (`read_whole`)               |
| ahead of time    | the body of each request, and the bytes of messages that a conversation repeats            |
| on the wire      | path, header lines, framing (interface.py)                                                 |
| while it runs    | the reading of each streamed event, or of a whole answer, into an `Answer`                 |

A dialect is data: functions without state. `read_event` is called for every token, so callers hold it in a local name.
How to add one is in docs/dialects.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from inferometer.engines.answer import Answer, decoded
from inferometer.engines.interface import INTERFACES, Interface, JsonObject
from inferometer.engines.message_form import MessageForm

Read = Callable[[Answer, bytes, int], None]
"""Writes one event, or a whole answer, that arrived at an instant (ns) into an answer. Never raises."""


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One request to generate, before it is spelled. `extra` wins over every field; null there leaves a field out.

    `messages` stand in place of the `prompt` where the interface takes them; a list of token ids where it takes those.
    """

    model: str
    prompt: str | list[int]
    max_tokens: int
    stream: bool = True
    temperature: float = 0.0
    ignore_eos: bool = True
    min_tokens: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)
    messages: Messages | None = None
    ident: str = ""
    """What tells the request from the others of its run, where the interface has a field for that."""
    length_field: str | None = None
    """The name that this server has for `max_tokens`; None: the dialect's first."""

    @property
    def conversation(self) -> list[tuple[str, str]]:
        """The prompt as messages. Token ids are the caller's error."""
        if self.messages:
            return list(self.messages)
        assert isinstance(self.prompt, str), "token ids cannot be a message"
        return [("user", self.prompt)]


@dataclass(frozen=True, slots=True)
class Models:
    """A server's models: their names in its order; where it reports them, by name, the tokens that a model takes, prompt and
    answer together, and the number of token ids that it knows."""

    names: tuple[str, ...] = ()
    contexts: Mapping[str, int] = field(default_factory=dict)
    vocabularies: Mapping[str, int] = field(default_factory=dict)


def bearer(key: str, host: str = "") -> dict[str, str]:
    """The header line of a key, as nearly all servers want it, whatever the host."""
    del host
    return {"Authorization": f"Bearer {key}"}


def read_nothing(_: object) -> Models:
    """The models of a server without a listing."""
    return Models()


def no_server(_: bytes) -> str:
    """Of a dialect without a `server_path`."""
    return ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One interface's spelling. All functions are pure."""

    interface: Interface
    vendor: str
    """Whose replies these are, for errors: "OpenAI"."""
    body: Callable[[GenerationRequest], bytes]
    read_event: Read
    read_whole: Read
    """Sets `done` if the JSON is an answer of this dialect at all."""
    end: str
    """How a stream says that it is complete, for errors."""
    models_path: str
    read_models: Callable[[Any], Models]
    """From the listing's JSON, of gRPC from the message; raises ValueError, KeyError, TypeError or AttributeError where it is
    another."""
    length_fields: tuple[str, ...]
    """Names of the field that bounds an answer: the first is sent; another if the server refuses with its name."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header lines that every request has; a plan's own replace them."""
    key_headers: Callable[[str, str], Mapping[str, str]] = bearer
    """The header lines of a key for a host name ("": the embedded server's)."""
    typed_events: bool = False
    """Events have a `type`. A stream may give it as the event's name alone."""
    ids_nonce: Callable[[str], bytes] = str.encode
    read_ids_nonce: Callable[[bytes], str] = bytes.decode
    """How a nonce of token ids, decimal and with commas between, stands in a body."""
    server_path: str | None = None
    """Where the server says what it is, if the head of a response does not."""
    read_server: Callable[[bytes], str] = no_server
    """What it says there; raises ValueError where it is something else."""
    asked: Callable[[bytes], bytes] | None = None
    """Of a request's body, what an answer to it may repeat and one to another request does not (`Answer.asked`)."""

    @property
    def system_apart(self) -> bool:
        """A system prompt is a field of the body, not a message: each turn of a conversation has to carry it."""
        return self.interface.system_apart


def load(name: str, form: MessageForm | None = None) -> Dialect:
    """The dialect of a registered interface; `form`: of its messages, where it is `mapped`. KeyError for any other name."""
    interface = INTERFACES[name]
    module, _, constant = interface.home.partition(":")
    dialect = getattr(import_module(f"inferometer.engines.{module}"), constant)
    if interface.mapped:
        assert form is not None, "the plan's rules require it"
        dialect = dialect(interface, form)
    assert isinstance(dialect, Dialect)
    return dialect


def read_named(dialect: Dialect, answer: Answer, payload: bytes, name: str, at: int) -> None:
    """Write one event that arrived at `at` under a name that its payload does not repeat: an error by its name, or a type in
    the place of the payload's own. Never raises."""
    if name == "error" and not answer.done:
        answer.fail(payload, at)
        return
    if dialect.typed_events:
        fields = decoded(payload)
        if isinstance(fields, dict) and "type" not in fields:
            payload = json.dumps({"type": name} | fields).encode()
    dialect.read_event(answer, payload, at)


def encode(fields: JsonObject) -> bytes:
    """A body's JSON, without the fields that are null."""
    kept = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False).encode()


# A conversation inside request bodies: how a turn repeats the turns before it.
#
# Every interface that takes messages takes a JSON list of objects with `role` and `content`, so turns are joined as bytes,
# without decoding a body again while the clock runs:
#
#     {"model":"m","messages":[  history: own,reply,own,reply,  | own messages of this turn  ],...}
#                              ^ inserted here, at `own_at`
#
# Where the system prompt is a field of the body (`system_apart`), it is no message: it is left out of the list.


Messages = Sequence[tuple[str, str]]
"""Role and content of each message of a prompt or a reply."""


def is_system(role: str) -> bool:
    """Whether a message of this role is a system prompt. OpenAI renamed the role to developer."""
    return role in ("system", "developer")


def as_objects(messages: Messages, *, system_apart: bool = False) -> list[dict[str, str]]:
    """Messages as a body lists them."""
    return [
        {"role": role, "content": content}
        for role, content in messages
        if not (system_apart and is_system(role))
    ]


def messages_bytes(messages: Messages, *, system_apart: bool = False) -> bytes:
    """Messages as they stand in a body, without the list's brackets."""
    listed = as_objects(messages, system_apart=system_apart)
    return json.dumps(listed, separators=(",", ":"), ensure_ascii=False)[1:-1].encode()


def extended(history: bytes, own: bytes, reply: bytes) -> bytes:
    """The history of the next turn: this turn's own messages, and the reply to them."""
    return b"%b%b,%b," % (history, own, reply)


def inserted(body: bytes, own_at: int, history: bytes) -> bytes:
    """A body whose own messages begin at `own_at`, with the history in front of them."""
    return body[:own_at] + history + body[own_at:]


_HOLE = b"\0"
"""In a reply of the schedule: here the text of the server's answer stands. JSON has no such byte."""


def with_hole(before: bytes, behind: bytes) -> bytes:
    """A reply that is the server's in its text, and recorded in all else."""
    return before + _HOLE + behind


def repeated(reply: bytes | None, text: str) -> bytes:
    """What later steps repeat as the answer to one: the recorded `reply`, the server's `text` in its hole, or that alone."""
    if reply is None:
        return messages_bytes([("assistant", text)])
    return reply.replace(_HOLE, json.dumps(text, ensure_ascii=False).encode(), 1) if _HOLE in reply else reply
