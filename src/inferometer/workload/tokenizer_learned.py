"""A tokenizer nobody has: its counts are estimated by a ratio that was learned from the server's usage.

With n the tokens of cl100k_base in a text, r the server's tokens for one of those and m those of a nonce (nine digits),

    tokens(text) = r n                  of a text without a nonce in front,
    tokens(text) = m + r (n - 3)        of one that begins with a nonce, which is three tokens of cl100k_base.

Single texts scatter around that by the square root of their length; their mean does not (run/own_tokens.py has the error).
The estimate sizes prompts. It counts no answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from inferometer.documents.workload import LearnedRatio
from inferometer.workload.encodings import CL100K, Shipped

_NONCE = re.compile(r"\d{9}(?!\d)", re.ASCII)
_NONCE_TOKENS = 3


class Learned(Shipped):
    """Writes as cl100k_base does and counts in the server's tokens, nearly. See `tokenizers.Tokenizer`."""

    def __init__(self, learned: LearnedRatio) -> None:
        super().__init__(CL100K)
        self.kind = "learned"
        self.name = "learned"
        self.version = None
        self.source = f"the server's usage; prompts are written with {CL100K} and sized by a learned ratio"
        self.learned = learned
        self.rate = learned.ratio
        self.splits_at_words = False
        self._ink = Shipped(CL100K)

    def __reduce__(self) -> tuple[Callable[..., Learned], tuple[object, ...]]:
        """See `Shipped`."""
        return Learned, (self.learned,)

    @property
    def ink(self) -> Shipped:
        """See `Tokenizer`."""
        return self._ink

    def encode(self, text: str) -> list[int]:
        """As many places as the server is expected to count tokens; they are no ids."""
        count = len(self._ink.encode(text))
        extra = self.learned.nonce - self.rate * _NONCE_TOKENS if _NONCE.match(text) else 0.0
        return [0] * max(min(count, 1), round(self.rate * count + extra))

    def decode(self, ids: Sequence[int]) -> str:
        """Empty: places cannot be read."""
        del ids
        return ""

    def count_all(self, texts: Sequence[str]) -> list[int | None]:
        """None for every text: an estimate is no count."""
        return [None] * len(texts)
