"""The figures of a run under the names and in the base units that monitoring systems expect: seconds, tokens, per second.

| in summary.json        | OpenTelemetry                                | Prometheus                                     |
| ---------------------- | -------------------------------------------- | ---------------------------------------------- |
| `ttft_ms`              | `inferometer.ttft`, s                        | `inferometer_ttft_seconds`                     |
| `input_tokens`         | `inferometer.input_tokens`, {token}          | `inferometer_input_tokens`                     |
| `output_tok_s`         | `inferometer.output_token_rate`, {token}/s   | `inferometer_output_tokens_per_second`         |
| `request_s`            | `inferometer.request_rate`, {request}/s      | `inferometer_requests_per_second`              |
| `success_rate`         | `inferometer.success_rate`, 1                | `inferometer_success_ratio`                    |

What is undefined in the summary has no reading: a consumer sees no series, never a zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inferometer.documents.outcomes import distributions, outcomes
from inferometer.documents.summary import Summary
from inferometer.metrics.catalogue import METRICS, RATES, SUCCESS
from inferometer.metrics.statistics import INTERVALS, QUANTILES, Interval, Stats

MS_PER_S = 1_000.0


@dataclass(frozen=True, slots=True)
class Unit:
    """A base unit as UCUM writes it, and how many of the summary's unit make one."""

    ucum: str
    per: float = 1.0


_UNITS: Mapping[str, Unit] = {
    "ms": Unit("s", MS_PER_S),
    "tokens": Unit("{token}"),
    "tokens/s": Unit("{token}/s"),
    "req/s": Unit("{request}/s"),
    "sessions/s": Unit("{session}/s"),
    "1": Unit("1"),
}
_SERIES = {
    "_ms": "_seconds",
    "_tok_s": "_tokens_per_second",
    "request_s": "requests_per_second",
    "session_s": "sessions_per_second",
    "session_goodput_s": "session_goodput_per_second",
    "_rate": "_ratio",
}
_INSTRUMENTS = {
    "_ms": "",
    "_tok_s": "_token_rate",
    "request_s": "request_rate",
    "session_s": "session_rate",
    "session_goodput_s": "session_goodput_rate",
}
"""How a key of the catalogue ends, and what stands in that place."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A metric with a distribution, in its base unit. `key`: of the catalogue. `quantiles`: by share, 0 is the least and 1 the
    largest value. `intervals`: of the mean and of quantiles, 95 %, by the statistic's name; what has none is left out."""

    key: str
    title: str
    means: str
    unit: Unit
    count: int
    mean: float
    quantiles: Mapping[float, float]
    intervals: Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the whole run, in its base unit, with its 95 % interval if it has one."""

    key: str
    title: str
    means: str
    unit: Unit
    value: float
    interval: Interval | None


def spreads(summary: Summary) -> list[Spread]:
    """Each metric that the run has, in the catalogue's order."""
    found = []
    for key, metric in METRICS.items():
        stats: Stats | None = getattr(summary.metrics, key)
        if stats is not None:
            found.append(_spread(key, metric.title, metric.means, _UNITS[metric.unit], stats))
    for key, entry, stats in distributions(summary):
        found.append(_spread(key, entry.title, entry.means, _UNITS[entry.unit], stats))
    return found


def _spread(key: str, title: str, means: str, unit: Unit, stats: Stats) -> Spread:
    quantiles = {0.0: stats.min, **{share: getattr(stats, name) for name, share in QUANTILES.items()}}
    quantiles = dict(sorted({**quantiles, 1.0: stats.max}.items()))
    known = {name: getattr(stats.ci95, name) for name in ("mean", *INTERVALS)}
    return Spread(
        key=key,
        title=title,
        means=means,
        unit=unit,
        count=stats.n,
        mean=stats.mean / unit.per,
        quantiles={share: float(value) / unit.per for share, value in quantiles.items()},
        intervals={
            name: (one[0] / unit.per, one[1] / unit.per) for name, one in known.items() if one is not None
        },
    )


def figures(summary: Summary) -> list[Figure]:
    """Each rate that the run has, the share of requests that succeeded, and what only runs of sessions and tasks have."""
    found = []
    for key, rate in RATES.items():
        value: float | None = getattr(summary.throughput, key)
        if value is not None:
            interval: Interval | None = getattr(summary.throughput.ci95, key)
            found.append(Figure(key, rate.title, rate.means, _UNITS[rate.unit], value, interval))
    success = summary.success_rate
    if success.value is not None:
        means = "Requests that succeeded among those that ended."
        unit = Unit("1")
        found.append(Figure(SUCCESS, "Success Rate", means, unit, success.value, success.ci95))
    for one in outcomes(summary):
        found.append(Figure(one.key, one.title, one.means, _UNITS[one.unit], one.value, one.ci95))
    return found


def series_name(key: str) -> str:
    """The name of a reading in Prometheus: its unit stands last, in full."""
    return f"inferometer_{_renamed(key, _SERIES)}"


def instrument_name(key: str) -> str:
    """The name of a reading in OpenTelemetry: without its unit, which is a field of its own there."""
    return f"inferometer.{_renamed(key, _INSTRUMENTS)}"


def _renamed(key: str, endings: Mapping[str, str]) -> str:
    for ending, instead in endings.items():
        if key.endswith(ending):
            return key.removesuffix(ending) + instead
    return key
