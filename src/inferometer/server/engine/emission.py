"""What an engine hands out: tokens, at an instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from inferometer.units import Ns

K = TypeVar("K")
"""Whatever the caller uses to know a request again. Compared by identity."""

GOES_ON, LENGTH, REFUSED = 0, 1, 2
"""How a request stands after its tokens: more to come; it has its length; a guardrail refused it."""

Tokens = tuple[K, int, int, int]
"""Request, index of its first token here, how many there are, and how it stands then. Made for each token: a tuple."""


@dataclass(slots=True)
class Emission(Generic[K]):
    """What came out at the instant `at`. `cached`: requests whose prompts were served in part from the prefix cache,
    and how many of their tokens. `prefilled`: requests whose prompts were complete at `at`, and when the first iteration that
    computed a part of them began. Each is told once, no later than the first token. `ended`: requests whose last token is here.
    """

    at: Ns
    tokens: list[Tokens[K]]
    cached: Sequence[tuple[K, int]] = ()
    prefilled: Sequence[tuple[K, int]] = ()
    ended: Sequence[K] = ()
