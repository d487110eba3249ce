"""What an endpoint said over a run, in our terms: a level, a share or a count at each scrape, whatever the engine calls it.

Over the series of one endpoint (ranks, models, reasons) and the families of a term,

| kind       | is                                                                                          |
| ---------- | ------------------------------------------------------------------------------------------- |
| level      | the sum                                                                                     |
| share      | the largest: the fullest cache is the one that preempts; `prefix_hit_rate` the mean         |
| counter    | the sum of what was added since the first scrape                                            |
| histogram  | the same of its count, sum and buckets; of several layouts of buckets the first             |

A value below the one before means that the server began anew: it counts from 0 again, so that what it added shows. `resets` is
the scrapes at which any counter or histogram of the endpoint did so: one for a server whose ranks all began anew at once. A
counter that is not there at the first scrape began at 0. Times are ns on the monotonic clock of the run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce

import numpy as np

from inferometer.telemetry.metrics.engine_names import (
    COUNTERS,
    HISTOGRAMS,
    LEVELS,
    SHARES,
    Engine,
    Source,
    detect,
    least_and_most,
)
from inferometer.telemetry.metrics.exposition import HISTOGRAM
from inferometer.telemetry.metrics.histogram_delta import Floats
from inferometer.telemetry.metrics.series import Endpoint, Ints, Series, Store

LARGEST = 1e18
"""Nothing that a server counts is larger, and sums of what is below stay finite; what a scrape says beyond it is left out."""


@dataclass(frozen=True, slots=True)
class Track:
    """One number over time: `times` (n,) ns, ascending; `values` (n,)."""

    times: Ints
    values: Floats


@dataclass(frozen=True, slots=True)
class Grown:
    """A histogram over time, as added since the first scrape: `counts` and `sums` (n,), `buckets` (n, len(les)), cumulative."""

    times: Ints
    counts: Floats
    sums: Floats
    buckets: Floats
    les: tuple[str, ...]


_CACHE_CONFIG = "vllm:cache_config_info"
_BLOCK_SIZE = re.compile("[1-9][0-9]{0,5}")


@dataclass(frozen=True, slots=True)
class Translated:
    """One endpoint. `own`: it is the target's. `times` of its good scrapes; `dropped`: scrapes that gave nothing.
    `block_tokens`: of its prefix cache, where it states them."""

    url: str
    engine: str
    verified: bool
    own: bool
    times: Ints
    dropped: int
    resets: int
    tracks: dict[str, Track]
    histograms: dict[str, Grown]
    block_tokens: int | None = None


def translate(store: Store, own: frozenset[str], offset_ns: int) -> list[Translated]:
    """Every endpoint whose names are known. `own`: URLs of the target; `offset_ns`: by what stamps are ahead of its clock."""
    translated = []
    for url, endpoint in store.endpoints.items():
        engine = detect(endpoint.families.keys()) if len(endpoint.times) else None
        if engine is not None:
            translated.append(_translated(endpoint, engine, url in own, offset_ns))
    return translated


def _translated(endpoint: Endpoint, engine: Engine, own: bool, offset_ns: int) -> Translated:
    times = np.asarray(endpoint.times, dtype=np.int64)
    tracks, histograms, fallen = {}, {}, np.zeros(0, np.int64)
    for term, source in engine.terms.items():
        chosen = list(_series(endpoint, source))
        if term in LEVELS or term in SHARES:
            chosen = [one for one in map(partial(_within, term), chosen) if len(one.times)]
        if term in HISTOGRAMS:
            grown, fell = _grown(chosen, times)
            if grown is not None:
                histograms[term] = _shifted(grown, offset_ns)
                fallen = np.union1d(fallen, fell)
        elif chosen:
            values, fell = _values(term, source, chosen, times)
            there = np.isfinite(values)
            if there.any():
                tracks[term] = Track(times[there] - offset_ns, values[there])
                fallen = np.union1d(fallen, fell)
    dropped = sum(drops.count for drops in endpoint.drops.values())
    return Translated(
        endpoint.url,
        engine.name,
        engine.verified,
        own,
        times - offset_ns,
        dropped,
        len(fallen),
        tracks,
        histograms,
        _block_tokens(endpoint),
    )


def _block_tokens(endpoint: Endpoint) -> int | None:
    """The block size that vLLM states as a label; None: no series states it, or they differ."""
    if _CACHE_CONFIG not in endpoint.families:
        return None
    said = {dict(one.labels).get("block_size", "") for one in endpoint.series(_CACHE_CONFIG)}
    text = said.pop() if len(said) == 1 else ""
    return int(text) if _BLOCK_SIZE.fullmatch(text) else None


def _shifted(grown: Grown, offset_ns: int) -> Grown:
    return Grown(grown.times - offset_ns, grown.counts, grown.sums, grown.buckets, grown.les)


def _series(endpoint: Endpoint, source: Source) -> Iterator[Series]:
    """The series that a source is made of."""
    for name in source.present(endpoint.families.keys()):
        for one in endpoint.series(name):
            labels = dict(one.labels)
            chosen = all(labels.get(label) in values for label, values in source.where.items())
            if chosen and len((sane := _sane(one)).times):
                yield sane


def _within(term: str, one: Series) -> Series:
    """The series without samples that are none of this term: a share of 55 is none, nor a queue of -1."""
    if one.family.kind == HISTOGRAM:
        return one
    least, most = least_and_most(term)
    there = (one.values >= least) & (one.values <= most)
    return replace(one, times=one.times[there], values=one.values[there])


def _sane(one: Series) -> Series:
    """The series without its absurd samples."""
    if one.family.kind == HISTOGRAM:
        there = (np.column_stack([np.abs(one.counts), np.abs(one.sums), np.abs(one.buckets)]) < LARGEST).all(
            axis=1
        )
        sums, counts, buckets = one.sums[there], one.counts[there], one.buckets[there]
        return replace(one, times=one.times[there], sums=sums, counts=counts, buckets=buckets)
    there = np.abs(one.values) < LARGEST
    return replace(one, times=one.times[there], values=one.values[there])


def _values(term: str, source: Source, chosen: list[Series], times: Ints) -> tuple[Floats, Ints]:
    """The term at each of `times`, NaN where it is not there, and when a counter fell."""
    parts = [_part(one, source) for one in chosen]
    if term in COUNTERS:
        added = [_added(one.times, values, times) for one, values in zip(chosen, parts, strict=True)]
        total: Floats = reduce(np.add, (values for values, _ in added))
        return total, np.concatenate([fell for _, fell in added])
    rows = np.stack([_placed(one.times, values, times) for one, values in zip(chosen, parts, strict=True)])
    here = ~np.isnan(rows).all(axis=0)
    found = np.full(len(times), np.nan)
    known = rows[:, here]
    if term in LEVELS:
        found[here] = np.nansum(known, axis=0)
    elif term == SHARES[0]:
        found[here] = np.nanmax(known, axis=0)
    else:
        found[here] = np.nanmean(known, axis=0)
    return found, times[:0]


def _part(one: Series, source: Source) -> Floats:
    if one.family.kind != HISTOGRAM:
        return one.values
    return one.sums if source.part == "sum" else one.counts


def _placed(at: Ints, values: Floats, times: Ints) -> Floats:
    """The values at the scrapes that have them, NaN at the others; `at` is a part of `times`."""
    found = np.full(len(times), np.nan)
    found[np.searchsorted(times, at)] = values
    return found


def _added(at: Ints, values: Floats, times: Ints) -> tuple[Floats, Ints]:
    """What a counter (n,) or several (n, k) added since the first of `times`, at each of them; and when they fell."""
    before = values[:1] if at[0] == times[0] else np.zeros_like(values[:1])
    steps = np.diff(np.concatenate([before, values]), axis=0)
    fell = (steps.reshape(len(steps), -1) < 0).any(axis=1)  # then all of a histogram began anew
    steps[fell] = values[fell]
    grown = np.cumsum(steps, axis=0)
    last = np.searchsorted(at, times, "right")
    none = np.zeros_like(grown[:1])
    return np.concatenate([none, grown])[last], at[fell]


def _grown(chosen: list[Series], times: Ints) -> tuple[Grown | None, Ints]:
    """The histograms added up, and when they fell; None where there is none."""
    chosen = [one for one in chosen if one.family.kind == HISTOGRAM]
    if not chosen:
        return None, times[:0]
    les = chosen[0].les
    alike = [one for one in chosen if one.les == les]
    tables = [np.column_stack([one.counts, one.sums, one.buckets]) for one in alike]
    added = [_added(one.times, table, times) for one, table in zip(alike, tables, strict=True)]
    total: Floats = reduce(np.add, (table for table, _ in added))
    fallen: Ints = np.concatenate([fell for _, fell in added])
    return Grown(times, total[:, 0], total[:, 1], total[:, 2:], les), fallen
