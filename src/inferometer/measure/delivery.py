"""How the text of answers arrived: token by token, or in lumps that something on the way held back (draft 4.6.2, B.2.1).

A chunk is what arrived together: the text events of one answer, each less than TOGETHER_NS after the one before it, or sent on
one after the other by what had collected them (collected.py). The tokens of an answer are spread evenly over its events, so an
answer of n tokens in e events has n / e tokens times the events of a chunk in it. One event of several tokens, and several
events in one packet, are chunks alike.

| an answer is | if                                                                                                       |
| ------------ | -------------------------------------------------------------------------------------------------------- |
| lumped       | at least half of its events did not arrive alone                                                         |
| held back    | all of it arrived together; or its first chunk has f > 1 of its e events, and either                     |
|              | f - 1 > BENT_SHARE (e - 1), so that TPOT is too short by more than that share, or                         |
|              | (f - 1) times the pace after the first chunk > max(BENT_SHARE TTFT, BENT_MS), so that TTFT is too long    |

The pace after the first chunk is (last arrival - first) / (e - f) an event. A first chunk of several events means that the
first of them was ready before it was sent on; one event of several tokens does not: an engine may produce them in one step.
An engine that guesses ahead (speculative decoding) produces its first token alone.

Only answers that the client read promptly show what the server does: two packets found by one late read share a stamp.

The gaps of a run are gaps between tokens (`direct`) if each of these holds, else times between chunks (`chunk`):

- more than DIRECT_SHARE of the events hold one token (tokens.py);
- more than DIRECT_SHARE of the events of the answers that were read promptly arrived alone;
- at most LUMPED_SHARE of these answers are lumped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from inferometer.measure.collected import collected
from inferometer.measure.large_arrays import chosen, held_property, in_one, pieces, slices
from inferometer.measure.record import Floats, Ints, Mask, counted
from inferometer.measure.stats import percentile
from inferometer.units import NS_PER_MS

ItlMethod = Literal["direct", "chunk"]
"""What the gaps that the client measured are. Options B and C of draft 4.6.3 are metrics beside them (samples.py)."""

TOGETHER_NS = 100_000
"""Ten thousand tokens a second are several times what the fastest engines produce for one answer. Events closer than that were
not made one after the other: they waited for one another."""

DIRECT_SHARE = 0.9
"""Strictly above this share of single-token chunks, gaps are inter-token latencies (draft B.2.1 step 2)."""

HELD_SHARE = 0.01
"""Of the answers may be held back: what is decided at P99 can be the doing of one in a hundred."""

LUMPED_SHARE = 0.01
"""What is decided at P99 can be the doing of one answer in a hundred."""

BENT_SHARE = 0.05
"""A figure that is off by more than a twentieth is another figure."""

BENT_MS = 0.2
"""No headline is known better than this."""

LATE_MS = 1.0
"""Tokens merged by a read this late may have been made apart; so may those merged by one late by half a usual gap, if less."""


def late_ms(gaps: Floats) -> tuple[float, float]:
    """How late a read may have found packets together that came apart: LATE_MS, or half the median gap between what did not
    arrive together, if that is less; and the chance that a read which did find them together is less late than that, since a
    read is as late as its last packet: that time over the median gap. `gaps` in ms, of all samples,
    in ascending order."""
    apart = gaps[np.searchsorted(gaps, TOGETHER_NS / NS_PER_MS) :]
    if not len(apart):
        return LATE_MS, 0.0
    gap = percentile(apart, 0.5)
    late = min(LATE_MS, gap / 2)
    return late, late / gap


@dataclass(frozen=True)
class Chunks:
    """The chunks of all samples. `arrivals`: of text events, ns; sample i has `arrivals[offsets[i]:offsets[i + 1]]`."""

    arrivals: Ints
    offsets: Ints

    @held_property
    def begins(self) -> Mask:
        """Which events are the first of a chunk."""
        found = np.ones(len(self.arrivals), np.bool_)
        for part in slices(len(found) - 1):
            steps = np.diff(self.arrivals[part.start : part.stop + 1])
            np.greater_equal(steps, TOGETHER_NS, out=found[part.start + 1 : part.stop + 1])
        found[self.offsets[:-1][np.diff(self.offsets) > 0]] = True
        for within in collected(self.arrivals, self.offsets):
            found[within] = False
        return found

    @held_property
    def chunk_offsets(self) -> Ints:
        """Sample i has chunks `chunk_offsets[i]` to `chunk_offsets[i + 1]`."""
        return np.concatenate(([0], np.cumsum(self.of_sample)))

    @held_property
    def arrived(self) -> Ints:
        """When each chunk began to arrive, ns."""
        return chosen(self.arrivals, self.begins)

    @held_property
    def of_sample(self) -> Ints:
        """Chunks of each sample."""
        return counted(self.begins, self.offsets)

    def _events(self, these: slice) -> Ints:
        """Text events of each chunk, of the chunks that these events of whole samples make."""
        begins = np.flatnonzero(self.begins[these])
        sizes: Ints = np.diff(begins, append=these.stop - these.start)
        return sizes

    @held_property
    def first_events(self) -> Ints:
        """Text events of each sample's first chunk; 0 without text."""
        found = np.zeros(len(self.of_sample), np.int64)
        for rows, events in pieces(self.offsets):
            chunks = self.of_sample[rows]
            first = np.cumsum(chunks) - chunks
            found[rows][chunks > 0] = self._events(events)[first[chunks > 0]]
        return found

    @property
    def alone(self) -> Ints:
        """Text events of each sample that are a chunk of their own."""
        return counted(self.begins & np.append(self.begins[1:], True), self.offsets)

    def tokens(self, tokens: Floats) -> Floats:
        """Tokens of each chunk, of samples that have `tokens`."""
        events = np.diff(self.offsets)
        each = np.divide(tokens, events, out=np.full(len(tokens), np.nan), where=events > 0)
        return in_one(
            np.float64,
            (
                self._events(mine) * np.repeat(each[rows], self.of_sample[rows])
                for rows, mine in pieces(self.offsets)
            ),
        )


@dataclass(frozen=True, slots=True)
class Delivery:
    """What answers say of how they were delivered. `prompt`: samples that were read promptly and surely hold two tokens or
    more, since the server's usage or two events say so; `several`: those and the ones read late. Of the prompt ones `held` were
    held back and `at_once` arrived whole; `alone_share` of their events arrived alone, `lumped_share` of those that have
    several events are lumped. None: there are none. `merged`: how many of the prompt ones the client may have merged all the
    same, by the number of those read late and the chance of `late_ms`. `moved`: by what share P99 of TTFT is longer with those
    held back than without them. `late_held`: of those read late, the ones that look held back, whoever merged their events; the
    others are not, since reading late parts nothing."""

    several: int
    prompt: int
    held: int
    at_once: int
    alone_share: float | None
    lumped_share: float | None
    merged: float
    moved: float = 0.0
    late_held: int = 0


def delivery(chunks: Chunks, tokens: Floats, ttft_ms: Floats, late: Mask, chance: float) -> Delivery:
    """See above. One entry a sample: `tokens` by the server (NaN: not known), `ttft_ms` to the first text, `late`: read so;
    `chance`: see late_ms."""
    events = np.diff(chunks.offsets)
    several = (events > 0) & ((events > 1) | (tokens >= 2))
    prompt = several & ~late
    spread = prompt & (events > 1)
    total = int(events[spread].sum())
    alone = chunks.alone[spread]
    lumped = 2 * alone <= events[spread]
    together = several & held_back(chunks, ttft_ms)
    held = prompt & together
    return Delivery(
        several=int(several.sum()),
        prompt=int(prompt.sum()),
        held=int(held.sum()),
        at_once=int((prompt & (chunks.of_sample == 1)).sum()),
        alone_share=float(alone.sum()) / total if total else None,
        lumped_share=float(lumped.mean()) if total else None,
        merged=float((several & late).sum()) * chance / (1.0 - chance),
        moved=_moved(ttft_ms, held),
        late_held=int((together & late).sum()),
    )


def _moved(ttft_ms: Floats, held: Mask) -> float:
    """By what share P99 is longer with those held back; 0 where there are none, or no others."""
    if not held.any():
        return 0.0
    known = ~np.isnan(ttft_ms)
    others = np.sort(ttft_ms[known & ~held])
    if not len(others) or (p99 := percentile(others, 0.99)) <= 0:
        return 0.0
    return percentile(np.sort(ttft_ms[known]), 0.99) / p99 - 1.0


def held_back(chunks: Chunks, ttft_ms: Floats) -> Mask:
    """Which samples were held back, if they hold several tokens."""
    events, first = np.diff(chunks.offsets), chunks.first_events
    some, rest = events > 0, events - first
    last_ns = np.zeros(len(events), np.int64)
    begin_ns = np.zeros(len(events), np.int64)
    last_ns[some] = chunks.arrivals[chunks.offsets[1:][some] - 1]
    begin_ns[some] = chunks.arrivals[chunks.offsets[:-1][some]]
    pace_ms = np.divide((last_ns - begin_ns) / NS_PER_MS, rest, out=np.zeros(len(events)), where=rest > 0)
    waited = (first - 1) * pace_ms > np.maximum(BENT_SHARE * np.nan_to_num(ttft_ms), BENT_MS)
    found: Mask = some & ((rest == 0) | (bent_pace(chunks) | ((first > 1) & waited)))
    return found


def bent_pace(chunks: Chunks) -> Mask:
    """Which samples have so many events in their first chunk that the time after it says nothing of all tokens' pace."""
    events, first = np.diff(chunks.offsets), chunks.first_events
    found: Mask = (first > 1) & (first - 1 > BENT_SHARE * (events - 1))
    return found


def itl_method(single_share: float | None, found: Delivery) -> ItlMethod:
    """Draft 4.6.3 and B.2.1, by the three rules above. `single_share`: of events that hold one token, None: not known."""
    single = single_share is not None and single_share > DIRECT_SHARE
    alone = found.alone_share is None or found.alone_share > DIRECT_SHARE
    even = found.lumped_share is None or found.lumped_share <= LUMPED_SHARE
    return "direct" if single and alone and even else "chunk"
