"""No tokenizer: the server's usage is the only count. cl100k_base makes the prompts and is their yardstick."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from inferometer.workload.encodings import CL100K, Shipped


class Uncounted:
    """Reads and writes as cl100k_base does, and counts no answer. See `tokenizers.Tokenizer`."""

    def __init__(self) -> None:
        self.ink = Shipped(CL100K)
        self.kind: Literal["none"] = "none"
        self.name = "none"
        self.version: str | None = None
        self.vocab_size = self.ink.vocab_size
        self.source = f"the server's usage alone; prompts are made with {CL100K} as a yardstick"
        self.reserved = self.ink.reserved
        self.splits_at_words = self.ink.splits_at_words
        self.lanes = self.ink.lanes

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer.encode`."""
        return self.ink.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`."""
        return self.ink.decode(ids)

    def count_all(self, texts: Sequence[str]) -> list[int | None]:
        """None for every text."""
        return [None] * len(texts)
