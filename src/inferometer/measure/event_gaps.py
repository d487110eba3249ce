"""Gaps between the events of one answer, of many answers at once: answer i has the events `offsets[i]` to `offsets[i + 1]`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from inferometer.measure.large_arrays import in_one, pieces
from inferometer.measure.record import Floats, Ints, Mask
from inferometer.units import NS_PER_MS


def gaps_ms(text_ns: Ints, offsets: Ints) -> Floats:
    """Gaps between consecutive text events of one request, in ms (draft 5.4.3)."""
    each = (np.diff(times)[ends] / NS_PER_MS for _, times, ends in gaps_among(text_ns, offsets))
    return in_one(np.float64, each)


def gap_offsets(offsets: Ints) -> Ints:
    """Where the gaps of each request begin, of events with these offsets."""
    return np.concatenate(([0], np.cumsum(np.maximum(np.diff(offsets) - 1, 0))))


def gap_ends(text_ns: Ints, offsets: Ints) -> Ints:
    """When each gap ended (ns)."""
    return in_one(np.int64, (times[1:][ends] for _, times, ends in gaps_among(text_ns, offsets)))


def gaps_among(events: Ints, offsets: Ints) -> Iterator[tuple[slice, Ints, Mask]]:
    """Of some requests at a time: the place of their gaps, what `events` has of theirs, and which of them but the first end a
    gap."""
    at = 0
    for rows, mine in pieces(offsets):
        ends = _ends_gap(offsets[rows.start : rows.stop + 1] - mine.start)
        count = int(np.count_nonzero(ends))
        yield slice(at, at + count), events[mine], ends
        at += count


def _ends_gap(offsets: Ints) -> Mask:
    """Of all events but the first, which end a gap: a request's first event does not, so that TTFT stays out."""
    within = np.ones(int(offsets[-1]), np.bool_)
    within[offsets[:-1][np.diff(offsets) > 0]] = False
    return within[1:]


def spread(gaps: Floats, offsets: Ints) -> tuple[Floats, Floats]:
    """Each request's standard deviation (n - 1) and maximum of its gaps; NaN where undefined."""
    jitter, longest = np.full(len(offsets) - 1, np.nan), np.full(len(offsets) - 1, np.nan)
    for rows, mine in pieces(offsets):
        here = offsets[rows.start : rows.stop + 1] - mine.start
        jitter[rows], longest[rows] = _spread(gaps[mine], here)
    return jitter, longest


def _spread(gaps: Floats, offsets: Ints) -> tuple[Floats, Floats]:
    sizes = np.diff(offsets)
    jitter, longest = np.full(len(sizes), np.nan), np.full(len(sizes), np.nan)
    some = sizes > 0  # reduceat would give an empty request its neighbour's value
    if not some.any():
        return jitter, longest
    starts, full = offsets[:-1][some], sizes[some]
    longest[some] = np.maximum.reduceat(gaps, starts)
    mean = np.add.reduceat(gaps, starts) / full
    # Two passes: the sum of squares less the squared sum would cancel away a small jitter on a long gap.
    deviations = gaps - np.repeat(mean, full)
    deviations *= deviations
    squares = np.add.reduceat(deviations, starts)
    jitter[some] = np.sqrt(divide(squares, np.where(full > 1, full - 1.0, 0.0)))
    return jitter, longest


def divide(top: Floats, bottom: Floats) -> Floats:
    """Quotient, NaN where the divisor is 0."""
    quotient: Floats = np.divide(top, bottom, out=np.full(len(top), np.nan), where=bottom != 0)
    return quotient
