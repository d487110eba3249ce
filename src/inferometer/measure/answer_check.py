"""Whether answers are what they should be, by their words alone: fast but wrong must not pass for fast.

| finding      | rule                                                                                                    |
| ------------ | ------------------------------------------------------------------------------------------------------- |
| overlap      | words that two answers share, each as often as both have it: twice these over all words of both (Dice)   |
| a loop       | the answer ends in a block of up to LONGEST_BLOCK words at least REPEATS times over, LOOP_WORDS or more   |
| early stop   | the engine ended the answer itself, with fewer than EARLY of the words that the other answers have       |

Words are what stands between blanks: tokens of different tokenizers cannot be compared. A loop has to be exact and at the end,
since an engine that has lost its way does not find back, while lists, tables and code repeat phrases and go on. Half of the
words is less than what one model's answers differ by when only the arithmetic does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

REPEATS = 4
LOOP_WORDS = 24
LONGEST_BLOCK = 64
EARLY = 0.5


def overlap(first: str, second: str) -> float:
    """A share, 1 for the same words, whatever their order; two empty answers are the same."""
    one, other = Counter(first.split()), Counter(second.split())
    whole = one.total() + other.total()
    return 2 * (one & other).total() / whole if whole else 1.0


def ends_in_loop(text: str) -> bool:
    """By the rule above. The last repetition may have been cut off."""
    words = text.split()
    for block in range(1, min(LONGEST_BLOCK, len(words) // REPEATS) + 1):
        needed = max(REPEATS * block, LOOP_WORDS)
        tail = words[-needed:]
        if len(tail) == needed and tail[block:] == tail[:-block]:
            return True
    return False


def stops_early(text: str, finish_reason: str | None, others: Sequence[str]) -> bool:
    """By the rule above; `others`: answers to the same prompt. An answer that the limit of tokens ended does not."""
    if finish_reason == "length" or not others:
        return False
    lengths = sorted(len(one.split()) for one in others)
    return len(text.split()) < EARLY * lengths[len(lengths) // 2]
