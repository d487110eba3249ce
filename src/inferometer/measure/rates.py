"""Rates over a span: each counts arrivals, an instant with a weight. One function for each rate of metrics/catalogue.py.

Over the steady span what arrived within it counts, whichever side of the span its request began. Over the whole run,
rates are the article's: totals over the time from the first send to the last end.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inferometer.measure.goodput import meets_objectives
from inferometer.measure.load import Span, Spans, within
from inferometer.measure.record import Floats, Ints
from inferometer.measure.samples import Samples
from inferometer.measure.stats import mean_interval, percentile
from inferometer.metrics.catalogue import RATES, Rates
from inferometer.metrics.statistics import Interval

BATCHES_MOST, BATCHES_LEAST = 20, 5
"""Parts of the steady span whose rates give a throughput's interval: more would be correlated, fewer say too little."""

BATCH_REQUESTS = 5.0
"""A part is at least this many long requests (P90) long. A request across an edge gives tokens to both neighbours and so
correlates them; with parts of one request's length the 95 % intervals of overlapping streams hold the true rate in 87 %."""

Arrivals = tuple[Ints, Floats]
"""Instants in ns on the run's clock, and what arrived at each."""


def output_tok_s(samples: Samples) -> Arrivals:
    """Output tokens, where they arrived."""
    return samples.arrival_ns, samples.arrival_tokens


def input_tok_s(samples: Samples) -> Arrivals:
    """Prompt tokens, where the first token of their request arrived."""
    return samples.first_text_ns, samples.counts.input


def request_s(samples: Samples) -> Arrivals:
    """Requests, where they ended."""
    return samples.record.t_end[samples.rows], np.ones(len(samples))


def goodput_request_s(samples: Samples) -> Arrivals | None:
    """Requests that met every objective a request can meet by itself, where they ended; None without such an objective."""
    good = meets_objectives(samples)
    return None if good is None else (samples.record.t_end[samples.rows], good.astype(np.float64))


ARRIVALS: dict[str, Callable[[Samples], Arrivals | None]] = {
    one.__name__: one for one in (output_tok_s, input_tok_s, request_s, goodput_request_s)
}
"""By the name of the rate; the same names as RATES. None: the run has no such rate."""


def rates(samples: Samples, spans: Spans) -> tuple[Rates[float], Rates[float], Rates[Interval]]:
    """The rates over the steady span and over the whole run, and the intervals (95 %) of the former; None without a span."""
    steady: dict[str, float | None] = dict.fromkeys(RATES)
    whole: dict[str, float | None] = dict.fromkeys(RATES)
    intervals: dict[str, Interval | None] = dict.fromkeys(RATES)
    long_s = percentile(np.sort(samples.e2e), 0.9) / 1_000 if len(samples) else 0.0
    for name in RATES:
        arrivals = ARRIVALS[name](samples)
        if arrivals is None:
            continue
        at, weights = arrivals
        if spans.run is not None and spans.run.seconds > 0:
            whole[name] = float(weights.sum()) / spans.run.seconds
        if spans.steady is not None:
            steady[name] = float(weights[within(at, spans.steady)].sum()) / spans.steady.seconds
            intervals[name] = rate_interval(at, weights, spans.steady, long_s)
    return Rates(**steady), Rates(**whole), Rates(**intervals)


def rate_interval(at: Ints, weights: Floats, span: Span, long_s: float) -> Interval | None:
    """95 % interval of a rate by batch means: the span in B equal parts, then Student's t over their B rates.

    Parts of BATCH_REQUESTS long requests (`long_s`, the P90 of their length) are nearly independent; None where fewer than
    BATCHES_LEAST of them fit.
    """
    shortest_s = BATCH_REQUESTS * long_s
    batches = BATCHES_MOST if shortest_s <= 0 else min(BATCHES_MOST, int(span.seconds / shortest_s))
    if batches < BATCHES_LEAST:
        return None
    inside = within(at, span)
    edges = np.linspace(span.start, span.end, batches + 1)
    rates = np.histogram(at[inside], bins=edges, weights=weights[inside])[0] / (span.seconds / batches)
    return mean_interval(batches, float(rates.mean()), float(rates.std(ddof=1)))
