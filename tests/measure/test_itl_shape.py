"""The shape of the gaps: modes that were put in are found, others are not, and tails have their side of the exponential."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import ndimage, signal

from inferometer.journal.schema import EventClass as E
from inferometer.measure.itl_shape import (
    BIN,
    HEAVY,
    LEAST_GAPS,
    ItlShape,
    _maxima,
    _smoothed,
    itl_shape,
    modes,
)
from inferometer.measure.record import Floats, Ints, Record
from inferometer.measure.samples import Samples

EACH = 50
SEEDS = range(20)
OFFSETS: Ints = np.arange(0, LEAST_GAPS + 1, EACH)

Random = np.random.Generator


def around(random: Random, centre: Any, sigma: float, n: int = LEAST_GAPS) -> Floats:
    """Log-normal gaps."""
    return np.asarray(centre * np.exp(random.normal(0, sigma, n)))


def mixture(random: Random, weight: float, first: float, second: float, sigma: float) -> Floats:
    """Log-normal modes at `first` and, with its weight, at `second`."""
    return around(random, np.where(random.random(LEAST_GAPS) < weight, second, first), sigma)


def levels(random: Random, spread: float, sigma: float) -> Floats:
    """Every answer has a pace of its own."""
    pace = np.repeat(around(random, 20, spread, LEAST_GAPS // EACH), EACH)
    return around(random, pace, sigma)


ONE: dict[str, Callable[[Random], Floats]] = {
    "narrow": lambda random: around(random, 20, 0.05),
    "broad": lambda random: around(random, 20, 0.5),
    "very broad": lambda random: around(random, 20, 1.5),
    "exponential": lambda random: random.exponential(20, LEAST_GAPS),
    "gamma": lambda random: random.gamma(3, 7, LEAST_GAPS),
    "pareto": lambda random: 20 * (1 + random.pareto(1.5, LEAST_GAPS)),
    "uniform": lambda random: random.uniform(10, 30, LEAST_GAPS),
    "constant": lambda _: np.full(LEAST_GAPS, 20.0),
    "constant and jitter": lambda random: 20 + random.normal(0, 0.1, LEAST_GAPS),
    "paces": lambda random: levels(random, 0.3, 0.02),
    "broad paces": lambda random: levels(random, 0.6, 0.05),
    "few zeros": lambda random: np.where(random.random(LEAST_GAPS) < 0.01, 0, around(random, 20, 0.1)),
}
TWO: dict[str, tuple[Callable[[Random], Floats], tuple[float, ...]]] = {
    **{
        f"10 and 40 with {weight:.0%}": (
            partial(mixture, weight=weight, first=10, second=40, sigma=0.1),
            (10, 40),
        )
        for weight in (0.05, 0.1, 0.3, 0.5)
    },
    "broad": (lambda random: mixture(random, 0.2, 10, 40, 0.3), (10, 40)),
    "near": (lambda random: mixture(random, 0.4, 10, 15, 0.1), (10, 15)),
    "gamma": (
        lambda random: np.where(
            random.random(LEAST_GAPS) < 0.3,
            random.gamma(30, 40 / 30, LEAST_GAPS),
            random.gamma(30, 10 / 30, LEAST_GAPS),
        ),
        (10, 40),
    ),
    "constant and jitter": (
        lambda random: np.where(random.random(LEAST_GAPS) < 0.1, 40, 10) + random.normal(0, 0.01, LEAST_GAPS),
        (10, 40),
    ),
    "zeros": (
        lambda random: np.where(random.random(LEAST_GAPS) < 0.5, 0, around(random, 20, 0.1)),
        (0, 20),
    ),
    "answers of two speeds": (
        lambda random: around(
            random, np.repeat(np.where(random.random(LEAST_GAPS // EACH) < 0.5, 10, 40), EACH), 0.1
        ),
        (10, 40),
    ),
    "three": (
        lambda random: around(random, 10 * 2.0 ** random.integers(0, 3, LEAST_GAPS), 0.1),
        (10, 20, 40),
    ),
}


@pytest.mark.parametrize("kind", ONE)
def test_one_mode_is_one(kind: str) -> None:
    """Law: no draw of a distribution with one mode has several, nor do answers that each have their own pace."""
    found = [len(modes(ONE[kind](np.random.default_rng(seed)), OFFSETS)) for seed in SEEDS]
    assert found == [1] * len(SEEDS)


@pytest.mark.parametrize("kind", TWO)
def test_modes_that_are_there_are_found_where_they_are(kind: str) -> None:
    """Law: every draw of a mixture has the modes that were mixed, within a tenth."""
    draw, expected = TWO[kind]
    for seed in SEEDS:
        assert modes(draw(np.random.default_rng(seed)), OFFSETS) == pytest.approx(expected, rel=0.1)


def test_the_unit_of_time_moves_modes_with_it() -> None:
    """Law: gaps times a number have their modes times that number."""
    gaps = TWO["10 and 40 with 30%"][0](np.random.default_rng(1))
    assert modes(gaps * 7, OFFSETS) == pytest.approx([7 * one for one in modes(gaps, OFFSETS)], rel=1e-6)


def test_a_few_answers_with_a_pace_each_tell_no_modes() -> None:
    """Thirty answers of constant gaps are thirty draws, however many gaps they have."""
    pace = np.repeat(np.random.default_rng(2).uniform(10, 40, 30), 400)
    assert modes(pace, np.arange(0, len(pace) + 1, 400)) == ()


def test_zeros_and_nothing() -> None:
    """All gaps of zero are one mode at zero; no gaps have none."""
    assert modes(np.zeros(LEAST_GAPS), OFFSETS) == (0.0,)
    assert modes(np.zeros(0), np.zeros(1, np.int64)) == ()


def answers(build: Callable[..., Record], gaps: Floats, each: int, short: int = 0) -> ItlShape:
    """Answers of `each` gaps, and short ones of three tokens and gaps of a second."""
    rows: list[dict[str, Any]] = [
        {"index": number, "events": [(float(ms), E.CONTENT) for ms in np.cumsum([5.0, *part])]}
        for number, part in enumerate(gaps.reshape(-1, each))
    ]
    rows += [{"events": [(1.0, E.CONTENT), (1001.0, E.CONTENT), (2001.0, E.CONTENT)]}] * short
    found = itl_shape(
        Samples(build(*(row | {"usage_output": len(row["events"])} for row in rows)), streamed=True),
        streamed=True,
    )
    assert found is not None
    return found


def test_short_answers_are_counted_and_left_out(build: Callable[..., Record]) -> None:
    """Law: answers under 50 tokens change counts only: gaps, jitter, pauses, modes and tail are those of the others."""
    gaps = around(np.random.default_rng(4), 20, 0.2)
    without, beside = answers(build, gaps, EACH), answers(build, gaps, EACH, short=100)
    assert (without.answers, without.short_answers, without.short_share) == (100, 0, 0)
    assert (beside.answers, beside.short_answers, beside.short_share) == (100, 100, 0.5)
    for name in ("itl_ms", "jitter_ms", "max_pause_ms", "modes_ms", "modality", "tail_ratio", "tail"):
        assert getattr(without, name) == getattr(beside, name)
    assert without.itl_ms is not None
    assert without.itl_ms.n == LEAST_GAPS
    assert (without.modality, without.tail) == ("unimodal", "exponential or lighter")


def test_fifty_tokens_are_enough_and_too_few_gaps_tell_no_shape(build: Callable[..., Record]) -> None:
    """The bounds of draft 5.4.2: an answer of 50 tokens counts, and a hundred of them have 4,900 gaps, not 5,000."""
    found = answers(build, np.full(100 * 49, 20.0), 49)
    assert (found.answers, found.modality, found.tail, found.modes_ms) == (
        100,
        "undetermined",
        "undetermined",
        (),
    )
    assert found.tail_ratio == pytest.approx(1)
    assert answers(build, np.full(100 * 48, 20.0), 48).answers == 0


@pytest.mark.parametrize(
    ("draw", "tail"),
    [
        (lambda random: random.gamma(2, 10, LEAST_GAPS), "exponential or lighter"),
        (lambda random: around(random, 20, 0.6), "exponential or lighter"),
        (lambda random: around(random, 20, 1.2), "heavy"),
        (lambda random: 20 * random.pareto(1.2, LEAST_GAPS), "heavy"),
    ],
)
def test_tails_lie_on_their_side_of_the_exponential(
    build: Callable[..., Record], draw: Callable[[Random], Floats], tail: str
) -> None:
    """Law: P99 / P50 of an exponential is ln 100 / ln 2; lighter distributions are below, heavy ones above."""
    assert pytest.approx(6.644, abs=1e-3) == HEAVY
    assert [answers(build, draw(np.random.default_rng(seed)), EACH).tail for seed in range(3)] == [tail] * 3


def test_nothing_streamed_has_no_shape(build: Callable[..., Record]) -> None:
    """An answer that came whole has no gaps, and a run without a sample has no answers."""
    whole = build({"events": [(9.0, E.CONTENT)]})
    assert itl_shape(Samples(whole, streamed=False), streamed=False) is None
    failed = build({"outcome": "timeout"})
    assert itl_shape(Samples(failed, streamed=True), streamed=True) is None


@given(arrays(np.float64, st.integers(1, 60), elements=st.integers(0, 4).map(float)))
def test_maxima_are_scipys(curve: Floats) -> None:
    """Law: plateaus have their peak in the middle, ends have none, as in scipy.signal.find_peaks."""
    assert _maxima(curve).tolist() == signal.find_peaks(curve)[0].tolist()


@given(arrays(np.float64, st.integers(40, 90), elements=st.floats(0, 100)))
def test_densities_are_smoothed_as_scipy_does(density: Floats) -> None:
    """Law: the curve is scipy's Gaussian filter with a bandwidth of as many bins, and nothing beyond the ends."""
    filtered = ndimage.gaussian_filter1d(density, 1 / BIN, mode="constant")
    assert _smoothed(density) == pytest.approx(filtered, abs=1e-9)


def test_the_drafts_own_table_has_these_figures(build: Callable[..., Record]) -> None:
    """Known vector: draft table 6. Gaps with its percentiles, straight between them, whose least and greatest (20.9 and 689 ms)
    follow from its mean and standard deviation, have each of its figures, the ratio of 3.26 among them: no heavy tail."""
    shares = (
        0,
        0.5,
        0.9,
        0.95,
        0.9899,
        0.9901,
        0.9989,
        0.9991,
        1,
    )  # level about the two where one gap makes a difference
    gaps = np.interp(np.linspace(0, 1, 15_234), shares, (20.887, 38, 52, 67, 124, 124, 312, 312, 689.04))
    found = answers(build, np.random.default_rng(6).permutation(gaps), 2_539)
    stats = found.itl_ms
    assert stats is not None
    assert stats.p99_9 is not None
    assert stats.std is not None
    assert (stats.n, found.answers) == (15_234, 6)
    assert [round(value) for value in (stats.p50, stats.p90, stats.p95, stats.p99)] == [38, 52, 67, 124]
    assert stats.p99_9 == pytest.approx(312)
    assert (round(stats.mean), round(stats.std)) == (42, 28)
    assert found.tail_ratio == pytest.approx(3.26, abs=0.005)
    assert found.tail == "exponential or lighter"
