"""The CSV export: a section a type, a row a series, a column a statistic and a label.

Comment lines end in LF, rows in CR LF. Gauges whose names end in `_info` have a section of their own, a row a label.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from msgspec import UnsetType

from inferometer.addresses import short
from inferometer.telemetry.metrics.document import SCHEMA_VERSION, Metric
from inferometer.telemetry.metrics.entries import SeriesEntry, labels_of
from inferometer.telemetry.metrics.exposition import COUNTER, GAUGE, HISTOGRAM, UNKNOWN
from inferometer.telemetry.metrics.histogram_delta import PERCENTILES

_SAMPLED = ("avg", "min", "max", "std", *(f"p{name}" for name in PERCENTILES))
STATISTICS = {
    GAUGE: _SAMPLED,
    COUNTER: ("total", "rate", "rate_avg", "rate_min", "rate_max", "rate_std"),
    HISTOGRAM: (
        "count", "count_rate", "sum", "sum_rate", "avg", *(f"p{name}_estimate" for name in PERCENTILES),
    ),
    UNKNOWN: _SAMPLED,
}  # fmt: skip
Row = tuple[Metric, SeriesEntry]


def csv_export(metrics: Sequence[Metric], version: str | None, benchmark_id: str | None) -> str:
    """The whole file."""
    head = [
        "# Server metrics",
        f"# inferometer_version: {version or ''}",
        f"# schema_version: {SCHEMA_VERSION}",
        f"# benchmark_id: {benchmark_id or ''}",
        "# One section a type, separated by an empty row; percentiles of histograms are estimates",
        "#",
    ]
    sections = [_section(kind, metrics) for kind in STATISTICS] + [_infos(metrics)]
    text = io.StringIO()
    writer = csv.writer(text)
    for number, section in enumerate([section for section in sections if section]):
        if number:
            writer.writerow([])
        writer.writerows(section)
    return "".join(f"{line}\n" for line in head) + text.getvalue()


def _is_info(metric: Metric) -> bool:
    return metric.name.endswith("_info")


def _section(kind: str, metrics: Sequence[Metric]) -> list[list[str]]:
    """The rows of one type, with the header; none where it has no series."""
    rows: list[Row] = [
        (metric, one)
        for metric in metrics
        if metric.kind == kind and not (kind == GAUGE and _is_info(metric))
        for one in metric.series
    ]
    if not rows:
        return []
    columns = label_columns([labels_of(one) for metric, one in rows if not _is_info(metric)])
    tail = ["buckets"] if kind == HISTOGRAM else []
    made = [["Endpoint", "Type", "Metric", "Unit", *STATISTICS[kind], *columns, "Description", *tail]]
    rows.sort(key=lambda row: _order(row, columns))
    for metric, one in rows:
        labels = _labels(metric, one)
        cells = [short(one.endpoint_url), kind, metric.name, metric.unit or ""]
        cells += [_number(getattr(one.stats, name)) for name in STATISTICS[kind]]
        cells += [labels.get(name, "") for name in columns] + [metric.description]
        if tail:
            cells.append(";".join(f"{le}={count}" for le, count in _buckets(one).items()))
        made.append(cells)
    return made


def _labels(metric: Metric, one: SeriesEntry) -> dict[str, str]:
    """What stands in the label columns; those of a metric that is all labels have none there."""
    return {} if _is_info(metric) else labels_of(one)


def _order(row: Row, columns: Sequence[str]) -> tuple[str, str, str, str]:
    """Rows with the same labels stand together."""
    metric, one = row
    labels = _labels(metric, one)
    present = "".join("1" if name in labels else "0" for name in columns)
    return present, metric.name, one.endpoint_url, repr(labels)


def label_columns(rows: Sequence[dict[str, str]]) -> list[str]:
    """Labels that occur together stand together; within such a group, those of one row only come first."""
    group: dict[str, set[str]] = {}
    uses: dict[str, int] = {}
    for labels in rows:
        joined = set(labels)
        for name in labels:
            uses[name] = uses.get(name, 0) + 1
            joined |= group.get(name, set())
        for name in joined:
            group[name] = joined
    groups = {id(names): names for names in group.values()}
    return [
        name
        for names in sorted(groups.values(), key=min)
        for name in sorted(names, key=lambda name: (uses[name] != 1, name))
    ]


def _buckets(one: SeriesEntry) -> dict[str, int]:
    return {} if isinstance(one.buckets, UnsetType) else one.buckets


def _number(value: float | UnsetType) -> str:
    if isinstance(value, UnsetType):
        return ""
    return str(value) if isinstance(value, int) else f"{value:.4f}"


def _infos(metrics: Sequence[Metric]) -> list[list[str]]:
    """What servers say of themselves as labels of a gauge, a row a label."""
    rows = [
        [short(one.endpoint_url), metric.name, key, value, metric.description]
        for metric in metrics
        if metric.kind == GAUGE and _is_info(metric)
        for one in metric.series
        for key, value in labels_of(one).items()
    ]
    rows.sort(key=lambda row: (row[1], row[0], row[2]))
    return [["Endpoint", "Metric", "Key", "Value", "Description"], *rows] if rows else []
