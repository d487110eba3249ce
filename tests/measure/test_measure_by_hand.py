"""A record of three requests and a warm-up, worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from inferometer.journal.schema import EventClass as E
from inferometer.measure.measurement import Measurement, measure
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan

THINKS_LAST = {
    "index": 0,
    "t_intended": 0.0,
    "t_connect": 0.25,
    "t_connected": 0.5,
    "t_tls": 0.9,
    "t_send": 1.0,
    "t_submit": 2.0,
    "events": [
        (50, E.ROLE),
        (60, E.CONTENT),
        (70, E.CONTENT),
        (90, E.CONTENT),
        (95, E.FINISH),
        (96, E.USAGE),
    ],
    "first_visible": 2,  # the text at 60 ms is white space
    "first_answer": 2,
    "t_end": 100.0,
    "usage_input": 100,
    "usage_output": 4,
    "usage_cached": 10,
    "output_tokens_asked": 4,
    "finish_reason": "stop",
}
THINKS_FIRST = {
    "index": 1,
    "t_intended": 100.0,
    "t_submit": 104.0,
    "events": [(154, E.REASONING), (164, E.CONTENT), (165, E.FINISH)],
    "t_end": 170.0,
    "input_tokens_sent": 300,
    "output_tokens_local": 2,
    "output_tokens_asked": 4,
    "finish_reason": "stop",
}
FAILED = {"index": 2, "t_intended": 200.0, "t_submit": 201.0, "t_end": 300.0, "outcome": "http_5xx"}
WARM = {
    "index": 9,
    "phase": 0,
    "t_intended": -900.0,
    "events": [(-500, E.CONTENT), (-10, E.CONTENT)],
    "usage_output": 77,
}
PULSES = (
    {"t_ms": -1000, "cpu_ns": 0, "clock_offset_ns": 5_000, "stall_max_ns": 9_000_000},
    {"t_ms": 0, "cpu_ns": 10_000_000, "clock_offset_ns": 5_000, "reads": 3, "stall_max_ns": 8_000_000},
    {"t_ms": 200, "cpu_ns": 50_000_000, "clock_offset_ns": 105_000, "stall_max_ns": 2_000_000},
    {"t_ms": 400, "cpu_ns": 90_000_000, "clock_offset_ns": 105_000, "stall_max_ns": 3_000_000},
)


@pytest.fixture(scope="module")
def record(build: Any) -> Record:
    made: Record = build(WARM, THINKS_LAST, THINKS_FIRST, FAILED, pulse=PULSES)
    return made


@pytest.fixture(scope="module")
def plan(plan_of: Any) -> Plan:
    made: Plan = plan_of(load={"model": "open", "rate": 10, "requests": 3})
    return made


@pytest.fixture(scope="module")
def found(plan: Plan, record: Record) -> Measurement:
    return measure(plan, record)


def test_requests_are_counted_once_each(found: Measurement) -> None:
    """Law: sent = completed + failed + cancelled; warm-up stands apart."""
    seen = found.requests
    assert (seen.sent, seen.completed, seen.failed, seen.cancelled) == (3, 2, 1, 0)
    assert seen.by_error == {"http_5xx": 1}
    assert (seen.warmup_sent, seen.warmup_completed, seen.warmup_output_tokens) == (1, 1, 77)
    assert seen.finish_reasons == {"stop": 2}


@pytest.mark.parametrize(
    ("metric", "samples"),
    [
        ("ttft_ms", [68, 50]),
        ("ttft_any_ms", [58, 50]),
        ("ttfo_ms", [68, 60]),
        ("ttfe_ms", [48, 50]),
        ("second_token_ms", [10, 10]),
        ("ttft_from_intended_ms", [70, 54]),
        ("e2e_ms", [88, 60]),
        ("e2e_from_intended_ms", [90, 64]),
        ("stream_end_ms", [98, 66]),
        ("tpot_ms", [15, 10]),  # of four tokens one ends the sequence and shows nothing
        ("chunk_gap_ms", [10, 20, 10]),
        ("jitter_ms", [math.sqrt(50)]),
        ("max_pause_ms", [20, 10]),
        ("connect_ms", [0.25]),
        ("tls_ms", [0.4]),
        ("input_tokens", [100, 300]),
        ("output_tokens", [4, 2]),
        ("request_output_tok_s", [4 / 0.088, 2 / 0.060]),
    ],
)
def test_every_metric_is_what_its_formula_gives(
    found: Measurement, metric: str, samples: list[float]
) -> None:
    """Law: n, mean, least and greatest of each metric equal those of the samples worked out by hand."""
    stats = getattr(found.metrics, metric)
    assert stats.n == len(samples)
    assert stats.mean == pytest.approx(sum(samples) / len(samples))
    assert (stats.min, stats.max) == (pytest.approx(min(samples)), pytest.approx(max(samples)))


def test_undefined_samples_are_counted_as_excluded(found: Measurement) -> None:
    """Law: n + excluded = completed requests, for every per-request metric."""
    assert found.excluded["jitter_ms"] == 1
    assert found.excluded["connect_ms"] == 1
    for name, missing in found.excluded.items():
        stats = getattr(found.metrics, name)
        assert (stats.n if stats else 0) + missing == found.requests.completed


def test_rates_are_taken_over_the_spans_they_name(found: Measurement) -> None:
    """Law: the whole run is 1 to 300 ms; the load span 2 to 201 ms, of which the last nine tenths are steady."""
    window, whole, steady = found.window, found.throughput.whole_run, found.throughput.steady
    assert window.duration_s == pytest.approx(0.299)
    assert window.definition == "open-last-90"
    assert (window.load_start_s, window.load_end_s) == pytest.approx((0.001, 0.200))
    assert window.steady_start_s == pytest.approx(0.001 + 0.0199)
    assert whole.output_tok_s == pytest.approx(6 / 0.299)
    assert whole.input_tok_s == pytest.approx(400 / 0.299)
    assert whole.request_s == pytest.approx(2 / 0.299)
    assert steady.output_tok_s == pytest.approx(6 / 0.1791)
    assert steady.input_tok_s == pytest.approx(400 / 0.1791)
    assert steady.request_s == pytest.approx(2 / 0.1791)
    assert found.throughput.cached_input_share == pytest.approx(0.1)
    assert found.throughput.cached_prefix_share is None  # nothing was asked in common


def test_the_load_is_what_was_in_flight(found: Measurement) -> None:
    """Law: 98 ms of the first and 66 ms of the second request lie in the load span of 199 ms."""
    assert found.load.concurrency_mean == pytest.approx(164 / 199)
    assert found.load.concurrency_max == 1
    assert found.load.achieved_request_s == pytest.approx(2 / 0.199)
    assert found.load.offered_rate == 10
    late = found.load.lateness_ms
    assert late is not None
    assert (late.n, late.min, late.max) == pytest.approx((3, 1, 4))


def test_tokens_have_their_sources_and_their_events(found: Measurement) -> None:
    """Law: usage where the server gave it, else the tokenizer; 3 events of at most 4 tokens hold at least 2 single ones."""
    tokens = found.tokens
    assert tokens.by_source == {"server usage": 1, "tokenizer": 1}
    assert (tokens.events, tokens.tokens) == (5, 6)
    assert tokens.single_token_share == pytest.approx(2 / 3)
    assert tokens.itl_method == "chunk"
    assert tokens.output.misses == 1
    assert tokens.output.asked_mean == 4


def test_ttft_falls_into_the_bucket_of_its_input(found: Measurement) -> None:
    """Law: 100 input tokens belong to [0, 256), 300 to [256, 512), and empty buckets have no percentile."""
    first, second, third = found.ttft_by_input[:3]
    assert (first.from_tokens, first.to_tokens, first.n, first.p50) == pytest.approx((0, 256, 1, 68))
    assert (second.from_tokens, second.to_tokens, second.n, second.p99) == pytest.approx((256, 512, 1, 50))
    assert (third.n, third.p50) == (0, None)
    assert found.ttft_by_input[-1].to_tokens is None


def test_the_instrument_is_read_over_the_measured_phase(found: Measurement) -> None:
    """Law: CPU share between the pulses around the phase; stalls of the phase only; the largest clock step of all."""
    seen = found.instrument
    assert seen.timestamp_source == "kernel"
    assert seen.cpu_fraction == pytest.approx((0.2,))
    assert seen.stall_max_ms == pytest.approx(3)
    assert seen.clock_step_ms == pytest.approx(0.1)


def test_the_share_of_requests_whose_ttft_depends_on_the_definition(found: Measurement) -> None:
    """Law: a role event, white space, or thinking first each make a difference."""
    assert found.ttft_variant_share == 1.0
    assert found.first_event_classes == {"role": 1, "reasoning": 1}
