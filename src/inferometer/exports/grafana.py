"""A Grafana dashboard: exported runs beside the metrics of the engines that were measured.

The instrument itself serves no live metrics. While a run lasts, a Prometheus that scrapes the engine shows it live; what the
instrument found is there once the run has been exported, by the textfile collector or by remote write. So the dashboard has two
parts, over one Prometheus:

| part    | its names are those of                                                                                   |
| ------- | -------------------------------------------------------------------------------------------------------- |
| runs    | `prometheus.py`: every exported run, chosen by the variable `run`, with its verdict in the first panel     |
| engines | `telemetry/metrics/engine_names.py`: the engines whose names were verified against a running server      |

The JSON model is Grafana's (schemaVersion 39, Grafana 10.4 and later). `python -m inferometer.exports.grafana` writes the file
that the package ships, to which a test holds this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from inferometer.exports.readings import series_name
from inferometer.metrics.catalogue import METRICS, RATES, SUCCESS
from inferometer.telemetry.metrics.engine_names import COUNTERS, ENGINES, HISTOGRAMS, SHARES, Engine, Source

FILE = Path(__file__).parent / "grafana-dashboard.json"
SCHEMA_VERSION = 39
UID = "inferometer"
WIDTH, HEIGHT = 12, 8
"""Of a panel, in Grafana's grid of 24 columns."""
RUN = '{run=~"$run"}'
RATE = "[$__rate_interval]"


class _Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A part of Grafana's model, whose members are in camel case."""


class DataSource(_Part, frozen=True):
    """The data source that the variable `datasource` names."""

    type: str = msgspec.field(default_factory=lambda: "prometheus")
    uid: str = msgspec.field(default_factory=lambda: "${datasource}")


class GridPosition(_Part, frozen=True):
    """Where a panel stands."""

    h: int
    w: int
    x: int
    y: int


class Target(_Part, frozen=True):
    """A query, in PromQL."""

    ref_id: str
    expr: str
    legend_format: str | None = None
    format: Literal["time_series", "table"] | None = None
    instant: bool | None = None
    datasource: DataSource = msgspec.field(default_factory=DataSource)


class Defaults(_Part, frozen=True):
    """How a panel writes its numbers."""

    unit: str


class FieldConfig(_Part, frozen=True):
    """The same, as Grafana nests it."""

    defaults: Defaults
    overrides: tuple[str, ...] = msgspec.field(default_factory=tuple)


class Panel(_Part, frozen=True):
    """A panel, or the heading of a row of them."""

    id: int
    type: Literal["row", "table", "timeseries", "stat"]
    title: str
    grid_pos: GridPosition
    description: str | None = None
    datasource: DataSource | None = None
    field_config: FieldConfig | None = None
    targets: tuple[Target, ...] | None = None
    collapsed: bool | None = None


class Variable(_Part, frozen=True):
    """A variable of the dashboard."""

    name: str
    label: str
    type: Literal["datasource", "query"]
    query: str
    multi: bool | None = None
    include_all: bool | None = None
    all_value: str | None = None
    datasource: DataSource | None = None
    refresh: int | None = None


class Templating(_Part, frozen=True):
    """Its variables."""

    list: tuple[Variable, ...]


class TimeRange(_Part, frozen=True):
    """What is shown at first."""

    from_: str = msgspec.field(name="from")
    to: str


class Dashboard(_Part, frozen=True):
    """The dashboard."""

    uid: str
    title: str
    description: str
    tags: tuple[str, ...]
    schema_version: int
    editable: bool
    refresh: str
    time: TimeRange
    templating: Templating
    panels: tuple[Panel, ...]


class Chart(msgspec.Struct, frozen=True):
    """A panel before it has its place: queries by legend, in the unit that Grafana calls so."""

    title: str
    unit: str
    queries: Mapping[str, str]
    description: str | None = None
    table: bool = False


UNITS = {"ms": "s", "tokens": "short", "tokens/s": "short", "req/s": "reqps"}
"""Grafana's name of a reading's base unit, by the catalogue's unit."""
QUANTILES = ("0.5", "0.95", "0.99")


def render() -> bytes:
    """The dashboard as a file that Grafana imports."""
    return msgspec.json.format(msgspec.json.encode(dashboard()), indent=1) + b"\n"


def dashboard() -> Dashboard:
    """The whole of it."""
    variables = (
        Variable("datasource", "Data source", "datasource", "prometheus"),
        Variable(
            "run",
            "Run",
            "query",
            "label_values(inferometer_run_info, run)",
            multi=True,
            include_all=True,
            all_value=".*",
            datasource=DataSource(),
            refresh=2,
        ),
    )
    return Dashboard(
        uid=UID,
        title="Inferometer",
        description="Exported runs with their verdicts, and the measured engines by their own metrics.",
        tags=("inferometer", "llm"),
        schema_version=SCHEMA_VERSION,
        editable=True,
        refresh="30s",
        time=TimeRange("now-6h", "now"),
        templating=Templating(variables),
        panels=tuple(_placed({"Runs": run_charts(), "Engines": engine_charts()})),
    )


def _placed(rows: Mapping[str, Sequence[Chart]]) -> Iterable[Panel]:
    """Two charts beside each other, a heading above each part."""
    number, y = 1, 0
    for heading, charts in rows.items():
        yield Panel(number, "row", heading, GridPosition(1, 2 * WIDTH, 0, y), collapsed=False)
        number, y = number + 1, y + 1
        for place, chart in enumerate(charts):
            position = GridPosition(HEIGHT, WIDTH, WIDTH * (place % 2), y + HEIGHT * (place // 2))
            yield _panel(number, chart, position)
            number += 1
        y += HEIGHT * -(-len(charts) // 2)


def _panel(number: int, chart: Chart, position: GridPosition) -> Panel:
    targets = tuple(
        Target(
            chr(ord("A") + place),
            expression,
            legend,
            "table" if chart.table else "time_series",
            instant=True if chart.table else None,
        )
        for place, (legend, expression) in enumerate(chart.queries.items())
    )
    return Panel(
        number,
        "table" if chart.table else "timeseries",
        chart.title,
        position,
        chart.description,
        DataSource(),
        FieldConfig(Defaults(chart.unit)),
        targets,
    )


def run_charts() -> list[Chart]:
    """Verdicts first; then each metric of the result table, with the verdict in every legend."""
    legend = "{{run}} {{verdict}}"
    info = Chart(
        "Verdicts",
        "short",
        {"": f"inferometer_run_info{RUN}"},
        "The figures of a run that is not VALID are not to be relied on.",
        table=True,
    )
    reasons = Chart("Reasons against VALID", "short", {"": f"inferometer_run_reason{RUN}"}, table=True)
    charts = [info, reasons]
    for key, metric in METRICS.items():
        if metric.row:
            wanted = '{run=~"$run",quantile=~"' + "|".join(QUANTILES) + '"}'
            queries = {f"{legend} {{{{quantile}}}}": series_name(key) + wanted}
            charts.append(Chart(metric.title, UNITS[metric.unit], queries, metric.means))
    for key, rate in RATES.items():
        charts.append(Chart(rate.title, UNITS[rate.unit], {legend: series_name(key) + RUN}, rate.means))
    charts.append(Chart("Success Rate", "percentunit", {legend: series_name(SUCCESS) + RUN}))
    states = {f"{legend} {{{{state}}}}": f"inferometer_requests{RUN}"}
    return [*charts, Chart("Requests", "short", states)]


TERMS: Mapping[str, tuple[str, str]] = {
    "running": ("Requests running", "short"),
    "waiting": ("Requests waiting", "short"),
    "kv_usage": ("KV cache in use", "percentunit"),
    "preemptions": ("Preemptions per second", "short"),
    "prompt_tokens": ("Prompt tokens per second", "short"),
    "generation_tokens": ("Output tokens per second", "short"),
    "succeeded": ("Requests succeeded per second", "reqps"),
    "ttft": ("TTFT by the server, P95", "s"),
    "itl": ("ITL by the server, P95", "s"),
    "e2e": ("Request latency by the server, P95", "s"),
    "queue": ("Time in the queue, P95", "s"),
}
"""Each common term that is drawn (docs/server-metrics.md): its panel's title and unit."""


def engine_charts() -> list[Chart]:
    """One chart a term, a line for each verified engine that has it."""
    verified = [engine for engine in ENGINES if engine.verified]
    charts = []
    for term, (title, unit) in TERMS.items():
        queries = {engine.name: expression(engine, term) for engine in verified if term in engine.terms}
        charts.append(Chart(title, unit, queries))
    return charts


def expression(engine: Engine, term: str) -> str:
    """The term of an engine in PromQL: a level as it is, a counter per second, of a histogram the 95th percentile."""
    source = engine.terms[term]
    family = source.families[0]
    if term in HISTOGRAMS:
        return f"histogram_quantile(0.95, sum by (le) (rate({family}_bucket{RATE})))"
    sums = [_summed(name, source, term) for name in (family, *source.plus)]
    return " + ".join([sums[0], *(f"({one} or vector(0))" for one in sums[1:])])


def _summed(family: str, source: Source, term: str) -> str:
    """One family over all series that count; of the KV cache the fullest counts."""
    if term in COUNTERS:
        return f"sum(rate({family}_total{_where(source)}{RATE}))"
    return f"{'max' if term in SHARES else 'sum'}({family}{_where(source)})"


def _where(source: Source) -> str:
    """The labels that count."""
    pairs = ",".join(f'{label}=~"{"|".join(values)}"' for label, values in source.where.items())
    return f"{{{pairs}}}" if pairs else ""


if __name__ == "__main__":
    FILE.write_bytes(render())
