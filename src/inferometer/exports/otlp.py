"""A run as OpenTelemetry metrics: one message of OTLP, in protobuf or in JSON, encoded by `opentelemetry-proto`.

Client-side names of the GenAI semantic conventions are used where their meaning is ours. All that is measured here is seen by
a client, so the conventions' `gen_ai.server.*` do not apply: a server reports those of itself.

| instrument                                      | kind      | unit      | values                                           |
| ----------------------------------------------- | --------- | --------- | ------------------------------------------------ |
| `gen_ai.client.operation.duration`              | histogram | s         | sent to ended, of each request; `error.type`     |
| `gen_ai.client.operation.time_to_first_chunk`   | histogram | s         | TTFE: to the first event of any kind; streams    |
| `gen_ai.client.operation.time_per_output_chunk` | histogram | s         | gaps between events with text; streams           |
| `gen_ai.client.token.usage`                     | histogram | {token}   | `gen_ai.token.type` input and output             |
| `inferometer.NAME`                              | gauge     | its own   | a metric: `inferometer.statistic`                |
| `inferometer.NAME.ci95`                         | gauge     | its own   | its interval: `inferometer.bound` low and high   |
| `inferometer.requests`                          | gauge     | {request} | `inferometer.state`                              |

All but the first are of successful requests. Histograms have the conventions' bounds, upper ones inclusive. They are
cumulative, begin with the measured phase and stand at its end. The marks of the run are attributes of the resource, and the
verdict one of every data point too, as some backends drop the resource's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlsplit

import numpy as np
from google.protobuf.json_format import MessageToJson, Parse, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from inferometer.documents.summary import Summary
from inferometer.engines.interface import INTERFACES
from inferometer.exports.exported_run import ExportedRun, Period, marks_of, period_of
from inferometer.exports.formats import Push, Wanted
from inferometer.exports.readings import MS_PER_S, figures, instrument_name, spreads
from inferometer.journal.schema import Outcome
from inferometer.measure.record import Floats, between_ms
from inferometer.measure.samples import Samples
from inferometer.metrics.statistics import QUANTILES
from inferometer.printable import printable

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS = tuple(4.0**power for power in range(14))
"""Bounds of the GenAI semantic conventions (semantic-conventions-genai, gen-ai-metrics.md): durations, and 1 to 67,108,864."""
UNKNOWN = "unknown"
"""The provider of a server that does not name itself: the conventions require one."""

Attributes = Mapping[str, str | int | bool | Sequence[str]]


def _refused(answer: ExportMetricsServiceResponse) -> str | None:
    partial = answer.partial_success
    if not partial.rejected_data_points:
        return None
    return f"{partial.rejected_data_points} data points were rejected: {partial.error_message}"


def _refused_in_protobuf(body: bytes) -> str | None:
    try:
        return _refused(ExportMetricsServiceResponse.FromString(body))
    except DecodeError:
        return None  # the status said success, and not every receiver answers with a message


def _refused_in_json(body: bytes) -> str | None:
    try:
        return _refused(Parse(body or b"{}", ExportMetricsServiceResponse(), ignore_unknown_fields=True))
    except ParseError:
        return None


PUSH = Push({"Content-Type": "application/x-protobuf"}, _refused_in_protobuf)
JSON_PUSH = Push({"Content-Type": "application/json"}, _refused_in_json)


def render(run: ExportedRun, _wanted: Wanted) -> bytes:
    """The message in protobuf."""
    written: bytes = request_of(run).SerializeToString(deterministic=True)
    return written


def render_json(run: ExportedRun, _wanted: Wanted) -> bytes:
    """The message in OTLP's JSON, on one line."""
    written: str = MessageToJson(request_of(run), indent=None, use_integers_for_enums=True)
    return written.encode() + b"\n"


def request_of(run: ExportedRun) -> ExportMetricsServiceRequest:
    """The message."""
    summary, period = run.summary, period_of(run.summary)
    marked: Attributes = {"inferometer.verdict": summary.verdict.status}
    scope = ScopeMetrics(
        scope=InstrumentationScope(name="inferometer", version=summary.version),
        metrics=[*_conventional(run, period, marked), *_own(summary, period, marked)],
    )
    resource = ResourceMetrics(
        resource=Resource(attributes=_attributes(_resource(summary))), scope_metrics=[scope]
    )
    return ExportMetricsServiceRequest(resource_metrics=[resource])


def _resource(summary: Summary) -> Attributes:
    marks = marks_of(summary)
    return {
        "service.name": "inferometer",
        "service.version": summary.version,
        "inferometer.run.id": marks.run,
        "inferometer.run.name": marks.name,
        "inferometer.run.verdict": marks.verdict,
        "inferometer.run.reasons": marks.reasons,
        "inferometer.run.simulated": marks.simulated,
        "inferometer.run.interrupted": marks.interrupted,
        "inferometer.run.plan_hash": summary.run.plan_hash or "",
    }


def _conventional(run: ExportedRun, period: Period, marked: Attributes) -> list[Metric]:
    """The instruments of the GenAI conventions; one without values is left out."""
    samples, common = run.samples, {**_operation(run.summary), **marked}
    by_type = {
        "input": samples.input_tokens[~np.isnan(samples.input_tokens)],
        "output": samples.output_tokens[~np.isnan(samples.output_tokens)],
    }
    tokens = [
        _point(values, TOKENS, {**common, "gen_ai.token.type": kind}, period)
        for kind, values in by_type.items()
        if len(values)
    ]
    made = [
        ("operation.duration", "s", "GenAI operation duration.", _durations(samples, common, period)),
        ("token.usage", "{token}", "Number of input and output tokens used.", tokens),
    ]
    for name, words, values in (
        ("time_to_first_chunk", "Time to receive the first chunk of a stream.", samples.ttfe),
        ("time_per_output_chunk", "Time from one chunk with text to the next.", samples.event_gaps),
    ):
        known = values[~np.isnan(values)] / MS_PER_S if samples.streamed else values[:0]
        points = [_point(known, SECONDS, common, period)] if len(known) else []
        made.append((f"operation.{name}", "s", words, points))
    return [
        _histogram(f"gen_ai.client.{name}", unit, words, points)
        for name, unit, words, points in made
        if points
    ]


def _operation(summary: Summary) -> Attributes:
    """What the conventions say of each operation. An address is there only where a URL was measured."""
    sut = summary.sut
    provider = sut.observed.server or sut.software or UNKNOWN
    found: dict[str, str | int] = {
        "gen_ai.operation.name": "chat" if INTERFACES[sut.api].takes_messages else "text_completion",
        "gen_ai.provider.name": printable(provider),
    }
    if sut.model is not None:
        found["gen_ai.request.model"] = printable(sut.model)
    if sut.observed.answered_as is not None:
        found["gen_ai.response.model"] = printable(sut.observed.answered_as)
    parts = urlsplit(sut.url or "")
    if parts.hostname:
        found["server.address"] = parts.hostname
        found["server.port"] = parts.port or (443 if parts.scheme == "https" else 80)
    return found


def _durations(samples: Samples, common: Attributes, period: Period) -> list[HistogramDataPoint]:
    """One point for the requests that succeeded, and one for each way in which others ended."""
    record = samples.record
    sent = record.measured & record.t_submit.valid
    seconds = between_ms(record.t_submit, record.t_end) / MS_PER_S
    points = []
    for outcome in record.outcome.counts(sent):
        failed: Attributes = {} if outcome == Outcome.OK else {"error.type": outcome}
        values = seconds[sent & record.outcome.are(outcome)]
        points.append(_point(values, SECONDS, {**common, **failed}, period))
    return points


def _own(summary: Summary, period: Period, marked: Attributes) -> Iterable[Metric]:
    """Every statistic under our own names."""
    for one in spreads(summary):
        named = {"mean": one.mean, "min": one.quantiles[0.0], "max": one.quantiles[1.0]}
        named |= {name: one.quantiles[share] for name, share in QUANTILES.items()}
        points = [
            _number(value, {**marked, "inferometer.statistic": name}, period) for name, value in named.items()
        ]
        yield _gauge(instrument_name(one.key), one.unit.ucum, one.means, points)
        bounds = [
            _number(value, {**marked, "inferometer.statistic": name, "inferometer.bound": bound}, period)
            for name, interval in one.intervals.items()
            for bound, value in zip(("low", "high"), interval, strict=True)
        ]
        if bounds:
            yield _gauge(
                f"{instrument_name(one.key)}.ci95", one.unit.ucum, "95 % confidence interval.", bounds
            )
    for figure in figures(summary):
        name, unit = instrument_name(figure.key), figure.unit.ucum
        yield _gauge(name, unit, figure.means, [_number(figure.value, marked, period)])
        if figure.interval is not None:
            bounds = [
                _number(value, {**marked, "inferometer.bound": bound}, period)
                for bound, value in zip(("low", "high"), figure.interval, strict=True)
            ]
            yield _gauge(f"{name}.ci95", unit, "95 % confidence interval.", bounds)
    states = ("sent", "completed", "failed", "cancelled")
    counts = [
        _number(getattr(summary.requests, state), {**marked, "inferometer.state": state}, period)
        for state in states
    ]
    yield _gauge("inferometer.requests", "{request}", "Requests of the measured phase.", counts)


def _point(
    values: Floats, bounds: Sequence[float], attributes: Attributes, period: Period
) -> HistogramDataPoint:
    """A histogram of values: bucket i holds those above bound i - 1 and not above bound i."""
    places = np.searchsorted(np.asarray(bounds), values, side="left")
    return HistogramDataPoint(
        attributes=_attributes(attributes),
        start_time_unix_nano=period.start_ns,
        time_unix_nano=period.end_ns,
        count=len(values),
        sum=math.fsum(values.tolist()),
        min=float(values.min()),
        max=float(values.max()),
        explicit_bounds=bounds,
        bucket_counts=np.bincount(places, minlength=len(bounds) + 1).tolist(),
    )


def _number(value: float, attributes: Attributes, period: Period) -> NumberDataPoint:
    return NumberDataPoint(
        attributes=_attributes(attributes),
        start_time_unix_nano=period.start_ns,
        time_unix_nano=period.end_ns,
        as_double=float(value),
    )


def _histogram(name: str, unit: str, words: str, points: Sequence[HistogramDataPoint]) -> Metric:
    cumulative = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    histogram = Histogram(data_points=points, aggregation_temporality=cumulative)
    return Metric(name=name, unit=unit, description=words, histogram=histogram)


def _gauge(name: str, unit: str, words: str, points: Sequence[NumberDataPoint]) -> Metric:
    return Metric(name=name, unit=unit, description=words, gauge=Gauge(data_points=points))


def _attributes(attributes: Attributes) -> list[KeyValue]:
    return [KeyValue(key=name, value=_value(value)) for name, value in attributes.items()]


def _value(value: str | int | bool | Sequence[str]) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=value)
    return AnyValue(array_value=ArrayValue(values=[_value(one) for one in value]))
