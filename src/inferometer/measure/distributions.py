"""Quantiles for pictures: every percent, and every tenth of one from 99 on, to four digits, so that a summary stays small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure.record import Floats
from inferometer.measure.samples import Samples

PERCENT = (*range(100), *(round(99 + tenth / 10, 1) for tenth in range(1, 10)), 100)
"""0, 1, ..., 99, 99.1, ..., 99.9, 100."""

DIGITS = 4


@dataclass(frozen=True, slots=True)
class Quantiles:
    """`v[i]` is the `q[i]` % quantile, by linear interpolation, in the metric's unit."""

    q: tuple[float, ...]
    v: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Distributions:
    """In ms; None where no sample defines it."""

    ttft_ms: Quantiles | None
    itl_ms: Quantiles | None
    tpot_ms: Quantiles | None
    e2e_ms: Quantiles | None
    chunk_gap_ms: Quantiles | None = None


def distributions(samples: Samples) -> Distributions:
    """Those of the samples; gaps are pooled."""
    each = (samples.ttft, samples.itl, samples.tpot, samples.e2e, samples.chunk_gap)
    return Distributions(*(quantiles(values) for values in each))


def quantiles(values: Floats) -> Quantiles | None:
    """Quantiles of values in any order; NaN entries are none. None when nothing is left."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    found = np.quantile(known, np.array(PERCENT) / 100)
    return Quantiles(PERCENT, tuple(float(f"{one:.{DIGITS}g}") for one in found.tolist()))
