"""Nonces: what every prompt of a run begins with, so that no cache has met it before.

Request `i` of the run with salt `s` has value `(s + i * STRIDE) mod 10^9`: it repeats after 10^9 requests, and two runs differ
at every `i` unless their salts agree modulo 10^9. How a value is spelled depends on the tokenizer that counts, for a prompt has
to have the same tokens behind every nonce: else the passes of one plan would differ in their texts.

| prompts | the tokenizer                               | a nonce is                                                           |
| ------- | ------------------------------------------- | -------------------------------------------------------------------- |
| text    | reads nine digits as equally many tokens,   | nine decimal digits                                                  |
|         | whichever they are (cl100k_base: as three)  |                                                                      |
| text    | merges digits as they come (GPT-2, Pythia)  | plain words of equally many letters, as many as give 10^9 values     |
| text    | has no such words either                    | nine digits: texts then differ in their ends, and fingerprints do    |
| ids     | any                                         | ids with equally many digits, as many as give 10^9 values            |

All nonces of a run are equally long in the request's body, and one can be written over another. That digits and words are
read so is tried out, where they will stand: at the head of a text or behind a paragraph, and before a line end or a word. A
tokenizer that only estimates, or counts nothing, is not what texts are cut by: its `ink` is (cl100k_base).
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import TYPE_CHECKING, Literal, cast

from inferometer.workload.parallel import in_order
from inferometer.workload.plain_words import allowed, ruler, words_of

if TYPE_CHECKING:
    from inferometer.workload.tokenizers import Tokenizer

NONCES = 10**9
STRIDE = 618_033_989
"""Near NONCES over the golden ratio, and coprime to NONCES: neighbours get far-apart nonces, and none comes twice."""

_FRONTS = ("", "So it is.\n\n")
_BEHIND = ("", "\n")
_TRIED, _TRIED_AT_SERVER = 2000, 48
_TRIED_WORDS, _TRIED_WORDS_AT_SERVER = 512, 40
_FEWEST_WORDS = 4
"""Of fewer a nonce is longer than 15 words."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the values 0 to NONCES - 1 are spelled in text: by one of `heads` and `places` of `tails`, or without those by nine
    digits. `tokens`: of each, or nearly where there is no better spelling."""

    heads: tuple[str, ...]
    tails: tuple[str, ...]
    places: int
    tokens: int

    def spell(self, value: int) -> str:
        """The nonce of a value."""
        if not self.heads:
            return f"{value:09d}"
        rest, first = divmod(value, len(self.heads))
        base = len(self.tails)
        return self.heads[first] + "".join(self.tails[rest // base**at % base] for at in range(self.places))

    def value(self, nonce: str) -> int:
        """The value of a nonce."""
        if not self.heads:
            return int(nonce)
        head, *words = nonce.split(" ")
        rest = 0
        for word in reversed(words):
            rest = rest * len(self.tails) + self.tails.index(f" {word}")
        return rest * len(self.heads) + self.heads.index(head)

    def parts(self, text: str) -> bool:
        """Whether a text right behind a nonce leaves it as it is: it must not go on with its digits, or with its last word."""
        if self.heads:
            return text[:1] == " " and text[1:2].isascii() and text[1:2].isalpha()
        return not text[:1].isnumeric()


def nonces(
    tokenizer: Tokenizer, salt: int, prompt_format: Literal["ids", "text"], first: int, count: int
) -> Iterator[str]:
    """The nonces of requests `first` to `first + count - 1`, as they stand in the JSON body; all have one length."""
    spell = speller(tokenizer, prompt_format)
    return (spell((salt + index * STRIDE) % NONCES) for index in range(first, first + count))


def speller(tokenizer: Tokenizer, prompt_format: Literal["ids", "text"]) -> Callable[[int], str]:
    """From a nonce's value, 0 to NONCES - 1, to how it stands in the JSON body."""
    if prompt_format == "text":
        return spelling(tokenizer).spell
    ids = _equally_long_ids(tokenizer)
    base, places = len(ids), 1
    while base**places < NONCES:
        places += 1
    return lambda value: ",".join(str(ids[value // base**place % base]) for place in range(places))


def valuer(
    tokenizer: Tokenizer, prompt_format: Literal["ids", "text"]
) -> Callable[[str | Sequence[int]], int]:
    """The other way round, from the nonce as it stands in a prompt."""
    if prompt_format == "text":
        value = spelling(tokenizer).value
        return lambda nonce: value(cast(str, nonce))
    ids = _equally_long_ids(tokenizer)
    numbers = {one: number for number, one in enumerate(ids)}
    return lambda front: sum(
        numbers[int(one)] * len(ids) ** place for place, one in enumerate(cast(Sequence[int], front))
    )


def spelling(tokenizer: Tokenizer) -> Spelling:
    """How nonces are spelled in a text that is cut by this tokenizer, or by its `ink`. See the head."""
    return _spelling(ruler(tokenizer))


@functools.lru_cache(maxsize=4)
def _spelling(tokenizer: Tokenizer) -> Spelling:
    digits = Spelling((), (), 0, len(tokenizer.encode("123456789")))
    return digits if _even(digits, tokenizer) else _of_words(tokenizer) or digits


def _even(spelled: Spelling, tokenizer: Tokenizer) -> bool:
    """Whether nonces of all kinds are read as `spelled.tokens` tokens each, wherever they stand."""
    tried = _TRIED if tokenizer.lanes == 1 else _TRIED_AT_SERVER
    plain = [0, 123_456_789, 111_111_111, 100_000_000, 201_920_202, NONCES - 1]
    values = [*plain, *(number * STRIDE % NONCES for number in range(1, tried))]
    places = [(front, behind) for front in _FRONTS for behind in _BEHIND]
    texts = [spelled.spell(value).join(places[number % len(places)]) for number, value in enumerate(values)]
    counts = [len(ids) for ids in _read(tokenizer, texts)]
    return set(counts[:: len(places)]) == {spelled.tokens} and all(
        len(set(counts[at :: len(places)])) == 1 for at in range(len(places))
    )


def _of_words(tokenizer: Tokenizer) -> Spelling | None:
    """Words that are equally long in letters and tokens; None where the tokenizer has too few of them."""
    most = _TRIED_WORDS if tokenizer.lanes == 1 else _TRIED_WORDS_AT_SERVER
    words = [
        word for word in words_of(tokenizer) if word[:1] == " " and word[1:].isascii() and word[1:].isalpha()
    ]
    letters = [word for letter in ascii_lowercase if (word := f" {letter}") not in words]
    [*behind] = _largest(
        tokenizer, [*words, *letters], lambda word: [f"x{word}{end}" for end in ("", word, "\n")], most
    )
    [*first] = _largest(
        tokenizer, [word[1:] for word in behind], lambda word: [f"{front}{word} x" for front in _FRONTS], most
    )
    if min(len(behind), len(first)) < _FEWEST_WORDS:
        return None
    places = 1
    while len(first) * len(behind) ** places < NONCES:
        places += 1
    tokens = len(tokenizer.encode(first[0] + behind[0] * places))
    found = Spelling(tuple(first), tuple(behind), places, tokens)
    return found if _even(found, tokenizer) else None


def _largest(
    tokenizer: Tokenizer, words: Sequence[str], texts: Callable[[str], Sequence[str]], most: int
) -> list[str]:
    """The most words of one length that are equally many tokens in each of their texts; `most` of a length are tried."""
    by_length: dict[int, list[str]] = defaultdict(list)
    for word in words:
        by_length[len(word)].append(word)
    tried = max(by_length.values(), key=len, default=[])[:most]
    written = [texts(word) for word in tried]
    read = _read(tokenizer, (text for several in written for text in several))
    same: dict[tuple[int, ...], list[str]] = defaultdict(list)
    for word, several in zip(tried, written, strict=True):
        same[tuple(len(next(read)) for _ in several)].append(word)
    return max(same.values(), key=len, default=[])


def _read(tokenizer: Tokenizer, texts: Iterable[str]) -> Iterator[list[int]]:
    return in_order(tokenizer.encode, texts, tokenizer.lanes)


def _equally_long_ids(tokenizer: Tokenizer) -> Sequence[int]:
    """The largest set of ordinary ids that are written with equally many digits."""
    sizes = range(1, len(str(tokenizer.vocab_size)) + 1)
    groups = (
        allowed(tokenizer, 10 ** (d - 1) if d > 1 else 0, min(10**d, tokenizer.vocab_size)) for d in sizes
    )
    return max(groups, key=len)
