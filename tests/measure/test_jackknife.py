"""Intervals by leaving out stretches of time: right for means, and wide enough where neighbours are alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.jackknife import BLOCKS, FEWEST_BLOCKS, LEAST, jackknife_intervals
from inferometer.measure.record import Floats, Ints
from inferometer.measure.stats import student

Places = Sequence[Ints]


def of_means(*groups: Floats) -> Callable[[Places], Mapping[str, float | None]]:
    """The sum of the groups' means."""
    return lambda places: {"mean": float(sum(one[at].mean() for one, at in zip(groups, places, strict=True)))}


@given(st.integers(0, 2**32), st.floats(-1e3, 1e3), st.floats(0.1, 50))
def test_of_a_mean_it_is_that_of_the_blocks_means(seed: int, middle: float, spread: float) -> None:
    """Law: with equal blocks, Student's interval of the blocks' means."""
    values = np.random.default_rng(seed).normal(middle, spread, BLOCKS * 10)
    low, high = jackknife_intervals([len(values)], of_means(values))["mean"]
    means = values.reshape(BLOCKS, 10).mean(axis=1)
    half = student(BLOCKS - 1) * float(means.std(ddof=1)) / BLOCKS**0.5
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), rel=1e-6, abs=1e-9)


def test_it_covers_where_neighbours_are_alike() -> None:
    """A mean of an autoregression with a correlation length of 4 entries: 95 % of 400 intervals, chance allowed for."""
    rng, held = np.random.default_rng(7), 0
    for _ in range(400):
        noise, series = rng.normal(size=1_000), np.empty(1_000)
        series[0] = noise[0] / (1 - 0.8**2) ** 0.5
        for at in range(1, 1_000):
            series[at] = 0.8 * series[at - 1] + noise[at]
        low, high = jackknife_intervals([1_000], of_means(series))["mean"]
        held += low <= 0 <= high
    assert 0.91 <= held / 400 <= 0.98


def test_variances_of_independent_runs_add_up() -> None:
    """Law: the interval of a sum over two runs is as wide as both together, at the degrees of freedom of both."""
    rng = np.random.default_rng(3)
    one, two = rng.normal(5, 1, 400), rng.normal(9, 1, 400)
    found = [jackknife_intervals([400], of_means(group))["mean"] for group in (one, two)]
    errors = [(high - low) / 2 / student(BLOCKS - 1) for low, high in found]
    low, high = jackknife_intervals([400, 400], of_means(one, two))["mean"]
    freedom = (BLOCKS - 1) * sum(e**2 for e in errors) ** 2 / sum(e**4 for e in errors)
    assert (high - low) / 2 == pytest.approx(student(freedom) * sum(e**2 for e in errors) ** 0.5)


def test_too_few_requests_have_no_interval() -> None:
    """Nor has a figure that is not known without one of the blocks; a constant one has an interval of no width."""
    few = np.arange(FEWEST_BLOCKS * LEAST - 1.0)
    assert jackknife_intervals([len(few)], of_means(few)) == {}
    assert jackknife_intervals([400, len(few)], of_means(np.zeros(400), few)) == {}
    assert jackknife_intervals(
        [40], lambda places: {"first": 1.0 if 0 in places[0] else None, "all": 2.0}
    ) == {"all": (2.0, 2.0)}
