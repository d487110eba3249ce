"""Cochran's test: repeats of one truth are seldom said to differ, and repeats of two are."""

from __future__ import annotations

import numpy as np
import pytest

from inferometer.measure.heterogeneity import heterogeneous


def drawn(truths: list[float], errors: list[float], seed: int) -> bool:
    """Whether values about these truths, with normal errors, are said to differ."""
    values = np.random.default_rng(seed).normal(truths, errors).tolist()
    ends = [(value - 1.96 * error, value + 1.96 * error) for value, error in zip(values, errors, strict=True)]
    return heterogeneous(values, ends)


@pytest.mark.parametrize("count", [2, 3, 10])
def test_chance_alone_is_seldom_called_a_difference(count: int) -> None:
    """At most 6 of 2,000, where 2 are expected, for equal and unequal errors."""
    errors = [1.0 + 3.0 * (number % 2) for number in range(count)]
    assert sum(drawn([50.0] * count, errors, seed) for seed in range(2_000)) <= 6


def test_a_repeat_far_from_the_others_is_a_difference() -> None:
    """By ten standard errors it is one in every draw."""
    assert all(drawn([50.0, 50.0, 60.0], [1.0] * 3, seed) for seed in range(200))


def test_fewer_than_two_values_and_equal_ones_do_not_differ() -> None:
    """Whatever their intervals."""
    assert not heterogeneous([], [])
    assert not heterogeneous([3.0], [(1.0, 5.0)])
    assert not heterogeneous([38.0, 38.0], [(38.0, 38.0), (38.0, 38.0)])


def test_values_without_width_differ_where_they_are_unequal() -> None:
    """They claim to be exact; beside wider ones they weigh as the narrowest of those."""
    assert heterogeneous([38.0, 39.0], [(38.0, 38.0), (39.0, 39.0)])
    assert not heterogeneous([38.0, 39.0], [(38.0, 38.0), (36.0, 42.0)])
