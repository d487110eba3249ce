"""Whether the load was steady: what came in and went out over the last 90 % of it (draft 5.2.3.1, 5.2.3.2).

| figure           | over the steady span (measure/load.py), thirds of equal length                                   |
| ---------------- | ------------------------------------------------------------------------------------------------ |
| completion ratio | requests that ended successfully in it / those that were due to end in it, as below; a closed    |
|                  | loop has none                                                                                    |
| queue            | the server's requests waiting, where it was scraped in each third; else requests in flight: sent |
|                  | and not ended. Means over time; between two scrapes the number goes straight                     |
| rising           | each third's mean is above the one before, and the last above the first by more than GROWN of it |
|                  | and by at least GROWN_REQUESTS. None in a closed loop, where the client holds the number         |
| stable           | each third's output tokens per second are within STABLE of their mean                            |

Rising is what the thirds do, by chance too: the first sign of draft 5.2.3.1. Whether a queue grew is decided by the check
`stationary` (judge/steadiness.py) and, of a level of a search, by procedures/sustained.py, each with what chance allows. In 300
simulated runs each of 20 arrivals a second and 8 to
100 requests in flight, 9 to 23 % of those of 60 s were rising and up to 1 % of those of 600 s; just under saturation
(8 servers at 95 %) 26 and 18 %. Just over it (110 %) 91 and 100 % did.

A request ends a while after it was sent, so completions are held against the arrivals that they come of: due in [x, y] are
E(y) - E(x) of due.py. Where nothing waits, what ends is due; where a queue grows, the requests in it are due and do not end.
Dividing by the arrivals in the span would call a light load of long answers one that falls behind, and so would shifting them
by the median where a few answers are long: with answers of 15 s on average (log-normal, sigma 1.2), a load of 50 % and a run of
60 s that gives 0.85, this 1.00. An overload of 200 % is told as 0.53 to 0.69 in place of 0.5, for the first third has waited
too; at 120 % it is 0.83 to 0.87 in place of 0.83 in runs of 20 requests' lengths, and up to 0.97 in those of 4, where there is
not yet much of a queue.

The ratio's interval: the span in B parts with a_i requests due and c_i completions, R = sum c / sum a,
se = sqrt(B / (B - 1) sum (c_i - R a_i)^2) / sum a, and R +- t(0.975, B - 1) se. What is due and what ends are not independent,
so parts are PART_REQUESTS median requests, or sessions, long, as far as PARTS_LEAST of them allow. In
simulated queues (8, 64 and unlimited servers at 50 to 130 %; exponential, log-normal and constant service; 20 arrivals a second
for 15, 60 and 600 s; 150 draws each, 40 of the longest) it held the truth in 88 to 100 %, but where a span was as short as
three requests and the load 130 %: there in 57 to 76 %, most of the first requests being under way yet.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from inferometer.measure.due import Due, due_of_requests, due_of_sessions
from inferometer.measure.load import Span, Sweep, thirds, within
from inferometer.measure.record import Floats, Ints, Record
from inferometer.measure.samples import Samples
from inferometer.measure.server import track
from inferometer.measure.stats import mean_interval
from inferometer.measure.throughput import arrived, of_load, output_tok_s, request_s
from inferometer.metrics.statistics import Interval
from inferometer.telemetry.metrics.normalised import Track, Translated
from inferometer.units import NS_PER_MS, NS_PER_S

GROWN, GROWN_REQUESTS = 0.1, 2.0
STABLE = 0.1
PARTS_LEAST, PARTS_MOST = 5, 20
PART_REQUESTS, PART_ARRIVALS = 5.0, 5


@dataclass(frozen=True, slots=True)
class Queue:
    """Mean requests waiting (`server`) or in flight in each third, and by what part of the first the last is above it."""

    source: Literal["server", "in_flight"]
    thirds: tuple[float, ...]
    rise_share: float | None
    rising: bool | None


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady span, as above. `arrivals` were sent in it, `completions` ended in it. `request_thirds_s`: completions a
    second in each third; a record of earlier versions does not hold them."""

    duration_s: float
    arrivals: int
    completions: int
    completion_ratio: float | None
    completion_ratio_ci95: Interval | None
    queue: Queue | None
    output_thirds_tok_s: tuple[float, ...]
    stable: bool | None
    request_thirds_s: tuple[float, ...] = ()


def steady(
    record: Record,
    samples: Samples,
    sweep: Sweep,
    span: Span | None,
    scraped: Sequence[Translated] = (),
    *,
    closed: bool,
) -> Steady | None:
    """How steady the steady `span` was; None where there is none. `scraped`: what endpoints said; `closed`: a closed loop."""
    if span is None or span.end <= span.start:
        return None
    ends = of_load(samples, request_s)[0]
    arrivals, completions = (int(within(at, span).sum()) for at in (sweep.sends, ends))
    parts = thirds(span)
    ended = tuple(float(within(ends, part).sum()) / part.seconds for part in parts)
    came = of_load(samples, output_tok_s)
    counted = all(one.counts.answers_known for one in (samples, samples.around) if one is not None)
    tokens = tuple(arrived(came, part) / part.seconds for part in parts if counted)
    mean = math.fsum(tokens) / len(parts)
    due = None if closed else _due(record, samples, sweep)
    expected = 0.0 if due is None else _within(due, span)
    return Steady(
        duration_s=span.seconds,
        arrivals=arrivals,
        completions=completions,
        completion_ratio=completions / expected if expected >= 1 else None,
        completion_ratio_ci95=None if due is None else ratio_interval(due, ends, span),
        queue=_queue(sweep, span, track(scraped, "waiting"), closed=closed),
        output_thirds_tok_s=tokens,
        stable=all(abs(one - mean) <= STABLE * mean for one in tokens) if mean > 0 else None,
        request_thirds_s=ended,
    )


def _due(record: Record, samples: Samples, sweep: Sweep) -> Due:
    """What was due to end when, by the first third of the requests."""
    first = np.where(np.isnan(samples.ttft), samples.stream_end, samples.ttft)
    sent = record.t_submit.values[samples.rows]
    early = sent <= sweep.sends[0] + (sweep.sends[-1] - sweep.sends[0]) // 3
    usual = float(np.median(first[early])) if early.any() else np.inf
    waits = np.maximum(first - usual, 0.0)
    rows = np.flatnonzero(record.measured & record.session.valid & record.t_submit.valid)
    if not len(rows):
        lengths = np.rint((samples.stream_end - waits) * NS_PER_MS).astype(np.int64)
        return due_of_requests(sweep.sends, lengths)
    wait_ns = np.zeros(len(record), np.int64)
    wait_ns[samples.rows] = np.rint(waits * NS_PER_MS)
    return due_of_sessions(record, rows, wait_ns[rows], int(sweep.sends[-1]))


def _within(due: Due, span: Span) -> float:
    return float(np.diff(due.until(np.array([span.start, span.end])))[0])


def ratio_interval(due: Due, completions: Ints, span: Span) -> Interval | None:
    """95 % interval of completions (instants, ns) per request due in the span. None for fewer than PART_ARRIVALS due in each of
    PARTS_LEAST parts."""
    total = _within(due, span)
    arrivals = total / due.each if total else 0.0
    if arrivals < PARTS_LEAST * PART_ARRIVALS:
        return None
    long_enough = (span.end - span.start) / (PART_REQUESTS * due.typical) if due.typical > 0 else PARTS_MOST
    count = max(PARTS_LEAST, int(min(PARTS_MOST, long_enough, arrivals / PART_ARRIVALS)))
    edges = np.linspace(span.start, span.end, count + 1).astype(np.int64)
    came = np.diff(due.until(edges))
    went = np.histogram(completions[within(completions, span)], bins=edges)[0].astype(np.float64)
    ratio = float(went.sum()) / total
    left = went - ratio * came
    spread = math.sqrt(float(left @ left) / (count - 1)) * count / total
    return mean_interval(count, ratio, spread)


def _queue(sweep: Sweep, span: Span, waiting: Track | None, *, closed: bool) -> Queue | None:
    parts = thirds(span)
    if waiting is not None and all(within(waiting.times, part).any() for part in parts):
        source: Literal["server", "in_flight"] = "server"
        means = [_mean(waiting, part) for part in parts]
    else:
        source = "in_flight"
        means = [mean for part in parts if (mean := sweep.mean(part)) is not None]
        if len(means) < len(parts):
            return None
    rise = means[-1] - means[0]
    rising = all(a < b for a, b in pairwise(means)) and rise > GROWN * means[0] and rise >= GROWN_REQUESTS
    return Queue(
        source=source,
        thirds=tuple(means),
        rise_share=rise / means[0] if means[0] > 0 else None,
        rising=None if closed else rising,
    )


def _mean(series: Track, span: Span) -> float:
    """Mean over time of what was scraped, straight from one scrape to the next, and level beyond the first and the last."""
    inside = within(series.times, span)
    times = np.concatenate(([span.start], series.times[inside], [span.end]))
    seconds: Floats = (times - span.start) / NS_PER_S
    values = np.interp(seconds, (series.times - span.start) / NS_PER_S, series.values)
    return float(np.diff(seconds) @ (values[1:] + values[:-1])) / 2 / span.seconds
