"""Tokenizers: who turns text into counts, and what a report must say about them (draft 4.4.1).

Two kinds exist, and neither needs a network:

| declared                                 | what counts                      | name          | source                 |
| ---------------------------------------- | -------------------------------- | ------------- | ---------------------- |
| `cl100k_base`                            | tiktoken, over the ranks we ship | `cl100k_base` | `tiktoken cl100k_base` |
| a `tokenizer.json`, or a folder with one | the `tokenizers` package         | its base name | `custom file`          |

`version` is the start of the SHA-256 of the bytes the tokenizer was made from, so two reports that agree on it counted
with the same tokenizer. Only base names are kept: a report does not carry the folders of the machine that made it.

Text is always counted as plain text. A marker such as `<|endoftext|>` inside a prompt or an answer is so many ordinary
tokens, never one special token, and nothing is put in front of or after the text.
"""

from __future__ import annotations

import binascii
import functools
import hashlib
import importlib.resources
import lzma
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from inferometer.errors import InstrumentError, PlanError, Problem

if TYPE_CHECKING:
    import tiktoken

    from inferometer.plan.schema import Tokenizer as Spec

CL100K = "cl100k_base"

CL100K_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
"""Of the expanded rank file; the digest tiktoken itself checks its download against."""

_CL100K_PATTERN = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)

_CL100K_SPECIALS = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}

_FILE = "tokenizer.json"
_SHOWN = 12  # hexadecimal digits of the digest that a version shows: 48 bits, plenty to tell files apart
_FEWEST = 8  # so few that some two of them have numbers of equally many digits, which nonces of ids need


class Tokenizer(Protocol):
    """What the program asks of a tokenizer.

    `vocab_size`: ordinary tokens; ids are drawn from 0 to `vocab_size - 1`. `reserved`: those of them that are never
    drawn, because they are special tokens or no tokens at all. `source`: where it came from, in the words of draft 4.4.1.
    `splits_at_words`: text may be parted between an ASCII letter and a space before another, and each part be read by
    itself, with the same ids as the whole.
    """

    name: str
    version: str
    vocab_size: int
    source: str
    reserved: frozenset[int]
    splits_at_words: bool

    def __hash__(self) -> int:
        """Tokenizers serve as keys of caches."""

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, taken as plain text; a lone surrogate counts as U+FFFD."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`; bytes that are no UTF-8 come out as U+FFFD."""

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, on all cores: for after the run, not during it."""


def load(spec: Spec) -> Tokenizer:
    """The tokenizer a plan declares.

    Raises PlanError where there is none of that name, or its file cannot be used. The shipped one takes about 0.25 s
    the first time and nothing after that.
    """
    if spec.name == CL100K:
        return Cl100k()
    path = Path(spec.name).expanduser()
    if path.is_dir():
        if not (path / _FILE).is_file():
            raise _refused(f"the folder {spec.name!r} holds no {_FILE}")
        return TokenizerFile(path / _FILE, path.resolve().name)
    if path.is_file():
        return TokenizerFile(path, path.name)
    raise _refused(
        f"there is no tokenizer {spec.name!r}: give {CL100K}, or the path of a {_FILE} or of a folder that holds one "
        "(nothing is downloaded, so save the model's own file first)"
    )


class Cl100k:
    """The reference tokenizer of draft 4.4.2, from the rank file in this package."""

    def __init__(self) -> None:
        self._encoding = _cl100k_encoding()
        self.name = CL100K
        self.version = f"sha256:{CL100K_SHA256[:_SHOWN]}"
        self.vocab_size = 100_256
        self.source = f"tiktoken {CL100K}"
        self.reserved: frozenset[int] = frozenset()  # the five special tokens all lie above the ranks
        # No alternative of the pattern matches a letter and then a space, and none looks back.
        self.splits_at_words = True

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer.encode`."""
        return self._encoding.encode_ordinary(text)

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`."""
        return self._encoding.decode(ids)

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """See `Tokenizer.count_all`."""
        batch = self._encoding.encode_ordinary_batch(list(texts), num_threads=min(8, os.cpu_count() or 1))
        return [len(ids) for ids in batch]


class TokenizerFile:
    """A `tokenizer.json`, run by the `tokenizers` package.

    Truncation and padding, which such a file may switch on, are switched off: they would falsify every count.
    """

    def __init__(self, path: Path, name: str) -> None:
        content, inner = _read(path)
        inner.no_truncation()
        inner.no_padding()
        inner.encode_special_tokens = True  # markers in a text are text: see the module's head
        ordinary = inner.get_vocab(with_added_tokens=False)
        special = {i for i, token in inner.get_added_tokens_decoder().items() if token.special}
        self._inner = inner
        self.name = name
        self.version = f"sha256:{hashlib.sha256(content).hexdigest()[:_SHOWN]}"
        self.vocab_size: int = len(ordinary)
        self.source = "custom file"
        self.reserved = frozenset(range(self.vocab_size)) - (set(ordinary.values()) - special)
        self.splits_at_words = False  # not known of a file, so its texts are always read whole
        if self.vocab_size - len(self.reserved) < _FEWEST:
            raise _refused(f"{name!r} has fewer than {_FEWEST} ordinary tokens")

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer.encode`."""
        ids: list[int] = self._inner.encode(_well_formed(text), add_special_tokens=False).ids
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`."""
        text: str = self._inner.decode(ids, skip_special_tokens=False)
        return text

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """See `Tokenizer.count_all`."""
        batch = self._inner.encode_batch([_well_formed(text) for text in texts], add_special_tokens=False)
        return [len(encoding.ids) for encoding in batch]


def expanded_ranks() -> bytes:
    """The rank file as tiktoken publishes it: 100,256 lines, each a token in base64, a space and its rank."""
    packed = importlib.resources.files("inferometer.workload") / "data" / f"{CL100K}.tiktoken.xz"
    return lzma.decompress(packed.read_bytes())


@functools.cache
def _cl100k_encoding() -> tiktoken.Encoding:
    import tiktoken

    content = expanded_ranks()
    if hashlib.sha256(content).hexdigest() != CL100K_SHA256:
        raise InstrumentError(
            "the rank file of cl100k_base in this installation is damaged: install inferometer again"
        )
    decode = binascii.a2b_base64
    fields = content.split()
    ranks = dict(zip(map(decode, fields[::2]), map(int, fields[1::2]), strict=True))
    return tiktoken.Encoding(
        CL100K, pat_str=_CL100K_PATTERN, mergeable_ranks=ranks, special_tokens=_CL100K_SPECIALS
    )


def _read(path: Path) -> tuple[bytes, Any]:
    """The bytes of a `tokenizer.json` and the tokenizer made from them."""
    from tokenizers import Tokenizer as Inner

    try:
        content = path.read_bytes()
    except OSError as error:
        raise _refused(f"cannot read {path.name!r}: {error.strerror}") from error
    try:
        return content, Inner.from_str(content.decode("utf-8"))
    except Exception as error:  # the package raises bare Exception for every kind of bad file
        raise _refused(f"{path.name!r} is not a usable {_FILE}: {error}") from error


def _well_formed(text: str) -> str:
    """`text` with every lone surrogate (an answer's JSON may hold one) replaced by U+FFFD; pairs are joined."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _refused(message: str) -> PlanError:
    return PlanError([Problem("--tokenizer", message)])
