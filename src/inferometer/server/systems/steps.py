"""What a task of a reference system consists of.

A script is a generator: it yields steps that run together, is sent what became of them, and has no clock, so that real time and
virtual time run the same one.
"""

from __future__ import annotations

import enum
from collections.abc import Generator, Sequence
from dataclasses import dataclass


class StepKind(enum.StrEnum):
    """What a step is."""

    LLM = "llm"
    TOOL = "tool"
    RETRIEVAL = "retrieval"
    RERANK = "rerank"
    GUARDRAIL = "guardrail"


@dataclass(frozen=True, slots=True)
class Step:
    """One step. A call of the model has a `prompt`, and `output_tokens` to generate; every other step takes `delay_ns` and then
    has `result`. The answering call has in `answer` what it is to say first; the script's last call is one."""

    kind: StepKind
    name: str
    prompt: str = ""
    output_tokens: int = 0
    delay_ns: int = 0
    result: str = ""
    answer: str | None = None
    arguments: str = ""


Results = Sequence[str | None]
"""What steps gave, in their order; None of a tool that was never called."""


class Refused(Exception):
    """A guardrail stops the task; the words are the answer."""


Script = Generator[tuple[Step, ...], Results, None]
"""A task. May raise Refused."""


def guardrail_step(name: str, delay_ns: float) -> Step:
    """A check."""
    return Step(StepKind.GUARDRAIL, name, delay_ns=round(delay_ns))
