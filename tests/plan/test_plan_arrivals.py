"""Laws of the arrival processes. Seeds are fixed, so each statistical test gives the same numbers every time."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from inferometer.plan.arrivals import instants, phase_instants
from inferometer.plan.schema import Load

N = 20_000
S = 1_000_000_000


def poisson(rate: float) -> Load:
    return Load(rate=rate)


def gamma(rate: float, shape: float) -> Load:
    return Load(rate=rate, arrival="gamma", burstiness=shape)


def constant(rate: float) -> Load:
    return Load(rate=rate, arrival="constant")


def gaps_s(due: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.diff(due, prepend=0) / S


PROCESSES = [(poisson(50), 1.0), (gamma(50, 0.25), 0.25), (gamma(7.5, 4), 4.0), (gamma(900, 1), 1.0)]


@pytest.mark.parametrize(("load", "shape"), PROCESSES)
@pytest.mark.parametrize("seed", [0, 42, 2**63 - 1])
def test_gaps_have_the_rate_spread_and_independence_of_the_theory(
    load: Load, shape: float, seed: int
) -> None:
    """Mean gap 1/r and CV^2 = 1/k within five standard errors; lag-1 correlation within five of 0."""
    gaps = gaps_s(instants(load, seed, N, None))
    assert load.rate is not None
    error = 5 / math.sqrt(N)
    assert abs(gaps.mean() * load.rate - 1) < error / math.sqrt(shape)
    # Variance of a sample variance: (kurtosis excess 6/k + 2) / n, relative to its square.
    assert abs(gaps.var() / gaps.mean() ** 2 * shape - 1) < error * math.sqrt(
        6 / shape + 2
    ) + 2 * error / math.sqrt(shape)
    assert abs(np.corrcoef(gaps[:-1], gaps[1:])[0, 1]) < error


@pytest.mark.parametrize(("load", "shape"), PROCESSES)
def test_gaps_follow_the_gamma_distribution(load: Load, shape: float) -> None:
    """Kolmogorov-Smirnov against Gamma(k, 1/(r k)) sees no difference in 20,000 gaps."""
    assert load.rate is not None
    gaps = gaps_s(instants(load, 1, N, None))
    assert stats.kstest(gaps, stats.gamma(shape, scale=1 / (load.rate * shape)).cdf).pvalue > 1e-3


def test_counts_per_second_of_poisson_arrivals_have_the_variance_of_their_mean() -> None:
    """Index of dispersion 1: what breaks when several workers draw the same gaps."""
    due = instants(poisson(50), 3, None, 400 * S)
    counts = np.bincount(due // S, minlength=400)
    dispersion = counts.var(ddof=1) / counts.mean()
    low, high = stats.chi2(399).ppf([1e-4, 1 - 1e-4]) / 399
    assert low < dispersion < high


@given(
    st.sampled_from([poisson(30), gamma(30, 0.5), constant(30)]),
    st.integers(0, 2**63 - 1),
    st.integers(0, 9000),
)
@settings(max_examples=40, deadline=None)
def test_asking_for_fewer_gives_the_beginning_of_the_same_process(load: Load, seed: int, fewer: int) -> None:
    """instants(n) is a prefix of instants(m) for n <= m, and a duration cuts that same sequence."""
    whole = instants(load, seed, 9000, None)
    assert np.array_equal(instants(load, seed, fewer, None), whole[:fewer])
    cut = int(whole[fewer]) if fewer < 9000 else int(whole[-1]) + 1
    assert np.array_equal(instants(load, seed, None, cut), whole[whole < cut])
    assert np.array_equal(instants(load, seed, 100, cut), whole[whole < cut][:100])


@given(
    st.sampled_from([poisson(30), gamma(30, 0.01), gamma(1e6, 3), constant(0.37)]), st.integers(0, 2**63 - 1)
)
@settings(max_examples=40, deadline=None)
def test_instants_are_ascending_int64_offsets(load: Load, seed: int) -> None:
    """Shape (n,), int64, never negative, never going back."""
    due = instants(load, seed, 1000, None)
    assert due.dtype == np.int64
    assert due.shape == (1000,)
    assert due[0] >= 0
    assert (np.diff(due) >= 0).all()


@given(st.floats(0.01, 1e6), st.integers(1, 3000))
@settings(deadline=None)
def test_constant_spacing_is_exact_to_the_nanosecond(rate: float, n: int) -> None:
    """Arrival i is at i / r rounded to a nanosecond: no error adds up, and nothing is drawn."""
    due = instants(constant(rate), 7, n, None)
    for index in {0, 1 % n, n // 2, n - 1}:
        exact = Fraction(index * S) / Fraction(rate)
        assert abs(int(due[index]) - exact) <= Fraction(1, 2) + exact * Fraction(1, 2**52)
    assert np.array_equal(due, instants(constant(rate), 8, n, None))


@pytest.mark.parametrize(
    ("rate", "duration_ns", "count"), [(10, S, 10), (10, S + 1, 11), (3, S, 3), (0.5, S, 1)]
)
def test_a_constant_rate_fills_a_duration_without_its_end(rate: float, duration_ns: int, count: int) -> None:
    """Arrivals lie in [0, duration)."""
    assert len(instants(constant(rate), 0, None, duration_ns)) == count


def test_the_first_drawn_arrival_is_drawn_too() -> None:
    """Over many seeds the first arrival is exponential like every other gap, not at 0."""
    first = np.array([instants(poisson(1), seed, 1, None)[0] for seed in range(500)]) / S
    assert stats.kstest(first, stats.expon.cdf).pvalue > 1e-3


def test_gamma_with_shape_one_is_poisson_and_streams_differ() -> None:
    """k = 1 is the exponential; warm-up and measurement, and two seeds, share no gaps."""
    assert np.array_equal(instants(gamma(20, 1), 5, 100, None), instants(poisson(20), 5, 100, None))
    measure = gaps_s(instants(poisson(20), 5, 5000, None))
    for other in (instants(poisson(20), 5, 5000, None, stream=1), instants(poisson(20), 6, 5000, None)):
        assert not np.isin(measure, gaps_s(other)).all()
        assert abs(np.corrcoef(measure, gaps_s(other))[0, 1]) < 5 / math.sqrt(5000)


def test_a_seed_gives_the_same_instants_for_ever() -> None:
    """The stream is part of the plan's meaning: these numbers may only change with the plan's schema."""
    assert instants(poisson(10), 42, 3, None).tolist() == [55309720, 105301937, 215034659]
    assert instants(gamma(10, 0.5), 42, 3, None).tolist() == [36096846, 134682925, 135520018]


def test_phases_of_a_plan_take_their_end_from_it() -> None:
    """The measurement ends at requests or duration, whichever is first; warm-up is a count."""
    load = Load(rate=100, requests=50, duration_s=3600, warmup=7)
    assert np.array_equal(phase_instants(load, 1), instants(load, 1, 50, 3600 * S))
    assert np.array_equal(phase_instants(load, 1, warmup=True), instants(load, 1, 7, None, stream=1))
    short = Load(rate=100, duration_s=0.5)
    assert 20 < len(phase_instants(short, 1)) < 90


def test_extreme_plans_stay_within_an_int64() -> None:
    """The rarest, burstiest load of a week neither overflows nor hangs."""
    due = instants(gamma(1e-6, 0.001), 11, None, 604_800 * S)
    assert (due >= 0).all()
    assert len(instants(poisson(1000), 1, 0, None)) == 0


@pytest.mark.parametrize(
    ("load", "n", "words"), [(Load(concurrency=4), 5, "rate"), (poisson(4), None, "end")]
)
def test_a_closed_or_endless_load_has_no_instants(load: Load, n: int | None, words: str) -> None:
    """Programming mistakes are refused, not answered with an empty schedule."""
    with pytest.raises(ValueError, match=words):
        instants(load, 0, n, None)
