"""A run as Prometheus families, and as the text that node_exporter's textfile collector reads (text format 0.0.4).

| family                                | kind    | labels besides the marks                                    |
| ------------------------------------- | ------- | ----------------------------------------------------------- |
| `inferometer_run_info`                | gauge   | `version`, `plan_hash`, `started`, `interrupted`; always 1  |
| `inferometer_run_reason`              | gauge   | `code`: a check that decided against VALID; always 1        |
| `inferometer_run_start_time_seconds`, `inferometer_run_end_time_seconds` | gauge | the measured phase, s since the epoch |
| `inferometer_requests`                | gauge   | `state`: sent, completed, failed, cancelled                 |
| `inferometer_request_failures`        | gauge   | `outcome`                                                   |
| `inferometer_objective_met`           | gauge   | `objective`; 1 met, 0 missed, no series: undecided          |
| `inferometer_NAME`, a distribution    | summary | `quantile`: 0 is the least value and 1 the largest          |
| `inferometer_NAME`, a rate            | gauge   |                                                             |
| `inferometer_NAME_ci95`               | gauge   | `statistic`, `bound`: the 95 % interval                     |

Every series bears the marks of its run as labels: `run`, `name`, `model`, `verdict`, `simulated`. The text has no time stamps,
which the textfile collector refuses; the run's times are families of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from inferometer.documents.summary import Summary
from inferometer.exports.exported_run import ExportedRun, Marks, marks_of, period_of
from inferometer.exports.formats import Wanted
from inferometer.exports.readings import Figure, Spread, figures, series_name, spreads
from inferometer.metrics.statistics import Interval
from inferometer.printable import printable
from inferometer.units import NS_PER_S

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sample:
    """One series with its value; `name`: the family's, of a summary also with `_sum` or `_count`."""

    name: str
    labels: Labels
    value: float


@dataclass(frozen=True, slots=True)
class Family:
    """Samples of one meaning."""

    name: str
    kind: Literal["gauge", "summary"]
    help: str
    samples: Sequence[Sample]


def render(run: ExportedRun, _wanted: Wanted) -> bytes:
    """The text for the textfile collector."""
    return text(families(run.summary)).encode()


def families(summary: Summary) -> list[Family]:
    """Every family that the run has samples of, in the order of the table above."""
    marks = _marks(marks_of(summary))
    found = [
        *_about(summary, marks),
        *(_spread(one, marks) for one in spreads(summary)),
        *(_figure(one, marks) for one in figures(summary)),
        *_intervals(summary, marks),
    ]
    return [family for family in found if family.samples]


def _marks(marks: Marks) -> Labels:
    return {
        "run": marks.run,
        "name": marks.name,
        "model": marks.model or "",
        "verdict": marks.verdict,
        "simulated": str(marks.simulated).lower(),
    }


def _about(summary: Summary, marks: Labels) -> Iterator[Family]:
    run, requests, period = summary.run, summary.requests, period_of(summary)
    info = {
        "version": summary.version,
        "plan_hash": run.plan_hash or "",
        "started": run.started,
        "interrupted": str(run.interrupted).lower(),
    }
    yield _gauge("run_info", "The run; 1.", marks, [(info, 1)])
    reasons = [({"code": one.code}, 1.0) for one in summary.verdict.reasons]
    yield _gauge("run_reason", "A check that decided against VALID; 1.", marks, reasons)
    for side, at in (("start", period.start_ns), ("end", period.end_ns)):
        words = f"The {side} of the measured phase, seconds since the epoch."
        yield _gauge(f"run_{side}_time_seconds", words, marks, [({}, at / NS_PER_S)])
    states = ("sent", "completed", "failed", "cancelled")
    counts = [({"state": state}, float(getattr(requests, state))) for state in states]
    yield _gauge("requests", "Requests of the measured phase.", marks, counts)
    failures = [({"outcome": printable(name)}, float(count)) for name, count in requests.by_error.items()]
    yield _gauge("request_failures", "Failed requests of the measured phase.", marks, failures)
    met = [
        ({"objective": printable(one.expr)}, float(one.met)) for one in summary.slos if one.met is not None
    ]
    yield _gauge("objective_met", "1: the objective is met, 0: it is missed.", marks, met)


def _gauge(name: str, words: str, marks: Labels, values: Sequence[tuple[Labels, float]]) -> Family:
    """A family of gauges. What is named twice, as an objective may be, is one series: readers refuse two of the same labels."""
    full = f"inferometer_{name}"
    unique = {tuple(labels.items()): value for labels, value in values}
    samples = [Sample(full, {**marks, **dict(labels)}, value) for labels, value in unique.items()]
    return Family(full, "gauge", words, samples)


def _spread(one: Spread, marks: Labels) -> Family:
    name = series_name(one.key)
    samples = [
        Sample(name, {**marks, "quantile": f"{share:g}"}, value) for share, value in one.quantiles.items()
    ]
    samples.append(Sample(f"{name}_sum", marks, one.mean * one.count))
    samples.append(Sample(f"{name}_count", marks, one.count))
    return Family(name, "summary", one.means, samples)


def _figure(one: Figure, marks: Labels) -> Family:
    name = series_name(one.key)
    return Family(name, "gauge", one.means, [Sample(name, marks, one.value)])


def _intervals(summary: Summary, marks: Labels) -> Iterator[Family]:
    for spread in spreads(summary):
        yield _interval(spread.key, spread.intervals, marks)
    for figure in figures(summary):
        yield _interval(figure.key, {} if figure.interval is None else {"value": figure.interval}, marks)


def _interval(key: str, intervals: Mapping[str, Interval], marks: Labels) -> Family:
    name = f"{series_name(key)}_ci95"
    samples = [
        Sample(name, {**marks, "statistic": statistic, "bound": bound}, value)
        for statistic, interval in intervals.items()
        for bound, value in zip(("low", "high"), interval, strict=True)
    ]
    return Family(name, "gauge", f"95 % confidence interval of {series_name(key)}.", samples)


def text(found: Sequence[Family]) -> str:
    """Families in text format 0.0.4."""
    lines = []
    for family in found:
        lines += [f"# HELP {family.name} {_help(family.help)}", f"# TYPE {family.name} {family.kind}"]
        for sample in family.samples:
            labels = ",".join(f'{name}="{_label(value)}"' for name, value in sample.labels.items())
            lines.append(f"{sample.name}{{{labels}}} {float(sample.value)!r}")
    return "\n".join(lines) + "\n"


def _help(words: str) -> str:
    return words.replace("\\", r"\\").replace("\n", r"\n")


def _label(value: str) -> str:
    return _help(value).replace('"', r"\"")
