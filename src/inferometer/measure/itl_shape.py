"""The shape of the gaps between tokens: how many modes, and how heavy a tail (draft 5.4.4.3).

Over answers of at least LEAST_OUTPUT_TOKENS only (draft 5.4.2); shorter ones are counted. Below LEAST_GAPS gaps modes and tail
are "undetermined". Where an event holds several tokens, gaps are times between chunks, here as everywhere.

Modes. The draft names no method; this one counts the prominent peaks of a smoothed histogram of x = ln(gap):

1. The gaps above 0 are put into bins of BIN bandwidths and smoothed by a Gaussian kernel. Its bandwidth is Silverman's,
   h = 0.9 min(std, IQR / 1.34) m^(-1/5), but at least LEAST_BANDWIDTH: what is closer than about three times that is one mode.
2. Gaps of one answer share its luck, so m is their number over the design effect: the variance of the mean of x with the answer
   as the unit, over that with the gap as the unit, where that is above 1. Below LEAST_EFFECTIVE nothing is told of modes.
3. A peak of height f is prominent if it rises above the higher of the deepest points between it and the peaks beside it by DIP
   of f and by NOISE standard errors of the curve there, sqrt(f / (2 sqrt(pi) m h)), and if what lies between these points is at
   least LEAST_SHARE of all gaps. As long as a peak is not, the least prominent is taken away. Those left are the modes.
4. Gaps of zero (events of one read) have no logarithm. They are a mode of their own, at 0 ms, if they are at least LEAST_SHARE.

With 5,000 gaps in 100 answers, 100 draws each: one log-normal (sigma 0.05 to 1.5), gamma, Pareto, uniform, constant or constant
and jittering mode, the same for all answers or with a level of each answer's own, was never taken for several. Two at 10 and 40
ms were missed never with weights of 10 % and more for the second; with 5 %, never at a sigma of 0.1 and in 26 % at 0.3, where
they run together (at 60,000 gaps: never). Two at 10 and 15 ms of sigma 0.1 need weights of about 30 %.

Tail. Heavy if P99 / P50 is above ln 100 / ln 2 = 6.64, the ratio of any exponential distribution: that of a lighter one is
below. A distribution close to the exponential is therefore called either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from inferometer.measure.large_arrays import chosen, in_one, ordered, pieces, slices, variance_of
from inferometer.measure.record import Floats, Ints, Mask
from inferometer.measure.samples import Samples
from inferometer.measure.stats import percentile
from inferometer.metrics.statistics import Stats

Modality = Literal["unimodal", "multimodal", "undetermined"]
Tail = Literal["exponential or lighter", "heavy", "undetermined"]

LEAST_OUTPUT_TOKENS = 50
"""Answers shorter than this are no part of the ITL statistics (draft 5.4.2)."""

LEAST_GAPS = 5_000
"""Gaps from which modes and tail are told (draft 5.4.2)."""

HEAVY = math.log(100) / math.log(2)
"""P99 / P50 of an exponential distribution, whatever its mean."""

LEAST_EFFECTIVE = 50.0
"""Effective gaps from which two equal modes would show; with fewer, one peak says nothing."""

BIN = 0.25
LEAST_BANDWIDTH = 0.05
DIP = 0.25
NOISE = 4.0
LEAST_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class ItlShape:
    """`answers` of at least `least_output_tokens`, and the shorter ones with their share of all; of the former the gaps, jitter
    and longest pauses in ms, the gaps' modes in ms, in order, and P99 / P50. Gaps are between tokens, or between chunks where
    the run's `itl_method` is `chunk`."""

    least_output_tokens: int
    answers: int
    short_answers: int
    short_share: float
    itl_ms: Stats | None
    jitter_ms: Stats | None
    max_pause_ms: Stats | None
    modes_ms: tuple[float, ...]
    modality: Modality
    tail_ratio: float | None
    tail: Tail


def itl_shape(samples: Samples, *, streamed: bool) -> ItlShape | None:
    """The shape of the samples' gaps; None where there are no samples, nothing was streamed, or nobody counted
    tokens."""
    if not streamed or not len(samples) or np.isnan(samples.counts.streamed).all():
        return None
    long = samples.counts.streamed >= LEAST_OUTPUT_TOKENS
    sizes = np.diff(samples.gap_offsets)
    gaps = samples.gaps if long.all() else chosen(samples.gaps, np.repeat(long, sizes))
    offsets: Ints = np.concatenate(([0], np.cumsum(sizes[long])))
    stats = samples.gaps_described(long)
    enough = len(gaps) >= LEAST_GAPS
    found = modes(gaps, offsets) if enough else ()
    ratio = stats.p99 / stats.p50 if stats is not None and stats.p50 > 0 else None
    answers = int(long.sum())
    return ItlShape(
        least_output_tokens=LEAST_OUTPUT_TOKENS,
        answers=answers,
        short_answers=len(samples) - answers,
        short_share=1 - answers / len(samples),
        itl_ms=stats,
        jitter_ms=samples.described(samples.jitter, long),
        max_pause_ms=samples.described(samples.max_pause, long),
        modes_ms=found,
        modality="undetermined" if not found else "multimodal" if len(found) > 1 else "unimodal",
        tail_ratio=ratio,
        tail=_tail(ratio if enough else None),
    )


def _tail(ratio: float | None) -> Tail:
    if ratio is None:
        return "undetermined"
    return "heavy" if ratio > HEAVY else "exponential or lighter"


def modes(gaps: Floats, offsets: Ints) -> tuple[float, ...]:
    """Where the modes of gaps in ms lie, in order, by the method above; answer i has `gaps[offsets[i]:offsets[i + 1]]`."""
    some = gaps > 0
    zeros = (0.0,) if len(gaps) and 1 - some.mean() >= LEAST_SHARE else ()
    if not some.any():
        return zeros
    x = in_one(np.float64, (np.log(gaps[part][some[part]]) for part in slices(len(gaps))))
    m = len(x) / _design_effect(x, some, offsets)
    if m < LEAST_EFFECTIVE:
        return ()
    h = _bandwidth(x, m)
    low, width = float(x.min()) - 4 * h, BIN * h
    bins = int((float(x.max()) - low) / width) + 1
    counts = np.zeros(bins, np.int64)
    for part in slices(len(x)):
        counts += np.bincount(((x[part] - low) / width).astype(np.int64), minlength=bins)
    counts = np.append(
        counts, np.zeros(math.ceil(4 / BIN), np.int64)
    )  # room for the kernel, as there is below
    peaks = _peaks(counts, m, h, len(gaps))
    return zeros + tuple(math.exp(low + (peak + 0.5) * width) for peak in peaks.tolist())


def _design_effect(x: Floats, some: Mask, offsets: Ints) -> float:
    """`some`: of all gaps, those that `x` has."""
    mean, at = float(x.mean()), 0
    sizes, found = np.zeros(len(offsets) - 1, np.int64), np.zeros(len(offsets) - 1)
    for rows, gaps in pieces(offsets):
        each = np.diff(offsets[rows.start : rows.stop + 1])
        answer = np.repeat(np.arange(len(each)), each)[some[gaps]]
        sizes[rows] = np.bincount(answer, minlength=len(each))
        found[rows] = np.bincount(answer, x[at : at + len(answer)] - mean, len(each))
        at += len(answer)
    sums = found[sizes > 0]
    answers, variance = len(sums), variance_of(x)
    if answers < 2 or variance == 0:
        return 1.0
    return max(1.0, answers / (answers - 1) * float(sums @ sums) / (len(x) * variance))


def _bandwidth(x: Floats, m: float) -> float:
    ascending = ordered(x)
    low, high = (percentile(ascending, p) for p in (0.25, 0.75))
    spread = min(math.sqrt(variance_of(x)), (high - low) / 1.34)
    return max(LEAST_BANDWIDTH, 0.9 * spread * math.pow(m, -0.2))


def _peaks(counts: Ints, m: float, h: float, gaps: int) -> Ints:
    """The prominent peaks, as indices into the histogram `counts`, of `gaps` gaps with those of zero."""
    curve = _smoothed(counts / (counts.sum() * BIN * h))
    peaks = _maxima(curve)
    while len(peaks):
        between = [a + int(np.argmin(curve[a:b])) for a, b in pairwise(peaks.tolist())]
        valleys = np.concatenate(([0.0], curve[between], [0.0]))
        height = curve[peaks]
        rise = height - np.maximum(valleys[:-1], valleys[1:])
        error = np.sqrt(height / (2 * math.sqrt(math.pi) * m * h))
        shares = np.add.reduceat(counts, [0, *between]) / gaps
        prominence = np.minimum(rise / np.maximum(DIP * height, NOISE * error), shares / LEAST_SHARE)
        if len(peaks) == 1:  # nothing beside it: a mode, unless nearly all gaps are zero
            return peaks[shares >= LEAST_SHARE]
        if prominence.min() >= 1:
            break
        peaks = np.delete(peaks, int(np.argmin(prominence)))
    return peaks


def _smoothed(density: Floats) -> Floats:
    """The density with a Gaussian kernel of one bandwidth, cut at four."""
    reach = math.ceil(4 / BIN)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * BIN) ** 2)
    curve: Floats = np.convolve(density, kernel / kernel.sum())[reach:-reach]
    return curve


def _maxima(curve: Floats) -> Ints:
    """Where the curve is higher than on both sides; the middle of a plateau, and never an end of the curve."""
    begins = np.flatnonzero(np.append(True, np.diff(curve) != 0))
    levels, ends = curve[begins], np.append(begins[1:], len(curve)) - 1
    top = np.flatnonzero((levels[1:-1] > levels[:-2]) & (levels[1:-1] > levels[2:])) + 1
    middles: Ints = (begins[top] + ends[top]) // 2
    return middles
