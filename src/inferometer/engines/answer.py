"""The contents of one response: the times and classes of its events, its text, its counts.

Every dialect's decoder writes here, so that nothing after it depends on the dialect. Three events are singled out
while the text is at hand (docs/definitions.md):

first_text     the first generated text of any class, white space included (`ttft_any`)
first_visible  the first of which a reader sees something (visibility.py): draft 5.1.3.1's first token (`ttft`)
first_answer   the first such of class content (`ttfo`); differs from first_visible when a model thinks aloud

A server may say when it emitted the token of an event. `emitted_ns` has these instants as long as every text event has one:
gaps between them are the server's own (draft 4.6.3, option C).

Before them, an event of nothing but format or control characters is no text: its characters are put before the next text, up to
MOST_UNSEEN of them.

What servers report wrongly is settled here too: counts that are none, finish reasons that name a failure, errors in the shape
of another vendor, and events after the end.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any

from inferometer.engines.visibility import hidden, visible
from inferometer.journal.schema import EventClass
from inferometer.journal.tasks import KINDS

CONTENT = int(EventClass.CONTENT)
_TEXTS = frozenset({CONTENT, int(EventClass.REASONING), int(EventClass.TOOL_CALL)})
_EMPTY, _ERROR, _DONE = int(EventClass.EMPTY), int(EventClass.ERROR), int(EventClass.DONE)

REFUSAL_REASONS = frozenset({"content_filter", "refusal"})
"""Finish reasons of a refusal."""
ERROR_REASONS = frozenset({"error", "abort", "cancelled", "failed"})
"""Finish reasons of an answer that the server did not bring to its end."""
NO_REASON = frozenset({"", "null", "None"})
"""What some servers write as finish reason while the answer goes on. One that is cut off there has not ended."""
MOST_UNSEEN = 4096
"""Characters that no reader could notice, put before the next text; more of them are text. Each event copies what is held."""
MOST_TOKENS = (1 << 31) - 1
MOST_CHOICES = 16
MOST_STEPS = 1_000
"""Steps of one task that are read."""
MOST_NS = (1 << 63) - 1


def number(value: object, most: int) -> int | None:
    """A count or a duration of a server's JSON: an integer, or a float without a fraction, from 0 to `most`; else None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= most else None


def arguments_text(arguments: object) -> str:
    """The arguments of a tool's call as JSON; nothing where there are none, or where they are nested too deeply to be
    written."""
    try:
        return "" if arguments is None else json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return ""


def inside(value: object, *names: str) -> object:
    """The value under these names of nested JSON objects; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


class Answer:
    """One response in the making. Event times are integers as the caller stamps them (ns).

    `flowing`: visible answer content has arrived and the end has not. While it holds, a dialect may append an event of plain
    content to the three lists by itself.
    """

    __slots__ = (
        "_contents",
        "asked",
        "cached_tokens",
        "choice",
        "choices_left",
        "closed",
        "done",
        "echo",
        "emitted_ns",
        "error",
        "event_class",
        "event_ns",
        "finish_reason",
        "first_answer",
        "first_text",
        "first_visible",
        "flowing",
        "growing",
        "input_tokens",
        "malformed",
        "model",
        "output_tokens",
        "reasoning_tokens",
        "refused",
        "reported",
        "server_decode_ns",
        "server_load_ns",
        "server_prefill_ns",
        "server_total_ns",
        "several",
        "source",
        "steps",
        "texts",
        "unseen",
    )

    def __init__(self) -> None:
        self.event_ns = array("q")
        self.event_class = bytearray()
        self.emitted_ns = array("q")
        self.texts: list[str] = []
        self.unseen = ""
        self.choice: object = 0  # index of the choice that the latest text was of
        self.choices_left: list[object] = []  # of those before it, MOST_CHOICES at most
        self.asked = b""  # the field with the request's id, of gRPC
        self.echo = b""  # the field at the beginning of each message that repeats the request's id, of gRPC
        self.several, self.growing = (
            b"",
            0,
        )  # of gRPC: the last message with several ids, and how many such began with the one before
        self.closed = 0  # texts up to the last part that a dialect with parts has closed
        self._contents: dict[int, str] = {}  # what is content, of the texts that are not all of one class
        self.first_text = -1
        self.first_visible = -1
        self.first_answer = -1
        self.flowing = False
        self.finish_reason: str | None = None
        self.done = False
        self.refused = False
        self.error: str | None = None
        self.malformed: str | None = None
        self.model: str | None = None
        self.source: str | None = None  # the server's own name for this answer, where its events carry one
        self.input_tokens: int | None = None
        self.output_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.reasoning_tokens: int | None = None
        self.steps: str | None = None  # of a compound system, that its usage lists; as the record has them
        self.reported: dict[
            str, int
        ] = {}  # counts under the server's own names, of a dialect that adds them up
        # The server's own durations: of all, of loading the model, of reading the prompt, of writing the answer.
        self.server_total_ns: int | None = None
        self.server_load_ns: int | None = None
        self.server_prefill_ns: int | None = None
        self.server_decode_ns: int | None = None

    def text(self, kind: int, text: str, at: int) -> None:
        """An event of a text class arrived at `at`."""
        if self.first_answer < 0:
            if hidden(text) and len(self.unseen) < MOST_UNSEEN:
                self.unseen += text
                self.mark(_EMPTY, at)
                return
            text, self.unseen = self.unseen + text, ""
            self._firsts(kind, text)
        self.event_ns.append(at)
        self.event_class.append(kind)
        self.texts.append(text)

    def together(self, parts: Sequence[tuple[int, str]], at: int) -> None:
        """Texts of one event that arrived at `at`, with their classes; it is of class content if one of them is, else of the
        first's. Nothing without a text."""
        if len(parts) < 2:
            for kind, text in parts:
                self.text(kind, text, at)
            return
        for kind, text in parts:
            if self.first_answer < 0:
                self._firsts(kind, text)
        contents = [text for kind, text in parts if kind == CONTENT]
        if contents and len(contents) < len(parts):
            self._contents[len(self.texts)] = "".join(contents)
        self.event_ns.append(at)
        self.event_class.append(CONTENT if contents else parts[0][0])
        self.texts.append("".join(text for _, text in parts))

    def stamp(self, instant: object, before: int) -> None:
        """The server's instant (ns, on any clock of its own) of the event just read, if that had text: there were `before`
        texts without it. A dialect reads no event of such an answer by itself."""
        self.flowing = False
        if (
            len(self.emitted_ns) == before == len(self.texts) - 1
            and (at := number(instant, MOST_NS)) is not None
        ):
            self.emitted_ns.append(at)

    @property
    def stamps(self) -> array[int]:
        """The server's instants, one a text event; none if one is missing."""
        return self.emitted_ns if len(self.emitted_ns) == len(self.texts) else array("q")

    def named(self, model: object) -> None:
        """The answer says which model it is of; the first name stands."""
        if self.model is None and isinstance(model, str) and model:
            self.model = model

    def mark(self, kind: int, at: int) -> None:
        """An event without text arrived at `at`."""
        self.event_ns.append(at)
        self.event_class.append(kind)

    def of_choice(self, index: object, *, several: bool, first: bool) -> None:
        """This text is of another choice than the one before it. One choice is asked for, and texts of two are no answer: they
        stand in one event or one begins where the other has ended (`several`), or they take turns. A server that counts its
        events up as indices sends one. `first`: there was no text before."""
        if several or index in self.choices_left:
            self.malformed = self.malformed or "several choices, where one was asked for"
        if not first and len(self.choices_left) < MOST_CHOICES:
            self.choices_left.append(self.choice)
        self.choice = index

    def end(self, at: int) -> None:
        """The terminator arrived at `at`. A dialect marks whatever follows as another, and reads nothing of it."""
        self.done = True
        self.flowing = False
        self.event_ns.append(at)
        self.event_class.append(_DONE)

    def fail(self, payload: bytes, at: int | None) -> None:
        """The payload is an error: an event at `at`, or a whole answer. The first error stands."""
        self.error = self.error or error_text(payload) or "error"
        if at is not None:
            self.mark(_ERROR, at)

    def unreadable(self, payload: bytes, cause: Exception, at: int | None) -> None:
        """The payload is no JSON of its dialect: `[DONE]`, an error in the shape of another, an event after the end, or
        malformed."""
        if at is not None and (self.done or payload.strip() == b"[DONE]"):
            self.end(at)
        elif error_in(payload, alone=True):
            self.fail(payload, at)
        else:
            self.malformed = self.malformed or str(cause) or type(cause).__name__
            if at is not None:
                self.mark(_ERROR, at)

    def finish(self, reason: str) -> None:
        """The server gave this finish reason, in the terms of OpenAI's chat, if it is one."""
        if reason in NO_REASON:
            return
        self.finish_reason = reason
        if reason in REFUSAL_REASONS:
            self.refused = True
        elif reason in ERROR_REASONS:
            self.error = self.error or f"finish reason {reason}"

    def count(
        self,
        prompt: object = None,
        output: object = None,
        *,
        cached: object = None,
        reasoning: object = None,
    ) -> None:
        """Token counts as JSON has them. The last of each stands, but a zero replaces no other count. More cached tokens than
        the prompt has are the server's word as well: the record keeps it, and no figure rests on it (measure/record.py)."""
        if prompt is not None:
            self.input_tokens = stands(self.input_tokens, prompt)
        if output is not None:
            self.output_tokens = stands(self.output_tokens, output)
        if cached is not None:
            self.cached_tokens = stands(self.cached_tokens, cached)
        if reasoning is not None:
            self.reasoning_tokens = stands(self.reasoning_tokens, reasoning)

    def list_steps(self, steps: object) -> None:
        """The steps of a compound system as its usage lists them: `kind`, `prompt_tokens`, `completion_tokens`. What is no such
        list, or longer than MOST_STEPS, tells nothing."""
        if not isinstance(steps, list) or not 0 < len(steps) <= MOST_STEPS:
            return
        told = []
        for step in steps:
            kind = inside(step, "kind")
            tokens = (
                number(inside(step, name), MOST_TOKENS) for name in ("prompt_tokens", "completion_tokens")
            )
            told.append((KINDS.get(kind.lower()) if isinstance(kind, str) else None, *tokens))
        self.steps = json.dumps(told, separators=(",", ":"))

    @property
    def plain(self) -> bool:
        """Whether all its text is known to be of class content, at little cost."""
        return not self._contents and self.event_class.count(CONTENT) == len(self.texts)

    def reply(self) -> str:
        """What the next turn of a conversation repeats: the text of class content, without the thinking before it."""
        kinds = [kind for kind in self.event_class if kind in _TEXTS]
        if kinds.count(CONTENT) == len(kinds) and not self._contents:
            return "".join(self.texts)
        texts = enumerate(zip(kinds, self.texts, strict=True))
        return "".join(self._contents.get(n, text) for n, (kind, text) in texts if kind == CONTENT)

    def _firsts(self, kind: int, text: str) -> None:
        index = len(self.event_class)
        if self.first_text < 0:
            self.first_text = index
        if visible(text):
            if self.first_visible < 0:
                self.first_visible = index
            if kind == CONTENT:
                self.first_answer = index
                self.flowing = True


def stands(count: int | None, reported: object) -> int | None:
    """The count that stands: what is reported now, unless that is none, or zero where another was reported before."""
    now = number(reported, MOST_TOKENS)
    return count if now is None or (now == 0 and count is not None) else now


# Errors, in whichever of the common shapes they come.
#
# | shape                                                    | of                                                        |
# | -------------------------------------------------------- | --------------------------------------------------------- |
# | `{"error": {"message": ..., "code": ...}}`               | OpenAI, vLLM, llama.cpp; Anthropic with a `type` beside it |
# | `{"error": "..."}`                                       | Ollama, mlx-lm                                            |
# | `{"object": "error", "message": ...}`                    | vLLM before 0.10                                          |
# | `{"type": "error", "message": ...}`                      | the Responses stream                                      |
# | `{"type": "response.failed", "response": {"error": ...}}` | the Responses stream                                      |
# | `{"message": ...}`, `{"detail": ...}`                    | event streams with `event: error`; FastAPI                |
# | anything else, JSON or not                               | proxies; its beginning is quoted                          |
#
# One reader for all dialects: what stands in front of an engine answers in a shape of its own. The last row is an error only
# where something else says so, such as a status; the row before, only if nothing else is in the object that its dialect reads.


DETAIL_LIMIT = 4096
"""Characters kept of an error's detail; the record keeps fewer, but secrets are struck out before it cuts."""

POLICY_CODES = frozenset(
    {"content_filter", "content_policy", "content_policy_violation", "ResponsibleAIPolicyViolation"}
)
"""Error codes and types of a request that was refused for its content (OpenAI, Azure)."""


_ERROR_TYPES = frozenset({"error", "response.error", "response.failed"})
_WORDS = ("error", "message", "detail", "response")
"""Where an error's message may be, level by level."""


def error_in(payload: bytes, *, alone: bool) -> bool:
    """Whether this JSON is an error in one of the shapes above. `alone`: it has nothing else that its dialect reads."""
    content = decoded(payload)
    if not isinstance(content, dict):
        return False
    kind = content.get("type")
    kind = kind if isinstance(kind, str) else None
    if states_error(content.get("error"), content.get("object"), kind):
        return True
    if not alone or kind is not None:
        return False
    return isinstance(content.get("message"), str) or content.get("detail") not in _NO_ERROR


def states_error(error: object = None, named: object = None, kind: object = None) -> bool:
    """Whether a message with these members `error`, `object` and `type` is an error, whatever else it has."""
    return (
        (error is not None and error not in _NO_ERROR)
        or named == "error"
        or (isinstance(kind, str) and kind in _ERROR_TYPES)
    )


_NO_ERROR: tuple[object, ...] = (None, False, {}, [])


def error_text(body: bytes) -> str:
    """The message inside an error body; else its beginning. Any text can be encoded again."""
    content = decoded(body)
    words = None if content is None else words_of(content)
    return body[:DETAIL_LIMIT].decode("utf-8", "replace") if words is None else words


def words_of(content: Any) -> str | None:
    """The message inside an error that is decoded already; None if it is nested too deeply to be written."""
    try:
        while isinstance(content, dict):
            words = (content[name] for name in _WORDS if content.get(name) not in (None, False, "", {}, []))
            inner = next(words, None)
            if inner is None:
                break
            content = inner
        text = str(content)[:DETAIL_LIMIT]
    except RecursionError:
        return None
    return text.encode("utf-8", "replace").decode()


def names_a_policy(body: bytes) -> bool:
    """Whether an error body's code or type states that a policy refused the request; its message is not interpreted."""
    level = decoded(body)
    while isinstance(level, dict):  # {"error": {"code": ..., "innererror": {"code": ...}}}
        if any(isinstance(code := level.get(key), str) and code in POLICY_CODES for key in ("code", "type")):
            return True
        level = level.get("error") or level.get("innererror")
    return False


def decoded(body: bytes) -> Any:
    """A body's JSON, whatever bytes are in its strings; None if it is none."""
    try:
        return json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
