"""Statistics: exact percentiles and intervals that cover what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from inferometer.measure.stats import (
    describe,
    describe_pooled,
    percentile,
    quantile_interval,
    quantile_ranks,
)

values = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=60)


@given(values, st.floats(0, 1))
@settings(deadline=None)
def test_a_percentile_is_numpys_linear_one(sample: list[float], p: float) -> None:
    """Law: percentile(sorted x, p) = numpy.percentile(x, 100 p), and lies within the sample."""
    ordered = np.sort(sample)
    found = percentile(ordered, p)
    assert found == pytest.approx(float(np.quantile(ordered, p)), rel=1e-9, abs=1e-6)
    assert ordered[0] <= found <= ordered[-1]


def test_a_small_sample_has_the_statistics_worked_out_by_hand() -> None:
    """Law: the definitions, on 1, 2, 3, 4: mean 2.5, std sqrt(5/3), P50 2.5, P90 3.7, mean CI 2.5 +- 3.18245 s / 2."""
    stats = describe(np.array([4.0, 1.0, 3.0, 2.0]))
    assert stats is not None
    assert (stats.n, stats.mean, stats.min, stats.max, stats.p50) == (4, 2.5, 1.0, 4.0, 2.5)
    assert stats.std == pytest.approx(math.sqrt(5 / 3))
    assert stats.p75 == pytest.approx(3.25)
    assert stats.p90 == pytest.approx(3.7)
    assert stats.p99_9 == pytest.approx(3.997)
    half = 3.182446305 * math.sqrt(5 / 3) / 2
    assert stats.ci95.mean == pytest.approx((2.5 - half, 2.5 + half))
    assert stats.ci95.p50 is None


def test_nothing_is_described_as_nothing() -> None:
    """Law: no sample, no statistics: None, never zero; undefined samples (NaN) are no samples."""
    assert describe(np.zeros(0)) is None
    assert describe(np.array([np.nan, np.nan])) is None
    assert describe_pooled(np.zeros(0), np.zeros(3, np.int64)) is None


def test_one_sample_has_no_spread_and_no_interval() -> None:
    """Law: the standard deviation (n - 1) and every interval are undefined for n = 1."""
    stats = describe(np.array([5.0, np.nan]))
    assert stats is not None
    assert (stats.n, stats.mean, stats.p99_9, stats.std) == (1, 5.0, 5.0, None)
    assert stats.ci95.mean is None
    assert stats.ci95.p50 is None
    pooled = describe_pooled(np.array([5.0]), np.array([0, 1]))
    assert pooled is not None
    assert pooled.std is None
    assert pooled.ci95.mean is None


@given(st.integers(1, 3000), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
@settings(deadline=None)
def test_quantile_ranks_are_the_tightest_the_binomial_allows(n: int, p: float) -> None:
    """Law: each tail beyond the ranks holds at most 2.5 %, and one rank tighter would hold more."""
    ranks = quantile_ranks(n, p)
    if ranks is None:
        assert binom.cdf(0, n, p) > 0.025 or binom.cdf(n - 1, n, p) < 0.975
        return
    low, high = ranks
    assert 1 <= low <= high <= n
    assert binom.cdf(low - 1, n, p) <= 0.025 < binom.cdf(low, n, p)
    assert binom.cdf(high - 1, n, p) >= 0.975 > binom.cdf(high - 2, n, p)


def test_p99_has_an_interval_from_368_samples_on() -> None:
    """Law: 1 - 0.99^n >= 0.975 first holds at n = 368."""
    assert quantile_ranks(367, 0.99) is None
    assert quantile_ranks(368, 0.99) is not None


@pytest.mark.parametrize(("p", "n"), [(0.5, 40), (0.9, 200), (0.99, 1000)])
def test_percentile_intervals_cover_the_truth_as_often_as_they_say(p: float, n: int) -> None:
    """Law: over repeated exponential samples the interval holds the true quantile in 95 % (at least) and not always."""
    random = np.random.default_rng(7)
    truth = -math.log(1 - p)
    hits = 0
    for _ in range(1000):
        interval = quantile_interval(np.sort(random.exponential(1, n)), p)
        assert interval is not None
        hits += interval[0] <= truth <= interval[1]
    assert 935 <= hits <= 990


def test_mean_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Law: Student's interval of normal samples holds the true mean in 95 % of repeats."""
    random = np.random.default_rng(8)
    described = [describe(random.normal(3, 2, 10)) for _ in range(1000)]
    intervals = [one.ci95.mean for one in described if one is not None and one.ci95.mean is not None]
    assert len(intervals) == 1000
    assert 930 <= sum(low <= 3 <= high for low, high in intervals) <= 970


def test_pooled_gaps_of_unlike_requests_get_intervals_that_still_cover() -> None:
    """Law: when requests differ, pooling pretends to more evidence than there is; the clustered interval covers about 95 %,
    the independent one far less."""
    random = np.random.default_rng(9)
    truth = float(np.quantile(np.exp(random.normal(0, 0.3, 400_000) + random.normal(0, 0.1, 400_000)), 0.9))
    offsets = np.arange(61) * 50
    clustered = naive = 0
    for _ in range(300):
        gaps = np.exp(np.repeat(random.normal(0, 0.3, 60), 50) + random.normal(0, 0.1, 3000))
        pooled, independent = describe_pooled(gaps, offsets), describe(gaps)
        assert pooled is not None
        assert independent is not None
        assert pooled.ci95.p90 is not None
        assert independent.ci95.p90 is not None
        clustered += pooled.ci95.p90[0] <= truth <= pooled.ci95.p90[1]
        naive += independent.ci95.p90[0] <= truth <= independent.ci95.p90[1]
    assert clustered >= 0.90 * 300
    assert naive <= 0.60 * 300


def test_requests_without_gaps_do_not_disturb_the_pool() -> None:
    """Law: empty groups anywhere, the ends included, change nothing."""
    gaps = np.arange(1.0, 41.0)
    plain = describe_pooled(gaps, np.array([0, 10, 20, 30, 40]))
    assert describe_pooled(gaps, np.array([0, 0, 10, 20, 20, 30, 40, 40])) == plain


@given(values, st.floats(0.01, 100), st.floats(-1e6, 1e6))
@settings(deadline=None)
def test_statistics_follow_a_change_of_unit_and_of_origin(
    sample: list[float], scale: float, shift: float
) -> None:
    """Law: location statistics of a x + b are a times those of x plus b; the spread is a times."""
    before, after = describe(np.array(sample)), describe(np.array(sample) * scale + shift)
    assert before is not None
    assert after is not None
    for name in ("mean", "min", "max", "p50", "p99", "p99_9"):
        assert getattr(after, name) == pytest.approx(
            getattr(before, name) * scale + shift, rel=1e-6, abs=1e-3
        )
    if before.std is not None:
        assert after.std == pytest.approx(before.std * scale, rel=1e-6, abs=1e-3)
