"""Were prompts and answers as long as asked, and what of a prompt is the chat template's?

A chat template puts the same tokens before every prompt. They are in the server's counts and not in ours, and a prefix cache
finds them again whatever the prompts do, because the prompts themselves begin with nonces. Their number T:

| tokenizer  | T                                                                  | held to be the template's if         |
| ---------- | ------------------------------------------------------------------ | ------------------------------------ |
| native     | median of (server's prompt tokens - tokens sent)                   | 0 <= T <= TEMPLATE_TOKENS            |
| reference  | P90 of the cached tokens, where there are any: it is asked only for| P90 - P10 <= TEMPLATE_SPREAD, and T  |
|            | the cache                                                          | <= TEMPLATE_TOKENS, <= the room and  |
|            |                                                                    | <= the greeting + NONCE_DIGITS       |

The room is the median of (server's prompt tokens - half the tokens sent): a text hardly shrinks to half its tokens under
another tokenizer, so what is cached beyond that is prompt. The greeting is what the server counted for the probe's, template
included: prompts have no more of it in common, and the nonce behind it is nine digits. Before a cold start it is not known.

A shared prefix may be a message of its own, around which the template puts tokens of its own, and so is everything that a turn
of a conversation repeats; so with a native tokenizer T is found apart for the requests that share one and for those that do
not, and for each turn. Of the template's tokens around a second and later message, a hit has those in front of where it
ends: they are taken off it in proportion, (cached / server's prompt tokens) (T - T of one message).

A reference tokenizer's count of what was sent, or an estimate of it, says nothing of what was read. But a server that reads
all of a prompt counts more tokens for a longer one. With a the intercept of its counts over the tokens sent by the shorter
half (0 <= a <= TEMPLATE_TOKENS: the template), and r = (server - a) / sent in the means,

    grown = r of the longest quarter / r of the shortest half,

which is near 1 for any tokenizer and falls where long prompts are cut. Counts that hardly grow at all (fewer than
LEAST_GROWTH tokens for a token sent, from the shorter half to the longest quarter) are cut everywhere: grown is that slope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from inferometer.measure.large_arrays import ordered
from inferometer.measure.record import Floats, Ints, Mask, Record
from inferometer.measure.samples import Samples
from inferometer.measure.stats import mean_interval, percentile
from inferometer.measure.tokens import off_by_more
from inferometer.measure.truncation import counted_share, piled_share

PROMPT_MISS = (2.0, 0.02)
"""A prompt misses its length by more than this many tokens or this share, whichever is larger: re-encoding text may shift a
token at each end."""

OUTPUT_MISS = (1.0, 0.02)
"""An output misses by more than one token (end-of-sequence counted or not) or this share."""

TEMPLATE_TOKENS = 128.0
"""A chat template adds a constant to every prompt; more than this is no template."""

TEMPLATE_SPREAD = 16.0
"""Caches that keep single tokens may also find the first of a nonce's nine digits; 16 tokens is a usual cache block."""

MOST_PER_TOKEN = 4.0
"""No tokenizer makes four tokens of one of another's, but for one that counts bytes, whose server sends them in events."""

NONCE_DIGITS = 9.0
"""Tokens of a nonce at the most, some of which two prompts may have in common by chance."""

LEAST_GROWTH = 0.25
"""No tokenizer makes one token of four."""

ENOUGH_PROMPTS = 40
"""Ten in the longest quarter."""

LENGTHS_APART = 1.3
"""Prompts of nearly one length show no growth: the longest quarter must be this much longer than the shortest half."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Lengths in tokens of `n` prompts, answers or chunks."""

    n: int
    mean: float
    p50: float
    p95: float
    p99: float
    min: float
    max: float


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean lengths in tokens as asked for, by the declared tokenizer (`local_mean`), by the server; and misses (n judged).

    `grown`: see above; of prompts that are not counted by the model's own tokenizer, None where it cannot be told. `piled`,
    `counted_share`: of the same, see truncation.py. `by_server`: how many were judged by the server's count. `counted`: the
    prompts that the server counted; the outputs as they are judged. `unsupported`: outputs whose text does not hold as many
    tokens as the server counted. `capped`: outputs that are shorter than asked, where that is no miss, and that the server says
    it cut for their length. `judged_by`: each prompt's length, or their mean, whose 95 % interval is `chance` wide on
    either side, since the ratio holds in the mean of many; None where there are fewer than two.
    """

    asked_mean: float | None
    local_mean: float | None
    server_mean: float | None
    judged_mean: float | None
    misses: int
    judged: int
    grown: float | None = None
    by_server: int = 0
    counted: Spread | None = None
    piled: float | None = None
    counted_share: float | None = None
    unsupported: int = 0
    capped: int = 0
    judged_by: Literal["each", "mean"] = "each"
    chance: float | None = None


def server_lengths(samples: Samples) -> Lengths:
    """Of prompts that nobody asked to be of a certain length: what the server counted, and nothing to judge."""
    server = samples.counts.server_input
    return Lengths(None, None, _mean(server), None, 0, 0, counted=spread(server))


def learned_lengths(record: Record, samples: Samples, template: float, *, with_template: bool) -> Lengths:
    """Of prompts sized by a learned ratio: judged by the server's counts less its `template`, where lengths exclude it and it
    is no longer than one, and in the mean, since single texts scatter around a ratio. Later turns repeat answers, whose length
    is the server's, so they are not judged by that; but a server that reads what they repeat counts more tokens for them
    (`grown`). NaN counts are left out."""
    first = record.turn[samples.rows] == 0
    requested = record.input_tokens_asked[samples.rows].astype(np.float64)
    sent = record.input_tokens_sent[samples.rows].astype(np.float64)
    server = samples.counts.server_input
    alone = server - (0.0 if with_template or template > TEMPLATE_TOKENS else template)
    judged = (alone - _more_messages(alone - requested, record, samples))[first]
    known = ~np.isnan(judged)
    beyond = (judged - requested[first])[known]
    all_turns = ~np.isnan(server)
    counted = all_turns & first
    both = sent[counted], server[counted]
    off = mean_interval(len(beyond), 0.0, float(beyond.std(ddof=1))) if len(beyond) > 1 else None
    return Lengths(
        _mean(requested[first][known] if known.any() else requested), _mean(sent), _mean(server), _mean(judged),
        int(off_by_more(judged, requested[first], *PROMPT_MISS).sum()), int(known.sum()),
        grown=grown_share(sent[all_turns], server[all_turns]), by_server=int(known.sum()), counted=spread(server),
        piled=piled_share(*both, TEMPLATE_TOKENS, alike=False, share=PROMPT_MISS[1]), judged_by="mean",
        chance=None if off is None else float(off[1]),
    )  # fmt: skip


def prompt_lengths(
    record: Record,
    samples: Samples,
    *,
    native: bool,
    with_template: bool,
    alike: bool = False,
    templated: bool = True,
) -> Lengths:
    """Judged by the declared tokenizer, or by server usage less its constant overhead if that tokenizer is the model's.

    `with_template`: the lengths asked for are those the server should count, so its usage is judged as it is, and where it
    gives none, what was sent and the tokens that were left to the template: the median of (asked - sent). What the template
    puts around a shared system message, or what a turn repeats, is on top of that, as those messages are. `alike`: texts may
    repeat. `templated`: the server may put a template around a prompt; else every token that it counts beyond is a miss.
    """
    requested = record.input_tokens_asked[samples.rows].astype(np.float64)
    sent = record.input_tokens_sent[samples.rows].astype(np.float64)
    server = samples.counts.server_input
    judged = sent + float(np.median(requested - sent)) if with_template and len(sent) else sent
    if native and not np.isnan(server).all():
        overhead: Floats | float = 0.0
        if templated:
            beyond = server - requested
            overhead = (
                _more_messages(beyond, record, samples) if with_template else sum(_overhead(record, samples))
            )
        judged = np.where(np.isnan(server), judged, server - overhead)
    misses = int(off_by_more(judged, requested, *PROMPT_MISS).sum())
    known = ~np.isnan(server)
    both = sent[known], server[known]
    return Lengths(
        _mean(requested), _mean(sent), _mean(server), _mean(judged), misses, len(samples),
        grown=None if native else grown_share(*both),
        by_server=int(known.sum()) if native else 0,
        counted=spread(server),
        piled=None if native else piled_share(*both, TEMPLATE_TOKENS, alike=alike),
        counted_share=None if native else counted_share(*both),
    )  # fmt: skip


def output_lengths(record: Record, samples: Samples, *, forced: bool) -> Lengths:
    """Judged by the server's count, for it was asked to stop there; where it gives none, by the samples' own.

    Where the model may stop by itself, only outputs longer than asked miss.
    """
    requested = record.output_tokens_asked[samples.rows].astype(np.float64)
    counts = samples.counts
    silent = np.isnan(counts.server_output)
    judged = np.where(silent, counts.output, counts.server_output)
    off = off_by_more(judged, requested, *OUTPUT_MISS)
    missed = off & (forced | (judged > requested))
    cut = record.finish_reason.are("length")[samples.rows]
    means = (_mean(values) for values in (requested, counts.local_output, counts.server_output, judged))
    asked_mean, local_mean, server_mean, judged_mean = means
    by_server = int((~silent).sum())
    return Lengths(
        asked_mean,
        local_mean,
        server_mean,
        judged_mean,
        int(missed.sum()),
        int((~np.isnan(judged)).sum()),
        by_server=by_server,
        counted=spread(judged),
        unsupported=int((counts.server_streamed > _supported(record, samples)).sum())
        + _padded(record, samples),
        capped=int((off & ~missed & cut).sum()),
    )


def _padded(record: Record, samples: Samples) -> int:
    """Outputs that are supported, and hold as many characters that nobody sees as would be a miss if each were a token."""
    counted = samples.counts.server_streamed
    seen = counted - record.text_unseen[samples.rows]
    supported = counted <= _supported(record, samples)
    return int((supported & off_by_more(seen, counted, *OUTPUT_MISS)).sum())


def _supported(record: Record, samples: Samples) -> Floats:
    """The most tokens that each output can hold: none without a byte that can be seen; and, but where events show as many,
    MOST_PER_TOKEN for one of the tokenizer at hand. One more ends the sequence. Infinite without text."""
    size, local = record.text_bytes[samples.rows], samples.counts.local_output
    held = np.fmax(MOST_PER_TOKEN * local, samples.text_events)
    held = np.where(np.isnan(local), np.inf, held)
    most: Floats = np.where(size.valid, np.minimum(size.values, held) + 1.0, np.inf)
    return most


@dataclass(frozen=True, slots=True)
class Probed:
    """What was found before the load, in tokens: those around a text by a learned ratio (`template`), if prompts were sized by
    one, and the server's count of the probe's greeting; None: not known."""

    template: float | None = None
    greeting: float | None = None


NOTHING_PROBED = Probed()


def cached_beyond_template(
    record: Record, samples: Samples, reported: Mask, probed: Probed, *, native: bool
) -> Floats:
    """Tokens the server took from a cache less the template's, one entry a sample that is `reported`, which has both counts."""
    cached = record.usage_cached.values[samples.rows][reported].astype(np.float64)
    server = samples.counts.server_input[reported]
    if native:
        alone, more = (part[reported] for part in _overhead(record, samples))
        template = alone + more * cached / np.maximum(server, 1.0)
        beyond: Floats = np.maximum(cached - template, 0.0)
    else:
        sent = record.input_tokens_sent[samples.rows][reported].astype(np.float64)
        most = np.inf if probed.greeting is None else probed.greeting + NONCE_DIGITS
        beyond = np.maximum(cached - _constant_hit(cached, server, sent, most), 0.0)
    return beyond


def _more_messages(beyond: Floats, record: Record, samples: Samples) -> Floats:
    """By how many tokens more the server's counts are beyond those asked than where a prompt is one message; 0 for those, and
    where it is no template."""
    kinds = _kinds(record, samples)
    found = np.zeros(len(beyond))
    single = beyond[kinds == 0]
    base = float(np.nanmedian(single)) if not np.isnan(single).all() else 0.0
    for kind in np.unique(kinds[kinds > 0]):
        found[kinds == kind] = _template(beyond[kinds == kind] - base, int(kind))
    return found


def _overhead(record: Record, samples: Samples) -> tuple[Floats, Floats]:
    """What the chat template adds to each prompt by the model's own tokenizer, in tokens; 0 where it is no template: around one
    message, and around those that a later turn has beyond that."""
    added = samples.counts.server_input - record.input_tokens_sent[samples.rows]
    kinds = _kinds(record, samples)
    alone, more = np.zeros(len(added)), np.zeros(len(added))
    for kind in np.unique(kinds):
        found = _template(added[kinds == kind], int(kind))
        first = _template(added[kinds == kind % 2], 0) if kind > 1 and (kinds == kind % 2).any() else found
        alone[kinds == kind] = min(first, found)
        more[kinds == kind] = max(0.0, found - first)
    return alone, more


def _kinds(record: Record, samples: Samples) -> Ints:
    """Samples that have as many messages: 2 turn + (1 where a prefix is shared)."""
    kinds: Ints = 2 * record.turn[samples.rows] + (record.input_tokens_shared[samples.rows] > 0)
    return kinds


def _template(added: Floats, kind: int) -> float:
    """The median of what prompts of one kind have beyond their texts, or 0 where that is no template's: too much a message."""
    if np.isnan(added).all():
        return 0.0
    median = float(np.nanmedian(added))
    return median if 0 <= median <= TEMPLATE_TOKENS * (1 + kind // 2) else 0.0


def _constant_hit(cached: Floats, server: Floats, sent: Floats, limit: float) -> float:
    """The cached tokens that nearly every prompt with a hit has in common; 0 where they are no template's, which is no longer
    than `limit`."""
    hits = np.sort(cached[cached > 0])
    if not len(hits):
        return 0.0
    most = percentile(hits, 0.9)
    room = float(np.median(server - sent / 2))
    constant = most - percentile(hits, 0.1) <= TEMPLATE_SPREAD
    return most if constant and most <= min(TEMPLATE_TOKENS, room, limit) else 0.0


def grown_share(sent: Floats, server: Floats) -> float | None:
    """How the longest quarter's server count keeps up with the shortest half's; None where lengths are too alike or few."""
    if len(sent) < ENOUGH_PROMPTS:
        return None
    order = np.argsort(sent, kind="stable")
    short, long = order[: len(order) // 2], order[-(len(order) // 4) :]
    sent_short, sent_long = float(sent[short].mean()), float(sent[long].mean())
    if sent_short <= 0 or sent_long < LENGTHS_APART * sent_short:
        return None
    server_short, server_long = float(server[short].mean()), float(server[long].mean())
    growth = (server_long - server_short) / (sent_long - sent_short)
    if growth < LEAST_GROWTH:
        return max(0.0, growth)
    centred = sent[short] - sent_short
    squares = float(centred @ centred)
    slope = float(centred @ server[short]) / squares if squares > 0 else growth
    template = min(max(0.0, server_short - slope * sent_short), TEMPLATE_TOKENS)
    rate = (server_short - template) / sent_short
    return (server_long - template) / sent_long / rate if rate > 0 else None


def spread(values: Floats) -> Spread | None:
    """Of values in any order; NaN entries are none. None where nothing is left."""
    known = ordered(values)
    if not len(known):
        return None
    p50, p95, p99 = (percentile(known, p) for p in (0.5, 0.95, 0.99))
    return Spread(len(known), float(known.mean()), p50, p95, p99, float(known[0]), float(known[-1]))


def _mean(values: Floats) -> float | None:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None
