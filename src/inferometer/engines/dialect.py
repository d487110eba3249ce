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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from inferometer.engines.answer import Answer
from inferometer.engines.conversation import Messages
from inferometer.engines.interface import INTERFACES, Interface

JsonObject = dict[str, object]
"""A JSON object on its way to the wire."""

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


def bearer(key: str) -> tuple[str, str]:
    """The header line of a key, as nearly all servers want it."""
    return "Authorization", f"Bearer {key}"


def read_nothing(_: object) -> Models:
    """The models of a server without a listing."""
    return Models()


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
    """From the listing's JSON; raises ValueError, KeyError, TypeError or AttributeError where it is another."""
    length_fields: tuple[str, ...]
    """Names of the field that bounds an answer: the first is sent; another if the server refuses with its name."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header lines that every request has; a plan's own replace them."""
    key_header: Callable[[str], tuple[str, str]] = bearer
    system_apart: bool = False
    """A system prompt is a field of the body, not a message: each turn of a conversation has to carry it."""


def load(name: str) -> Dialect:
    """The dialect of a registered interface. KeyError for any other name."""
    module, _, constant = INTERFACES[name].home.partition(":")
    dialect = getattr(import_module(f"inferometer.engines.{module}"), constant)
    assert isinstance(dialect, Dialect)
    return dialect


def encode(fields: JsonObject) -> bytes:
    """A body's JSON, without the fields that are null."""
    kept = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False).encode()
