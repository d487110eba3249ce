"""How an answer is worded: the bytes of its stream, or of its one body. Pure; a dialect's file has the words.

A voice is used where text alone does not do: other dialects than OpenAI's first two, reasoning, tool calls, time stamps. It
puts each event together as it comes. (answers.py has bytes prepared in advance for the plain case.)

With time stamps, each token's event carries when the model put it out, on both clocks of this machine:

| `emitted_monotonic_ns` | CLOCK_MONOTONIC, as in the truth log; it is that log's `model_ns`                        |
| `emitted_wall_ns`      | the same since 1970; the clocks are compared once an answer, so that gaps are the model's |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from inferometer.server.answer_parts import PLAIN, Passage
from inferometer.server.http_reply import EVENT_STREAM, JsonObject
from inferometer.server.openai import Ask


@dataclass(frozen=True, slots=True)
class Telling:
    """What a voice knows of its answer.

    `model` is the name served; `number` 32 hexadecimal digits of the answer's id; `received_ns` when the request was there
    (monotonic) and `wall_offset_ns` what the wall clock was ahead then; `stamped`: events carry time stamps.
    """

    model: str
    ask: Ask
    passage: Passage
    number: str
    received_ns: int
    wall_offset_ns: int
    stamped: bool = False

    @property
    def created(self) -> int:
        """The answer's wall-clock second."""
        return (self.received_ns + self.wall_offset_ns) // 1_000_000_000

    def stamps(self, at: int) -> JsonObject:
        """The further fields of the event of a token put out at `at`."""
        if not self.stamped:
            return {}
        return {"emitted_monotonic_ns": at, "emitted_wall_ns": at + self.wall_offset_ns}


class Voice:
    """The words of one answer. Bytes are those of the body; who sends them cuts them into chunks."""

    content_type = EVENT_STREAM
    body_type = b"application/json"
    """The media type of an answer that is not streamed."""
    trailers = b""
    """Lines behind the body of either."""

    def __init__(self, telling: Telling) -> None:
        self._telling = telling
        self._refused = False
        self.cached = 0
        """Prompt tokens that came from the prefix cache; known when the answer ends."""
        self.prefill_ns: int | None = None
        """From the first iteration of the prompt to the end of its last; known then too, where the engine has iterations."""

    def refuse(self, count: int) -> None:
        """A guardrail refused the request: `count` tokens of plain text are all that will come. Before the first of them."""
        telling = self._telling
        self._refused = True
        self._telling = dataclasses.replace(
            telling,
            ask=msgspec.structs.replace(telling.ask, parts=PLAIN),
            passage=telling.passage.plain(count),
        )

    def opening(self) -> bytes:
        """What is sent as soon as the request is accepted."""
        return b""

    def lead(self) -> bytes:
        """What is sent just before the first token."""
        return b""

    def token(self, index: int, at: int) -> bytes:
        """Token `index`, put out at `at`, with whatever must stand before it. Nothing where the dialect holds it back."""
        raise NotImplementedError

    def closing(self, instants: Sequence[int], load_ns: int) -> bytes:
        """What follows the last token. `instants`: when each token was put out; `load_ns`: the wait for the model."""
        raise NotImplementedError

    def body(self, instants: Sequence[int], load_ns: int) -> bytes:
        """The body of the answer that is not streamed."""
        raise NotImplementedError
