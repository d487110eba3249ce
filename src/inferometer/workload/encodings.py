"""The encodings that ship with the package, so that counting with them needs no network.

| name          | ordinary tokens | special tokens above them        | whose                                              |
| ------------- | --------------- | -------------------------------- | -------------------------------------------------- |
| `cl100k_base` |         100,256 | 100257 to 100260, 100276         | GPT-4's; the reference tokenizer of draft 4.4.2    |
| `o200k_base`  |         199,998 | 199999, 200018                   | GPT-4o's and later models'; gpt-oss's but for more |
|               |                 |                                  | special tokens                                     |

Each is tiktoken over a rank file that is the published one, byte for byte, but for its compression: `sha256` is the digest
that tiktoken itself checks its download against. Patterns and special tokens are those of `tiktoken_ext.openai_public`.
"""

from __future__ import annotations

import binascii
import functools
import hashlib
import importlib.resources
import lzma
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from inferometer.errors import InstrumentError
from inferometer.workload.blank_runs import MOST_BLANKS, parts
from inferometer.workload.parallel import cores

if TYPE_CHECKING:
    import tiktoken

CL100K = "cl100k_base"
O200K = "o200k_base"

_SHOWN = 12  # hexadecimal digits of the digest that a version shows: 48 bits, plenty to tell files apart


@dataclass(frozen=True, slots=True)
class Published:
    """What an encoding is made of. `sha256`: of the expanded rank file; `ordinary`: its lines; `pattern`: parts a text."""

    sha256: str
    ordinary: int
    pattern: str
    special: dict[str, int]


ENCODINGS = {
    CL100K: Published(
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        100_256,
        r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
        r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    O200K: Published(
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        199_998,
        r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
        r"""|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"""
        r"""|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
}


class UnreadableText(InstrumentError):
    """A text at which tiktoken ends in a panic. None is known since blank_runs.py."""


@contextmanager
def _readable() -> Iterator[None]:
    """A panic of tiktoken's, which is no Exception, would end whatever is under way. Raises UnreadableText."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise UnreadableText(f"tiktoken cannot read a text: {str(error)[:400]}") from error


class Shipped:
    """A tokenizer over a rank file in this package; `name` is a key of ENCODINGS. See `tokenizers.Tokenizer`."""

    def __init__(self, name: str) -> None:
        self._encoding = _encoding(name)
        published = ENCODINGS[name]
        self.kind: Literal["shipped", "ids", "learned", "none"] = "shipped"
        self.name = name
        self.version: str | None = f"sha256:{published.sha256[:_SHOWN]}"
        self.vocab_size = published.ordinary
        self.source = f"tiktoken {name}"
        self.reserved: frozenset[int] = frozenset()  # the special tokens all lie above the ranks
        # No alternative of the patterns matches a letter and then a space, and none looks back.
        self.splits_at_words = True
        self.rate = 1.0
        self.lanes = 1

    def __reduce__(self) -> tuple[Callable[..., Shipped], tuple[object, ...]]:
        """To another process goes the name alone."""
        return Shipped, (self.name,)

    @property
    def ink(self) -> Shipped:
        """See `Tokenizer`."""
        return self

    def encode(self, text: str) -> list[int]:
        """See `Tokenizer.encode`. Raises UnreadableText."""
        if len(text) <= MOST_BLANKS:
            return self._whole(text)
        return [
            one for part, blank in parts(text) for one in (self._piece(part) if blank else self._whole(part))
        ]

    def decode(self, ids: Sequence[int]) -> str:
        """See `Tokenizer.decode`."""
        return self._encoding.decode(ids)

    def count_all(self, texts: Sequence[str]) -> list[int | None]:
        """See `Tokenizer.count_all`. A text that tiktoken cannot read has no count."""
        short = [text for text in texts if len(text) <= MOST_BLANKS]
        try:
            with _readable():
                batch = self._encoding.encode_ordinary_batch(short, num_threads=min(8, cores()))
        except UnreadableText:
            return [self._count(text) for text in texts]
        counts = map(len, batch)
        return [next(counts) if len(text) <= MOST_BLANKS else self._count(text) for text in texts]

    def _count(self, text: str) -> int | None:
        try:
            return len(self.encode(text))
        except UnreadableText:
            return None

    def _whole(self, text: str) -> list[int]:
        with _readable():
            return self._encoding.encode_ordinary(text)

    def _piece(self, text: str) -> list[int]:
        """The ids of a text that the pattern leaves in one piece."""
        with _readable():
            return self._encoding._encode_single_piece(text)  # nothing public reads without the pattern


class Cl100k(Shipped):
    """The reference tokenizer of draft 4.4.2."""

    def __init__(self) -> None:
        super().__init__(CL100K)


def expanded_ranks(name: str) -> bytes:
    """A rank file as tiktoken publishes it: lines, each a token in base64, a space and its rank. Raises InstrumentError."""
    packed = importlib.resources.files("inferometer.workload") / "data" / f"{name}.tiktoken.xz"
    return expanded(name, packed.read_bytes())


def expanded(name: str, packed: bytes) -> bytes:
    """A rank file, packed, as it was published. Raises InstrumentError for any other."""
    try:
        content = lzma.decompress(packed)
    except lzma.LZMAError:
        content = b""
    if hashlib.sha256(content).hexdigest() != ENCODINGS[name].sha256:
        raise InstrumentError(
            f"the rank file of {name} in this installation is damaged: install inferometer again"
        )
    return content


@functools.cache
def _encoding(name: str) -> tiktoken.Encoding:
    import tiktoken

    published = ENCODINGS[name]
    decode = binascii.a2b_base64
    fields = expanded_ranks(name).split()
    ranks = dict(zip(map(decode, fields[::2]), map(int, fields[1::2]), strict=True))
    return tiktoken.Encoding(
        name, pat_str=published.pattern, mergeable_ranks=ranks, special_tokens=published.special
    )
