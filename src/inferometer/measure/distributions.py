"""Quantiles for pictures: every percent, and every tenth of one from 99 on, to four digits, so that a summary stays small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inferometer.measure import stats
from inferometer.measure.large_arrays import ordered
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
    gaps = _of_ordered(samples.ordered_gaps)
    direct = samples.itl_method == "direct"
    return Distributions(
        ttft_ms=_of_ordered(samples.ordered_ttft),
        itl_ms=gaps if direct else None,
        tpot_ms=_of_ordered(samples.ordered_tpot),
        e2e_ms=_of_ordered(samples.ordered_e2e),
        chunk_gap_ms=None if direct else gaps,
    )


def quantiles(values: Floats) -> Quantiles | None:
    """Quantiles of values in any order; NaN entries are none. None when nothing is left."""
    return _of_ordered(ordered(values))


def _of_ordered(values: Floats) -> Quantiles | None:
    """The same of values in ascending order, without NaN."""
    if not len(values):
        return None
    found = stats.quantiles(values, np.array(PERCENT) / 100)
    return Quantiles(PERCENT, tuple(float(f"{one:.{DIGITS}g}") for one in found.tolist()))
