"""TTFT less the network's share, which stands beside TTFT as measured and never in its place (draft 4.7.3).

With d_1 the request's way to the server, s the time there until the first token is sent, and d_2 that token's way back:

    TTFT = d_1 + s + d_2,    d_1 + d_2 >= r    so    s <= TTFT - r

r is the shortest round trip that was seen. Each request spent so much on its way, so what is left is a bound: it still has all
that some spent beyond that, in queues of the network or on further round trips of a long prompt. The median round trip would
take from half the requests what they did not spend. Only the sum of the ways counts here: how they share it, between 0 and r
each, is not known and not needed.

One constant leaves a sample's order as it is, and so moves each mean, quantile and interval by itself; std and n stay. A TTFT
below r shows that r is not its share (a route that became shorter, a proxy that answers by itself): it stays below zero, and is
counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from inferometer.measure.record import Floats
from inferometer.metrics.statistics import QUANTILES, Interval, Stats


@dataclass(frozen=True, slots=True)
class LessRoundTrip:
    """TTFT less `round_trip_ms`, in ms; `below_zero`: how many requests of it are."""

    round_trip_ms: float
    ttft_ms: Stats
    below_zero: int


def less_round_trip(
    ttft_ms: Stats | None, ascending_ms: Floats, round_trip_ms: float | None
) -> LessRoundTrip | None:
    """None where either is not known. `ascending_ms`: the samples that `ttft_ms` is of, shape (n,)."""
    if ttft_ms is None or round_trip_ms is None:
        return None
    below = int(np.searchsorted(ascending_ms, round_trip_ms, side="left"))
    return LessRoundTrip(round_trip_ms, _moved(ttft_ms, round_trip_ms), below)


def _moved(stats: Stats, by: float) -> Stats:
    ci = stats.ci95
    mean, p50, p90, p95, p99 = (_less(one, by) for one in (ci.mean, ci.p50, ci.p90, ci.p95, ci.p99))
    values = {name: getattr(stats, name) - by for name in ("mean", "min", "max", *QUANTILES)}
    return replace(stats, **values, ci95=replace(ci, mean=mean, p50=p50, p90=p90, p95=p95, p99=p99))


def _less(interval: Interval | None, by: float) -> Interval | None:
    return None if interval is None else (interval[0] - by, interval[1] - by)
