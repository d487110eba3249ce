"""Small parts of a measurement: the first wave left out, quantiles for pictures, refusals by signal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.journal.schema import EventClass as E
from inferometer.measure.load import WithoutFirstWave, without_first_wave
from inferometer.measure.measurement import measure, refusals
from inferometer.measure.record import Record
from inferometer.measure.samples import PERCENT, Samples, quantiles
from inferometer.plan.schema import Plan


def asked(start: float, ttft: float, **more: Any) -> dict[str, Any]:
    return {"t_intended": start, "t_submit": start, "events": [(start + ttft, E.CONTENT)]} | more


def test_the_first_wave_is_left_out(build: Callable[..., Record]) -> None:
    """Two slots: the two requests sent first are out, the failed one of them too, and nothing of the warm-up is counted."""
    rows = [asked(10 * n, 5.0 + n, index=n) for n in range(2, 10)]
    rows += [asked(1, 900, index=1), asked(0, 800, index=0, outcome="timeout"), asked(-9, 700, phase=0)]
    record = build(*rows)
    samples = Samples(record, streamed=True)
    found = without_first_wave(record, samples, 2)
    assert found is not None
    assert (found.requests, found.n, found.ttft_p99_ci95) == (2, 8, None)
    assert found.ttft_p99_ms == pytest.approx(float(np.percentile(5.0 + np.arange(2, 10), 99)))
    assert without_first_wave(record, samples, None) is None
    assert without_first_wave(record, samples, 50) == WithoutFirstWave(10, None, None, 0)


def test_only_a_closed_loop_has_a_first_wave(
    build: Callable[..., Record], plan_of: Callable[..., Plan]
) -> None:
    """Arrivals of an open loop do not come in a wave."""
    record = build(*(asked(10 * n, 5, index=n) for n in range(9)))
    closed = measure(plan_of(load={"model": "closed", "concurrency": 4, "requests": 9}), record).first_wave
    assert closed is not None
    assert (closed.requests, closed.n) == (4, 5)
    assert measure(plan_of(load={"model": "open", "rate": 1, "requests": 9}), record).first_wave is None


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=200))
def test_quantiles_rise_from_the_least_to_the_most(sample: list[float]) -> None:
    """Law: they never fall, and are numpy's to four digits."""
    found = quantiles(np.array([*sample, np.nan]))
    assert found is not None
    assert list(found.v) == sorted(found.v)
    assert found.v == pytest.approx(np.percentile(sample, PERCENT).tolist(), rel=5.1e-4)


def test_quantiles_stand_where_they_should() -> None:
    """Every percent, tenths beyond 99; nothing has none."""
    assert len(PERCENT) == 110
    assert PERCENT[:3] == (0, 1, 2)
    assert PERCENT[-3:] == (99.8, 99.9, 100)
    found = quantiles(np.arange(10001.0))
    assert found is not None
    assert found.v[50] == 5000
    assert found.v[-2] == 9990
    assert quantiles(np.array([np.nan])) is None


def test_refusals_count_once_by_their_signal(build: Callable[..., Record]) -> None:
    """A structured signal each; other failures, refusals in words and the warm-up's are none."""
    rows: list[dict[str, Any]] = [
        {"outcome": "refused", "status": 200, "finish_reason": "content_filter"},
        {"outcome": "refused", "status": 200, "finish_reason": "refusal"},
        {"outcome": "refused", "status": 200, "finish_reason": "stop"},
        {"outcome": "refused", "status": 200, "finish_reason": None},
        {"outcome": "refused", "status": 400},
        {"outcome": "refused", "status": 451},
        {"outcome": "http_4xx", "status": 400},
        {"outcome": "refused", "status": 400, "phase": 0},
        asked(0, 5, status=200, finish_reason="stop", text="I cannot help with that."),
    ]
    found = refusals(build(*rows))
    assert found.requests == 6
    assert found.by_signal == {"finish_reason": 2, "refusal_field": 2, "policy_status": 2}
    none = refusals(build(asked(0, 5)))
    assert none.requests == 0
    assert set(none.by_signal.values()) == {0}
