"""The export's parts as types, in the order of their members. A member that does not apply is left out of the file (UNSET).

Layout: "AIPerf Server Metrics JSON Export Schema", version 1.0. Beyond it: `inferometer_version`, `warmup_metrics`,
`summary.phase_time_ranges`, `summary.dropped`, `summary.skipped_lines`, `summary.reordered_scrapes`, `summary.notes` and a
series' `reset_detected` and `counted_from_zero`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import UNSET, Struct, UnsetType

Labels = dict[str, str]


class GaugeSlice(Struct, omit_defaults=True, kw_only=True):
    """Samples of a gauge in [start_ns, end_ns)."""

    start_ns: int
    end_ns: int
    is_complete: bool = True
    avg: float
    min: float
    max: float


class CounterSlice(Struct, omit_defaults=True, kw_only=True):
    """What a counter grew by; `rate` per second."""

    start_ns: int
    end_ns: int
    is_complete: bool = True
    total: float
    rate: float


class HistogramSlice(Struct, omit_defaults=True, kw_only=True):
    """Observations; `buckets` by upper bound."""

    start_ns: int
    end_ns: int
    is_complete: bool = True
    count: int
    sum: float
    avg: float
    buckets: dict[str, int] | UnsetType = UNSET


class GaugeStats(Struct):
    """Of a gauge's samples; std divides by n - 1."""

    avg: float
    min: float
    max: float
    std: float
    p1: float
    p5: float
    p10: float
    p25: float
    p50: float
    p75: float
    p90: float
    p95: float
    p99: float


class CounterStats(Struct):
    """Growth over the period, per second where it is a rate."""

    total: float
    rate: float
    rate_avg: float
    rate_min: float
    rate_max: float
    rate_std: float


class HistogramStats(Struct, omit_defaults=True):
    """Observations over the period. Percentiles are estimated from the buckets."""

    count: int
    sum: float | UnsetType = UNSET
    avg: float | UnsetType = UNSET
    count_rate: float | UnsetType = UNSET
    sum_rate: float | UnsetType = UNSET
    p1_estimate: float | UnsetType = UNSET
    p5_estimate: float | UnsetType = UNSET
    p10_estimate: float | UnsetType = UNSET
    p25_estimate: float | UnsetType = UNSET
    p50_estimate: float | UnsetType = UNSET
    p75_estimate: float | UnsetType = UNSET
    p90_estimate: float | UnsetType = UNSET
    p95_estimate: float | UnsetType = UNSET
    p99_estimate: float | UnsetType = UNSET


Stats = GaugeStats | CounterStats | HistogramStats
Timeslices = list[GaugeSlice] | list[CounterSlice] | list[HistogramSlice]


class SeriesEntry(Struct, omit_defaults=True):
    """One series of a metric: its labels, its statistics over the period, and its timeslices."""

    endpoint_url: str
    labels: Labels | UnsetType
    stats: Stats
    reset_detected: bool = False
    counted_from_zero: bool = False
    buckets: dict[str, int] | UnsetType = UNSET
    timeslices: Timeslices | UnsetType = UNSET


class MetricEntry(Struct, omit_defaults=True, rename={"kind": "type"}):
    """One metric over all endpoints."""

    kind: str
    description: str
    unit: str | UnsetType
    series: list[SeriesEntry]


class EndpointInfo(Struct, omit_defaults=True):
    """What collecting from one endpoint was like, over the whole record."""

    total_fetches: int
    first_fetch_ns: int
    last_fetch_ns: int
    avg_fetch_latency_ms: float
    unique_updates: int
    first_update_ns: int
    last_update_ns: int
    duration_seconds: float
    avg_update_interval_ms: float
    median_update_interval_ms: float | UnsetType = UNSET


class TimeRange(Struct):
    """A phase of the run; ns since the epoch."""

    start_ns: int
    end_ns: int


class Dropped(Struct):
    """Scrapes or lines that gave nothing, by reason: how many, and the first one's words."""

    count: int
    first: str


class CollectionSummary(Struct, omit_defaults=True):
    """The collection as a whole, by endpoint. `reordered_scrapes`: how many the record has after a later one. `notes`: by
    code, the metrics concerned."""

    endpoints_configured: list[str]
    endpoints_successful: list[str]
    start_time: str | None
    end_time: str | None
    endpoint_info: dict[str, EndpointInfo]
    phase_time_ranges: dict[str, TimeRange]
    dropped: dict[str, dict[str, Dropped]] | UnsetType = UNSET
    skipped_lines: dict[str, dict[str, Dropped]] | UnsetType = UNSET
    reordered_scrapes: dict[str, int] | UnsetType = UNSET
    notes: dict[str, dict[str, list[str]]] | UnsetType = UNSET


class Opening(Struct):
    """The document's members before `metrics`."""

    schema_version: str
    aiperf_version: None
    benchmark_id: str | None
    inferometer_version: str | None
    summary: CollectionSummary


class Export(Struct, omit_defaults=True):
    """The document without its timeslices. `input_config` is the caller's."""

    opening: Opening
    metrics: dict[str, MetricEntry]
    warmup_metrics: dict[str, MetricEntry]
    input_config: Mapping[str, object]


class ScrapedValue(Struct, omit_defaults=True):
    """One series in one scrape, as exposed: a value, or a histogram's buckets, sum and count."""

    labels: Labels = {}
    buckets: dict[str, float] | UnsetType = UNSET
    sum: float | UnsetType = UNSET
    count: float | UnsetType = UNSET
    value: float | UnsetType = UNSET


class ScrapeLine(Struct, omit_defaults=True):
    """A line of the JSONL export: one scrape that brought anything new."""

    endpoint_url: str
    timestamp_ns: int
    endpoint_latency_ns: int | UnsetType
    metrics: dict[str, list[ScrapedValue]]
    first_byte_ns: int
    benchmark_phase: str | UnsetType


def without_timeslices(entry: SeriesEntry) -> SeriesEntry:
    """The same, forgetting what is most of a long record's export."""
    return msgspec.structs.replace(entry, timeslices=UNSET)


def labels_of(entry: SeriesEntry) -> Labels:
    """Its labels; none where it has none."""
    return {} if isinstance(entry.labels, UnsetType) else entry.labels
