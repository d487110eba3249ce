"""Small parts of a measurement: quantiles for pictures, refusals by signal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.journal.schema import EventClass as E
from inferometer.measure.distributions import PERCENT, quantiles
from inferometer.measure.measurement import refusals
from inferometer.measure.record import Record


def asked(start: float, ttft: float, **more: Any) -> dict[str, Any]:
    return {"t_intended": start, "t_submit": start, "events": [(start + ttft, E.CONTENT)]} | more


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
