"""What the ends of an open loop keep out of its throughput: the answers to requests that were never sent.

A load without slots begins with an idle server. Its steady span [A, B] begins a tenth into the load [S, B], and counts what
arrives in it. Under a load that is on for ever that is also what was asked for before S. A request whose answer arrives in
parts of weight w_j, each u_j after its sending, gives to the span, summed over all instants before S at which it might have
been sent, w_j (min(u_j, B - S) - (A - S))+ each. As a share of all that should arrive in the span:

    missing = E[sum_j w_j ((min(u_j, B - S) - (A - S))+ + (B - F - u_j)+)] / ((B - A) E[sum_j w_j])

the means taken over the run's own requests. It is next to nothing where requests live for less than a tenth of the load, and
grows with the square of the lives of those that live longer: half of the tokens of long-tailed answers are in a few of them.

The turns of a conversation follow from its first, so there u_j counts from the first turn; and since no conversation begins
after the last first turn F, what such would have given is missing too. Without conversations F = B.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inferometer.measure.large_arrays import pieces, slices
from inferometer.measure.load import Spans
from inferometer.measure.record import Floats, Ints
from inferometer.measure.samples import Samples
from inferometer.measure.throughput import ARRIVALS


@dataclass(frozen=True, slots=True)
class Filling:
    """The rate of metrics/catalogue.py of which most is missing, and what share of it."""

    rate: str
    missing: float


def filling(samples: Samples, spans: Spans) -> Filling | None:
    """What is missing from the steady rates of a load whose sends do not wait for answers; None without a steady span."""
    load, steady = spans.load, spans.steady
    if load is None or steady is None or not len(samples):
        return None
    begins, last = _begins(samples, load.end)
    ramp, length, tail = steady.start - load.start, load.end - load.start, load.end - last
    shares = {}
    for name in ("output_tok_s", "input_tok_s", "request_s"):
        if ARRIVALS[name](samples) is None:  # tokens that nobody counted
            continue
        absent, total = 0.0, 0.0
        for after, weights in _ages(samples, name, begins):
            missing = np.maximum(np.minimum(after, length) - ramp, 0) + np.maximum(tail - after, 0)
            absent, total = absent + float(weights @ missing), total + float(weights.sum())
        whole = total * (steady.end - steady.start)
        shares[name] = absent / whole if whole else 0.0
    worst = max(shares, key=lambda name: shares[name])
    return Filling(worst, shares[worst])


def _ages(samples: Samples, name: str, begins: Ints) -> Iterator[tuple[Ints, Floats]]:
    """How long after its sample's beginning each of a rate's arrivals came, and what arrived; some at a time."""
    arrivals = ARRIVALS[name](samples)
    assert arrivals is not None  # goodput alone needs more than samples
    at, weights = arrivals
    if name != "output_tok_s":
        for part in slices(len(at)):
            yield at[part] - begins[part], weights[part]
        return
    for rows, events in pieces(samples.text_offsets):
        yield at[events] - np.repeat(begins[rows], samples.text_events[rows]), weights[events]
    whole = slice(int(samples.text_offsets[-1]), len(at))  # answers without an event
    yield at[whole] - begins[samples.text_events == 0], weights[whole]


def _begins(samples: Samples, end: int) -> tuple[Ints, int]:
    """When each sample was sent, or the first turn of its conversation; when the last conversation began, or `end`."""
    record, rows = samples.record, samples.rows
    sent = record.t_submit.values[rows]
    talks = np.flatnonzero(record.measured & record.session.valid & record.t_submit.valid)
    if not len(talks):
        return sent, end
    key = record.session.values.astype(np.int64) << 32 | record.cycle
    known, which = np.unique(key[talks], return_inverse=True)
    first: Ints = np.full(len(known), np.iinfo(np.int64).max)
    np.minimum.at(first, which, record.t_submit.values[talks])
    place = np.minimum(np.searchsorted(known, key[rows]), len(known) - 1)
    return np.where(record.session.valid[rows], first[place], sent), int(first.max())
