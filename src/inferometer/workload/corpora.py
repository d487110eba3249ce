"""Corpora: natural text inside the package, and pieces of it that are exactly as many tokens long as asked.

Two texts, made once from what comes with Python 3.11.7 (scripts/corpora.py) and never made again, so that a prompt's bytes
depend neither on the Python that runs the program nor on a network:

| name      | what it is                                                              | characters | a piece begins at     |
| --------- | ----------------------------------------------------------------------- | ---------- | --------------------- |
| `english` | prose of Python's language reference, each paragraph once               |    225,486 | a sentence            |
| `code`    | whole modules of Python's standard library                              |  1,598,287 | a function or a class |

A piece is a front of the text from such a place on, going on at the text's beginning where the text ends. How many tokens a
front of L characters has grows with L, but not by one at a time: a character may complete a word that then is one token
where it had been three. So a front is guessed from the tokens of a longer one, counted anew, and moved to between the
longest that was too short and the shortest that was too long, until it is right or nothing is left between them. If no
front near there has the count (or all that do end in white space, which a chat template may strip), the next place is tried.

A long piece need not be read again: where the tokenizer lets text be parted between words, a Ruler knows the tokens of every
run of SEGMENT characters or so, and only the ends of the piece are counted.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import importlib.resources
import itertools
import lzma
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from inferometer.errors import InstrumentError

if TYPE_CHECKING:
    from inferometer.workload.tokenizers import Tokenizer

Name = Literal["english", "code"]
Front = Callable[[int, int], str]
"""So many characters of a text from a start on, the text going on for ever; a start is no white space."""

SHA256: dict[Name, str] = {
    "english": "2ba26b0a82dd351ca538a350979759dcbfc321852da092ad2c869309b3d9050a",
    "code": "b06ffcfcdaa8c02a0c2bbe2d17cc371a3e07a2878c538ef6345a3fe3681ef2ac",
}
"""Of the expanded texts in UTF-8."""

_LANGUAGES: dict[Name, str] = {"english": "English", "code": "Python"}
_SOURCES: dict[Name, str] = {
    "english": "Python 3.11.7 language reference (pydoc_data.topics), paragraphs of prose, each once",
    "code": "Python 3.11.7 standard library, whole modules in the order of their paths",
}
_STARTS: dict[Name, re.Pattern[str]] = {
    "english": re.compile(r'(?:(?<=\n\n)|(?<=[.!?] )|\A)(?=["“]?[A-Z])'),
    "code": re.compile(r"^[ ]*(?=(?:@|def |class |async def ))", re.MULTILINE),
}

_PLACES = 16
_ROUNDS = 12
_SEGMENT = 256  # characters between two marks, at least
_SAMPLE = 4096  # characters from which the length of a token is guessed
_NEAR = 8  # characters on both sides of the place where the count steps over the one asked for
_APART = "\n\n"  # between the end of the text and its beginning


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """A text and what a report says of it. `sha256`: hexadecimal, of the UTF-8 bytes. `starts`: where pieces may begin."""

    name: Name
    text: str = field(repr=False)
    sha256: str
    language: str
    source: str
    starts: tuple[int, ...] = field(repr=False)

    def starts_from(self, at: int, count: int) -> list[int]:
        """So many starts from there on, going round."""
        first = bisect.bisect_left(self.starts, at % len(self.text))
        return [self.starts[(first + place) % len(self.starts)] for place in range(count)]

    def front(self, start: int, chars: int) -> str:
        """So many characters from `start` on, going round."""
        round_trip = self.text + _APART
        text = round_trip[start : start + chars]
        while len(text) < chars:
            text += round_trip[: chars - len(text)]
        return text


@functools.cache
def load(name: Name) -> Corpus:
    """The corpus of this name. Raises InstrumentError if its file is not the one that belongs here."""
    packed = importlib.resources.files("inferometer.workload") / "data" / f"{name}.txt.xz"
    try:
        content = lzma.decompress(packed.read_bytes())
    except (OSError, lzma.LZMAError, EOFError) as cause:
        raise _damaged(name) from cause
    digest = hashlib.sha256(content).hexdigest()
    if digest != SHA256[name]:
        raise _damaged(name)
    text = content.decode()
    starts = tuple(found.end() for found in _STARTS[name].finditer(text))
    return Corpus(name, text, digest, _LANGUAGES[name], _SOURCES[name], starts)


def cut(corpus: Corpus, tokenizer: Tokenizer, tokens: int, at: int) -> str:
    """A piece of `tokens` tokens (1 or more) by the tokenizer's count, from the first start at or behind position `at` on.

    `at` counts characters and may be any number: it is taken modulo the text's length. Neither end is white space.
    If none of the _PLACES starts from there on has a piece that long, the nearest that was found is given.
    """
    return cut_from(corpus.front, tokenizer, tokens, corpus.starts_from(at, _PLACES))


def cut_from(front: Front, tokenizer: Tokenizer, tokens: int, starts: Iterable[int]) -> str:
    """The same of any text that goes on and on: from the first of some starts that has a piece so long, or the nearest."""
    best: tuple[int, str] | None = None
    for start in starts:
        missed, text = _Piece(front, tokenizer, tokens, start).find()
        if missed == 0:
            return text
        if best is None or missed < best[0]:
            best = missed, text
    assert best is not None
    return best[1]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a corpus in three parts: `head` from its start on, then `middle`, of `tokens` tokens, then what `rest` cuts of
    so many tokens (its second number, which would ask for another start, is not heeded). Both seams lie between a letter and a
    space before another, so each part may be counted by itself.
    """

    head: str
    middle: str
    tokens: int
    rest: Callable[[int, int], str]


@functools.lru_cache(maxsize=4)
class Ruler:
    """The tokens of a corpus between marks, going round. The tokenizer must part text between words."""

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer) -> None:
        self._corpus, self._tokenizer = corpus, tokenizer
        self._round = corpus.text + _APART
        marks: list[int] = []
        for seam in re.finditer(r"[A-Za-z](?= [A-Za-z])", corpus.text):
            if not marks or seam.end() - marks[-1] >= _SEGMENT:
                marks.append(seam.end())
        ends = [*marks[1:], len(self._round) + marks[0]]
        parts = [corpus.front(mark, end - mark) for mark, end in zip(marks, ends, strict=True)]
        self._marks = marks
        self._before = [0, *itertools.accumulate(len(tokenizer.encode(part)) for part in parts)]

    def stretch(self, start: int, tokens: int) -> Stretch:
        """From a start on, with a middle of at most so many tokens and of nearly as many."""
        first = bisect.bisect_left(self._marks, start) % len(self._marks)
        rounds, left = divmod(tokens, self._before[-1])
        goal = self._before[first] + left
        wraps = goal >= self._before[-1]
        last = bisect.bisect_right(self._before, goal - self._before[-1] * wraps) - 1
        begin, end, around = self._marks[first], self._marks[last], len(self._round)
        chars = end - begin + around * (rounds + wraps)
        count = self._before[last] - self._before[first] + self._before[-1] * (rounds + wraps)
        return Stretch(
            self._corpus.front(start, (begin - start) % around),
            self._corpus.front(begin, chars),
            count,
            lambda left, _: cut_from(self._corpus.front, self._tokenizer, left, [end]),
        )


class _Piece:
    """The search for the front of one place that has so many tokens."""

    def __init__(self, front: Front, tokenizer: Tokenizer, tokens: int, start: int) -> None:
        self._tokens, self._tokenizer = tokens, tokenizer
        self._text, self._ids = long_enough(front, tokenizer, tokens, start)
        self._count = self._counter()

    def find(self) -> tuple[int, str]:
        """By how many tokens the best front misses, and that front."""
        low, high = 0, len(self._text)  # the longest front that was too short, the shortest that was too long
        counted: dict[int, int] = {}
        length = self._guess()
        for _ in range(_ROUNDS):
            ends = len(self._text[:length].rstrip()) or 1  # a start is no white space
            if ends not in counted:
                counted[ends] = self._count(ends)
            missing = self._tokens - counted[ends]
            if missing == 0:
                return 0, self._text[:ends]
            low, high = (length, high) if missing > 0 else (low, ends)
            if high - low < _NEAR:
                break
            length = ends + _away_from_zero(missing * ends / counted[ends])
            if not low < length < high:
                length = (low + high) // 2
        for length in range(max(1, low - _NEAR), min(high, low + _NEAR) + 1):
            if length not in counted and not self._text[length - 1].isspace():
                counted[length] = self._count(length)
        nearest = min(counted, key=lambda length: abs(counted[length] - self._tokens))
        return abs(counted[nearest] - self._tokens), self._text[:nearest]

    def _guess(self) -> int:
        """How long the front of so many tokens is, from the tokens of the whole."""
        front = self._tokenizer.decode(self._ids[: self._tokens]).rstrip("\ufffd")
        if front and self._text.startswith(front):
            return len(front)
        return len(self._text) * self._tokens // len(self._ids)

    def _counter(self) -> Callable[[int], int]:
        """Counts a front by its length in characters; if it may, only what follows a place that no cut comes near."""
        encode, text = self._tokenizer.encode, self._text
        settled = tokens = 0
        if self._tokenizer.splits_at_words:
            far = max(0, self._guess() - _SAMPLE)
            found = list(re.finditer(r"[A-Za-z](?= [A-Za-z])", text[:far]))
            settled = found[-1].end() if found else 0
            tokens = len(encode(text[:settled]))

        def count(length: int) -> int:
            if length <= settled:
                return len(encode(text[:length]))
            return tokens + len(encode(text[settled:length]))

        return count


def long_enough(front: Front, tokenizer: Tokenizer, tokens: int, start: int) -> tuple[str, list[int]]:
    """A front of more than `tokens` tokens, and its ids."""
    chars = min(_SAMPLE, 16 * tokens + 16)
    while True:
        text = front(start, chars)
        ids = tokenizer.encode(text)
        if len(ids) > tokens + _NEAR:
            return text, ids
        wanted = (tokens + _NEAR) / max(
            1, len(ids)
        )  # at most doubled where a few tokens tell little of the rest
        chars = int(chars * (max(1.1 * wanted, 1.5) if len(ids) > _SAMPLE // 16 else 2))


def _away_from_zero(step: float) -> int:
    return math.ceil(step) if step > 0 else math.floor(step)


def _damaged(name: str) -> InstrumentError:
    return InstrumentError(f"the corpus {name!r} in this installation is damaged: install inferometer again")
