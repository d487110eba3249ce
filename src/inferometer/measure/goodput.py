"""Which requests were served well: those that meet each of the plan's latency objectives by themselves.

An objective is about a statistic of many requests (`ttft_p99<500ms`); one request is held to its limit alone. Where a plan has
several limits on one metric (`ttft_p50<100ms`, `ttft_p99<500ms`), a request may be as slow as the loosest of them allows, as in
the goodput of other tools, which know one limit a metric.

| metric            | of one request                                                                              |
| ----------------- | ------------------------------------------------------------------------------------------- |
| `itl`             | the objective's own statistic (mean, percentile, largest) over the request's gaps           |
| any other         | its value                                                                                   |

A request with too few tokens for a pace (TPOT, ITL, time to second token) has no pace that could be too slow, and meets it. A
request without the text that another metric waits for does not meet it. Failed requests are no samples: they are never good.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from inferometer.measure.record import Floats, Mask
from inferometer.measure.samples import Samples, values_of
from inferometer.metrics.statistics import QUANTILES
from inferometer.plan.slo import Slo

PACES = frozenset({"tpot", "itl", "second_token"})
"""Metrics that an answer of one token or one event does not have."""


def meets_objectives(samples: Samples) -> Mask | None:
    """For each sample, whether it meets all latency objectives; None where the plan has none that the run can show."""
    good: Mask | None = None
    for slo in loosest(samples.objectives):
        values = (
            _gap_statistic(samples, slo.stat)
            if slo.metric == "itl"
            else values_of(samples, f"{slo.metric}_ms")
        )
        undefined = np.isnan(values)
        if undefined.all() and len(samples):  # not streamed: no request can show it
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
    sizes = np.diff(samples.gap_offsets)
    some, starts = sizes > 0, samples.gap_offsets[:-1]
    found = np.full(len(samples), np.nan)
    if statistic == "mean":
        found[some] = np.add.reduceat(samples.itl, starts[some]) / sizes[some] if some.any() else 0.0
        return found
    owner = np.repeat(np.arange(len(samples)), sizes)
    ordered = samples.itl[np.lexsort((samples.itl, owner))]
    position = (sizes[some] - 1) * (1.0 if statistic == "max" else QUANTILES[str(statistic)])
    below = np.floor(position).astype(np.int64)
    low = ordered[starts[some] + below]
    high = ordered[starts[some] + np.minimum(below + 1, sizes[some] - 1)]
    found[some] = low + (high - low) * (position - below)
    return found
