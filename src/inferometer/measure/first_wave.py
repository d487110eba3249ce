"""TTFT without the first wave of a closed loop.

A closed loop begins with all its slots at once, and so with a queue. With 100 requests a slot (draft 5.5.3) that wave is one
request in a hundred: just what a P99 is made of. It stays among the samples; here is the P99 without it beside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Record
from inferometer.measure.samples import Samples
from inferometer.measure.stats import percentile, quantile_interval
from inferometer.metrics.statistics import Interval


@dataclass(frozen=True, slots=True)
class WithoutFirstWave:
    """P99 of TTFT in ms over the `n` samples that are left without the first `requests` that were sent."""

    requests: int
    ttft_p99_ms: float | None
    ttft_p99_ci95: Interval | None
    n: int


def without_first_wave(record: Record, samples: Samples, slots: int | None) -> WithoutFirstWave | None:
    """Leave out the `slots` measured requests that were sent first; None in an open loop, whose `slots` are None."""
    if slots is None:
        return None
    sent = np.flatnonzero(record.measured & record.t_submit.valid)
    order = np.lexsort((record.index[sent], record.t_submit.values[sent]))
    wave = np.zeros(len(record), np.bool_)
    wave[sent[order[:slots]]] = True
    left = samples.ttft[~wave[samples.rows]]
    ordered = np.sort(left[~np.isnan(left)])
    return WithoutFirstWave(
        requests=min(slots, len(sent)),
        ttft_p99_ms=percentile(ordered, 0.99) if len(ordered) else None,
        ttft_p99_ci95=quantile_interval(ordered, 0.99),
        n=len(ordered),
    )
