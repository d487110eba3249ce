"""Jain's index: its laws, and its sums from a summary's moments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.jain import jain, jain_of_moments

values = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=40)


@given(values, st.floats(1e-3, 1e3))
def test_the_index_has_its_bounds_and_no_unit(sample: list[float], scale: float) -> None:
    """Law: 1 / n <= J <= 1, and all values times one number have the same J."""
    found = jain(sample)
    assert found is not None
    assert 1 / len(sample) <= found <= 1
    assert jain([scale * one for one in sample]) == pytest.approx(found)


@given(st.integers(1, 50), st.floats(1e-300, 1e300))
def test_equal_shares_are_fair_and_one_taker_is_not(n: int, value: float) -> None:
    """Law: equal values have J = 1; one value among zeros has J = 1 / n."""
    assert jain([value] * n) == pytest.approx(1)
    assert jain([value] + [0.0] * (n - 1)) == pytest.approx(1 / n)


def test_known_values() -> None:
    """By hand: 1, 2, 3 have 36 / (3 x 14)."""
    assert jain([1, 2, 3]) == pytest.approx(36 / 42)
    assert jain([]) is None
    assert jain([0, 0]) is None
    with pytest.raises(ValueError, match="0 or more"):
        jain([1, -1])


@given(st.lists(st.tuples(values, st.floats(1e-2, 1e2)), min_size=1, max_size=5))
def test_moments_have_the_requests_own_index(classes: list[tuple[list[float], float]]) -> None:
    """Law: from each class's n, mean and standard deviation the same J as from its requests one by one."""
    direct = jain([one / baseline for sample, baseline in classes for one in sample])
    moments = [
        (len(sample), float(np.mean(sample)), float(np.std(sample, ddof=1)) if len(sample) > 1 else None, b)
        for sample, b in classes
    ]
    assert jain_of_moments(moments) == pytest.approx(direct)


def test_moments_that_cannot_be_are_told() -> None:
    """No baseline and no spread give no index; an empty class changes none."""
    assert jain_of_moments([]) is None
    assert jain_of_moments([(0, 0.0, None, 0.0), (4, 2.0, 0.0, 5.0)]) == 1
    with pytest.raises(ValueError, match="baseline"):
        jain_of_moments([(4, 2.0, 0.0, 0.0)])
    with pytest.raises(ValueError, match="standard deviation"):
        jain_of_moments([(4, 2.0, None, 1.0)])
