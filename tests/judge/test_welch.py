"""Per-run statistics against scipy's own and against their defining laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from inferometer.judge.comparison import welch

VALUES = st.lists(st.floats(1, 1_000), min_size=2, max_size=8).map(np.array)


@given(VALUES, VALUES)
@settings(max_examples=60)
def test_welch_is_scipys(a: np.ndarray, b: np.ndarray) -> None:
    """Difference, p, degrees of freedom and interval of an independent partner."""
    assume(min(a.std(), b.std()) > 1e-3)
    test = welch.welch(a, b)
    assert test is not None
    theirs = stats.ttest_ind(b, a, equal_var=False)
    low, high = theirs.confidence_interval()
    assert test.p == pytest.approx(theirs.pvalue, abs=1e-9)
    assert test.df == pytest.approx(theirs.df)
    assert test.interval == pytest.approx((low, high))


@given(st.lists(st.tuples(st.floats(1, 1_000), st.floats(1, 1_000)), min_size=2, max_size=8))
@settings(max_examples=40)
def test_pairs_are_scipys(pairs: list[tuple[float, float]]) -> None:
    """Student's t of the differences."""
    a, b = np.array(pairs).T
    assume((b - a).std() > 1e-3)
    test = welch.paired(a, b)
    assert test is not None
    theirs = stats.ttest_rel(b, a)
    assert test.p == pytest.approx(theirs.pvalue, abs=1e-9)
    assert test.interval == pytest.approx(tuple(theirs.confidence_interval()))


def test_values_without_spread_are_certain() -> None:
    """Equal: no difference. Unequal: a difference beyond doubt. One value: nothing is known."""
    ones, twos = np.ones(3), np.full(3, 2.0)
    same, other = welch.welch(ones, ones), welch.welch(ones, twos)
    assert same is not None
    assert other is not None
    assert (same.p, same.interval) == (1.0, (0.0, 0.0))
    assert (other.p, other.interval) == (0.0, (1.0, 1.0))
    assert welch.welch(ones[:1], twos) is None
    assert welch.hedges_g(ones, twos) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_multiplies_the_smallest_by_all_and_keeps_the_order(p_values: list[float]) -> None:
    """Never below the plain p, never above Bonferroni's, in the same order."""
    adjusted = welch.holm(p_values)
    assert min(adjusted) == pytest.approx(min(1.0, min(p_values) * len(p_values)))
    for p, after in zip(p_values, adjusted, strict=True):
        assert p <= after <= min(1.0, p * len(p_values)) or after == pytest.approx(p)
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    assert sorted(adjusted) == [adjusted[at] for at in order]


def test_holm_by_hand() -> None:
    """Holm 1979: 0.01 * 3, then 0.02 * 2 and 0.03 * 1, the last not below the one before it."""
    assert welch.holm([0.03, 0.01, 0.02]) == [0.04, 0.03, 0.04]


@given(st.floats(2, 12), st.sampled_from([0.05, 0.01]))
@settings(max_examples=20)
def test_a_detectable_difference_is_found_four_times_out_of_five(df: float, alpha: float) -> None:
    """By scipy's noncentral t, at that noncentrality."""
    distance = welch.detectable(1.0, df, alpha)
    critical = stats.t.ppf(1 - alpha / 2, df)
    assert stats.nct.sf(critical, df, distance) == pytest.approx(0.8, abs=1e-3)


def test_the_interval_of_g_holds_the_true_effect() -> None:
    """In 95 % of pairs of samples of four, the true difference being 1.5 standard deviations (binomial: 0.95 +- 0.02)."""
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(600):
        found = welch.hedges_g(rng.normal(0, 1, 4), rng.normal(1.5, 1, 4))
        assert found is not None
        # The interval is of J times delta; J corrects the estimate's bias.
        small = 1 - 3 / (4 * 6 - 1)
        held += found[1][0] <= 1.5 * small <= found[1][1]
    assert held / 600 == pytest.approx(0.95, abs=0.02)


def test_g_by_hand() -> None:
    """(4 - 2) / 1 * (1 - 3 / 15), and an interval about it."""
    found = welch.hedges_g(np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 5.0]))
    assert found is not None
    assert found[0] == pytest.approx(1.6)
    assert found[1][0] < found[0] < found[1][1]
