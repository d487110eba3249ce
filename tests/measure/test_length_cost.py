"""What a prompt's length costs: the curve through a run's TTFTs, and the index of requests that are measured against it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.jain import jain, jain_of_shares, shares_of
from inferometer.measure.length_cost import RATIO, LengthCost, LengthGroup, by_length, cost_of
from inferometer.measure.record import Floats
from inferometer.plan.lengths import Empirical, lognormal
from inferometer.plan.standard import STAND_INS, STANDARD
from inferometer.workload.lengths import draw

coefficients = st.tuples(st.floats(1, 100), st.floats(1e-3, 1), st.floats(1e-7, 1e-4))


@given(coefficients, st.lists(st.integers(1, 100_000), min_size=3, max_size=40, unique=True))
def test_a_curve_is_found_again(truth: tuple[float, float, float], lengths: list[int]) -> None:
    """Law: TTFTs that lie on a curve of this kind have that curve, at each of their lengths."""
    cost = LengthCost(*truth)
    groups = [LengthGroup(1, float(one), cost.ms(one), None) for one in lengths]
    found = cost_of(groups)
    assert found is not None
    for one in lengths:
        assert found.ms(one) == pytest.approx(cost.ms(one), rel=0.02)


@given(st.lists(st.tuples(st.floats(1, 1e5), st.floats(0.1, 1e5)), min_size=1, max_size=60))
def test_the_curve_is_above_0_and_never_falls(points: list[tuple[float, float]]) -> None:
    """Law: whatever the TTFTs are, a longer prompt costs no less."""
    found = cost_of([LengthGroup(1, tokens, ms, None) for tokens, ms in points])
    assert found is not None
    costs = [found.ms(tokens) for tokens in sorted(tokens for tokens, _ in points)]
    assert costs[0] > 0
    assert costs == sorted(costs)


@given(st.lists(st.tuples(st.integers(1, 50_000), st.floats(0.1, 1e4)), min_size=1, max_size=200))
def test_groups_hold_every_request_once(points: list[tuple[int, float]]) -> None:
    """Law: numbers and sums are those of the requests, in groups no wider than RATIO; what is not known is left out."""
    tokens = np.array([*(float(one) for one, _ in points), np.nan, 5.0])
    ttft = np.array([*(one for _, one in points), 3.0, np.nan])
    groups = by_length(tokens, ttft)
    assert sum(one.n for one in groups) == len(points)
    assert sum(one.n * one.mean_ms for one in groups) == pytest.approx(sum(one for _, one in points))
    lengths = [one.tokens for one in groups]
    assert lengths == sorted(lengths)
    for one in groups:
        inside = [length for length, _ in points if one.tokens / RATIO < length < one.tokens * RATIO]
        assert len(inside) >= one.n


def test_without_a_ttft_nothing_is_known() -> None:
    """No groups, or one whose mean is not above 0."""
    assert cost_of(()) is None
    assert cost_of([LengthGroup(3, 10.0, 0.0, 0.0)]) is None


def lengths_of(name: str, seed: int) -> Floats:
    """500 prompt lengths of a standard workload; a wide log-normal where they are those of a corpus."""
    given = STAND_INS.get(name, STANDARD[name])[0]
    if isinstance(given, Empirical):
        given = lognormal(6.0, 1.0, min=16, max=8192)
    rng = random.Random(seed)
    return np.array([draw(given, rng) for _ in range(500)], float)


@pytest.mark.parametrize("name", STANDARD)
@pytest.mark.parametrize("slower", [1.0, 7.0])
def test_a_fair_engine_is_fair_on_every_standard_workload(name: str, slower: float) -> None:
    """Every request takes `slower` times what its length costs alone, give or take 5 %: J is 1 / (1 + 0.05^2), to 0.005, and so
    never below 0.98, however much the lengths differ. If half of the requests take three times that, J is
    (1 + 3)^2 / (2 (1 + 9)) = 0.8, to 0.02."""
    rng, truth = np.random.default_rng(5), LengthCost(15.0, 0.02, 1e-6)

    def ttft(lengths: Floats, factor: Floats | float) -> Floats:
        found: Floats = (
            factor * np.array([truth.ms(one) for one in lengths]) * rng.normal(1, 0.05, len(lengths))
        )
        return found

    alone = lengths_of(name, 1)
    cost = cost_of(by_length(alone, ttft(alone, 1.0)))
    assert cost is not None
    mixed = lengths_of(name, 2)
    for factor, expected, width in (
        (slower, 1 / 1.0025, 0.005),
        (slower * np.where(np.arange(500) % 2, 1, 3), 0.8, 0.02),
    ):
        met = ttft(mixed, factor)
        groups = by_length(mixed, met)
        shares = shares_of((one.n, one.mean_ms, one.std_ms, cost.ms(one.tokens)) for one in groups)
        assert shares is not None
        found = jain_of_shares([shares])
        assert found == pytest.approx(expected, abs=width)
        assert found == pytest.approx(
            jain([t / cost.ms(one) for t, one in zip(met, mixed, strict=True)]), abs=0.002
        )
