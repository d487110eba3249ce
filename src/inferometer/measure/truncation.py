"""Does the server read prompts to their end? By its counts, where the tokenizer at hand is not the model's.

Another tokenizer makes more or fewer tokens of a text than the one at hand, so a count says little of one prompt. Three things
no tokenizer does:

| seen                                                    | since                                                           |
| ------------------------------------------------------- | --------------------------------------------------------------- |
| `grown` (lengths.py): counts grow slower with prompts   | a text twice as long has about twice the tokens                 |
| `piled`: one count more often than all counts beside it | counts of different texts vary by chance, those of cut ones not |
| `counted`: a token for four of ours, or fewer           | tokens of all vocabularies in use are 3 to 6 letters of a word  |

A pile is a count v of more than PILE_LEAST of the prompts, that PILE_SHARE of the prompts counted within PILE_WIDTH of v have
exactly. It is no sign of cutting where the server's tokenizer agrees with ours: there all prompts in the pile have nearly the
same number of tokens more than were sent, from -SLACK to TEMPLATE (the chat template). Prompts that were cut to within the
template's room of their length can therefore not be told.
"""

from __future__ import annotations

import numpy as np

from inferometer.measure.record import Floats

ENOUGH = 40
"""Two prompts in a pile of PILE_LEAST."""

PILE_LEAST = 0.05
"""Fewer prompts of another length are no miss of the run (judge/checks.py)."""

PILE_SHARE = 0.8
"""Of the counts around v. The commonest of a bell curve has less than half of those within one standard deviation of it as soon
as that is more than half a token."""

PILE_WIDTH = 0.05
PILE_WIDTH_TOKENS = 3.0
"""Around v: this share of it, or so many tokens where that is more."""

APART = 5
"""Texts of as many lengths, and so as many texts at least, do not have the same count by chance."""

SLACK = 2.0
"""Tokens that re-encoding may shift, one at each end."""


def piled_share(
    sent: Floats, server: Floats, template: float, *, alike: bool, share: float = 0.0
) -> float | None:
    """Share of prompts in piles that agreeing tokenizers do not explain; None of fewer than ENOUGH. In tokens, one entry a
    prompt. `alike`: texts may repeat, so a pile must hold prompts of at least APART lengths. `share`: what was sent is an
    estimate that may be off by so much."""
    if len(sent) < ENOUGH:
        return None
    values, sizes = np.unique(server, return_counts=True)
    piled = 0
    for value, size in zip(values, sizes, strict=True):
        if size <= PILE_LEAST * len(sent):
            continue
        near = np.abs(values - value) <= max(PILE_WIDTH * value, PILE_WIDTH_TOKENS)
        lengths = sent[server == value]
        more = value - lengths
        low, high = float(more.min()), float(more.max())
        slack = max(SLACK, share * value)
        explained = high - low <= 2 * slack and low >= -slack and high <= template + slack
        if (
            size >= PILE_SHARE * sizes[near].sum()
            and not explained
            and not (alike and len(np.unique(lengths)) < APART)
        ):
            piled += int(size)
    return piled / len(sent)


def counted_share(sent: Floats, server: Floats) -> float | None:
    """Tokens that the server counted for each that was sent, in the means; None without prompts."""
    total = float(sent.sum())
    return float(server.sum()) / total if total else None
