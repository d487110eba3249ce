"""Words in place of a prompt of which only the hashes of its blocks were recorded: equal hashes are equal words.

One word for each token, common and short, which is close to one token in the vocabularies of today's models, not exactly.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

_TEXT = (
    "time year people way day man thing woman life child world school state family student group country problem hand part "
    "place case week company system program question work government number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head house service friend father power hour "
    "game line end member law car city name team minute idea body back parent face others level office door health person "
    "art war history party result change morning reason research girl guy moment air teacher force education"
)
_WORDS = _TEXT.split()


def words(seed: str, count: int) -> list[str]:
    """So many words, the same for the same seed."""
    return random.Random(seed).choices(_WORDS, k=count)  # noqa: S311 (a repeatable stream is the purpose, not a secret one)


def prompt_words(scope: str, hash_ids: Sequence[int], block: int, start: int, stop: int, own: str) -> str:
    """The words from `start` to `stop` of a prompt of these blocks; beyond them, words of `own` alone."""
    found: list[str] = []
    at = start
    while at < stop:
        number, offset = divmod(at, block)
        if number >= len(hash_ids):
            found += words(f"{own} {at}", stop - at)
            break
        end = min(stop, (number + 1) * block)
        found += words(f"{scope} {hash_ids[number]}", block if offset else end - at)[offset:][: end - at]
        at = end
    return " ".join(found)
