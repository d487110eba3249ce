"""Throughput and goodput: rates over a span. Each counts arrivals, an instant with a weight; one function for each rate of
metrics/catalogue.py.

Over the steady span what arrived within it counts, whichever side of the span its request began, and of the requests of the
lead-in too. Over the whole run,
rates are the article's: totals over the time from the first send to the last end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from inferometer.measure.large_arrays import joined, pieces, slices
from inferometer.measure.load import Span, Spans, within
from inferometer.measure.record import Floats, Ints, Mask
from inferometer.measure.samples import Samples, values_of
from inferometer.measure.stats import mean_interval, percentile
from inferometer.metrics.catalogue import RATES, Rates
from inferometer.metrics.statistics import QUANTILES, Interval
from inferometer.plan.slo import Slo

BATCHES_MOST, BATCHES_LEAST = 20, 5
"""Parts of the steady span whose rates give a throughput's interval: more would be correlated, fewer say too little."""

BATCH_REQUESTS = 5.0
"""A part is at least this many long requests (P90) long. A request across an edge gives tokens to both neighbours and so
correlates them; with parts of one request's length the 95 % intervals of overlapping streams hold the true rate in 87 %."""

BATCH_STATES = 2.0
"""A part holds at least this many independent states of the load, so that neighbours are nearly independent."""

Arrivals = tuple[Ints, Floats]
"""Instants in ns on the run's clock, and what arrived at each."""


def output_tok_s(samples: Samples) -> Arrivals | None:
    """Output tokens, where they arrived; None where some answer was not counted."""
    return (samples.arrival_ns, samples.arrival_tokens) if samples.counts.answers_known else None


def input_tok_s(samples: Samples) -> Arrivals | None:
    """Prompt tokens, where the first token of their request arrived; None where some prompt was not counted."""
    return (samples.first_text_ns, samples.counts.input) if samples.counts.prompts_known else None


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


def of_load(samples: Samples, arrivals: Callable[[Samples], Arrivals | None]) -> Arrivals:
    """The arrivals of the samples, and of the requests around them; empty for a rate that the run does not have."""
    parts = [found for one in (samples, samples.around) if one is not None and (found := arrivals(one))]
    at, weights = parts[0] if parts else (np.zeros(0, np.int64), np.zeros(0))
    for more in parts[1:]:
        at, weights = joined(at, more[0]), joined(weights, more[1])
    return at, weights


def arrived(arrivals: Arrivals, span: Span) -> float:
    """What arrived within the span."""
    at, weights = arrivals
    parts = (weights[part][within(at[part], span)] for part in slices(len(at)))
    return sum((float(part.sum()) for part in parts), 0.0)


def rates(samples: Samples, spans: Spans) -> tuple[Rates[float], Rates[float], Rates[Interval]]:
    """The rates over the steady span and over the whole run, and the intervals (95 %) of the former; None without a span."""
    steady: dict[str, float | None] = dict.fromkeys(RATES)
    whole: dict[str, float | None] = dict.fromkeys(RATES)
    intervals: dict[str, Interval | None] = dict.fromkeys(RATES)
    long_s = percentile(np.sort(samples.e2e), 0.9) / 1_000 if len(samples) else 0.0
    for name in RATES:
        arrivals = ARRIVALS[name](samples)
        if arrivals is None or (samples.around is not None and ARRIVALS[name](samples.around) is None):
            continue
        if spans.run is not None and spans.run.seconds > 0:
            whole[name] = float(arrivals[1].sum()) / spans.run.seconds
        if spans.steady is not None:
            at, weights = of_load(samples, ARRIVALS[name])
            steady[name] = arrived((at, weights), spans.steady) / spans.steady.seconds
            intervals[name] = rate_interval(at, weights, spans.steady, long_s, samples.states.count)
    return Rates(**steady), Rates(**whole), Rates(**intervals)


def rate_interval(
    at: Ints, weights: Floats, span: Span, long_s: float, states: float = math.inf
) -> Interval | None:
    """95 % interval of a rate by batch means: the span in B equal parts, then Student's t over their B rates.

    Parts of BATCH_REQUESTS long requests (`long_s`, the P90 of their length) are nearly independent; None where fewer than
    BATCHES_LEAST of them fit, or fewer than that many parts of BATCH_STATES correlation times of the load (`states`).
    """
    shortest_s = BATCH_REQUESTS * long_s
    fit = span.seconds / shortest_s if shortest_s > 0 else BATCHES_MOST
    batches = int(min(BATCHES_MOST, fit, states / BATCH_STATES))
    if batches < BATCHES_LEAST:
        return None
    edges, sums = np.linspace(span.start, span.end, batches + 1), np.zeros(batches)
    for part in slices(len(at)):
        inside = within(at[part], span)
        place = np.minimum(np.searchsorted(edges, at[part][inside], "right"), batches) - 1
        sums += np.bincount(place, weights[part][inside], batches)
    rates = sums / (span.seconds / batches)
    return mean_interval(batches, float(rates.mean()), float(rates.std(ddof=1)))


# Goodput: requests that meet each of the plan's latency objectives by themselves.
#
# An objective is about a statistic of many requests (`ttft_p99<500ms`); one request is held to its limit alone. Where a plan
# has several limits on one metric (`ttft_p50<100ms`, `ttft_p99<500ms`), a request may be as slow as the loosest of them allows,
# as in the goodput of other tools, which know one limit a metric.
#
# | metric            | of one request                                                                              |
# | ----------------- | ------------------------------------------------------------------------------------------- |
# | `itl`             | the objective's own statistic (mean, percentile, largest) over the request's gaps           |
# | any other         | its value                                                                                   |
#
# A request with too few tokens for a pace (TPOT, ITL, time to second token) has no pace that could be too slow, and meets it.
# A request without the text that another metric waits for does not meet it. Failed requests are no samples: never good.


GAPS = {"itl": "direct", "chunk_gap": "chunk"}
"""Metrics that are the gaps of a run, by what the gaps have to be for it."""
PACES = frozenset({"tpot", "second_token", *GAPS})
"""Metrics that an answer of one token or one event does not have."""


def meets_objectives(samples: Samples) -> Mask | None:
    """For each sample, whether it meets all latency objectives; None where the plan has none that the run can show,
    or one on gaps of a kind that the run does not have."""
    good: Mask | None = None
    for slo in loosest(samples.objectives):
        gaps = GAPS.get(slo.metric)
        if samples.streamed and gaps not in (
            None,
            samples.itl_method,
        ):  # not measured: who meets it is not known
            return None
        values = _gap_statistic(samples, slo.stat) if gaps else values_of(samples, f"{slo.metric}_ms")
        undefined = np.isnan(values)
        if undefined.all() and not samples.streamed:  # no request can show it
            continue
        below = np.less if slo.op == "<" else np.less_equal
        met = below(values, slo.limit) | (undefined & (slo.metric in PACES))
        good = met if good is None else good & met
    return good


def loosest(slos: Iterable[Slo]) -> list[Slo]:
    """Of the latency objectives, the one with the highest limit of each metric."""
    kept: dict[str, Slo] = {}
    for slo in slos:
        if slo.stat is not None and (slo.metric not in kept or slo.limit > kept[slo.metric].limit):
            kept[slo.metric] = slo
    return list(kept.values())


def _gap_statistic(samples: Samples, statistic: str | None) -> Floats:
    """A statistic over each sample's gaps, ms; NaN without a gap. Quantiles interpolate linearly."""
    found = np.full(len(samples), np.nan)
    for rows, gaps in pieces(samples.gap_offsets):
        offsets = samples.gap_offsets[rows.start : rows.stop + 1] - gaps.start
        if gaps.stop > gaps.start:
            found[rows] = _statistic_of_each(samples.gaps[gaps], offsets, str(statistic))
    return found


def _statistic_of_each(gaps: Floats, offsets: Ints, statistic: str) -> Floats:
    """The same of the gaps `offsets[i]` to `offsets[i + 1]` of each, one at least in all."""
    sizes = np.diff(offsets)
    some, starts = sizes > 0, offsets[:-1]
    found = np.full(len(sizes), np.nan)
    if statistic == "mean":
        found[some] = np.add.reduceat(gaps, starts[some]) / sizes[some]
        return found
    owner = np.repeat(np.arange(len(sizes)), sizes)
    ordered = gaps[np.lexsort((gaps, owner))]
    position = (sizes[some] - 1) * (1.0 if statistic == "max" else QUANTILES[statistic])
    below = np.floor(position).astype(np.int64)
    low = ordered[starts[some] + below]
    high = ordered[starts[some] + np.minimum(below + 1, sizes[some] - 1)]
    found[some] = low + (high - low) * (position - below)
    return found
