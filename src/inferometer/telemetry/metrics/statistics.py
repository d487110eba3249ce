"""From a series and a period to its entry in the export: statistics, bucket differences, timeslices.

A period runs from start to end, both included; the reference is the last sample before it, and without one the
first sample in it. A counter or histogram that is first there in the period, at an endpoint that was scraped before without it,
was 0 at those scrapes (`counted_from_zero`): a client library makes a series with labels at its first use.
With t, x the samples from the reference on, and D = (t_last - t_reference) in s:

| kind              | statistics                                                                                      |
| ----------------- | ----------------------------------------------------------------------------------------------- |
| gauge, unknown    | mean, min, max, std (ddof 1; 0 of one sample) and percentiles (linear) of the samples in the period |
| counter           | total = max(0, x_last - x_reference); rate = total / D, 0 where D = 0; rate_* below                |
| histogram         | count and sum like total; avg = sum / count; their rates by D; percentiles estimated               |

rate_avg, rate_min, rate_max and rate_std (ddof 1) are of the rates of the complete timeslices. Without timeslices, or without a
complete one, they are of the rates between scrapes, rate_avg weighted by their lengths. A period that would have many more
slices than scrapes (`too_many`) has none.

A value below the one before means that the server began anew: `reset_detected` is true then, and a histogram has neither
buckets nor estimates. Fields that do not apply are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from msgspec import UNSET, UnsetType

from inferometer.telemetry.metrics.entries import (
    CounterSlice,
    CounterStats,
    GaugeSlice,
    GaugeStats,
    HistogramSlice,
    HistogramStats,
    Labels,
    SeriesEntry,
)
from inferometer.telemetry.metrics.exposition import COUNTER, HISTOGRAM
from inferometer.telemetry.metrics.histogram_delta import PERCENTILES, Floats, Observed, with_overflow
from inferometer.telemetry.metrics.series import Ints, Series

FEW_SLICES = 100
SLICES_PER_SCRAPE = 10
"""The slices of a period are FEW_SLICES and this many for each scrape at most; usual are several scrapes a slice."""

Estimator = Callable[[Observed], Floats | None]


@dataclass(frozen=True, slots=True)
class Slices:
    """How a period is cut. Times in ns.

    `step` is the length of a slice, 0 for none. `updates`, where they are given, are the times at which the endpoint had
    anything new: then every interval between two of them is a slice, since the endpoint is slower than `step`.
    """

    step: int
    updates: Ints | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """Slices from `starts` to `ends`, ns; those that were cut short are not `complete`."""

    starts: Ints
    ends: Ints
    complete: npt.NDArray[np.bool_]

    def slices(self) -> Iterator[tuple[int, int, bool]]:
        """Start, end and completeness of each."""
        return zip(self.starts.tolist(), self.ends.tolist(), self.complete.tolist(), strict=True)


@dataclass(frozen=True, slots=True)
class Span:
    """Which samples count: `first` to `stop` are in the period, `base` is where differences begin. Indices."""

    base: int
    first: int
    stop: int


def span(times: Ints, start_ns: int, end_ns: int) -> Span:
    """The samples of a period; `first` equals `stop` where it has none."""
    first = int(np.searchsorted(times, start_ns, "left"))
    stop = int(np.searchsorted(times, end_ns, "right"))
    return Span(max(first - 1, 0), first, stop)


def grid(slices: Slices, start_ns: int, end_ns: int, first_ns: int, last_ns: int) -> Grid | None:
    """The slices of a series whose samples lie from `first_ns` to `last_ns`; None where none are wanted."""
    if slices.step <= 0:
        return None
    if slices.updates is None:
        starts = np.arange(start_ns, end_ns, slices.step, dtype=np.int64)
        ends = np.minimum(starts + slices.step, end_ns)
        return Grid(starts, ends, ends - starts == slices.step)
    inside = slices.updates[(slices.updates > first_ns) & (slices.updates <= last_ns)]
    edges = np.concatenate([[first_ns], inside])
    tail = edges[-1] < last_ns
    if tail:
        edges = np.append(edges, last_ns)
    complete = np.ones(len(edges) - 1, dtype=bool)
    if tail:
        complete[-1] = False
    return Grid(edges[:-1], edges[1:], complete)


def too_many(step: int, start_ns: int, end_ns: int, scrapes: int) -> bool:
    """Whether a period has more slices than an endpoint of so many scrapes gets: the times are those of a record, which can say
    that it is of a second or of a century."""
    return step > 0 and end_ns - start_ns > step * (FEW_SLICES + SLICES_PER_SCRAPE * scrapes)


def entry(
    series: Series, start_ns: int, end_ns: int, slices: Slices, estimator: Estimator
) -> SeriesEntry | None:
    """One member of a metric's `series`; None where the series has no sample in the period."""
    series, from_zero = begun(series, start_ns, end_ns)
    chosen = span(series.times, start_ns, end_ns)
    if series.family.kind == HISTOGRAM:
        if chosen.stop == 0:
            return None
        made = _histogram(series, chosen, start_ns, end_ns, slices, estimator)
    elif chosen.first == chosen.stop:
        return None
    else:
        cut = _counter if series.family.kind == COUNTER else _gauge
        made = cut(series, chosen, start_ns, end_ns, slices)
    made.counted_from_zero = from_zero
    return made


def begun(series: Series, start_ns: int, end_ns: int) -> tuple[Series, bool]:
    """A series that is first there in the period, with the zeros of the scrapes that lacked it, from the last before the period
    on; and whether it is one."""
    none = not len(series.absent) or not len(series.times)
    if none or not start_ns <= series.times[0] <= end_ns:
        return series, False
    absent = series.absent[max(0, int(np.searchsorted(series.absent, start_ns, "left")) - 1) :]
    zeros = np.zeros(len(absent))
    if series.family.kind == HISTOGRAM:
        more = replace(
            series,
            sums=np.concatenate([zeros, series.sums]),
            counts=np.concatenate([zeros, series.counts]),
            buckets=np.concatenate([np.zeros((len(absent), len(series.les))), series.buckets]),
        )
    else:
        more = replace(series, values=np.concatenate([zeros, series.values]))
    return replace(more, times=np.concatenate([absent, series.times]), absent=series.absent[:0]), True


def _labels(series: Series) -> Labels | UnsetType:
    return dict(series.labels) or UNSET


def _gauge(series: Series, chosen: Span, start_ns: int, end_ns: int, slices: Slices) -> SeriesEntry:
    times, values = series.times[chosen.first : chosen.stop], series.values[chosen.first : chosen.stop]
    stats = GaugeStats(
        float(np.mean(values)),
        float(np.min(values)),
        float(np.max(values)),
        float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
        *_percentiles(values).tolist(),
    )
    cut = grid(slices, start_ns, end_ns, int(times[0]), int(times[-1])) if len(times) > 1 else None
    timeslices = UNSET if cut is None else _gauge_slices(times, values, cut)
    return SeriesEntry(series.endpoint_url, _labels(series), stats, timeslices=timeslices)


def _percentiles(values: Floats) -> Floats:
    """What np.percentile gives, in a tenth of the time."""
    ordered = np.sort(values)
    ranks = np.array(PERCENTILES) / 100 * (len(ordered) - 1)
    below = ranks.astype(np.int64)
    above = np.minimum(below + 1, len(ordered) - 1)
    found: Floats = ordered[below] + (ordered[above] - ordered[below]) * (ranks - below)
    return found


def _gauge_slices(times: Ints, values: Floats, cut: Grid) -> list[GaugeSlice]:
    """Samples with start <= t < end; the last slice takes one at its end too. Slices without samples are left out."""
    low = np.searchsorted(times, cut.starts, "left")
    high = np.searchsorted(times, cut.ends, "left")
    if len(high):
        high[-1] = np.searchsorted(times, cut.ends[-1], "right")
    filled = np.flatnonzero(high > low)
    if not len(filled):
        return []
    inside, low = values[: high[filled[-1]]], low[filled]
    means = np.add.reduceat(inside, low) / (high[filled] - low)
    least, most = np.minimum.reduceat(inside, low), np.maximum.reduceat(inside, low)
    kept = Grid(cut.starts[filled], cut.ends[filled], cut.complete[filled])
    return [
        GaugeSlice(start_ns=start, end_ns=end, is_complete=complete, avg=avg, min=low_, max=high_)
        for (start, end, complete), avg, low_, high_ in zip(
            kept.slices(), means.tolist(), least.tolist(), most.tolist(), strict=True
        )
    ]


def _at(times: Ints, moments: Ints) -> Ints:
    """The index of the last sample at or before each moment; the first sample where there is none."""
    return np.maximum(np.searchsorted(times, moments, "right") - 1, 0)


def _counter(series: Series, chosen: Span, start_ns: int, end_ns: int, slices: Slices) -> SeriesEntry:
    times, values = series.times[chosen.base : chosen.stop], series.values[chosen.base : chosen.stop]
    total = max(0.0, float(values[-1] - values[0]))
    seconds = (int(times[-1]) - int(times[0])) / 1e9
    cut = grid(slices, start_ns, end_ns, int(times[0]), int(times[-1])) if len(times) > 1 else None
    timeslices: list[CounterSlice] = []
    rates, weights = _between(times, values)
    if cut is not None:
        totals = np.maximum(values[_at(times, cut.ends)] - values[_at(times, cut.starts)], 0.0)
        slice_rates = totals / ((cut.ends - cut.starts) / 1e9)
        timeslices = [
            CounterSlice(start_ns=start, end_ns=end, is_complete=complete, total=one, rate=rate)
            for (start, end, complete), one, rate in zip(
                cut.slices(), totals.tolist(), slice_rates.tolist(), strict=True
            )
        ]
        if cut.complete.any():
            rates = slice_rates[cut.complete]
            weights = np.ones(len(rates))
    stats = CounterStats(
        total=total,
        rate=total / seconds if seconds > 0 else 0.0,
        rate_avg=float(np.average(rates, weights=weights)),
        rate_min=float(np.min(rates)),
        rate_max=float(np.max(rates)),
        rate_std=float(np.std(rates, ddof=1)) if len(rates) > 1 else 0.0,
    )
    return SeriesEntry(
        series.endpoint_url,
        _labels(series),
        stats,
        reset_detected=bool((np.diff(values) < 0).any()),
        timeslices=timeslices or UNSET,
    )


def _between(times: Ints, values: Floats) -> tuple[Floats, Floats]:
    """The rates between scrapes and the lengths of the intervals, s; one rate of 0 where there is one scrape."""
    if len(times) < 2:
        return np.zeros(1), np.ones(1)
    lengths = np.diff(times) / 1e9
    return np.maximum(np.diff(values), 0.0) / lengths, lengths


def _histogram(
    series: Series, chosen: Span, start_ns: int, end_ns: int, slices: Slices, estimator: Estimator
) -> SeriesEntry:
    part = slice(chosen.base, chosen.stop)
    times, counts, sums = series.times[part], series.counts[part], series.sums[part]
    buckets = series.buckets[part]
    count = int(max(0.0, counts[-1] - counts[0]))
    total = max(0.0, float(sums[-1] - sums[0]))
    reset = bool((np.diff(counts) < 0).any() or (np.diff(buckets, axis=0) < 0).any())
    grown = UNSET if reset else _by_bound(series.les, (buckets[-1] - buckets[0]).astype(int).tolist())
    made = SeriesEntry(series.endpoint_url, _labels(series), HistogramStats(count), reset, buckets=grown)
    if count == 0:
        return made
    made.stats = HistogramStats(count, total, total / count)
    seconds = (int(times[-1]) - int(times[0])) / 1e9
    if seconds > 0:
        made.stats.count_rate, made.stats.sum_rate = count / seconds, total / seconds
    if not reset and series.les:
        estimates = estimator(observed(series, chosen))
        if estimates is not None:
            for name, value in zip(PERCENTILES, estimates.tolist(), strict=True):
                setattr(made.stats, f"p{name}_estimate", value)
    cut = grid(slices, start_ns, end_ns, int(times[0]), int(times[-1])) if len(times) > 1 else None
    if cut is not None:
        made.timeslices = _histogram_slices(series.les, times, counts, sums, buckets, cut)
    return made


def _by_bound(les: tuple[str, ...], counts: list[int]) -> dict[str, int]:
    return dict(zip(les, counts, strict=True))


def observed(series: Series, chosen: Span) -> Observed:
    """What the estimators are given. The history goes on to the last scrape: what comes later teaches too."""
    base, last = chosen.base, chosen.stop - 1
    bounds, buckets = with_overflow(series.les, series.buckets, series.counts)
    return Observed(
        bounds=bounds,
        cumulative=buckets[last] - buckets[base],
        sum=max(0.0, float(series.sums[last] - series.sums[base])),
        count=max(0.0, float(series.counts[last] - series.counts[base])),
        history_buckets=buckets[base:],
        history_sums=series.sums[base:],
        history_counts=series.counts[base:],
        within=chosen.stop - base,
    )


def _histogram_slices(
    les: tuple[str, ...], times: Ints, counts: Floats, sums: Floats, buckets: Floats, cut: Grid
) -> list[HistogramSlice]:
    """Differences between the boundaries; a slice in which count or sum falls is left out."""
    low, high = _at(times, cut.starts), _at(times, cut.ends)
    more, added = counts[high] - counts[low], sums[high] - sums[low]
    each = buckets[high] - buckets[low]
    whole: list[bool] = np.all(each >= 0, axis=1).tolist()
    return [
        HistogramSlice(
            start_ns=start,
            end_ns=end,
            is_complete=complete,
            count=int(count),
            sum=total,
            avg=total / count if count else 0.0,
            buckets=_by_bound(les, row) if good else UNSET,
        )
        for (start, end, complete), count, total, row, good in zip(
            cut.slices(), more.tolist(), added.tolist(), each.astype(int).tolist(), whole, strict=True
        )
        if count >= 0 and total >= 0
    ]
