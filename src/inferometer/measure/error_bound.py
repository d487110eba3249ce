"""How wrong each headline may be through the instrument alone: bounds, from what is known of each of its events.

An event in a read of several packets has the stamp of the last; it came up to w_j earlier (record.py, drive/unread.py; 0 for
the last event of a read, and where a read held one packet). A request was submitted within the u_i that its last send took, not
at its beginning. So with first token f, last token l and m tokens from one to the other (span_tokens.py)

| figure of request i          | lies between                             | and                             |
| ---------------------------- | ---------------------------------------- | ------------------------------- |
| TTFT x                       | x - w_f - u_i                            | x                               |
| E2E x                        | x - w_l - u_i                            | x                               |
| TPOT x                       | x - w_l / (m - 1)                        | x + w_f / (m - 1)               |
| a gap x from event j to k    | x - w_k, and not below 0                 | x + w_j                         |
| either, from the due instant | the same less our own lateness           | x                               |

and a percentile or mean of the true values lies between those of all lower and of all upper values, since both never fall when
a value rises. The bound of a statistic is its distance from the farther of the two. (The mean of gaps is closer: within an
answer all but the outer ends cancel.) Throughput: tokens that may have come on the other side of an end of the steady span.

What no event tells is not in these bounds: the clocks (check `clock_step`), and what happens before the kernel's stamp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.event_gaps import gaps_among
from inferometer.measure.large_arrays import in_one, slices
from inferometer.measure.load import Spans, connecting_of
from inferometer.measure.record import Floats, Ints, between_ms
from inferometer.measure.samples import Samples
from inferometer.measure.stats import percentiles
from inferometer.metrics.statistics import INTERVALS
from inferometer.units import NS_PER_MS


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of each statistic of a metric, in its unit, none negative."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class ErrorBounds:
    """By headline, as in Metrics and Rates; None where the run has no such figure."""

    ttft_ms: Bound | None
    e2e_ms: Bound | None
    tpot_ms: Bound | None
    itl_ms: Bound | None
    chunk_gap_ms: Bound | None
    ttft_from_intended_ms: Bound | None
    e2e_from_intended_ms: Bound | None
    output_tok_s: float | None
    request_s: float | None


STATISTICS_BOUND = ("mean", *INTERVALS)
"""Members of Bound."""


def error_bounds(samples: Samples, spans: Spans) -> ErrorBounds | None:
    """Bounds of the headlines; None where the record does not have what they rest on, or a simulation
    whose client took no time."""
    record = samples.record
    if (record.simulated and not record.client_modelled) or not record.waits_known:
        return None
    calls = np.where(record.submit_ns.valid, record.submit_ns.values, 0)[samples.rows] / NS_PER_MS
    first, last = samples.first_wait_ns / NS_PER_MS, samples.last_wait_ns / NS_PER_MS
    own = own_lateness_ms(samples)
    gaps = _gap_bound(samples)
    direct = samples.itl_method == "direct"
    steady = spans.steady
    return ErrorBounds(
        ttft_ms=_bound(samples.ttft, first + calls),
        e2e_ms=_bound(samples.e2e, last + calls),
        tpot_ms=_tpot_bound(samples, first, last),
        itl_ms=gaps if direct else None,
        chunk_gap_ms=None if direct else gaps,
        ttft_from_intended_ms=_bound(samples.ttft_from_intended, first + calls + own),
        e2e_from_intended_ms=_bound(samples.e2e_from_intended, last + calls + own),
        output_tok_s=None
        if steady is None or not samples.counts.answers_known
        else _crossing(samples, steady.start, steady.end) / steady.seconds,
        request_s=None if steady is None else 0.0,  # an answer ends with the last packet of its read
    )


def own_lateness_ms(samples: Samples) -> Floats:
    """How late each sample's first byte left through the client: not waiting for a connection opened for it."""
    record, rows = samples.record, samples.rows
    late = between_ms(record.t_intended[rows], record.t_send[rows]) - connecting_of(record, rows)
    found: Floats = np.maximum(np.nan_to_num(late, nan=0.0), 0.0)
    return found


def _bound(values: Floats, early: Floats) -> Bound | None:
    """Of values that may be too large by `early`; NaN values are no samples."""
    known = ~np.isnan(values)
    late = values[known]
    return _between(late - early[known], late, late)


def _between(lower: Floats, values: Floats, upper: Floats) -> Bound | None:
    """The distance of each statistic from the farther of its two ends."""
    if not len(values):
        return None
    stated = _statistics(values)
    # What nothing merged has no width, and needs no order of its own.
    low, high = (stated if np.array_equal(each, values) else _statistics(each) for each in (lower, upper))
    return Bound(
        *(max(0.0, at - below, above - at) for below, at, above in zip(low, stated, high, strict=True))
    )


def _statistics(values: Floats) -> list[float]:
    return [float(values.mean()), *percentiles(values, INTERVALS.values())]


def _tpot_bound(samples: Samples, first: Floats, last: Floats) -> Bound | None:
    values = samples.tpot
    known = ~np.isnan(values)
    paces = np.maximum(samples.span_tokens[known] - 1.0, 1.0)
    lower = np.maximum(values[known] - last[known] / paces, 0.0)
    return _between(lower, values[known], values[known] + first[known] / paces)


def _gap_bound(samples: Samples) -> Bound | None:
    """Of all gaps, between tokens or chunks, as `samples.gaps` has them."""
    values = samples.gaps
    if not len(values):
        return None
    waits, offsets = samples.gap_waits
    if not waits.any():
        return Bound(0.0, 0.0, 0.0, 0.0, 0.0)
    some = np.diff(offsets) > 1
    bound = _between(*_widened(values, waits, offsets))
    if bound is None:
        return None
    outer = (waits[offsets[:-1][some]].sum(), waits[offsets[1:][some] - 1].sum())
    mean = float(max(outer)) / NS_PER_MS / len(values)
    return Bound(mean, bound.p50, bound.p90, bound.p95, bound.p99)


def _widened(values: Floats, waits: Ints, offsets: Ints) -> tuple[Floats, Floats, Floats]:
    """Gaps as short as they may have been, as they are, and as long as they may have been."""
    lower = (
        np.maximum(values[gaps] - mine[1:][ends] / NS_PER_MS, 0.0)
        for gaps, mine, ends in gaps_among(waits, offsets)
    )
    upper = (values[gaps] + mine[:-1][ends] / NS_PER_MS for gaps, mine, ends in gaps_among(waits, offsets))
    return in_one(np.float64, lower), values, in_one(np.float64, upper)


def _crossing(samples: Samples, start: int, stop: int) -> float:
    """The more of the tokens that may have come before the span although they count, and those that may have come within it
    although they do not."""
    arrivals, weights, waits = samples.arrival_ns, samples.arrival_tokens, samples.arrival_wait_ns
    crossed = [0.0, 0.0]
    for part in slices(len(arrivals)):
        at, tokens = arrivals[part], weights[part]
        earlier = at - waits[part]
        for end, edge in enumerate((start, stop)):
            crossed[end] += float(tokens[(at >= edge) & (earlier < edge)].sum())
    return max(crossed)
