"""Words that hang on values: a template of a note's facts, or a function whose parameters are the facts it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from inspect import Parameter, signature

from inferometer.documents.note import Fact

Words = str | Callable[..., str]


def called(words: Callable[..., str], facts: Mapping[str, Fact]) -> str:
    """The words for these facts. Raises TypeError where one that they need is missing."""
    needed = _parameters(words)
    return words(**(facts if needed is None else {name: facts[name] for name in needed if name in facts}))


@cache
def _parameters(words: Callable[..., str]) -> tuple[str, ...] | None:
    """The facts by name; None: all."""
    taken = signature(words).parameters
    return None if any(one.kind is Parameter.VAR_KEYWORD for one in taken.values()) else tuple(taken)
