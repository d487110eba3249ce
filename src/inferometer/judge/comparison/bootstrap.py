"""The bootstrap of pooled samples, clustered by run and by request.

One replicate of a side: its R runs drawn R times with replacement, and of each run drawn, each request taken as often as a
Poisson number of mean 1 says (the Poisson bootstrap: the same as drawing requests with replacement, but request by request,
so that the work goes in blocks). A request brings all it has: its TTFT, its gaps, whether it succeeded. A rate has no
requests behind it, and is the mean of the runs drawn. Of a run of more than `UNITS` requests, neighbours are drawn together, in
so many units: they say as much, and more where neighbours resemble each other, at the cost of a run of `UNITS`.

So that a replicate costs one product of matrices, samples are counted in the cells between the `EDGES` quantiles of each side,
which lie closest about the percentiles that are asked for; inside a cell a percentile is interpolated. Means are exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inferometer.measure.large_arrays import held, joined, ordered
from inferometer.measure.record import Floats, Ints
from inferometer.measure.stats import CONFIDENCE, quantiles
from inferometer.metrics.statistics import Interval

REPLICATES = 1_000
UNITS = 1 << 14
"""Most units of a run that are drawn: the width of an interval is then known to 1 %, better than by the replicates."""
BLOCK, BLOCK_REQUESTS = 4_096, 1 << 16
"""Units, and requests in them, that are in memory at a time."""

EDGES = np.unique(
    np.concatenate(
        [np.linspace(0, 1, 41), *(np.linspace(p - 0.04, p + 0.04, 33) for p in (0.5, 0.95)), np.linspace(0.97, 1, 61)]
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pooled:
    """Samples of one run, request by request: request i gave `values[offsets[i]:offsets[i + 1]]`. No NaN."""

    values: Floats
    offsets: Ints

    @classmethod
    def one_each(cls, values: Floats) -> Pooled:
        """At most one value a request; NaN is none."""
        known = ~np.isnan(values)
        return cls(held(values[known]), held(np.concatenate(([0], np.cumsum(known)))))


@dataclass(frozen=True, slots=True)
class Sampled:
    """What one run gives to resample: `requests` of them, their samples by name, and rates by name."""

    requests: int
    pooled: Mapping[str, Pooled]
    rates: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Statistic:
    """What to follow: the `p`-quantile or, without one, the mean of the samples `of`, or the rate `of`."""

    of: str
    p: float | None = None


def relative_intervals(
    baseline: Sequence[Sampled],
    other: Sequence[Sampled],
    wanted: Mapping[str, Statistic],
    seed: int,
    replicates: int = REPLICATES,
) -> dict[str, Interval | None]:
    """95 % intervals of (other - baseline) / baseline, by name of what is wanted; None where there is nothing to resample."""
    names = {one.of for one in wanted.values()}
    grids = {
        name: np.unique([_edges(side, name) for side in (baseline, other)])
        for name in sorted(names)
        if all(name in run.pooled and len(run.pooled[name].values) for run in (*baseline, *other))
    }
    rng = np.random.default_rng(seed)
    drawn = [_replicates(side, grids, wanted, rng, replicates) for side in (baseline, other)]
    return {name: _interval(drawn[0][name], drawn[1][name]) for name in wanted}


def _edges(runs: Sequence[Sampled], name: str) -> Floats:
    values = runs[0].pooled[name].values
    for run in runs[1:]:
        values = joined(values, run.pooled[name].values)
    return quantiles(ordered(values), EDGES)


def _interval(baseline: Floats | None, other: Floats | None) -> Interval | None:
    if baseline is None or other is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = (other - baseline) / np.abs(baseline)
    relative = relative[np.isfinite(relative)]
    if not len(relative):
        return None
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(relative, (tail, 1 - tail))
    return float(low), float(high)


def _replicates(
    runs: Sequence[Sampled],
    grids: Mapping[str, Floats],
    wanted: Mapping[str, Statistic],
    rng: np.random.Generator,
    times: int,
) -> dict[str, Floats | None]:
    """Each wanted statistic in each replicate of a side."""
    drawn = rng.multinomial(len(runs), np.full(len(runs), 1 / len(runs)), size=times)
    widths = [len(grid) + 1 for grid in grids.values()]
    sums = np.zeros((times, sum(widths)))
    for run, often in zip(runs, drawn.T, strict=True):
        for edges in _blocks(run.requests if grids else 0):
            weights = rng.poisson(often[:, None], (times, len(edges) - 1)).astype(np.float64)
            cells = [_cells(run.pooled[name], grid, edges) for name, grid in grids.items()]
            sums += weights @ np.hstack(cells)
    parts = dict(zip(grids, np.split(sums, np.cumsum(widths)[:-1], axis=1), strict=True)) if grids else {}
    found: dict[str, Floats | None] = {}
    for name, one in wanted.items():
        if one.of in parts:
            found[name] = _statistic(parts[one.of], grids[one.of], one.p)
        elif all(one.of in run.rates for run in runs):
            found[name] = drawn @ np.array([run.rates[one.of] for run in runs]) / len(runs)
        else:
            found[name] = None
    return found


def _blocks(requests: int) -> Iterator[Ints]:
    """The units of a run, block by block: unit u of a block is its requests [edges[u], edges[u + 1])."""
    units = min(requests, UNITS)
    edges = np.linspace(0, requests, units + 1).astype(np.int64)
    step = min(BLOCK, max(1, BLOCK_REQUESTS * units // max(requests, 1)))
    for first in range(0, units, step):
        yield edges[first : first + step + 1]


def _cells(samples: Pooled, grid: Floats, edges: Ints) -> Floats:
    """Of each unit: how many of its samples lie in each cell (up to and with its edge), and their sum."""
    ends = samples.offsets[edges]
    values = samples.values[ends[0] : ends[-1]]
    units, width = len(edges) - 1, len(grid) + 1
    owner = np.repeat(np.arange(units), np.diff(ends))
    cell = np.minimum(np.searchsorted(grid, values), len(grid) - 1)
    counts = np.bincount(owner * width + cell, minlength=units * width).astype(np.float64)
    table: Floats = counts.reshape(units, width)
    table[:, -1] = np.bincount(owner, weights=values, minlength=units)
    return table


def _statistic(sums: Floats, edges: Floats, p: float | None) -> Floats:
    """The mean, or the quantile interpolated inside its cell, of each replicate; NaN where it drew nothing."""
    counts = sums[:, :-1]
    total = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        if p is None:
            mean: Floats = sums[:, -1] / total
            return mean
        below = np.cumsum(counts, axis=1)
        target = p * total
        at = np.minimum((below < target[:, None]).sum(axis=1), len(edges) - 1)
        rows = np.arange(len(at))
        before = np.where(at > 0, below[rows, at - 1], 0.0)
        inside = np.clip((target - before) / counts[rows, at], 0.0, 1.0)
    lower = edges[np.maximum(at - 1, 0)]
    quantile: Floats = np.where(total > 0, lower + (edges[at] - lower) * inside, np.nan)
    return quantile
