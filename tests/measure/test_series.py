"""Plot series: small, complete, and adding up to the totals."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.journal.schema import EventClass as E
from inferometer.measure.measurement import measure, samples_of
from inferometer.measure.series import Distribution, series

OPEN = {"load": {"model": "open", "rate": 100, "requests": 40}}


@given(st.integers(0, 2**32), st.integers(1, 120))
@settings(max_examples=25, deadline=None)
def test_nothing_is_lost_between_samples_and_series(
    build: Any, plan_of: Any, random_rows: Any, seed: int, n: int
) -> None:
    """Law: histogram counts, binned tokens, completions, errors and time in flight add up to the totals."""
    record, plan = build(*random_rows(seed, n)), plan_of(**OPEN)
    samples, found, drawn = samples_of(plan, record), measure(plan, record), series(plan, record)
    for name in ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms"):
        stats = getattr(found.metrics, name)
        hist = getattr(drawn, name)
        assert sum(hist.counts) == (stats.n if stats else 0)
        if stats:
            assert len(hist.edges) == len(hist.counts) + 1
            assert hist.edges[0] <= stats.min
            assert hist.edges[-1] >= stats.max
    line = drawn.timeline
    assert (line is None) == (not found.window.duration_s)
    if line is not None:
        width = line.bin_s
        assert sum(line.output_tok_s) * width == pytest.approx(samples.arrival_tokens.sum())
        assert sum(line.requests_s) * width == pytest.approx(found.requests.completed)
        assert sum(line.errors) == found.requests.failed
        spent = (record.t_end - record.t_submit.values)[record.measured].sum() / 1e9
        assert sum(line.in_flight) * width == pytest.approx(spent, abs=1e-6)


@given(st.integers(0, 2**32), st.integers(1, 120))
@settings(max_examples=25, deadline=None)
def test_every_length_is_in_one_bin(build: Any, plan_of: Any, random_rows: Any, seed: int, n: int) -> None:
    """Law: asked and sent count every measured request, counted every one that succeeded, and of those of the prompt every one
    that the server counted."""
    record, plan = build(*random_rows(seed, n)), plan_of(**OPEN)
    samples, drawn = samples_of(plan, record), series(plan, record).lengths
    sent = int(record.measured.sum())
    told = int((~np.isnan(samples.counts.server_input)).sum())
    expected = {
        "input_tokens": {"asked": sent, "sent": sent, "counted": told},
        "output_tokens": {"asked": sent, "counted": len(samples)},
    }
    for name, sets in expected.items():
        lengths = getattr(drawn, name)
        counts = lengths.counts if lengths else {}
        assert {of: sum(bins) for of, bins in counts.items()} == {of: m for of, m in sets.items() if m}


def test_a_long_run_is_drawn_with_few_points_that_keep_the_extremes(build: Any, plan_of: Any) -> None:
    """Law: at most 400 CDF points, 300 bins and 1,500 lateness points; the largest value of each stays in view."""
    random = np.random.default_rng(4)
    rows = []
    for i in range(4000):
        start = 10.0 * i
        events = start + 2 + np.cumsum(random.exponential(5, 6))
        late = 300.0 if i == 2345 else float(random.random())
        rows.append(
            {"index": i, "t_intended": start, "t_submit": start + late, "t_end": float(events[-1]) + late}
            | {"events": [(float(t) + late, E.CONTENT) for t in events], "usage_output": 6}
        )
    plan, record = plan_of(**OPEN), build(*rows)
    drawn, found = series(plan, record), measure(plan, record)
    for name in ("ttft_ms", "itl_ms", "e2e_ms"):
        cdf, stats = getattr(drawn, name), getattr(found.metrics, name)
        assert 100 < len(cdf.x) <= 400
        assert cdf.x == tuple(sorted(cdf.x))
        assert cdf.p == tuple(sorted(cdf.p))
        assert (cdf.p[-1], cdf.x[-1]) == (1.0, stats.max)
    line = drawn.timeline
    assert line is not None
    assert 1 < len(line.t_s) <= 300
    assert all(len(values) == len(line.t_s) for name, values in asdict(line).items() if name != "bin_s")
    assert len(drawn.lateness.ms) <= 1500
    assert max(drawn.lateness.ms) == pytest.approx(300)
    assert drawn.lateness.t_s[int(np.argmax(drawn.lateness.ms))] == pytest.approx(23.75, abs=0.01)


def test_ttft_over_time_is_that_of_the_requests_sent_then(build: Any, plan_of: Any) -> None:
    """Law: a bin's percentiles are those of its own requests; a bin without any has None, not zero."""
    early = [{"index": i, "events": [(10.0 + i, E.CONTENT)]} for i in range(3)]
    late = [{"index": 9, "t_intended": 900.0, "events": [(1000.0, E.CONTENT)], "usage_output": 200}]
    line = series(plan_of(**OPEN), build(*early, *late)).timeline
    assert line is not None
    assert line.ttft_p50_ms[0] == pytest.approx(11)
    assert line.ttft_p99_ms[0] == pytest.approx(11.98)
    assert line.ttft_p50_ms[-1] == pytest.approx(100)
    assert None in line.ttft_p50_ms


def test_nothing_measured_is_drawn_as_nothing(build: Any, plan_of: Any) -> None:
    """Law: empty series, no error, for a run without samples and for one without rows."""
    for record in (build(), build({"outcome": "timeout"}), build({"phase": 0})):
        drawn = series(plan_of(**OPEN), record)
        assert drawn.ttft_ms == drawn.e2e_ms == Distribution()
        assert drawn.server == {}


def test_equal_samples_still_make_a_histogram(build: Any, plan_of: Any) -> None:
    """Law: no width, but all counts in it."""
    rows = [{"index": i, "t_intended": 10.0 * i, "events": [(10.0 * i + 5, E.CONTENT)]} for i in range(30)]
    hist = series(plan_of(**OPEN), build(*rows)).ttft_ms
    assert sum(hist.counts) == 30
    assert all(a < b for a, b in zip(hist.edges, hist.edges[1:], strict=False))
