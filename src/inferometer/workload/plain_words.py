"""Plain words of a vocabulary: texts of one token each, with a space before them, that stay one token behind each other.

They fill prompts up to the length asked for (prompts.py), are the blocks of a trace's prompts (shared_prefixes.py), and
nonces where digits do not do (nonces.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING

from inferometer.workload.parallel import in_order

if TYPE_CHECKING:
    from inferometer.workload.tokenizers import Tokenizer

_WORDS = 512
_ENOUGH = 8
_TRIED = 100
_CANDIDATES = (r" [a-z]{3,8}", r" [A-Za-z]+", r"[!-~ ]*[!-~]")
"""What fills a prompt, best first: a word behind a space stays one token next to nearly anything."""


def ruler(tokenizer: Tokenizer) -> Tokenizer:
    """What texts are cut by: the tokenizer, or where it only estimates, its `ink`."""
    return tokenizer.ink if tokenizer.kind == "learned" else tokenizer


def allowed(tokenizer: Tokenizer, start: int, stop: int) -> list[int]:
    """The ids from `start` to `stop - 1` that are not reserved."""
    return [i for i in range(start, stop) if i not in tokenizer.reserved]


def own_text(ink: Tokenizer, token: int) -> str:
    """What the token adds to a text: some decoders drop the space of a first token, so it is decoded as a second."""
    ids, before = _anchor(ink)
    text = ink.decode([*ids, token])
    return text[len(before) :] if text.startswith(before) else ink.decode([token])


@functools.lru_cache(maxsize=4)
def _anchor(ink: Tokenizer) -> tuple[list[int], str]:
    ids = ink.encode("a")
    return ids, ink.decode(ids)


@functools.lru_cache(maxsize=4)
def words_of(tokenizer: Tokenizer) -> Sequence[str]:
    """The plain words of a tokenizer that counts, at most 512; empty where its vocabulary has none."""
    words = _plain_words(tokenizer.ink)
    return words if tokenizer is tokenizer.ink else _in_common(tokenizer, words)


def _plain_words(ink: Tokenizer) -> list[str]:
    """Those of a vocabulary that is at hand."""
    best: list[str] = []
    ordinary = allowed(ink, 0, ink.vocab_size)
    for pattern in map(re.compile, _CANDIDATES):
        words: list[str] = []
        for token in ordinary:
            word = own_text(ink, token)
            if pattern.fullmatch(word) and ink.encode(f"x{word}{word}")[-2:] == [token, token]:
                words.append(word)
            if len(words) == _WORDS:
                return words
        best = max(best, words, key=len)
        if len(best) >= _ENOUGH:
            break
    return best


def _in_common(tokenizer: Tokenizer, words: list[str]) -> list[str]:
    """Those that the tokenizer, too, reads as one token each, where prompts are written with another's texts."""
    tried = [*words[:_TRIED], *(f" {letter}" for letter in ascii_lowercase)]
    alone = len(tokenizer.encode("x"))
    read = in_order(tokenizer.encode, [f"x{word}{word}" for word in tried], tokenizer.lanes)
    return [word for word, ids in zip(tried, read, strict=True) if len(ids) == alone + 2] or words
