"""The contents of one response: the times and classes of its events, its text, its counts.

Every dialect's decoder writes here, so that nothing after it depends on the dialect. Three events are singled out
while the text is at hand (docs/definitions.md):

first_text     the first generated text of any class, white space included (`ttft_any`)
first_visible  the first that is not all white space: draft 5.1.3.1's first token (`ttft`)
first_answer   the first such of class content (`ttfo`); differs from first_visible when a model thinks aloud
"""

from __future__ import annotations

import json
from array import array

from inferometer.journal.schema import EventClass

CONTENT = int(EventClass.CONTENT)
_TEXTS = frozenset({CONTENT, int(EventClass.REASONING), int(EventClass.TOOL_CALL)})


class Answer:
    """One response in the making. Event times are integers as the caller stamps them (ns)."""

    __slots__ = (
        "cached_tokens",
        "done",
        "error",
        "event_class",
        "event_ns",
        "finish_reason",
        "first_answer",
        "first_text",
        "first_visible",
        "input_tokens",
        "malformed",
        "output_tokens",
        "reasoning_tokens",
        "refused",
        "server_decode_ns",
        "server_load_ns",
        "server_prefill_ns",
        "server_total_ns",
        "texts",
    )

    def __init__(self) -> None:
        self.event_ns = array("q")
        self.event_class = bytearray()
        self.texts: list[str] = []
        self.first_text = -1
        self.first_visible = -1
        self.first_answer = -1
        self.finish_reason: str | None = None
        self.done = False
        self.refused = False
        self.error: str | None = None
        self.malformed: str | None = None
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.reasoning_tokens: int | None = None
        # The server's own durations: of all, of loading the model, of reading the prompt, of writing the answer.
        self.server_total_ns: int | None = None
        self.server_load_ns: int | None = None
        self.server_prefill_ns: int | None = None
        self.server_decode_ns: int | None = None

    def text(self, kind: int, text: str, at: int) -> None:
        """An event of a text class arrived at `at`."""
        if self.first_answer < 0:
            self._firsts(kind, text)
        self.event_ns.append(at)
        self.event_class.append(kind)
        self.texts.append(text)

    def mark(self, kind: int, at: int) -> None:
        """An event without text arrived at `at`."""
        self.event_ns.append(at)
        self.event_class.append(kind)

    def reply(self) -> str:
        """What the next turn of a conversation repeats: the text of class content, without the thinking before it."""
        kinds = [kind for kind in self.event_class if kind in _TEXTS]
        if kinds.count(CONTENT) == len(kinds):
            return "".join(self.texts)
        return "".join(text for kind, text in zip(kinds, self.texts, strict=True) if kind == CONTENT)

    def _firsts(self, kind: int, text: str) -> None:
        index = len(self.event_class)
        if self.first_text < 0:
            self.first_text = index
        if not text.isspace():
            if self.first_visible < 0:
                self.first_visible = index
            if kind == CONTENT:
                self.first_answer = index


# What an error's JSON says, in whichever of the common shapes it comes.
#
# | shape                                        | of                                                             |
# | -------------------------------------------- | -------------------------------------------------------------- |
# | `{"error": {"message": ..., "code": ...}}`   | OpenAI, vLLM, llama.cpp; Anthropic with a `type` beside it     |
# | `{"error": "..."}`                           | Ollama, mlx-lm                                                 |
# | `{"message": ...}`, `{"detail": ...}`        | the Responses stream, FastAPI                                  |
# | anything else, JSON or not                   | proxies; its beginning is quoted                               |
#
# One reader for all dialects: what stands in front of an engine answers in a shape of its own.


DETAIL_LIMIT = 4096
"""Characters kept of an error's detail; the record keeps fewer, but secrets are struck out before it cuts."""

POLICY_CODES = frozenset(
    {"content_filter", "content_policy", "content_policy_violation", "ResponsibleAIPolicyViolation"}
)
"""Error codes and types of a request that was refused for its content (OpenAI, Azure)."""


def error_text(body: bytes) -> str:
    """The message inside an error body; else its beginning."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return body[:DETAIL_LIMIT].decode("utf-8", "replace")
    if isinstance(content, dict):
        inner = content.get("error", content)
        if isinstance(inner, dict):
            inner = inner.get("message", inner.get("detail", inner))
        return str(inner)[:DETAIL_LIMIT]
    return str(content)[:DETAIL_LIMIT]


def names_a_policy(body: bytes) -> bool:
    """Whether an error body's code or type states that a policy refused the request; its message is not interpreted."""
    try:
        level = json.loads(body)
    except (ValueError, RecursionError):
        return False
    while isinstance(level, dict):  # {"error": {"code": ..., "innererror": {"code": ...}}}
        if any(isinstance(code := level.get(key), str) and code in POLICY_CODES for key in ("code", "type")):
            return True
        level = level.get("error") or level.get("innererror")
    return False
