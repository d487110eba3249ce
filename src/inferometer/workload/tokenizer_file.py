"""A model's own `tokenizer.json`, run by the `tokenizers` package.

A text can be read in parts, and a long prompt be counted by its last words alone, where the file parts every text between an
ASCII letter and a space before another letter first, and reads each part by itself. That is known of byte pairs behind these:

| `pre_tokenizer`                                           | as in                           |
| --------------------------------------------------------- | ------------------------------- |
| ByteLevel with its own pattern, without a prefix space    | GPT-2                           |
| Split by a pattern of SPLITS, then ByteLevel without one  | Llama 3, Qwen 2 and 3, GPT-4o   |

since every alternative of these patterns that takes an ASCII letter ends at the next space, and none takes a space before a
letter but as its first character,
with no normalizer, or NFC, which changes no ASCII character before a space. All other files are read whole.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from inferometer import foreign_json, whole_file
from inferometer.errors import PlanError, Problem

FILE = "tokenizer.json"

_ENGLISH = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENGLISH}?|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENGLISH}?"
SPLITS = frozenset(
    {
        rf"{_ENGLISH}|{_WORD}|\p{{N}}{{1,3}}|{_REST}",  # Llama 3, and cl100k_base converted
        rf"{_ENGLISH}|{_WORD}|\p{{N}}|{_REST}",  # Qwen 2, 2.5 and 3
        rf"{_CASED}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",  # o200k_base
    }
)
"""See the head. A pattern that is not here may be as good, and is not known to be."""

MOST_BYTES = 512 << 20
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
        content = _read(path)
        with _usable(path.name):
            inner = _made(content)
            ordinary = inner.get_vocab(with_added_tokens=False)
            special = {i for i, token in inner.get_added_tokens_decoder().items() if token.special}
        self._inner = inner
        self.kind = kind
        self.name = name
        self.version: str | None = f"sha256:{hashlib.sha256(content).hexdigest()[:_SHOWN]}"
        self.vocab_size: int = len(ordinary)
        self.source = source
        self.reserved = frozenset(range(self.vocab_size)) - (set(ordinary.values()) - special)
        self.splits_at_words = _splits_at_words(content)
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
        # Without the offsets of each token, which nothing here reads, it takes a fifth less time.
        with _usable(self.name):
            [encoding] = self._inner.encode_batch_fast([_well_formed(text)], add_special_tokens=False)
        ids: list[int] = encoding.ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`."""
        with _usable(self.name):
            text: str = self._inner.decode(ids, skip_special_tokens=False)
        return text

    def count_all(self, texts: Sequence[str]) -> list[int | None]:
        """See `Tokenizer.count_all`. A text that the file cannot read has no count."""
        whole = [_well_formed(text) for text in texts]
        try:
            with _usable(self.name):
                batch = self._inner.encode_batch_fast(whole, add_special_tokens=False)
        except PlanError:
            return [self._count(text) for text in whole]
        return [len(encoding.ids) for encoding in batch]

    def _count(self, text: str) -> int | None:
        try:
            return len(self.encode(text))
        except PlanError:
            return None


def _read(path: Path) -> bytes:
    try:
        return whole_file.read(path, MOST_BYTES)
    except OSError as error:
        raise refused(f"cannot read {path.name!r}: {error.strerror}") from error


def _made(content: bytes) -> Any:
    from tokenizers import Tokenizer as Inner

    inner = Inner.from_str(content.decode("utf-8"))
    inner.no_truncation()
    inner.no_padding()
    inner.encode_special_tokens = True  # markers in a text are text: see the head of tokenizers.py
    return inner


@contextmanager
def _usable(name: str) -> Iterator[None]:
    """What the package raises says that the file is bad: bare Exception for all that it foresees, and a panic, which is no
    Exception, for what it does not. Raises PlanError."""
    try:
        yield
    except BaseException as error:
        panic = type(error).__name__ == "PanicException"
        if isinstance(error, MemoryError) or not (panic or isinstance(error, Exception)):
            raise
        raise refused(f"{name!r} is not a usable {FILE}: {str(error)[:400]}") from error


def _splits_at_words(content: bytes) -> bool:
    """Whether it is known of a `tokenizer.json` that it reads a text as its parts. One that is laid out in a way that is
    not known is read whole."""
    try:
        return _reads_parts(foreign_json.loads(content, halves=True))
    except (ValueError, LookupError, TypeError, AttributeError):
        return False


def _reads_parts(file: Any) -> bool:
    """See the head."""
    model, normalizer, steps = file["model"], file.get("normalizer"), file.get("pre_tokenizer") or {}
    steps = steps.get("pretokenizers", [steps])
    if model.get("type") != "BPE" or model.get("dropout") or (normalizer or {}).get("type", "NFC") != "NFC":
        return False
    # What is added is looked for before anything is parted.
    added = file.get("added_tokens") or []
    if any(
        " " in one["content"][1:] or one["lstrip"] or one["rstrip"] or one["single_word"] for one in added
    ):
        return False
    *first, last = steps
    if last.get("type") != "ByteLevel" or last.get("add_prefix_space", True):
        return False
    if not first:
        return bool(last.get("use_regex", True))
    [split, *more] = first
    pattern = split.get("pattern", {}).get("Regex")
    return not more and split.get("behavior") == "Isolated" and not split.get("invert") and pattern in SPLITS


def _well_formed(text: str) -> str:
    """`text` with every lone surrogate (an answer's JSON may hold one) replaced by U+FFFD; pairs are joined."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def refused(message: str) -> PlanError:
    """The error of a tokenizer that cannot be used."""
    return PlanError([Problem("--tokenizer", message)])
