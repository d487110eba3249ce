"""The charts of a run: distributions, the run over time, the server's gauges. All over time share one axis."""

from __future__ import annotations

import math

from inferometer.documents.results import Axis, Mark, Series
from inferometer.documents.summary import Summary
from inferometer.measure.series import Distribution, RunSeries, Timeline
from inferometer.measure.server import Points
from inferometer.metrics.catalogue import METRICS
from inferometer.metrics.statistics import Stats
from inferometer.report.charts import Chart, Kind
from inferometer.report.run import machines

LOW = 250
"""Height of a chart over time: there are many."""
TAIL = 5
"""A largest sample beyond so many medians presses all else against the axis, unless that is logarithmic."""

REQUESTS_PER_BIN = 10

_SECONDS = Axis("Time", "s")
_SERVER = {
    "running": ("Requests running at the server", Axis("requests"), 1),
    "waiting": ("Requests waiting at the server (queue depth)", Axis("requests"), 1),
    "kv_usage": ("KV cache in use", Axis("share", "%"), 100),
    "generation_tok_s": ("Output tokens by the server's counter", Axis("tokens/s"), 1),
    "prefix_hit_share": ("Prompt tokens found in the prefix cache", Axis("share", "%"), 100),
}
"""What is drawn where the server's metrics have it: title, axis, and the factor of its unit."""


def distributions(summary: Summary, series: RunSeries, name: str) -> tuple[Chart, Chart]:
    """A latency's histogram and its cumulative distribution, on one axis."""
    drawn: Distribution = getattr(series, name)
    stats: Stats | None = getattr(summary.metrics, name)
    title = METRICS[name].title
    middle = stats.p50 if stats else 0.0
    within, log = _reach(drawn, middle)
    x = Axis(METRICS[name].short, "ms", log=log)
    marks = (Mark("P50", stats.p50), Mark("P99", stats.p99)) if stats else ()
    # What lies below the axis is drawn at its edge: zero has no place on a logarithmic one.
    edges, x_values = (tuple(max(value, within[0]) for value in values) for values in (drawn.edges, drawn.x))
    counts = Series(title, edges, (*drawn.counts, 0))
    shares = Series(title, x_values, tuple(100 * share for share in drawn.p))
    what = "gaps" if METRICS[name].pooled else "requests"

    def chart(suffix: str, kind: Kind, y: Axis, one: Series) -> Chart:
        return Chart(f"{title}, {suffix}", kind, x, y, (one,) if drawn.x else (), marks, LOW, within)

    return (
        chart("histogram", "histogram", Axis(what), counts),
        chart("share at or below", "cdf", Axis("share", "%"), shares),
    )


def _reach(drawn: Distribution, middle: float) -> tuple[tuple[float, float], bool]:
    """What the axis reaches over, and whether it is logarithmic. Zero has no place there: whatever lies far below the median
    starts at its edge."""
    if not drawn.x:
        return (0.0, 1.0), False
    first, last = drawn.x[0], drawn.x[-1]
    if not 0 < TAIL * middle < last:
        return (first, last), False
    positive = next(value for value in drawn.x if value > 0)
    return (max(positive, middle / 10), last), True


def over_time(summary: Summary, series: RunSeries) -> list[Chart]:
    """The run over time: output, load, latency, errors, lateness."""
    line = series.timeline
    if line is None:
        return []
    within, steady = _span(series, line), _steady(summary)

    def chart(title: str, unit: str, kind: Kind, *drawn: Series, marks: tuple[Mark, ...] = ()) -> Chart:
        return Chart(title, kind, _SECONDS, Axis(unit), drawn, marks, LOW, within, steady)

    late = Series("lateness", series.lateness.t_s, series.lateness.ms)
    output = Series("output", line.t_s, line.output_tok_s)
    counted = [chart("Output tokens per second", "tokens/s", "timeline", output)] if line.output_tok_s else []
    return [
        *counted,
        chart("Requests in flight", "requests", "timeline", Series("in flight", line.t_s, line.in_flight)),
        chart(
            "Time to First Token",
            "ms",
            "timeline",
            Series("P50", line.t_s, line.ttft_p50_ms),
            Series("P99", line.t_s, line.ttft_p99_ms),
        ),
        chart(
            "Requests completed per second",
            "req/s",
            "timeline",
            _completed(line),
        ),
        chart("Errors", "failed requests", "spikes", Series("errors", line.t_s, line.errors)),
        chart(
            "Lateness of each request",
            "ms",
            "dots",
            late,
            marks=_lateness_limit(summary, max(series.lateness.ms, default=0.0)),
        ),
    ]


def _completed(line: Timeline) -> Series:
    """Requests per second, over as many bins at a time as hold REQUESTS_PER_BIN on average: fewer would draw counting noise."""
    requests = math.fsum(line.requests_s) * line.bin_s
    size = max(1, math.ceil(REQUESTS_PER_BIN * len(line.t_s) / max(requests, 1)))
    parts = [
        (line.t_s[at : at + size], line.requests_s[at : at + size]) for at in range(0, len(line.t_s), size)
    ]
    x, y = (tuple(math.fsum(values) / len(values) for values in side) for side in zip(*parts, strict=True))
    return Series("completed", x, y)


def by_server(summary: Summary, series: RunSeries) -> list[Chart]:
    """What the server's own metrics have, over the same time."""
    if series.timeline is None:
        return []
    within, steady = _span(series, series.timeline), _steady(summary)
    found = []
    for name, (title, axis, factor) in _SERVER.items():
        points = series.server.get(name)
        if points is not None:
            drawn = _inside(name, points, within, factor)
            found.append(Chart(title, "timeline", _SECONDS, axis, (drawn,), (), LOW, within, steady))
    return found


def by_machine(summary: Summary, series: RunSeries) -> list[Chart]:
    """What the machines did, over the same time."""
    if series.timeline is None:
        return []
    return machines.pictures(series, _span(series, series.timeline), _steady(summary))


def _inside(name: str, points: Points, within: tuple[float, float], factor: float) -> Series:
    kept = [
        (t, value * factor)
        for t, value in zip(points.t_s, points.values, strict=True)
        if within[0] <= t <= within[1]
    ]
    return Series(name, tuple(t for t, _ in kept), tuple(value for _, value in kept))


def _span(series: RunSeries, line: Timeline) -> tuple[float, float]:
    """Every chart over time has the same span, so that they can be held beside each other."""
    half = line.bin_s / 2
    ends = [line.t_s[0] - half, line.t_s[-1] + half, *series.lateness.t_s[:1], *series.lateness.t_s[-1:]]
    return min(0.0, *ends), max(ends)


def _steady(summary: Summary) -> tuple[float, float] | None:
    start, end = summary.window.steady_start_s, summary.window.steady_end_s
    return None if start is None or end is None else (start, end)


def _lateness_limit(summary: Summary, largest: float) -> tuple[Mark, ...]:
    """The check's limit, unless it would press all else against the axis. In a closed loop it is a share of time, which is no
    height in this chart."""
    for check in summary.verdict.checks:
        if check.code == "lateness" and check.unit == "ms" and isinstance(check.limit, int | float):
            return (Mark("limit for P99", y=check.limit),) if check.limit <= TAIL * largest else ()
    return ()
