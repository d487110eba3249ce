"""The metrics of a run as a table: one row per metric, rate or share, in the units of summary.json."""

from __future__ import annotations

import pyarrow as pa

from inferometer.documents.outcomes import distributions, outcomes
from inferometer.documents.summary import Summary
from inferometer.exports.exported_run import ExportedRun, marks_of
from inferometer.exports.formats import Wanted
from inferometer.exports.table_files import MARKS, Column, marked, to_csv, to_parquet
from inferometer.metrics.catalogue import METRICS, RATES, SUCCESS
from inferometer.metrics.statistics import INTERVALS, STATISTICS, Interval, Stats

_BOUNDS = tuple(f"{name}_ci95_{side}" for name in ("value", "mean", *INTERVALS) for side in ("low", "high"))
_OWN = (
    Column("metric", pa.string(), "key in summary.json, which ends in the unit of a latency"),
    Column("title", pa.string(), "name in reports"),
    Column("unit", pa.string(), "unit of all numbers of the row except `n`"),
    Column("better", pa.string(), "`less` or `more`; null: neither"),
    Column("value", pa.float64(), "the figure of a rate or share; null for a distribution"),
    Column("n", pa.int64(), "number of samples; null for a rate"),
    *(
        Column(name, pa.float64(), f"{title} of the samples; null for a rate")
        for name, title in STATISTICS.items()
    ),
    *(Column(name, pa.float64(), "a bound of the 95 % interval; null: there is none") for name in _BOUNDS),
)

SHARES = {
    "cached_input_share": "Cached Share of Prompt Tokens",
    "cached_prefix_share": "Cached Share of Shared Prefixes",
}
"""Shares of `summary.throughput`, with their titles: what the server took from its cache."""
COLUMNS = (*MARKS, *_OWN)
"""Every column, in order."""

Cells = dict[str, str | float | int | None]
"""A row by column; what is left out is null."""


def render_csv(run: ExportedRun, _wanted: Wanted) -> bytes:
    """As CSV."""
    return to_csv(metric_rows(run.summary))


def render_parquet(run: ExportedRun, _wanted: Wanted) -> bytes:
    """As Parquet."""
    return to_parquet(metric_rows(run.summary), run.marks)


def metric_rows(summary: Summary) -> pa.Table:
    """Every metric and rate of the catalogue, the shares of prompt tokens from a cache and the success rate; one that the run
    has not has a row of nulls. Behind them what only runs of sessions and tasks have."""
    rows = []
    for key, metric in METRICS.items():
        stats: Stats | None = getattr(summary.metrics, key)
        rows.append(_metric_row(key, metric.title, metric.unit, metric.better, stats))
    for key, rate in RATES.items():
        value, interval = getattr(summary.throughput, key), getattr(summary.throughput.ci95, key)
        rows.append(_rate_row(key, rate.title, rate.unit, rate.better, value, interval))
    for key, title in SHARES.items():
        rows.append(_rate_row(key, title, "1", None, getattr(summary.throughput, key), None))
    success = summary.success_rate
    rows.append(_rate_row(SUCCESS, "Success Rate", "1", "more", success.value, success.ci95))
    for key, entry, stats in distributions(summary):
        rows.append(_metric_row(key, entry.title, entry.unit, entry.better, stats))
    rows += [
        _rate_row(one.key, one.title, one.unit, one.better, one.value, one.ci95) for one in outcomes(summary)
    ]
    schema = pa.schema([column.field for column in _OWN])
    return marked(pa.Table.from_pylist(rows, schema=schema), marks_of(summary))


def _metric_row(key: str, title: str, unit: str, better: str | None, stats: Stats | None) -> Cells:
    row: Cells = {"metric": key, "title": title, "unit": unit, "better": better}
    if stats is None:
        return row
    row["n"] = stats.n
    row |= {name: _plain(getattr(stats, name)) for name in STATISTICS}
    for name in ("mean", *INTERVALS):
        row |= _bounds(name, getattr(stats.ci95, name))
    return row


def _rate_row(
    key: str, title: str, unit: str, better: str | None, value: float | None, interval: Interval | None
) -> Cells:
    row: Cells = {"metric": key, "title": title, "unit": unit, "better": better, "value": _plain(value)}
    return row | _bounds("value", interval)


def _bounds(name: str, interval: Interval | None) -> Cells:
    return {} if interval is None else {f"{name}_ci95_low": interval[0], f"{name}_ci95_high": interval[1]}


def _plain(value: float | None) -> float | None:
    return None if value is None else float(value)
