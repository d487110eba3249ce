"""Whether the load was steady: what came in and went out over the last 90 % of it (draft 5.2.3.1, 5.2.3.2).

| figure           | over the steady span (measure/load.py), thirds of equal length                                   |
| ---------------- | ------------------------------------------------------------------------------------------------ |
| completion ratio | requests that ended successfully in it / requests sent a median request's length before it; a    |
|                  | closed loop has none                                                                             |
| queue            | the server's requests waiting, where it was scraped in each third; else requests in flight: sent |
|                  | and not ended. Means over time; between two scrapes the number goes straight                     |
| growing          | each third's mean is above the one before, and the last above the first by more than GROWN of it |
|                  | and by at least GROWN_REQUESTS. None in a closed loop, where the client holds the number         |
| stable           | each third's output tokens per second are within STABLE of their mean                            |

A queue that does not grow may seem to where a run is short. In 300 simulated runs each of 20 arrivals a second and 8 to
100 requests in flight, 9 to 23 % of those of 60 s seemed to grow and up to 1 % of those of 600 s; just under saturation
(8 servers at 95 %) 26 and 18 %. Just over it (110 %) 91 and 100 % did.

A request ends a while after it was sent, so completions are held against the arrivals that they come of: those of a span that
is earlier by the median length of a request. Where the load had not begun by then, the part of the span is left out in which
that is so, at most half of it. Without that, a light load of long answers would look as if it fell behind.

The ratio's interval: the span in B parts with a_i arrivals and c_i completions, R = sum c / sum a,
se = sqrt(B / (B - 1) sum (c_i - R a_i)^2) / sum a, and R +- t(0.975, B - 1) se. Arrivals and completions are not independent: a
request that arrives in one part ends in it or in one of the next, so parts are PART_REQUESTS median requests long, as far as
PARTS_LEAST of them allow. In simulated queues (8, 64 and unlimited servers; exponential, log-normal and constant service; 20
arrivals a second for 15, 60 and 600 s; 300 draws each) it held the truth in 92 to 97 % where the queue grew, and in 99 to 100 %
where it did not, but for 89 % where the span was as short as three requests: there the first of them have not yet ended.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from inferometer.measure.load import Span, Sweep, thirds, within
from inferometer.measure.record import Floats, Ints, Record
from inferometer.measure.samples import Samples
from inferometer.measure.server import track
from inferometer.measure.stats import Interval, mean_interval
from inferometer.telemetry.metrics.translated import Track, Translated
from inferometer.units import NS_PER_S

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
    growing: bool | None


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady span, as above. `arrivals` were sent in it, `completions` ended in it."""

    duration_s: float
    arrivals: int
    completions: int
    completion_ratio: float | None
    completion_ratio_ci95: Interval | None
    queue: Queue | None
    output_thirds_tok_s: tuple[float, ...]
    stable: bool | None


def steady(
    record: Record,
    samples: Samples,
    sweep: Sweep,
    span: Span | None,
    told: Sequence[Translated] = (),
    *,
    closed: bool,
) -> Steady | None:
    """How steady the steady `span` was; None where there is none. `told`: what endpoints said; `closed`: a closed loop."""
    if span is None or span.end <= span.start:
        return None
    ends = record.t_end[samples.rows]
    arrivals, completions = (int(within(at, span).sum()) for at in (sweep.sends, ends))
    parts = thirds(span)
    tokens = tuple(
        float(samples.arrival_tokens[within(samples.arrival_ns, part)].sum()) / part.seconds for part in parts
    )
    mean = sum(tokens) / len(tokens)
    typical_s = float(np.median(samples.e2e)) / 1_000 if len(samples) else 0.0
    due, part = _due(sweep.sends, span, typical_s)
    expected, ended = int(within(due, part).sum()), int(within(ends, part).sum())
    return Steady(
        duration_s=span.seconds,
        arrivals=arrivals,
        completions=completions,
        completion_ratio=ended / expected if expected and not closed else None,
        completion_ratio_ci95=None if closed else ratio_interval(due, ends, part, typical_s),
        queue=_queue(sweep, span, track(told, "waiting"), closed=closed),
        output_thirds_tok_s=tokens,
        stable=all(abs(one - mean) <= STABLE * mean for one in tokens) if mean > 0 else None,
    )


def _due(sends: Ints, span: Span, typical_s: float) -> tuple[Ints, Span]:
    """When the requests sent at these instants would end if all were of the median length, and the part of the span from the
    first of them on. All ns."""
    begun = int(sends.min()) if len(sends) else span.start
    later = min(round(typical_s * NS_PER_S), (span.end - begun) // 2)
    return sends + later, Span(max(span.start, begun + later), span.end)


def ratio_interval(arrivals: Ints, completions: Ints, span: Span, typical_s: float) -> Interval | None:
    """95 % interval of completions per arrival in the span, both ns; `typical_s`: the median request's length. None for fewer
    than PART_ARRIVALS arrivals in each of PARTS_LEAST parts."""
    a, c = arrivals[within(arrivals, span)], completions[within(completions, span)]
    if len(a) < PARTS_LEAST * PART_ARRIVALS:
        return None
    long_enough = span.seconds / (PART_REQUESTS * typical_s) if typical_s > 0 else PARTS_MOST
    count = max(PARTS_LEAST, int(min(PARTS_MOST, long_enough, len(a) / PART_ARRIVALS)))
    edges = np.linspace(span.start, span.end, count + 1)
    came, went = (np.histogram(at, bins=edges)[0].astype(np.float64) for at in (a, c))
    ratio = len(c) / len(a)
    left = went - ratio * came
    spread = math.sqrt(float(left @ left) / (count - 1)) * count / len(a)
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
    growing = all(a < b for a, b in pairwise(means)) and rise > GROWN * means[0] and rise >= GROWN_REQUESTS
    return Queue(
        source=source,
        thirds=tuple(means),
        rise_share=rise / means[0] if means[0] > 0 else None,
        growing=None if closed else growing,
    )


def _mean(found: Track, span: Span) -> float:
    """Mean over time of what was scraped, straight from one scrape to the next, and level beyond the first and the last."""
    inside = within(found.times, span)
    times = np.concatenate(([span.start], found.times[inside], [span.end]))
    seconds: Floats = (times - span.start) / NS_PER_S
    values = np.interp(seconds, (found.times - span.start) / NS_PER_S, found.values)
    return float(np.diff(seconds) @ (values[1:] + values[:-1])) / 2 / span.seconds
