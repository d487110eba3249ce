"""The Parquet export: a row a sample, of a histogram a row a bucket a sample, with differences from the reference.

Fixed columns are endpoint_url, metric_name, metric_type, unit, description, timestamp_ns (ns), then one a label name, then
value, sum, count, bucket_le, bucket_count. A label named like a fixed column has none; labels beyond the columns that a table
has for them (`own_columns`) stand together in other_labels, as a JSON object. Texts are `printable_lines`. Gauges have their
values; counters and histograms max(0, x - x_reference), the buckets still cumulative.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from inferometer.printable import printable_lines
from inferometer.telemetry.metrics.document import SCHEMA_VERSION, Wanted, end_of
from inferometer.telemetry.metrics.exposition import COUNTER, HISTOGRAM
from inferometer.telemetry.metrics.histogram_delta import Floats
from inferometer.telemetry.metrics.metric_units import unit_for
from inferometer.telemetry.metrics.series import Series, Store
from inferometer.telemetry.metrics.statistics import begun, span
from inferometer.telemetry.metrics.table import others_of, own_columns

OTHER_LABELS = "other_labels"
_LEADING = ("endpoint_url", "metric_name", "metric_type", "unit", "description")
_FIXED = {*_LEADING, "timestamp_ns", "value", "sum", "count", "bucket_le", "bucket_count", OTHER_LABELS}
_ROWS_AT_ONCE = 1 << 20


def write_parquet(store: Store, wanted: Wanted, path: Path) -> None:
    """Write the samples of the period, by endpoint and series as first seen, then by time."""
    names = (name for one in store.endpoints.values() for _, labels, _ in one.groups() for name, _ in labels)
    kept, whole = own_columns(name for name in names if name not in _FIXED)
    schema = schema_of([*sorted(kept), *([] if whole else [OTHER_LABELS])], wanted)
    with pq.ParquetWriter(path, schema, compression="snappy") as writer:
        waiting: list[pa.RecordBatch] = []
        for batch in _batches(store, wanted, schema):
            waiting.append(batch)
            if sum(one.num_rows for one in waiting) >= _ROWS_AT_ONCE:
                writer.write_table(pa.Table.from_batches(waiting, schema))
                waiting = []
        writer.write_table(pa.Table.from_batches(waiting, schema))


def schema_of(labels: list[str], wanted: Wanted) -> pa.Schema:
    """The columns, with what the file is of as metadata."""
    fields = [(name, pa.string()) for name in _LEADING]
    fields += [("timestamp_ns", pa.int64())]
    fields += [(name, pa.string()) for name in labels]
    fields += [(name, pa.float64()) for name in ("value", "sum", "count")]
    fields += [("bucket_le", pa.string()), ("bucket_count", pa.float64())]
    return pa.schema(
        fields,
        metadata={
            "inferometer.schema_version": SCHEMA_VERSION,
            "inferometer.version": wanted.version or "",
            "inferometer.benchmark_id": wanted.benchmark_id or "",
            "inferometer.start_ns": str(wanted.period.start_ns),
            "inferometer.end_ns": str(wanted.period.end_ns),
        },
    )


def _batches(store: Store, wanted: Wanted, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    start_ns = wanted.period.start_ns
    end_ns = max((end_of(one, wanted.period) for one in store.endpoints.values()), default=start_ns)
    for endpoint in store.endpoints.values():
        for exposed in endpoint.series():
            series, _ = begun(exposed, start_ns, end_ns)
            chosen = span(series.times, start_ns, end_ns)
            first = max(
                chosen.first, len(series.times) - len(exposed.times)
            )  # no row for what was not exposed
            if first < chosen.stop:
                yield _batch(series, slice(first, chosen.stop), chosen.base, schema)


def _batch(series: Series, rows: slice, base: int, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of one series."""
    family = series.family
    times = series.times[rows]
    columns: dict[str, Floats | list[str]] = {}
    width = max(len(series.les), 1)
    if family.kind == HISTOGRAM:
        columns["sum"] = np.repeat(_since(series.sums, rows, base), width)
        columns["count"] = np.repeat(_since(series.counts, rows, base), width)
        if series.les:
            columns["bucket_le"] = list(series.les) * len(times)
            columns["bucket_count"] = _since(series.buckets, rows, base).ravel()
        times = np.repeat(times, width)
    elif family.kind == COUNTER:
        columns["value"] = _since(series.values, rows, base)
    else:
        columns["value"] = series.values[rows]
    labels = {name: value for name, value in series.labels if name not in _FIXED}
    words = {name: printable_lines(value) for name, value in labels.items()} | {
        OTHER_LABELS: others_of(labels, set(schema.names)) or None,
        "endpoint_url": series.endpoint_url,
        "metric_name": printable_lines(family.name),
        "metric_type": family.kind,
        "unit": unit_for(family),
        "description": printable_lines(family.description),
    }
    made = []
    for field in schema:
        if field.name == "timestamp_ns":
            made.append(pa.array(times))
        elif field.name in columns:
            made.append(pa.array(columns[field.name], field.type))
        else:
            made.append(pa.repeat(pa.scalar(words.get(field.name), field.type), len(times)))
    return pa.RecordBatch.from_arrays(made, schema=schema)


def _since(values: Floats, rows: slice, base: int) -> Floats:
    found: Floats = np.maximum(values[rows] - values[base], 0.0)
    return found
