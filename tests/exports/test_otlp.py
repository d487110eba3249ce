"""OTLP, decoded by `opentelemetry-proto`; names and units are those of `opentelemetry-semantic-conventions`."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import finish
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from peers import Script, scripted, whole

from inferometer.exports.exported_run import ExportedRun, period_of
from inferometer.exports.formats import Wanted
from inferometer.exports.otlp import SECONDS, TOKENS, render, render_json


@pytest.fixture(scope="module")
def message(run: ExportedRun) -> Any:
    """What was written, as the official library reads it."""
    return ExportMetricsServiceRequest.FromString(render(run, Wanted()))


def plain(value: Any) -> Any:
    """An attribute's value."""
    kind = value.WhichOneof("value")
    return [plain(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind)


def attributes(holder: Any) -> dict[str, Any]:
    """Of a resource or a data point."""
    return {one.key: plain(one.value) for one in holder.attributes}


def metrics(message: Any) -> dict[str, Any]:
    """By name; the message has one resource and one scope."""
    ((scope,),) = [resource.scope_metrics for resource in message.resource_metrics]
    return {one.name: one for one in scope.metrics}


def points(metric: Any) -> Any:
    """The data points of a gauge or histogram."""
    return getattr(metric, metric.WhichOneof("data")).data_points


def test_conventional_names_and_units_are_those_of_the_conventions(message: Any) -> None:
    """What is named gen_ai.* exists there, is a client's, and has the unit that the conventions give it."""
    known = {
        getattr(gen_ai_metrics, name): getattr(gen_ai_metrics, f"create_{name.lower()}")
        for name in dir(gen_ai_metrics)
        if name.startswith("GEN_AI_")
    }
    units: dict[str, str] = {}

    class Meter:
        def create_histogram(self, name: str, unit: str, **_: str) -> None:
            units[name] = unit

    for create in known.values():
        create(Meter())
    named = {name: one.unit for name, one in metrics(message).items() if name.startswith("gen_ai.")}
    assert len(named) == 4
    assert named.items() <= units.items()
    assert all(name.startswith("gen_ai.client.") for name in named)


def test_histograms_hold_every_value_in_its_bucket(run: ExportedRun, message: Any) -> None:
    """Count, sum, extremes and buckets are those of the samples, with the conventions' bounds."""
    samples = run.samples
    for name, values, bounds in (
        ("gen_ai.client.operation.time_to_first_chunk", samples.ttfe / 1000, SECONDS),
        ("gen_ai.client.operation.time_per_output_chunk", samples.event_gaps / 1000, SECONDS),
    ):
        (point,) = points(metrics(message)[name])
        assert point.count == len(values) == sum(point.bucket_counts)
        assert point.sum == pytest.approx(float(values.sum()))
        assert (point.min, point.max) == (values.min(), values.max())
        assert tuple(point.explicit_bounds) == bounds
        edges = [-np.inf, *bounds, np.inf]
        meant = [int(((values > low) & (values <= high)).sum()) for low, high in itertools.pairwise(edges)]
        assert list(point.bucket_counts) == meant
        assert metrics(message)[name].histogram.aggregation_temporality == 2


def test_tokens_and_failures_are_told_apart(run: ExportedRun, message: Any) -> None:
    """Input and output tokens are two series; a failed request has the duration it had, and its class."""
    tokens = {
        attributes(one)["gen_ai.token.type"]: one
        for one in points(metrics(message)["gen_ai.client.token.usage"])
    }
    assert tokens["output"].sum == run.samples.output_tokens.sum()
    assert tokens["input"].sum == run.samples.input_tokens.sum()
    assert tuple(tokens["input"].explicit_bounds) == TOKENS == tuple(4**power for power in range(14))
    durations = points(metrics(message)["gen_ai.client.operation.duration"])
    assert {attributes(one).get("error.type"): one.count for one in durations} == {None: 39, "http_5xx": 1}


def test_the_verdict_is_on_the_resource_and_on_every_point(run: ExportedRun, message: Any) -> None:
    """Backends that drop the resource's attributes keep the point's."""
    marks = run.marks
    about = attributes(message.resource_metrics[0].resource)
    assert about["service.name"] == "inferometer"
    assert about["inferometer.run.verdict"] == marks.verdict
    assert about["inferometer.run.reasons"] == list(marks.reasons)
    assert about["inferometer.run.simulated"] is True
    every = [one for metric in metrics(message).values() for one in points(metric)]
    assert {attributes(one)["inferometer.verdict"] for one in every} == {marks.verdict}
    period = period_of(run.summary)
    assert {(one.start_time_unix_nano, one.time_unix_nano) for one in every} == {
        (period.start_ns, period.end_ns)
    }


def test_statistics_are_gauges_and_the_undefined_is_absent(run: ExportedRun, message: Any) -> None:
    """In base units, under our own names."""
    found, ttft = metrics(message), run.summary.metrics.ttft_ms
    assert ttft is not None
    values = {
        attributes(one)["inferometer.statistic"]: one.as_double for one in points(found["inferometer.ttft"])
    }
    assert values["p99"] == ttft.p99 / 1000
    assert found["inferometer.ttft"].unit == "s"
    assert run.summary.metrics.tls_ms is None
    assert "inferometer.tls" not in found


def test_json_is_the_same_message(run: ExportedRun, message: Any) -> None:
    """On one line, as the collector's reader of OTLP JSON files takes it."""
    written = render_json(run, Wanted())
    assert written.count(b"\n") == 1
    assert Parse(written, ExportMetricsServiceRequest()) == message


@pytest.mark.parametrize(
    ("name", "kind"), [("otlp", "application/x-protobuf"), ("otlp-json", "application/json")]
)
def test_a_receiver_gets_the_message(run: ExportedRun, folder: Path, name: str, kind: str) -> None:
    """One POST to the URL as it is, with the token of the variable, which is shown nowhere."""
    with scripted(lambda _: Script(whole(200, b""))) as peer:
        url = f"http://127.0.0.1:{peer.port}/v1/metrics"
        line = ("export", str(folder), "--format", name, "--endpoint", url, "--token-env", "OTLP_TOKEN")
        code, out, err = finish(*line, OTLP_TOKEN="s3cret-token")
    assert code == 0
    (seen,) = peer.seen
    assert (seen.method, seen.target) == ("POST", "/v1/metrics")
    lines = {header.lower(): value for header, value in seen.headers.items()}
    assert (lines["content-type"], lines["authorization"]) == (kind, "Bearer s3cret-token")
    assert seen.body == (render if name == "otlp" else render_json)(run, Wanted())
    assert "s3cret" not in out + err


def test_points_that_a_receiver_rejected_are_an_error(folder: Path) -> None:
    """A partial success has status 200; what was rejected is said in the receiver's words."""
    answer = ExportMetricsServiceResponse()
    answer.partial_success.rejected_data_points = 3
    answer.partial_success.error_message = "too old\x1b[31m"
    with scripted(lambda _: Script(whole(200, answer.SerializeToString()))) as peer:
        url = f"http://127.0.0.1:{peer.port}/v1/metrics"
        code, _, err = finish("export", str(folder), "--format", "otlp", "--endpoint", url)
    assert code == 5
    assert "3 data points were rejected: too old[31m" in err
