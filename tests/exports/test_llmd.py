"""The Benchmark Report of llm-d, held to the models and the JSON Schema of `llmd-benchmark-report`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import jsonschema
import yaml
from llmd_benchmark_report import load_benchmark_report, make_json_schema
from sample_runs import invalid_summary, valid_summary

from inferometer.documents.part import to_data
from inferometer.documents.summary import Summary
from inferometer.exports import llmd
from inferometer.exports.exported_run import ExportedRun, period_of
from inferometer.exports.formats import Wanted


def loaded(data: dict[str, Any]) -> Any:
    """As a consumer reads it."""
    return load_benchmark_report(data)


def leaves(value: object) -> Iterator[object]:
    """Every plain value of a document."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from leaves(inner)
    else:
        yield value


def test_a_report_is_one_of_the_schema(summary: Summary) -> None:
    """The published models and the JSON Schema take each sample: no member is unknown and every unit fits."""
    data = to_data(llmd.report(summary))
    assert loaded(data).version == llmd.VERSION
    jsonschema.validate(data, json.loads(make_json_schema("0.2")))


def test_yaml_and_json_hold_the_same(run: ExportedRun) -> None:
    """Read back by their own readers."""
    text = llmd.render_yaml(run, Wanted()).decode()
    assert text.isascii()
    written = yaml.safe_load(text)
    assert written == json.loads(llmd.render_json(run, Wanted()))
    loaded(written)


def test_the_verdict_and_its_reasons_are_in_the_report(summary: Summary) -> None:
    """In the description, which consumers show, in the keywords, and in words beside the results."""
    read = loaded(to_data(llmd.report(summary)))
    verdict = summary.verdict
    assert read.run.description.startswith(f"{verdict.status}: ")
    assert {f"verdict:{verdict.status}", *(f"reason:{one.code}" for one in verdict.reasons)} <= set(
        read.run.keywords
    )
    judged = read.results.observability.model_extra["inferometer"]
    assert judged["verdict"] == verdict.status
    assert [one["message"] for one in judged["reasons"]] == [one.message for one in verdict.reasons]


def test_figures_are_those_of_the_summary() -> None:
    """Latencies in ms, rates over the steady span, counts of the measured phase."""
    summary = valid_summary()
    found = loaded(to_data(llmd.report(summary))).results.request_performance.aggregate
    ttft = summary.metrics.ttft_ms
    assert ttft is not None
    assert (found.latency.time_to_first_token.units, found.latency.time_to_first_token.p99) == (
        "ms",
        ttft.p99,
    )
    assert found.latency.time_to_first_token.p99p9 == ttft.p99_9
    assert found.throughput.output_token_rate.mean == summary.throughput.output_tok_s
    assert (found.requests.total, found.requests.failures) == (summary.requests.sent, summary.requests.failed)


def test_the_times_of_a_run_are_those_of_the_clock_that_it_was_made_by(run: ExportedRun) -> None:
    """Law: a duration is that between the start and the end beside it, and no point lies outside of them, however long the
    simulated time was; what was simulated says so in the first words."""
    summary, period = run.summary, period_of(run.summary)
    assert summary.run.simulated
    assert summary.run.ended is not None
    found = llmd.report(summary)
    start, end = (datetime.fromisoformat(one) for one in (summary.run.started, summary.run.ended))
    assert found.run.time.duration == f"PT{(end - start).total_seconds():.3f}S"
    assert (period.start_ns, period.end_ns) == tuple(
        round(at.timestamp() * 1000) * 1_000_000 for at in (start, end)
    )
    assert "simulated" in found.run.description
    assert found.results.observability.inferometer.measured_phase_s == summary.window.duration_s


def test_what_is_undefined_is_absent(summary: Summary) -> None:
    """No null stands where the schema has a number, and no zero in its place."""
    data = to_data(llmd.report(summary))
    plan = data["scenario"].pop("load", None)
    assert plan is None or plan["native"]["config"] == to_data(summary.plan)
    judged = data["results"]["observability"].pop("inferometer")
    assert judged["simulated"] is summary.run.simulated
    assert None not in set(leaves(data))
    latency = data["results"]["request_performance"]["aggregate"]["latency"]
    assert ("time_to_first_token" in latency) == (summary.metrics.ttft_ms is not None)
    assert ("inter_token_latency" in latency) == (summary.metrics.itl_ms is not None)
    assert all(math.isfinite(one) for one in leaves(data) if isinstance(one, float))


def test_names_of_others_cannot_leave_their_place() -> None:
    """A model that calls itself markup and escape sequences is a printable string of the report."""
    data = to_data(llmd.report(invalid_summary()))
    assert "</script>" in data["run"]["description"]
    assert not {"\x1b", "\u202e"} & set(data["run"]["description"])
    assert yaml.safe_load(yaml.safe_dump(data)) == data
