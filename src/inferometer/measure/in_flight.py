"""Tokens in flight: what the server held, about, in prompts and half-made answers (draft 5.5.4).

T(t) = sum over the requests in flight at t of (input tokens + output tokens that had arrived by t). A request is in flight as
in measure/load.py, whatever becomes of it. Its output tokens come spread evenly over its events with text; those of an answer
that comes whole are made when nobody sees it, and do not count. Where the server did not count a request, as one that failed,
it has what was sent and what its text amounts to (measure/tokens.py).

With w_j tokens that come at t_j and leave at d_j, the mean over [x, y] is sum w_j |[t_j, d_j] in [x, y]| / (y - x).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.load import Span
from inferometer.measure.record import Floats, Ints, Record
from inferometer.measure.tokens import count
from inferometer.units import NS_PER_S


@dataclass(frozen=True, slots=True)
class TokensInFlight:
    """Time average and peak over a span."""

    mean: float
    peak: float


def tokens_in_flight(record: Record, span: Span | None, *, reference: bool) -> TokensInFlight | None:
    """Tokens in flight over the span; None for an empty one. `reference`: counted as in `samples.take`."""
    if span is None or span.end <= span.start:
        return None
    rows = np.flatnonzero(record.measured & record.t_submit.valid)
    counts = count(record, rows, reference=reference)
    begins = np.where(record.opened, record.t_connect.values, record.t_send.values)[rows]
    ends = record.t_end[rows]
    events = record.event_is_text
    sizes = np.diff(np.concatenate(([0], np.cumsum(events)))[record.event_offsets])
    each = counts.output / np.maximum(sizes[rows], 1)
    mine = np.zeros(len(record), np.bool_)
    mine[rows] = True
    chosen = events & np.repeat(mine, np.diff(record.event_offsets))
    owner = np.repeat(np.arange(len(rows)), sizes[rows])
    at = np.concatenate((begins, record.event_ns[chosen]))
    until = np.concatenate((ends, ends[owner]))
    tokens = np.concatenate((counts.input, each[owner]))
    gone = counts.input + np.where(sizes[rows] > 0, counts.output, 0.0)
    held = np.maximum(np.minimum(until, span.end) - np.maximum(at, span.start), 0) / NS_PER_S
    return TokensInFlight(float(tokens @ held) / span.seconds, _peak(at, tokens, ends, gone, span))


def _peak(at: Ints, tokens: Floats, ends: Ints, gone: Floats, span: Span) -> float:
    """The most at any instant of the span. What begins the instant another ends takes its place."""
    times = np.concatenate((ends, at))
    order = np.argsort(times, kind="stable")  # ends first
    held = np.cumsum(np.concatenate((-gone, tokens))[order])
    first = int(np.searchsorted(times[order], span.start, side="right"))
    last = int(np.searchsorted(times[order], span.end, side="left"))
    before = held[max(first - 1, 0) : first]  # what there was when the span began
    return float(np.concatenate(([0.0], before, held[first:last])).max())
