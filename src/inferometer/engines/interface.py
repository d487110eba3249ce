"""The interfaces that can be measured: one entry registers one, and a plan is checked against it without loading its code.

| entry               | decides                                                                                   |
| ------------------- | ----------------------------------------------------------------------------------------- |
| `path`              | where a request goes, below the base URL                                                  |
| `framing`           | how a stream is cut into events                                                           |
| `takes_messages`    | a prompt may be a list of messages: system prompts and conversations need that            |
| `takes_ids`         | a prompt may be a list of token ids                                                       |
| `applies_template`  | the server puts its chat template around a prompt, whose tokens it then counts            |
| `takes_ignore_eos`  | a request may ask for an answer of full length: `ignore_eos`, `min_tokens`                |
| `stamp_field`       | what to set in a request so that an engine puts its own times into each event (llama.cpp) |
| `home`              | the `Dialect` (dialect.py) that does the rest, as `module:name` in this room              |

This file imports nothing, so that `plan` may read it; `dialect.load` imports the one dialect that a run needs.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

JsonObject = dict[str, object]
"""A JSON object on its way to the wire, or from there."""


class Framing(enum.StrEnum):
    """How a stream is cut into events. The value is the format's name."""

    SSE = "server-sent events"
    NDJSON = "newline-delimited JSON"


@dataclass(frozen=True, slots=True)
class Interface:
    """One HTTP interface, as far as a plan and a report need to know it; see the table above."""

    name: str
    title: str
    path: str
    home: str
    framing: Framing = Framing.SSE
    takes_messages: bool = False
    takes_ids: bool = False
    applies_template: bool = True
    takes_ignore_eos: bool = True
    stamp_field: str | None = None


_REGISTERED = (
    Interface(
        "chat",
        "OpenAI's chat completions",
        "/v1/chat/completions",
        "openai:CHAT",
        takes_messages=True,
        stamp_field="timings_per_token",
    ),
    Interface(
        "completions",
        "OpenAI's completions",
        "/v1/completions",
        "openai:COMPLETIONS",
        takes_ids=True,
        applies_template=False,
        stamp_field="timings_per_token",
    ),
    Interface(
        "responses",
        "OpenAI's responses",
        "/v1/responses",
        "responses:RESPONSES",
        takes_messages=True,
    ),
    Interface(
        "anthropic",
        "Anthropic's messages",
        "/v1/messages",
        "anthropic:ANTHROPIC",
        takes_messages=True,
        takes_ignore_eos=False,
    ),
    Interface(
        "ollama-generate",
        "Ollama's generate",
        "/api/generate",
        "ollama:GENERATE",
        framing=Framing.NDJSON,
        takes_ignore_eos=False,
    ),
    Interface(
        "ollama-chat",
        "Ollama's chat",
        "/api/chat",
        "ollama:CHAT",
        framing=Framing.NDJSON,
        takes_messages=True,
        takes_ignore_eos=False,
    ),
)

INTERFACES: dict[str, Interface] = {one.name: one for one in _REGISTERED}
"""Every interface by the name that `--api` has for it."""


def takers(*, messages: bool = False, ids: bool = False) -> str:
    """The names of the interfaces that take messages, or token ids, for an error's remedy: "a, b or c"."""
    names = [
        one.name for one in _REGISTERED if (one.takes_messages or not messages) and (one.takes_ids or not ids)
    ]
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
