"""The export as one document: which metrics there are, their series' entries, and what the collection was like.

Its parts are in entries.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
from msgspec import UNSET

from inferometer.telemetry.metrics.entries import (
    CollectionSummary,
    Dropped,
    EndpointInfo,
    MetricEntry,
    Opening,
    SeriesEntry,
    TimeRange,
    labels_of,
)
from inferometer.telemetry.metrics.exposition import GAUGE, UNKNOWN, Count, Family
from inferometer.telemetry.metrics.metric_units import unit_for
from inferometer.telemetry.metrics.series import Endpoint, Store
from inferometer.telemetry.metrics.statistics import Estimator, Slices, entry, too_many

SCHEMA_VERSION = "1.0"
TAIL_NS = 10_000_000_000
"""A server tells of a request a little after its end. Where a record ends within this of the period's end, the period goes
on to the last scrape that brought anything new; a period cut out of a longer record does not."""
LEAST_UPDATES = 3
"""Updates without which the collection tells no median update interval: two intervals."""


@dataclass(frozen=True, slots=True)
class Period:
    """From start to end, both included; ns since the epoch."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an export is of. `slice_ns` is the length of timeslices, 0 for none; `warmup` the period told apart, if any."""

    period: Period
    estimator: Estimator
    slice_ns: int = 2_000_000_000
    warmup: Period | None = None
    version: str | None = None
    benchmark_id: str | None = None
    input_config: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Metric:
    """One name over all endpoints: `kind` as it was exposed, and the entries of its series, sorted."""

    name: str
    kind: str
    description: str
    unit: str | None
    series: list[SeriesEntry]

    def entry(self) -> MetricEntry:
        """As it stands in the document, whose types are gauge, counter and histogram."""
        kind = GAUGE if self.kind == UNKNOWN else self.kind
        return MetricEntry(kind, self.description, UNSET if self.unit is None else self.unit, self.series)


def metrics(store: Store, wanted: Wanted) -> Iterator[Metric]:
    """The metrics over the period, by name, each computed when it is asked for."""
    return _metrics(store, wanted, wanted.period.start_ns, _ends(store, wanted))


def warmup_metrics(store: Store, wanted: Wanted) -> Iterator[Metric]:
    """The metrics over the warm-up, by name. It goes on to the last scrape that was made as part of it."""
    if wanted.warmup is None:
        return iter(())
    return _metrics(store, wanted, wanted.warmup.start_ns, _warmup_ends(store, wanted.warmup))


def _ends(store: Store, wanted: Wanted) -> dict[str, int]:
    return {url: end_of(one, wanted.period) for url, one in store.endpoints.items()}


def _warmup_ends(store: Store, warmup: Period) -> dict[str, int]:
    ends = {}
    for url, one in store.endpoints.items():
        tagged = [at for at, phase in zip(one.times, one.phases, strict=True) if phase == "warmup"]
        ends[url] = max([warmup.end_ns, *tagged[-1:]])
    return ends


def _unsliced(store: Store, wanted: Wanted) -> set[str]:
    """The endpoints whose slices are wanted, and too many in one of the periods."""
    periods = [(wanted.period.start_ns, _ends(store, wanted))]
    if wanted.warmup is not None:
        periods.append((wanted.warmup.start_ns, _warmup_ends(store, wanted.warmup)))
    return {
        url
        for start_ns, ends in periods
        for url, one in store.endpoints.items()
        if wanted.slice_ns > 0 and not slices_of(one, wanted.slice_ns, Period(start_ns, ends[url])).step
    }


def end_of(endpoint: Endpoint, period: Period) -> int:
    """Where the period ends at an endpoint, ns."""
    last = endpoint.updates[-1] if endpoint.updates else 0
    return last if period.end_ns < last <= period.end_ns + TAIL_NS else period.end_ns


def _metrics(store: Store, wanted: Wanted, start_ns: int, ends: dict[str, int]) -> Iterator[Metric]:
    slices = {
        url: slices_of(one, wanted.slice_ns, Period(start_ns, ends[url]))
        for url, one in store.endpoints.items()
    }
    others = other_kinds(store)
    for name in sorted({name for one in store.endpoints.values() for name in one.families}):
        first: Family | None = None
        made = []
        for url, endpoint in store.endpoints.items():
            if name in others[url]:
                continue
            for series in endpoint.series(name):
                found = entry(series, start_ns, ends[url], slices[url], wanted.estimator)
                if found is not None:
                    made.append(found)
                    first = first or series.family
        if first is not None:
            made.sort(key=lambda one: (one.endpoint_url, repr(labels_of(one))))
            yield Metric(name, first.kind, first.description, unit_for(first), made)


def other_kinds(store: Store) -> dict[str, set[str]]:
    """By endpoint, the names that have another type there than at the first endpoint with such a name.

    A metric of the document has one type, so those are left out. Gauges and what is taken as such are of one type.
    """
    first: dict[str, str] = {}
    found: dict[str, set[str]] = {}
    for url, endpoint in store.endpoints.items():
        kinds = {name: GAUGE if kind == UNKNOWN else kind for name, kind in endpoint.kinds().items()}
        found[url] = {name for name, kind in kinds.items() if first.setdefault(name, kind) != kind}
    return found


def slices_of(endpoint: Endpoint, step: int, period: Period) -> Slices:
    """Slices of `step` ns, or, at an endpoint whose updates are further apart than that, the intervals between them; none where
    there would be too many."""
    updates = np.asarray(endpoint.updates, dtype=np.int64)
    if step > 0 and len(updates) > 1 and float(np.median(np.diff(updates))) > step:
        return Slices(step, updates)
    return Slices(0 if too_many(step, period.start_ns, period.end_ns, len(endpoint.times)) else step)


def opening(store: Store, wanted: Wanted) -> Opening:
    """The document's members before `metrics`; after it come `warmup_metrics`, if any, and `input_config`."""
    return Opening(SCHEMA_VERSION, None, wanted.benchmark_id, wanted.version, _summary(store, wanted))


def _summary(store: Store, wanted: Wanted) -> CollectionSummary:
    answered = [one for one in store.endpoints.values() if one.times]
    ranges = {"profiling": wanted.period, "warmup": wanted.warmup}
    dropped = {one.url: _counts(one.drops) for one in store.endpoints.values() if one.drops}
    skipped = {one.url: _counts(one.skipped) for one in store.endpoints.values() if one.skipped}
    reordered = {one.url: one.reordered for one in store.endpoints.values() if one.reordered}
    others = other_kinds(store)
    unsliced = _unsliced(store, wanted)
    noted = {
        url: one.noted()
        | {("other_type", name) for name in others[url]}
        | {("too_many_timeslices", name) for name in (one.families if url in unsliced else ())}
        for url, one in store.endpoints.items()
    }
    notes = {url: _notes(some) for url, some in noted.items() if some}
    return CollectionSummary(
        endpoints_configured=list(store.endpoints),
        endpoints_successful=[one.url for one in answered],
        start_time=_utc(min((one.times[0] for one in answered), default=None)),
        end_time=_utc(max((one.times[-1] for one in answered), default=None)),
        endpoint_info={one.url: endpoint_info(one) for one in sorted(answered, key=lambda one: one.url)},
        phase_time_ranges={name: TimeRange(one.start_ns, one.end_ns) for name, one in ranges.items() if one},
        dropped=dropped or UNSET,
        skipped_lines=skipped or UNSET,
        reordered_scrapes=reordered or UNSET,
        notes=notes or UNSET,
    )


def _counts(counts: Mapping[str, Count]) -> dict[str, Dropped]:
    return {code: Dropped(one.count, one.first) for code, one in sorted(counts.items())}


def _notes(noted: set[tuple[str, str]]) -> dict[str, list[str]]:
    notes: dict[str, list[str]] = {}
    for code, name in sorted(noted):
        notes.setdefault(code, []).append(name)
    return notes


def endpoint_info(endpoint: Endpoint) -> EndpointInfo:
    """What collecting from one endpoint was like, over the whole record. The endpoint has answered."""
    times, updates = endpoint.times, np.asarray(endpoint.updates, dtype=np.int64)
    latencies = [latency for latency in endpoint.latencies if latency >= 0]
    gaps = np.diff(updates) / 1e6
    return EndpointInfo(
        total_fetches=len(times),
        first_fetch_ns=times[0],
        last_fetch_ns=times[-1],
        avg_fetch_latency_ms=float(np.mean(latencies)) / 1e6 if latencies else 0.0,
        unique_updates=len(updates),
        first_update_ns=int(updates[0]),
        last_update_ns=int(updates[-1]),
        duration_seconds=int(updates[-1] - updates[0]) / 1e9,
        avg_update_interval_ms=float(gaps.mean()) if len(gaps) else 0.0,
        median_update_interval_ms=float(np.median(gaps)) if len(updates) >= LEAST_UPDATES else UNSET,
    )


def _utc(at_ns: int | None) -> str | None:
    """ISO 8601 in UTC, to the microsecond."""
    if at_ns is None:
        return None
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at_ns // 1000)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
