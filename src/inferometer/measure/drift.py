"""Whether the server kept its speed: latencies over time, given the load that they met, tested for a change by rank.

A latency rises when the server becomes slower, and also when more requests are in flight. So each of three series holds the
logarithm of a latency beside the load at that time, in order of time:

| series        | value                                          | load (of `token_gap`, logarithms)                           |
| ------------- | ---------------------------------------------- | ----------------------------------------------------------- |
| `first_token` | TTFT of a request (streamed)                   | requests and prompt tokens that wait for a first token when |
|               |                                                | it is sent, itself included; requests in flight; its prompt |
| `token_gap`   | lower quartile of the gaps that end in one of  | requests between first and last token, tokens of their      |
|               | at most GAP_BINS bins of equally many          | contexts, requests in flight; and the squares of these      |
| `request`     | end-to-end time of a request                   | its output tokens, and these times the mean number in       |
|               |                                                | flight meanwhile; its prompt, and that with all prompts     |
|               |                                                | sent meanwhile; of all requests in flight when it is sent,  |
|               |                                                | itself included: number, prompt and output tokens           |

The load of `request` is what an engine with continuous batching does while the request is in it: an iteration for each of its
tokens, longer by the requests that share it, and the prompts that are computed in between. Prompt tokens that the server
reports as cached are not counted. The lower quartile of the gaps is that of iterations without a prompt in them, or with a
short one; gaps of zero, between tokens of one event, are left out.

The effect of the load is estimated within BLOCKS blocks of time (the within estimator of panel data), because between them it
cannot be told from a change of the server: a server that becomes slower has more requests in flight. TTFT and end-to-end time
are sums over their load, times a level of the block; gaps are products of powers, a level for each block. What is left,
r_1 ... r_n, is the server's slowness given its load, on a logarithmic scale.

Pettitt's test (1979) looks for one change of level: with the centred ranks R_i of the r_i, rounded to RESOLUTION and scaled to
+-1/2, and S_k = R_1 + ... + R_k,

    z = max |S_k| / sqrt(n V)              P(z > x) = 2 exp(-2 x^2) without a change (Kolmogorov's distribution)

For independent values V is 1/12. Here it is the long-run variance of the ranks (dependence.py), so that correlation in time is
allowed for, and is taken after the best-fitting change is subtracted: a ramp at the maximising k, from a step (width 0) to a
straight line over the whole run. A steady drift, too, makes |S_k| large. Its size is exp(mean after k - mean before k) - 1.

A speed that comes and goes has no one change. Von Neumann's ratio finds it: with the means m_1 ... m_B of r in at most
SWING_BLOCKS blocks of at least SWING_GENERATIONS generations of requests in flight, so that neighbours share little by chance,

    w = sqrt(B) (1 - sum (m_(j+1) - m_j)^2 / (2 sum (m_j - mean)^2))

is nearly normal with variance 1 where blocks are independent, and large where neighbours are alike. Its size is
exp(standard deviation of the m_j) - 1.

Where it looks: the steady span (measure/load.py), which excludes the drain; in a closed loop after the first wave, in which all
requests are at the same place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from inferometer.measure.backlog import first_texts
from inferometer.measure.dependence import BINS, binned, long_run_variance
from inferometer.measure.large_arrays import held, in_one, order_by, slices, times_in_order
from inferometer.measure.load import Span, Sweep, within
from inferometer.measure.record import Floats, Ints, Mask, Record
from inferometer.measure.samples import Samples
from inferometer.units import NS_PER_S

BLOCKS, BLOCK_LEAST = 10, 8
"""Blocks in which the effect of the load is estimated, and values each has at least."""

GAP_BINS, GAPS_LEAST, GAP_REQUESTS = 200, 8, 4
"""Bins of gaps at most, and gaps and requests that each bin has at least."""

GAPS_MOST = 1_000_000
"""Of more gaps, every k-th is taken, to bound the time of sorting them."""

GAP_BINS_LEAST = 40
"""Bins of gaps below which they are not tested: their long-run variance would not be known."""

GENERATIONS, PER_GENERATION = 8, 8
"""Requests in flight together are a generation, and share what happens to them. Ranks of requests are summed in bins of an
eighth of one, so that the lags of the autoregression span a generation and more; with fewer than 8 they are not tested."""

RESOLUTION = 0.01
"""Logarithms closer than this are ranked alike. Engines without jitter repeat patterns far below what matters, to which ranks
would give full weight: they look like noise that lasts."""

SWING_GENERATIONS, SWING_BLOCKS, SWING_LEAST = 2, 60, 16
"""Two generations have half of their requests in common with no other block's. With more blocks the noise of each would hide a
slow swing; with fewer than 16 w could not exceed its limit by much."""

WIDTHS = (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
"""Half the duration of a change, as a share of the run, that are tried to subtract it."""

Source = Literal["first_token", "token_gap", "request"]


class Timed(NamedTuple):
    """n logarithms of a latency in order of time, their instants (ns), and the load at each: n rows, a column a kind."""

    values: Floats
    at_ns: Ints
    load: Floats


@dataclass(frozen=True, slots=True)
class Change:
    """The largest change of a series of n values: `statistic` z, `share` by which latency given the load is longer after it
    (negative: shorter), and when, in s from the start of the run. `load_spread`: by how much the effect of the load differs
    between blocks of time, a standard deviation of logarithms. `generations`: the requests sent over those in flight. `swing`:
    w, and `swing_share` its size; both 0.0 for fewer than SWING_LEAST blocks."""

    source: Source
    n: int
    statistic: float
    share: float
    load_spread: float
    at_s: float
    generations: float
    swing: float
    swing_share: float


@dataclass(frozen=True, slots=True)
class Drift:
    """The largest change of each series that is long enough, and Pettitt's statistic of the gaps between sends, as if they were
    independent: large where the load itself rose, fell or came in waves.

    `conclusive`: whether these series tell a change of the server from one of the load. Gaps alone do so only in a closed loop,
    which keeps its load; in an open loop a change lasts a generation or more, and so does the load's wandering."""

    changes: tuple[Change, ...]
    arrivals: float
    conclusive: bool


def drift_of(
    record: Record, samples: Samples, span: Span | None, slots: int | None, sweep: Sweep | None = None
) -> Drift | None:
    """Changes over the steady `span`; None without one. `slots`: of a closed loop; `sweep`: of the record, if at hand."""
    if span is None or not len(samples):
        return None
    load = Load(record)
    start = record.t_submit.values[record.measured & record.t_submit.valid].min()
    span = _after_first_wave(load, span, slots)
    series: dict[Source, Timed] = {
        "request": request_series(record, samples, load, span, sweep or Sweep(record))
    }
    if samples.streamed:
        series["first_token"] = first_token_series(record, samples, load, span)
        series["token_gap"] = token_gap_series(samples, load, span)
    found, generations = [], _generations(load, span)
    for source, timed in series.items():
        # Bins of gaps are as short as iterations, and so have no generations.
        gaps = source == "token_gap"
        bins = len(timed.values) if gaps else min(len(timed.values), int(PER_GENERATION * generations))
        if bins >= (GAP_BINS_LEAST if gaps else GENERATIONS * PER_GENERATION):
            effect = given_load if gaps else proportional
            left = effect(timed.values, timed.load)
            statistic, k = change_point(np.round(left / RESOLUTION), bins)
            at_s = float(timed.at_ns[k] - start) / NS_PER_S
            share = math.expm1(float(left[k:].mean() - left[:k].mean()))
            spread = _spread_of_blocks(timed.values - left)
            swing = swings(left, generations)
            found.append(
                Change(source, len(timed.values), statistic, share, spread, at_s, generations, *swing)
            )
    conclusive = any(one.source != "token_gap" or slots is not None for one in found)
    return Drift(tuple(found), arrivals_change(load.sent[within(load.sent, span)]), conclusive)


class Load:
    """The requests that were sent, lead-in and lead-out included, in order of sending: instants of sending, first text and end,
    and prompt tokens that were computed. A request without text is taken to wait until its end."""

    def __init__(self, record: Record) -> None:
        rows = np.flatnonzero(record.of_load & record.t_submit.valid)
        rows = held(rows[order_by(record.t_submit.values[rows], record.index[rows])])
        self.rows: Ints = rows
        self.sent: Ints = held(record.t_submit.values[rows])
        self.ended: Ints = held(record.t_end[rows])
        self.first: Ints = held(first_texts(record)[rows])
        cached = np.where(record.usage_cached.valid, record.usage_cached.values, 0)[rows]
        self._ends: Ints = held(times_in_order(self.ended))
        sent, told = record.input_tokens_sent[rows], record.usage_input
        # A step of a recorded session was not counted before it was sent.
        read = np.where(sent > 0, sent, np.where(told.valid, told.values, 0)[rows])
        self.prompt: Floats = held(np.maximum(read - cached, 1).astype(np.float64))

    def in_flight(self, at_ns: Ints) -> Ints:
        """Requests sent by then and not ended."""
        ended = np.searchsorted(self._ends, at_ns, side="right")
        counted: Ints = np.searchsorted(self.sent, at_ns, side="right") - ended
        return counted

    def waiting(self) -> tuple[Ints, Floats]:
        """Requests, and their prompt tokens, that wait for their first text when each is sent, itself included."""
        count, tokens = self._present(self.first, np.ones(len(self.sent)), self.prompt)
        return count.astype(np.int64), tokens

    def present(self, *amounts: Floats) -> list[Floats]:
        """The sums of `amounts`, one a request, over the requests in flight when each is sent, itself included."""
        return self._present(self.ended, *amounts)

    def _present(self, until: Ints, *amounts: Floats) -> list[Floats]:
        order = order_by(until)
        gone = np.searchsorted(until[order], self.sent, side="right")
        done = (np.concatenate(([0.0], np.cumsum(one[order]))) for one in amounts)
        return [np.cumsum(one) - before[gone] for one, before in zip(amounts, done, strict=True)]

    def sent_meanwhile(self) -> Floats:
        """Prompt tokens of the requests sent from when each is sent until it ends, itself included."""
        before = np.concatenate(([0.0], np.cumsum(self.prompt)))
        later = np.searchsorted(self.sent, self.ended, side="right")
        found: Floats = before[later] - before[:-1]
        return found


def _after_first_wave(load: Load, span: Span, slots: int | None) -> Span:
    """From where a closed loop's first requests no longer matter: they have their first tokens, and twice as many requests as
    slots, but at most a quarter of all, were sent."""
    if slots is None or span.end <= span.start:
        return span
    second = int(load.sent[min(2 * slots, len(load.sent) // 4)])
    return Span(max(span.start, second, int(load.first[:slots].max())), span.end)


def _generations(load: Load, span: Span) -> float:
    """How many times the requests in flight were sent in the span."""
    sent = load.sent[within(load.sent, span)]
    return len(sent) / max(1.0, float(load.in_flight(sent).mean())) if len(sent) else 0.0


def first_token_series(record: Record, samples: Samples, load: Load, span: Span) -> Timed:
    """The series `first_token` of the table above."""
    ttft = np.full(len(record), np.nan)
    ttft[samples.rows] = samples.ttft
    values = ttft[load.rows]
    requests, tokens = load.waiting()
    chosen = within(load.sent, span) & (values > 0) & (requests > 0)
    columns = (requests, tokens, load.in_flight(load.sent), load.prompt)
    return Timed(held(np.log(values[chosen])), held(load.sent[chosen]), _beside(chosen, columns))


def request_series(record: Record, samples: Samples, load: Load, span: Span, sweep: Sweep) -> Timed:
    """The series `request` of the table above."""
    values, output = np.full(len(record), np.nan), np.zeros(len(record))
    values[samples.rows] = samples.e2e
    output[samples.rows] = np.nan_to_num(samples.counts.output, nan=1.0)
    values, output = values[load.rows], output[load.rows]
    lasted = np.maximum(load.ended - load.sent, 1) / NS_PER_S
    company = (sweep.integral(load.ended) - sweep.integral(load.sent)) / lasted
    chosen = within(load.sent, span) & (values > 0)
    columns = (
        *(output, output * company, load.prompt, load.sent_meanwhile()),
        *load.present(np.ones(len(output)), load.prompt, output),
    )
    return Timed(held(np.log(values[chosen])), held(load.sent[chosen]), _beside(chosen, columns))


def _beside(chosen: Mask, columns: Sequence[Ints | Floats]) -> Floats:
    """The chosen rows of columns that stand beside each other."""
    found: Floats = in_one(np.float64, (column[chosen] for column in columns))
    return found.reshape(len(columns), -1).T


def token_gap_series(samples: Samples, load: Load, span: Span) -> Timed:
    """The series `token_gap` of the table above."""
    chosen = _usable_gaps(samples, span)
    chosen = chosen[order_by(samples.gap_ns[chosen])]
    gaps, at_ns = samples.gaps[chosen], samples.gap_ns[chosen]
    bins = min(GAP_BINS, len(gaps) // GAPS_LEAST, len(samples) // GAP_REQUESTS)
    if bins < GAP_BINS_LEAST:
        return Timed(np.zeros(0), np.zeros(0, np.int64), np.zeros((0, 0)))
    edges = np.linspace(0, len(gaps), bins + 1).astype(np.int64)
    sizes = np.diff(edges)
    owner = np.searchsorted(samples.gap_offsets, chosen, side="right") - 1
    # A prompt of unknown length changes no other's: its answer's growth is what is left.
    context = np.nan_to_num(samples.counts.input)[owner] + (chosen - samples.gap_offsets[owner])
    first, last = times_in_order(load.first), times_in_order(load.ended)
    decoding = np.searchsorted(first, at_ns) - np.searchsorted(last, at_ns)
    columns = (decoding, decoding * context, load.in_flight(at_ns))
    means = [np.add.reduceat(column.astype(np.float64), edges[:-1]) / sizes for column in columns]
    loads = np.log(np.maximum(np.column_stack(means), 0.0) + 1.0)
    loads -= loads.mean(axis=0)
    quartiles = [np.quantile(gaps[low:high], 0.25, method="lower") for low, high in pairwise(edges)]
    return Timed(np.log(quartiles), at_ns[edges[:-1] + sizes // 2], np.column_stack((loads, loads**2)))


def _usable_gaps(samples: Samples, span: Span) -> Ints:
    """Places of the gaps above 0 that end in the span, or of every k-th of them, at most GAPS_MOST."""
    usable = np.empty(len(samples.gaps), np.bool_)
    for part in slices(len(usable)):
        usable[part] = (samples.gaps[part] > 0) & within(samples.gap_ns[part], span)
    step = -(-int(np.count_nonzero(usable)) // GAPS_MOST) or 1
    found, seen = [np.zeros(0, np.int64)], 0
    for part in slices(len(usable)):
        here = part.start + np.flatnonzero(usable[part])
        found.append(here[-seen % step :: step])
        seen += len(here)
    return np.concatenate(found)


def given_load(values: Floats, load: Floats) -> Floats:
    """`values` less the effect of the load on them, as estimated within blocks of time. A load that is constant has none."""
    blocks = max(1, min(BLOCKS, len(values) // BLOCK_LEAST))
    edges = np.linspace(0, len(values), blocks + 1).astype(np.int64)
    sizes = np.diff(edges)
    means = np.add.reduceat(load, edges[:-1], axis=0) / sizes[:, None]
    inside = load - np.repeat(means, sizes, axis=0)
    level = np.add.reduceat(values, edges[:-1]) / sizes
    varies = inside.std(axis=0) > VARIES
    if not varies.any():
        return values
    effect, *_ = np.linalg.lstsq(inside[:, varies], values - np.repeat(level, sizes), rcond=1e-6)
    left: Floats = values - load[:, varies] @ effect
    return left


def proportional(values: Floats, load: Floats, most: int | None = None) -> Floats:
    """`values` less the logarithm of the effect of the load, exp(values) = s (b_0 + b_1 load_1 + ...).

    s is constant in a block: a server that is slower by a factor is slower in all terms. Both factors are found in turns, b by
    least squares of relative errors, from at most `most` values, by default FITTED_MOST: every k-th of them.
    """
    scale = np.maximum(load.mean(axis=0), 1e-9)
    some = slice(None, None, -(-len(values) // (most or FITTED_MOST)) or 1)
    effect, least = _relative_effect(values[some], np.asfortranarray(load[some]), scale)
    parts = (np.maximum(_terms(load[part], scale) @ effect, least) for part in slices(len(values), FITTED))
    left: Floats = values - np.log(np.concatenate([np.zeros(0), *parts]))
    return left


def _relative_effect(values: Floats, load: Floats, scale: Floats) -> tuple[Floats, float]:
    """The coefficients b over `scale`, the constant first, and the latency below which no effect of the load may fall."""
    blocks = max(1, min(BLOCKS, len(values) // BLOCK_LEAST))
    edges = np.linspace(0, len(values), blocks + 1).astype(np.int64)
    sizes = np.diff(edges)
    level, fit = np.zeros(len(values)), np.exp(values)
    effect, least = np.zeros(0), 0.0
    parts = [*slices(len(values), FITTED)]
    for _ in range(TURNS):
        latency = np.exp(values - level)
        relative = (
            (_terms(load[part], scale) / fit[part, None], latency[part] / fit[part]) for part in parts
        )
        effect, least = least_squares(relative), FIT_LEAST * float(np.median(latency))
        fit = np.concatenate([_terms(load[part], scale) @ effect for part in parts])
        fit = np.maximum(fit, least)
        by_block = np.add.reduceat(values - np.log(fit), edges[:-1]) / sizes
        level = np.repeat(by_block - by_block.mean(), sizes)
    return effect, least


def _terms(load: Floats, scale: Floats) -> Floats:
    """A row for each value: 1, and the loads over their `scale`."""
    terms = np.ones((1 + len(scale), len(load))).T  # a column lies together, as in `load`
    np.divide(load, scale, out=terms[:, 1:])
    return terms


def least_squares(parts: Iterable[tuple[Floats, Floats]]) -> Floats:
    """The coefficients of the terms by which values are closest to them, rows of both coming part by part. What is in front of
    the last part is taken together in a triangle (QR), which has the same sums of squares."""
    terms: Floats = np.zeros((0, 0))
    values: Floats = np.zeros(0)
    for more, of in parts:
        if not len(values):
            terms, values = more, of
            continue
        triangle = np.asarray(np.linalg.qr(np.column_stack((terms, values)), mode="r"))
        rows = np.concatenate((triangle, np.column_stack((more, of))))
        terms, values = rows[:, :-1], rows[:, -1]
    return np.asarray(np.linalg.lstsq(terms, values, rcond=1e-8)[0], np.float64)


TURNS = 6
FITTED_MOST = 1 << 20
"""Values that the effect of the load is found from: some ten coefficients are known from them far better than a drift."""

FITTED = 1 << 16
"""Values that are fitted together: their terms stay in the processor's cache."""

FIT_LEAST = 0.1
"""Of the median latency, below which the effect of a load is not taken to fall."""

VARIES = 1e-6
"""Standard deviation of a logarithm below which a load is constant."""


def _spread_of_blocks(values: Floats) -> float:
    """The standard deviation of the means of BLOCKS blocks of time."""
    return float(np.std([block.mean() for block in np.array_split(values, min(BLOCKS, len(values)))]))


def change_point(values: Floats, bins: int = BINS) -> tuple[float, int]:
    """Pettitt's statistic z of a series in order of time, and the place k of the change. See above.

    `bins`: at most so many are the ranks summed in for their long-run variance.
    """
    n = len(values)
    ranks = centred_ranks(values)
    sums = np.abs(np.cumsum(ranks)[:-1])
    k = int(np.argmax(sums)) + 1
    left = binned(_without_change(ranks, k), min(bins, BINS))
    variance = max(long_run_variance(left) * n / len(left), LEAST_VARIANCE)
    return float(sums[k - 1]) / math.sqrt(n * variance), k


LEAST_VARIANCE = 1e-9
"""Of ranks that are explained by a change completely."""


def swings(values: Floats, generations: float) -> tuple[float, float]:
    """w of a series in order of time, and its size. See above."""
    blocks = min(SWING_BLOCKS, int(generations / SWING_GENERATIONS), len(values))
    if blocks < SWING_LEAST:
        return 0.0, 0.0
    means = binned(values, blocks)
    centred, steps = means - means.mean(), np.diff(means)
    squares = float(centred @ centred)
    if squares <= 0:
        return 0.0, 0.0
    ratio = 1 - float(steps @ steps) / (2 * squares)
    return ratio * math.sqrt(blocks), math.expm1(float(means.std()))


def arrivals_change(sent: Ints) -> float:
    """Pettitt's statistic of the gaps between sends with V = 1 / 12; 0.0 for fewer than three."""
    if len(sent) < 3:
        return 0.0
    ranks = centred_ranks(np.diff(sent).astype(np.float64))
    return float(np.abs(np.cumsum(ranks)).max()) / math.sqrt(len(ranks) / 12)


def centred_ranks(values: Floats) -> Floats:
    """Mean ranks of n values, at least one, from -1/2 to 1/2. Whole numbers close together, as rounded ones are, are counted;
    others are sorted."""
    above = values - values.min()
    if above.max() < len(values) and np.array_equal(np.rint(values), values):
        which = above.astype(np.int64)
        counts = np.bincount(which)
    else:
        _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (2 * np.cumsum(counts) - counts)[which] / (2 * len(values)) - 0.5
    return ranks


def _without_change(ranks: Floats, k: int) -> Floats:
    """The ranks less the ramp around k, of one of WIDTHS, that leaves the least sum of squares."""
    n = len(ranks)
    place = np.arange(n) - (k - 0.5)
    best, least = ranks, math.inf
    for width in WIDTHS:
        ramp = np.clip(place / max(width * n, 0.5), -1.0, 1.0)
        ramp -= ramp.mean()
        left = ranks - ramp * float(ramp @ ranks) / float(ramp @ ramp)
        squares = float(left @ left)
        if squares < least:
            best, least = left, squares
    return best
