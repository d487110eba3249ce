"""One task of a reference system: what was asked, the trace that it belongs to, and what was done, step by step."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from inferometer.server.filler_text import PIECES
from inferometer.server.http_reply import JsonObject
from inferometer.server.systems.scripts import Question
from inferometer.server.systems.steps import Step, StepKind

_TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?"
)
_PARTS = re.compile(r"[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{1,3}| ?[^\sA-Za-z0-9]+|\s")
"""How cl100k parts ASCII before it merges."""

Encode = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class Trace:
    """Where a task stands in a trace. `parent`: the span that called, None where the request had no valid `traceparent`."""

    trace_id: str
    parent: str | None = None


def read_traceparent(header: str) -> Trace | None:
    """The W3C header's trace and span; None where it is missing or not valid: the task then begins a trace of its own."""
    found = _TRACEPARENT.fullmatch(header.strip())
    if found is None or (header.startswith("00") and found[3]):
        return None
    return Trace(found[1], found[2])


def identity(random_: random.Random, digits: int) -> str:
    """A trace or span id of so many hexadecimal digits; never 0, which is none."""
    return f"{random_.getrandbits(4 * digits) or 1:0{digits}x}"


@dataclass(eq=False, slots=True)
class StepRecord:
    """What became of one step. Instants in ns on the server's clock; `error`: why it failed."""

    step: Step
    number: int
    span_id: str
    began_ns: int
    ended_ns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    first_token_ns: int | None = None
    fault: str | None = None
    error: str | None = None

    def counts(self) -> JsonObject:
        """Its entry in `usage.steps`."""
        return {
            "kind": self.step.kind.value,
            "name": self.step.name,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
        }


@dataclass(eq=False, slots=True)
class Task:
    """One task, while it lasts and after.

    `pieces`: the answer, a token each, known when its call begins. `outcome`: `finished`, `refused`, `failed` or `cancelled`;
    `fault`: the injected fault that concerns the whole task.
    """

    question: Question
    trace: Trace | None
    encode: Encode
    ident: str = ""
    span_id: str = ""
    began_ns: int = 0
    ended_ns: int = 0
    steps: list[StepRecord] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    outcome: str = ""
    fault: str | None = None
    false_usage: bool = False

    def usage(self) -> JsonObject:
        """The totals of its calls of the model, and each step's share of them."""
        steps = [record.counts() for record in self.steps]
        if self.false_usage:
            for one in steps:
                one["completion_tokens"] = int(str(one["completion_tokens"])) // 2
        calls = [record for record in self.steps if record.step.kind is StepKind.LLM]
        prompt = sum(record.prompt_tokens for record in calls)
        generated = sum(int(str(one["completion_tokens"])) for one in steps)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
            "prompt_tokens_details": {"cached_tokens": sum(record.cached_tokens for record in calls)},
            "steps": steps,
        }


def pieces_of(text: str, count: int, encode: Encode) -> list[str]:
    """An ASCII text in `count` pieces: as many to each word as it has tokens of cl100k. A longer text is cut off; behind a
    shorter one comes the reference engine's passage."""
    made: list[str] = []
    for part in _PARTS.findall(text):
        tokens = len(encode(part))
        cuts = [len(part) * n // tokens for n in range(tokens + 1)]
        made += [part[start:end] for start, end in itertools.pairwise(cuts)]
    return (made + [PIECES[n % len(PIECES)] for n in range(count - len(made))])[:count]
