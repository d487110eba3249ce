"""Drawing lengths: each kind takes from the generator what its table says, and stays within its bounds."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.plan.lengths import (
    LONGEST,
    Distribution,
    Within,
    fixed,
    histogram,
    lognormal,
    normal,
    parse,
    quantiles,
    uniform,
)
from inferometer.plan.standard import STAND_INS
from inferometer.workload.lengths import draw

SEEDS = st.integers(0, 2**63 - 1)


@given(SEEDS, st.integers(1, LONGEST))
def test_a_fixed_length_takes_nothing_from_the_generator(seed: int, tokens: int) -> None:
    """What is drawn after a fixed length does not depend on there being one."""
    rng = random.Random(seed)
    before = rng.getstate()
    assert draw(fixed(tokens), rng) == tokens
    assert rng.getstate() == before


@given(SEEDS, st.integers(1, 5000), st.integers(0, 5000))
def test_a_uniform_length_is_one_randint(seed: int, low: int, width: int) -> None:
    """Draft A.1.4 draws its lengths with randint, both ends included."""
    assert draw(uniform(low, low + width), random.Random(seed)) == random.Random(seed).randint(
        low, low + width
    )


@given(SEEDS)
def test_a_normal_length_is_rounded_and_the_articles_is_cut(seed: int) -> None:
    """Rounding goes to the nearest integer; truncation drops the fraction; both take the same from the generator."""
    value = random.Random(seed).normalvariate(550, 150)
    rounded, cut = random.Random(seed), random.Random(seed)
    assert abs(draw(normal(550, 150), rounded) - max(1, value)) <= 0.5
    assert draw(normal(550, 150), cut, truncate=True) == max(1, int(value))
    assert rounded.getstate() == cut.getstate()


@given(SEEDS)
def test_a_lognormal_length_is_rounded_then_clamped(seed: int) -> None:
    """The bounds of draft A.2 hold exactly, and between them the length is the nearest integer."""
    value = random.Random(seed).lognormvariate(5.5, 1.0)
    assert (
        abs(draw(lognormal(5.5, 1.0, min=32, max=4096), random.Random(seed)) - min(max(value, 32), 4096))
        <= 0.5
    )


@given(
    SEEDS,
    st.sampled_from(
        [
            "uniform(1,90,min=20,max=30)",
            "normal(0,40,max=7)",
            "normal(10,900)",
            "lognormal(3,9,min=5,max=50)",
            "lognormal(3,9,min=5,max=50,within=redraw)",
            "histogram(1:1,60:5,min=3,max=40)",
            "quantiles(0:1,50:9,100:900,min=3,max=40)",
        ]
    ),
)
def test_no_length_leaves_its_bounds(seed: int, spelled: str) -> None:
    """Clamping holds for every kind, and no length is below one token."""
    length = parse(spelled)
    rng = random.Random(seed)
    drawn = [draw(length, rng) for _ in range(30)]
    floor, cap = getattr(length, "floor", 1), getattr(length, "cap", LONGEST)
    assert all(floor <= tokens <= cap for tokens in drawn)
    assert min(drawn) >= 1


@pytest.mark.parametrize(
    "length",
    [
        uniform(128, 512),
        normal(550, 150),
        lognormal(5.5, 1.0, min=32, max=4096),
        lognormal(4.5, 1.2, min=16, max=2048),
        lognormal(5.5, 1.0, min=1024, max=4096, within="redraw"),
        lognormal(4.5, 1.2, min=32, max=128, within="redraw"),
        histogram([(128, 1), (256, 3), (1024, 0.5)]),
        quantiles([(0, 16), (50, 200), (100, 9_000)], max=1_000),
        quantiles([(0, 16), (50, 200), (100, 9_000)], min=300),
        quantiles([(0, 16), (50, 200), (80, 200), (100, 9_000)], min=200, max=200),
        STAND_INS["conversation"][0],
        STAND_INS["conversation"][1],
    ],
)
def test_draws_average_to_the_distributions_mean(length: Distribution) -> None:
    """The mean of 20,000 draws is within five standard errors of the mean the plan states."""
    rng = random.Random(11)
    drawn = [draw(length, rng) for _ in range(20_000)]
    error = statistics.stdev(drawn) / 20_000**0.5
    assert abs(statistics.fmean(drawn) - length.mean()) <= 5 * error


@given(SEEDS)
def test_a_redrawn_length_is_the_first_draw_within_the_bounds(seed: int) -> None:
    """Rounded first: 63.6 is 64 and counts, 63.4 does not."""
    rng = random.Random(seed)
    values = (round(rng.lognormvariate(5.5, 1.0)) for _ in range(10_000))
    first = next(value for value in values if 64 <= value <= 256)
    assert draw(lognormal(5.5, 1.0, min=64, max=256, within="redraw"), random.Random(seed)) == first


@pytest.mark.parametrize(
    ("mu", "sigma", "low", "high"),
    [(5.5, 1.0, 64, 256), (5.5, 1.0, 1024, 4096), (4.5, 1.2, 32, 128), (4.5, 1.2, 256, 1024)],
)
def test_redrawn_lengths_have_the_conditional_distribution(
    mu: float, sigma: float, low: int, high: int
) -> None:
    """Chi-square of 40,000 draws against P(k) = (F(k + 1/2) - F(k - 1/2)) / (F(high + 1/2) - F(low - 1/2)), in cells of at
    least 100 expected draws; clamped ones, which pile up at the bounds, are refused by the same test."""
    normal_cdf = statistics.NormalDist(mu, sigma).cdf
    edges = [normal_cdf(math.log(low - 0.5 + step)) for step in range(high - low + 2)]
    shares = [(b - a) / (edges[-1] - edges[0]) for a, b in pairwise(edges)]

    def chi_square(within: Within) -> tuple[float, int]:
        rng, length = random.Random(5), lognormal(mu, sigma, min=low, max=high, within=within)
        counts = Counter(draw(length, rng) for _ in range(40_000))
        total, cells, seen, expected = 0.0, 0, 0, 0.0
        for place, share in enumerate(shares):
            seen, expected = seen + counts[low + place], expected + 40_000 * share
            if expected >= 100:
                total, cells = total + (seen - expected) ** 2 / expected, cells + 1
                seen, expected = 0, 0.0
        return total, cells - 1

    found, freedom = chi_square("redraw")
    assert freedom > 50
    assert abs(found - freedom) < 4 * math.sqrt(2 * freedom)
    assert chi_square("clamp")[0] > 10 * found


def test_the_skewed_workload_has_the_drafts_median() -> None:
    """Draft A.2.1 puts the median input near 245 tokens, which is exp(5.5)."""
    rng = random.Random(3)
    drawn = [draw(lognormal(5.5, 1.0, min=32, max=4096), rng) for _ in range(20_000)]
    assert abs(statistics.median(drawn) - 245) < 8


def test_a_histogram_draws_each_value_by_its_weight() -> None:
    """Shares of 10,000 draws are near the weights' shares, and no other value comes."""
    rng = random.Random(4)
    drawn = [draw(histogram([(128, 1), (256, 3)]), rng) for _ in range(10_000)]
    assert set(drawn) == {128, 256}
    assert abs(drawn.count(256) / 10_000 - 0.75) < 0.02
