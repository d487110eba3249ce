"""No tokenizer: the server's usage is the only count. cl100k_base makes the prompts, and is the yardstick of those of text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inferometer.workload.encodings import CL100K, Shipped


class Uncounted(Shipped):
    """Reads and writes as cl100k_base does, and counts no answer. See `tokenizers.Tokenizer`."""

    def __init__(self, unsound: bool = False) -> None:
        super().__init__(CL100K)
        self.unsound = unsound
        self.kind = "none"
        self.name = "none"
        self.version = None
        self.source = f"the server's usage alone; prompts are made with {CL100K} as a yardstick"

    def __reduce__(self) -> tuple[Callable[..., Uncounted], tuple[object, ...]]:
        """See `Shipped`."""
        return Uncounted, (self.unsound,)

    def count_all(self, texts: Sequence[str]) -> list[int | None]:
        """None for every text."""
        return [None] * len(texts)


class AsIds(Uncounted):
    """The same for prompts that are sent as token ids, whose number is what the server reads."""

    def __init__(self) -> None:
        super().__init__()
        self.kind = "ids"
        self.name = "ids"
        self.source = f"the server's usage; prompts are token ids from the range of {CL100K}"

    def __reduce__(self) -> tuple[Callable[..., AsIds], tuple[object, ...]]:
        """See `Shipped`."""
        return AsIds, ()
