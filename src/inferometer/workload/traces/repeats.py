"""What a prefix cache could find of a trace's prompts: the best possible rate, as request_statistics.py has it for drawn ones.

A prompt begins as an earlier one of the replay did as far as their hash ids agree, which is BLOCK tokens an id; the last block
of a prompt is as long as what is left.
What rows without ids say is said nowhere else. Of rows that bring their own texts nothing is known, nor of a trace with more
than MOST different beginnings, which are not kept.
"""

from __future__ import annotations

from inferometer.documents.workload import PrefixHits
from inferometer.workload.request_statistics import BLOCK as CACHED
from inferometer.workload.traces.mooncake import BLOCK
from inferometer.workload.traces.row import Row

MOST = 4_000_000
"""Beginnings remembered, each some 90 bytes."""


class Repeats:
    """Takes in rows as they pass. `most`: see MOST; `repeatable`: prompts have no nonces, and may be known from before."""

    def __init__(self, most: int = MOST, *, repeatable: bool = False) -> None:
        self._most = most
        self._known: dict[int, int] = {}  # the most tokens that were sent of the last block of a beginning
        self._tokens = self._hits = self._block_hits = 0
        self._countable = not repeatable

    def add(self, row: Row) -> None:
        """The next row that is sent."""
        if row.input_tokens is None or len(self._known) > self._most:
            self._countable = False
            return
        known, begin, hit = self._known, 0, 0
        for place, one in enumerate(row.hash_ids):
            begin = hash((begin, one))  # of whole numbers: the same everywhere
            there, here = known.get(begin, 0), min(BLOCK, row.input_tokens - place * BLOCK)
            if hit == place * BLOCK:
                hit += min(here, there)
            if here > there:
                known[begin] = here
        self._tokens += row.input_tokens
        self._hits += hit
        self._block_hits += hit // CACHED * CACHED

    def facts(self) -> PrefixHits:
        """As the account's `prefix_hits`; None where it is not known."""
        known = self._countable and self._tokens > 0
        return PrefixHits(
            exact=self._hits / self._tokens if known else None,
            blocks=self._block_hits / self._tokens if known else None,
            block_tokens=CACHED,
        )
