"""The CSV export: a section a type, a row a series, a column a statistic and a label.

Comment lines end in LF, rows in CR LF. Gauges whose names end in `_info` have a section of their own, a row a label.

A cell for each series and each label would be the square of what a server sends, so that MOST_COLUMNS labels of a section,
those of most series, have columns. The others of a series stand together in a last one, as a JSON object.

Texts of servers pass through `printable_cell`: they steer no terminal and begin no formula.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from msgspec import UnsetType

from inferometer.addresses import short
from inferometer.printable import json_text, printable, printable_cell
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
MOST_COLUMNS = 64
"""Labels of a table that have a column each."""
OTHER_LABELS = "Other labels"
Row = tuple[Metric, SeriesEntry]


def write_csv(file: TextIO, metrics: Sequence[Metric], version: str | None, benchmark_id: str | None) -> None:
    """Write the whole table, row by row."""
    head = [
        "# Server metrics",
        f"# inferometer_version: {version or ''}",
        f"# schema_version: {SCHEMA_VERSION}",
        f"# benchmark_id: {benchmark_id or ''}",
        "# One section a type, separated by an empty row; percentiles of histograms are estimates",
        "#",
    ]
    file.writelines(f"{line}\n" for line in head)
    writer = csv.writer(file)
    begun = False
    for section in (*(_section(kind, metrics) for kind in STATISTICS), _infos(metrics)):
        for number, row in enumerate(section):
            if begun and number == 0:
                writer.writerow([])
            begun = True
            writer.writerow(row)


def _is_info(metric: Metric) -> bool:
    return metric.name.endswith("_info")


def _section(kind: str, metrics: Sequence[Metric]) -> Iterator[list[str]]:
    """The header and the rows of one type; nothing where it has no series."""
    rows: list[Row] = [
        (metric, one)
        for metric in metrics
        if metric.kind == kind and not (kind == GAUGE and _is_info(metric))
        for one in metric.series
    ]
    if not rows:
        return
    shown = [_labels(metric, one) for metric, one in rows]
    kept, whole = own_columns(name for labels in shown for name in labels)
    columns = label_columns([{name: labels[name] for name in labels if name in kept} for labels in shown])
    more = [] if whole else [OTHER_LABELS]
    tail = ["buckets"] if kind == HISTOGRAM else []
    names = map(printable_cell, columns)
    yield ["Endpoint", "Type", "Metric", "Unit", *STATISTICS[kind], *names, *more, "Description", *tail]
    rows.sort(key=lambda row: _order(row, columns))
    for metric, one in rows:
        labels = _labels(metric, one)
        cells = [
            printable_cell(short(one.endpoint_url)),
            kind,
            printable_cell(metric.name),
            metric.unit or "",
        ]
        cells += [_number(getattr(one.stats, name)) for name in STATISTICS[kind]]
        cells += [printable_cell(labels.get(name, "")) for name in columns]
        if more:
            cells.append(others_of(labels, kept))
        cells.append(printable_cell(metric.description))
        if tail:
            cells.append(";".join(f"{le}={count}" for le, count in _buckets(one).items()))
        yield cells


def own_columns(names: Iterable[str]) -> tuple[set[str], bool]:
    """The labels that have a column each, and whether those are all. `names`: those of each series, one after the other. A name
    that could not be shown has none."""
    uses = Counter(names)
    ranked = sorted((name for name in uses if name == printable(name)), key=lambda name: (-uses[name], name))
    kept = set(ranked[:MOST_COLUMNS])
    return kept, len(kept) == len(uses)


def others_of(labels: dict[str, str], kept: set[str]) -> str:
    """The labels without a column, as a JSON object; an empty text for none."""
    others = {name: value for name, value in labels.items() if name not in kept}
    return json_text(others) if others else ""


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
        [
            printable_cell(word)
            for word in (short(one.endpoint_url), metric.name, key, value, metric.description)
        ]
        for metric in metrics
        if metric.kind == GAUGE and _is_info(metric)
        for one in metric.series
        for key, value in labels_of(one).items()
    ]
    rows.sort(key=lambda row: (row[1], row[0], row[2]))
    return [["Endpoint", "Metric", "Key", "Value", "Description"], *rows] if rows else []
