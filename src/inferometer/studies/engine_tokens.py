"""How long a text is in an engine's own tokens: by its `/tokenize`, if it has one that counts as a tokenizer does.

| engine                                    | its `/tokenize`                                                         |
| ----------------------------------------- | ----------------------------------------------------------------------- |
| vLLM, SGLang, llama.cpp, the reference    | is used                                                                 |
| has none; too slow; counts as none can    | is not used (run/own_tokens.py has the limits)                          |
| would load a model to answer              | is not used                                                             |

Nothing is generated for it, so no prefix cache is filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from inferometer.drive.probe import Probe
from inferometer.errors import TokenizerGone
from inferometer.run.own_tokens import Undecided, answering
from inferometer.workload.bench_prompts import BenchPrompt, Count, chosen, context_fill

PATIENCE_S = 5.0
"""For each of an engine's answers before it is clear that it has a `/tokenize`."""
_TRIAL = context_fill(1_000).text


@dataclass(frozen=True, slots=True)
class TokenCounter:
    """What counts the tokens of a text. `name`: in words, as a result has it. `count` raises TokenizerGone where the engine no
    longer answers."""

    count: Count
    name: str


class Counting(Protocol):
    """An engine that may count the tokens of a text."""

    def counting(self, model: str | None = None) -> AbstractContextManager[TokenCounter | None]:
        """Its own tokenizer, for as long as the context lasts; None: it cannot be asked."""


def token_counter(probe: Probe, engine: str, model: str) -> TokenCounter | None:
    """The `/tokenize` of what `probe` asks, if it is sound."""
    try:
        theirs = answering(probe, model, _TRIAL)
    except Undecided:
        return None
    return TokenCounter(lambda text: len(theirs.encode(text)), f"the /tokenize of {engine} for {model}")


def sized(
    names: Sequence[str], sizes: Sequence[int], engines: Sequence[Counting]
) -> tuple[tuple[BenchPrompt, ...], str | None]:
    """The prompts of a benchmark, whose context fills are sized in tokens of the first engine that counts them; and by what.

    All engines get the same text. None: no engine counts tokens. Raises PlanError as `chosen` does."""
    prompts = chosen(names, sizes)
    for engine in engines if sizes else ():
        with engine.counting() as counter:
            if counter is None:
                continue
            try:
                return chosen(names, sizes, counter.count), counter.name
            except TokenizerGone:
                continue
    return prompts, None
