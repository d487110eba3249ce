"""TTFT less the round trip: one constant, and nothing hidden."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.less_round_trip import less_round_trip
from inferometer.measure.stats import describe
from inferometer.metrics.statistics import QUANTILES

TIMES = st.lists(st.floats(0.01, 10_000.0), min_size=1, max_size=200)


@given(TIMES, st.floats(0.0, 20_000.0))
def test_every_figure_is_the_measured_one_less_the_round_trip(times: list[float], trip: float) -> None:
    """Law: as that of samples each of which is less so much; what has no place stays: number and spread."""
    samples = np.array(times)
    measured = describe(samples)
    less = less_round_trip(measured, np.sort(samples), trip)
    again = describe(samples - trip)
    assert measured is not None
    assert less is not None
    assert again is not None
    for name in ("mean", "min", "max", *QUANTILES):
        assert getattr(less.ttft_ms, name) == getattr(measured, name) - trip
        assert getattr(less.ttft_ms, name) == pytest.approx(getattr(again, name), abs=1e-6)
    assert (less.ttft_ms.n, less.ttft_ms.std) == (measured.n, measured.std)
    for name in ("mean", "p50", "p99"):
        before, after = getattr(measured.ci95, name), getattr(less.ttft_ms.ci95, name)
        assert (before is None) == (after is None)
        if before is not None:
            assert after == (before[0] - trip, before[1] - trip)
    assert less.ttft_ms.ci95.withheld == measured.ci95.withheld


@given(TIMES, st.floats(0.0, 20_000.0))
def test_what_falls_below_zero_is_counted_and_stays_there(times: list[float], trip: float) -> None:
    """Law: a floor at zero would hide that the round trip was not that of these requests."""
    samples = np.array(times)
    less = less_round_trip(describe(samples), np.sort(samples), trip)
    assert less is not None
    assert less.below_zero == int((samples < trip).sum())
    assert (less.ttft_ms.min < 0) == (less.below_zero > 0)


def test_nothing_is_subtracted_from_nothing_or_by_nothing() -> None:
    """No TTFT, as where nothing was streamed; no round trip, as where no handshake came back."""
    one = np.array([1.0])
    assert less_round_trip(None, np.array([]), 1.0) is None
    assert less_round_trip(describe(one), one, None) is None
