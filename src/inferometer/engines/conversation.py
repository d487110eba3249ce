"""A conversation inside request bodies: how a turn repeats the turns before it.

Every interface that takes messages takes a JSON list of objects with `role` and `content`, so turns are joined as bytes,
without decoding a body again while the clock runs:

    {"model":"m","messages":[  history: own,reply,own,reply,  | own messages of this turn  ],...}
                             ^ inserted here, at `own_at`

Where the system prompt is a field of the body (`system_apart`), it is no message: it is left out of the list.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

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
