"""Whether the wait for the first token grows with the answer that follows: text that was held until all of it was there.

A proxy that collects an answer and then sends it on token by token looks like a server with a long TTFT and a quick pace. But
a length is drawn for each request by itself, and a server that streams has sent the first token before it has made the others:
nothing that happened until then depends on how many there will be. Whatever the load, the queue and the engine do, a server's
TTFT T and the length n of the same answer are independent; where answers are held until they are whole, T contains n - 1 steps.

Looked at are the answers with the longest TTFT, for shares of them from all down to LEAST_SHARE, because an answer that is
held is among them; T alone selects them, so that T and n are as independent as before. In order of sending they are cut into
blocks, apart for each class of requests and for first and later turns, since lengths of a trace may change with its load.
Within blocks both are less their regression on the prompt tokens that were not cached: T depends on these, and so may n. Then

    z = sum R_T R_n / sqrt(sum over blocks of (sum R_T^2) (sum R_n^2) / (k - 1))

with the centred ranks R in a block of k is Spearman's statistic, with its variance over all permutations: nearly normal where
T and n are independent. b is the slope of T over n, in ms a token. Answers were held if each of these holds:

| condition                                        | reason                                                                |
| ------------------------------------------------ | --------------------------------------------------------------------- |
| z > LIMIT                                        | chance: 1 in 30,000 for one share                                     |
| b >= SLOPE times the median TPOT of these        | reserving memory for an answer, or a curved effect of prompts, makes  |
|                                                  | less; who holds text makes all steps of it wait                       |
| T >= (n - 1) b / 2 in all but WITHOUT of these   | a held answer cannot come sooner; where short answers are served      |
|                                                  | first, a long one that meets no queue does                            |
| a share of all: their median TPOT is at most     | what was held is sent on at another pace than what was not; the tail  |
| SLOPE times the upper quartile of the others'    | of a queue is not                                                     |
| b (n - 1) > max(BENT_SHARE T, BENT_MS), medians  | less bends no headline                                                |

Answers whose reasoning was counted and not sent are left out: their wait has its steps. Nothing can be told where all answers
have one length; from fewer than some 20 that were held; of text held up to a size that all answers exceed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from inferometer.measure.delivery import BENT_MS, BENT_SHARE, LUMPED_SHARE
from inferometer.measure.large_arrays import held
from inferometer.measure.record import Floats, Ints, Mask
from inferometer.measure.samples import Samples

LIMIT = 4.0
SLOPE = 0.5
WITHOUT = 0.05

LEAST_SHARE = LUMPED_SHARE
"""What is decided at P99 can be the doing of one answer in a hundred."""
LEAST = 18
"""Spearman's z is sqrt(n - blocks) at most, so fewer cannot exceed LIMIT."""
BLOCK = 25
"""Answers of a block: enough for the ranks to be sharp, and few beside the time in which a load changes."""


@dataclass(frozen=True, slots=True)
class LengthWait:
    """Of the `n` answers with the longest TTFT, `share` of those judged: `statistic` z, `token_ms` b, and `pace_ms`, their
    median TPOT."""

    share: float
    n: int
    statistic: float
    token_ms: float
    pace_ms: float


@dataclass(frozen=True, slots=True)
class Waits:
    """Answers in order of sending: TTFT in ms, tokens, prompt tokens that were not cached, TPOT in ms (NaN: not measured), and
    of which kind each is."""

    ttft: Floats
    tokens: Floats
    prompt: Floats
    pace: Floats
    kind: Ints

    def __len__(self) -> int:
        return len(self.ttft)

    def only(self, chosen: Mask | Ints) -> Waits:
        """Those that are chosen."""
        return Waits(
            held(self.ttft[chosen]),
            held(self.tokens[chosen]),
            held(self.prompt[chosen]),
            held(self.pace[chosen]),
            held(self.kind[chosen]),
        )


def length_wait(samples: Samples) -> LengthWait | None:
    """The largest share of answers with the longest TTFT that were held; None where there is none, or no evidence."""
    record, rows = samples.record, samples.rows
    cached = np.where(record.usage_cached.valid, record.usage_cached.values, 0)[rows]
    kind = 2 * record.request_class.codes[rows] + (record.turn[rows] > 0)
    counts = samples.counts
    known = (counts.streamed == counts.output) & (counts.output >= 2) & ~np.isnan(samples.ttft)
    known &= ~np.isnan(counts.input)
    order = samples.order[known[samples.order]]
    waits = Waits(samples.ttft, counts.output, counts.input - cached, samples.tpot, kind)
    return held_whole(waits.only(order))


def held_whole(waits: Waits) -> LengthWait | None:
    """The same of `waits`."""
    if not len(waits) or (waits.tokens == waits.tokens[0]).all():  # of one length: it is no cause
        return None
    sizes = (round(len(waits) * 2 ** (-step / 4)) for step in range(128))
    slowest_first = np.argsort(-waits.ttft, kind="stable")
    for size in takewhile(lambda size: size >= max(LEAST, LEAST_SHARE * len(waits)), sizes):
        chosen = np.zeros(len(waits), np.bool_)
        chosen[slowest_first[:size]] = True
        found = _judged(waits.only(chosen), waits.pace, ~chosen)
        if found is not None:
            return found
    return None


def _judged(waits: Waits, paces: Floats, others: Mask) -> LengthWait | None:
    """Whether `waits` were held, beside the `others` of all whose TPOT `paces` are."""
    blocks = _blocks(waits.kind)
    prompt = _centred(waits.prompt, blocks)
    ttft, tokens = (_beside(_centred(part, blocks), prompt) for part in (waits.ttft, waits.tokens))
    z = _association(ttft, tokens, blocks)
    if z <= LIMIT:
        return None
    slope = float(ttft @ tokens) / float(tokens @ tokens)
    pace, usual = _quantile(waits.pace, 0.5), _quantile(paces[others], 0.75)
    steps = slope * (waits.tokens - 1.0)
    sooner = float((waits.ttft < steps / 2).mean())
    bent = float(np.median(steps)) > max(BENT_SHARE * float(np.median(waits.ttft)), BENT_MS)
    apart = not others.any() or pace <= SLOPE * usual
    held = slope >= SLOPE * pace and sooner <= WITHOUT and apart and bent
    return LengthWait(len(waits) / len(paces), len(waits), z, slope, pace) if held else None


def _quantile(paces: Floats, share: float) -> float:
    """Of those that are known; 0.0 without any."""
    known = paces[~np.isnan(paces)]
    return float(np.quantile(known, share)) if len(known) else 0.0


def _blocks(kind: Ints) -> Ints:
    """The block of each answer: neighbours of one kind, in equal parts of about BLOCK; numbered from 0."""
    order = np.argsort(kind, kind="stable")
    starts = np.flatnonzero(np.diff(kind[order], prepend=kind[order[0]] - 1))
    sizes = np.diff(np.append(starts, len(kind)))
    parts = np.maximum(1, sizes // BLOCK)
    place = np.arange(len(kind)) - np.repeat(starts, sizes)
    within = place * np.repeat(parts, sizes) // np.repeat(sizes, sizes)
    found = np.empty(len(kind), np.int64)
    found[order] = within + np.repeat(np.cumsum(parts) - parts, sizes)
    return found


def _centred(values: Floats, blocks: Ints) -> Floats:
    """Less the mean of the block."""
    sizes = np.bincount(blocks)
    found: Floats = values - (np.bincount(blocks, values) / sizes)[blocks]
    return found


def _beside(values: Floats, prompt: Floats) -> Floats:
    """Less their regression on the prompt."""
    spread = float(prompt @ prompt)
    return values - prompt * (float(values @ prompt) / spread) if spread > 0 else values


def _association(first: Floats, second: Floats, blocks: Ints) -> float:
    """z above; 0.0 where one of the two is constant in every block."""
    ranks, others = _ranks(first, blocks), _ranks(second, blocks)
    sizes = np.bincount(blocks)
    each = np.bincount(blocks, ranks**2) * np.bincount(blocks, others**2) / np.maximum(sizes - 1, 1)
    variance = float(each.sum())
    return float(ranks @ others) / variance**0.5 if variance > 0 else 0.0


def _in_blocks(values: Floats, blocks: Ints) -> Ints:
    """The order by block, and by value within it. No block has twice BLOCK values: many short rows are put in order instead of
    one long one."""
    together, sizes = np.argsort(blocks, kind="stable"), np.bincount(blocks)
    starts = np.cumsum(sizes) - sizes
    filled = np.arange(sizes.max()) < sizes[:, None]
    rows = np.full(filled.shape, np.inf)
    rows[filled] = values[together]
    within = np.argsort(rows, axis=1, kind="stable")
    found: Ints = together[(starts[:, None] + within)[filled]]
    return found


def _ranks(values: Floats, blocks: Ints) -> Floats:
    """Centred ranks within blocks; equal values have their mean."""
    rounded = np.round(values, 9)
    order = _in_blocks(rounded, blocks)
    begins = (np.diff(blocks[order], prepend=-1) != 0) | (np.diff(rounded[order], prepend=-np.inf) != 0)
    group = np.cumsum(begins) - 1
    place = np.arange(len(values), dtype=np.float64)
    means = np.bincount(group, place) / np.bincount(group)
    ranks = np.empty(len(values))
    ranks[order] = means[group]
    return _centred(ranks, blocks)
