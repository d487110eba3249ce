"""Durations of sessions with those that did not finish: the product-limit estimate, by hand and by its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.measure.session_survival import POINTS, estimate
from inferometer.measure.stats import percentile

TIMES = st.lists(st.floats(1, 1e6), min_size=1, max_size=40)


@given(TIMES)
def test_sessions_that_end_at_once_change_nothing(durations: list[float]) -> None:
    """What is known of a session that broke off at its beginning is nothing: the estimate is the finished ones' own."""
    done = np.sort(durations)
    made = estimate(done, np.zeros(5))
    assert made.mean() == pytest.approx(float(done.mean()))
    for share in POINTS.values():
        assert made.percentile(share) == pytest.approx(
            percentile(done, share), rel=0.2 if len(done) < 20 else 0.1, abs=1e6
        )


@given(TIMES, TIMES)
@settings(deadline=None)
def test_unfinished_sessions_only_lengthen(durations: list[float], waits: list[float]) -> None:
    """The mean is never below that of the finished ones, nor above the longest of all."""
    done = np.sort(durations)
    made = estimate(done, np.array(waits))
    assert float(done.mean()) <= made.mean() * (1 + 1e-9)
    assert made.mean() <= max(*durations, *waits) * (1 + 1e-9)


def test_the_product_limit_estimate_by_hand() -> None:
    """Durations 1, 2, 4 and waits 1.5 and 3: S falls to 4/5, then by a third of it to 8/15, then to 0."""
    made = estimate(np.array([1.0, 2.0, 4.0]), np.array([1.5, 3.0]))
    assert made.masses.tolist() == pytest.approx([1 / 5, 4 / 15, 8 / 15])
    assert made.mean() == pytest.approx(1 / 5 + 8 / 15 + 32 / 15)
    assert not made.bound
    open_ = estimate(np.array([1.0, 2.0]), np.array([5.0, 5.0]))
    assert open_.rest == pytest.approx(0.5)
    assert open_.bound
    assert open_.percentile(0.99) == 5.0


def test_durations_of_cut_sessions_are_found_again() -> None:
    """Exponential durations and watches of one mean: what finished has half of it, the estimate all of it."""
    rng = np.random.default_rng(5)
    lasting, watched = rng.exponential(10.0, 20_000), rng.exponential(10.0, 20_000)
    ended = lasting <= watched
    made = estimate(np.sort(lasting[ended]), watched[~ended])
    assert float(lasting[ended].mean()) == pytest.approx(5.0, rel=0.03)
    assert made.mean() == pytest.approx(10.0, rel=0.03)
    assert made.percentile(0.5) == pytest.approx(10.0 * np.log(2), rel=0.03)
