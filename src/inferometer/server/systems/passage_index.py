"""A small vector index: hashed bags of words, compared by the cosine of their angle. Exact, and the same on every machine.

numpy is loaded where an index is used: a server without a system need not wait for it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Passage = tuple[str, str]
"""Id and text."""

_SIZE = 512
_WORD = re.compile(r"[a-z0-9]+")
_MOST_WORDS = 4096
_STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be before by can do does for from has have how i in is it its of on or so that the their then "
        "they this to was what when where which who why will with you",
    )
)


def words(text: str) -> list[str]:
    """The words of a text that say something, in lower case: the first few thousand."""
    found = (one[0] for one in _WORD.finditer(text.lower()))
    return [
        word for word, _ in zip((one for one in found if one not in _STOP), range(_MOST_WORDS), strict=False)
    ]


def vector(text: str) -> NDArray[np.float64]:
    """The text's direction: one component for each hash of a word; zero for a text without words."""
    import numpy as np

    made = np.zeros(_SIZE)
    for word in words(text):
        made[zlib.crc32(word.encode()) % _SIZE] += 1
    length = float(np.linalg.norm(made))
    return made / length if length else made


class PassageIndex:
    """The passages and their vectors, one a row."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        import numpy as np

        self._passages = tuple(passages)
        self._rows = np.stack([vector(text) for _, text in passages])

    def nearest(self, question: str, count: int) -> list[Passage]:
        """The `count` passages nearest to the question, nearest first; of equal ones those that come first."""
        near = self._rows @ vector(question)
        return [self._passages[n] for n in (-near).argsort(kind="stable")[:count]]


def reranked(question: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages by the share of their words that the question has."""
    asked = set(words(question))

    def share(passage: Passage) -> float:
        own = set(words(passage[1]))
        return len(own & asked) / len(own) if own else 0.0

    return sorted(passages, key=share, reverse=True)
