"""A model's own `tokenizer.json`, run by the `tokenizers` package."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from inferometer.errors import PlanError, Problem

FILE = "tokenizer.json"

_SHOWN = 12  # hexadecimal digits of the digest that a version shows
_FEWEST = 8  # so few that some two of them have numbers of equally many digits, which nonces of ids need


class TokenizerFile:
    """A `tokenizer.json`, run by the `tokenizers` package.

    Truncation and padding, which such a file may switch on, are switched off: they would falsify every count.
    """

    def __init__(
        self, path: Path, name: str, kind: Literal["file", "hub"] = "file", source: str = "custom file"
    ) -> None:
        self._made_of = path, name, kind, source
        content, inner = _read(path)
        inner.no_truncation()
        inner.no_padding()
        inner.encode_special_tokens = True  # markers in a text are text: see the module's head
        ordinary = inner.get_vocab(with_added_tokens=False)
        special = {i for i, token in inner.get_added_tokens_decoder().items() if token.special}
        self._inner = inner
        self.kind = kind
        self.name = name
        self.version: str | None = f"sha256:{hashlib.sha256(content).hexdigest()[:_SHOWN]}"
        self.vocab_size: int = len(ordinary)
        self.source = source
        self.reserved = frozenset(range(self.vocab_size)) - (set(ordinary.values()) - special)
        self.splits_at_words = False  # not known of a file, so its texts are always read whole
        self.rate = 1.0
        self.lanes = 1
        if self.vocab_size - len(self.reserved) < _FEWEST:
            raise refused(f"{name!r} has fewer than {_FEWEST} ordinary tokens")

    def __reduce__(self) -> tuple[type[TokenizerFile], tuple[Path, str, Literal["file", "hub"], str]]:
        """To another process goes where the file is."""
        return TokenizerFile, self._made_of

    @property
    def ink(self) -> TokenizerFile:
        """See `Tokenizer`."""
        return self

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer.encode`."""
        ids: list[int] = self._inner.encode(_well_formed(text), add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`."""
        text: str = self._inner.decode(ids, skip_special_tokens=False)
        return text

    def count_all(self, texts: Sequence[str]) -> list[int | None]:
        """See `Tokenizer.count_all`."""
        batch = self._inner.encode_batch([_well_formed(text) for text in texts], add_special_tokens=False)
        return [len(encoding.ids) for encoding in batch]


def _read(path: Path) -> tuple[bytes, Any]:
    """The bytes of a `tokenizer.json` and the tokenizer made from them."""
    from tokenizers import Tokenizer as Inner

    try:
        content = path.read_bytes()
    except OSError as error:
        raise refused(f"cannot read {path.name!r}: {error.strerror}") from error
    try:
        return content, Inner.from_str(content.decode("utf-8"))
    except Exception as error:  # the package raises bare Exception for every kind of bad file
        raise refused(f"{path.name!r} is not a usable {FILE}: {error}") from error


def _well_formed(text: str) -> str:
    """`text` with every lone surrogate (an answer's JSON may hold one) replaced by U+FFFD; pairs are joined."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def refused(message: str) -> PlanError:
    """The error of a tokenizer that cannot be used."""
    return PlanError([Problem("--tokenizer", message)])
