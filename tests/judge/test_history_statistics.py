"""Change points and regressions in series whose truth is planted."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from histories import noisy
from hypothesis import given
from hypothesis import strategies as st

from inferometer.documents.history import Scale
from inferometer.judge.history.change_points import (
    SHORTEST,
    Permutations,
    change_points,
    split_statistics,
)
from inferometer.judge.history.regression import (
    ALPHA,
    TRIMMED,
    FigureFinding,
    FigureSeries,
    Sensitivity,
    examine,
    matters,
    settled,
    shown_change,
)
from inferometer.measure.record import Floats
from inferometer.metrics.catalogue import Better

TEST = Permutations(499, 0.01)


def series(
    values: list[float], better: Better = "less", name: str = "x", deciding: bool = True
) -> FigureSeries:
    return FigureSeries(name, better, "ratio", deciding, np.array(values))


def only(values: list[float], **more: float) -> FigureFinding:
    (found,) = examine([series(values)], Sensitivity(**more))  # type: ignore[arg-type]  # the numbers of it
    return found


def by_definition(values: Floats, split: int) -> float:
    """Q as the paper defines it, term by term."""
    before, after = values[:split], values[split:]
    m, n = len(before), len(after)
    across = sum(abs(x - y) for x in before for y in after)
    within = sum(abs(x - y) for x, y in itertools.combinations(before, 2))
    behind = sum(abs(x - y) for x, y in itertools.combinations(after, 2))
    energy = 2 * across / (m * n) - 2 * within / (m * (m - 1)) - 2 * behind / (n * (n - 1))
    return float(m * n / (m + n) * energy)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2 * SHORTEST, max_size=20))
def test_the_statistic_is_that_of_the_paper(values: list[float]) -> None:
    """Of every split that leaves SHORTEST results on both sides."""
    array = np.array(values)
    found = split_statistics(np.abs(np.subtract.outer(array, array)))
    expected = [by_definition(array, split) for split in range(SHORTEST, len(values) - SHORTEST + 1)]
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_step_is_found_where_it_is_and_a_second_one_too() -> None:
    """Three levels, two changes."""
    values = np.array([*noisy(20, 1), *noisy(15, 2, level=110), *noisy(20, 3, level=95)])
    assert [one.at for one in change_points(values, TEST)] == pytest.approx([20, 35], abs=1)


@pytest.mark.parametrize("values", [[1.0] * 30, [1.0] * 4, [], [3.0, 1.0] * 15])
def test_a_level_without_a_change_has_no_change_point(values: list[float]) -> None:
    """Constant, too short, empty, or back and forth."""
    assert change_points(np.array(values), TEST) == []


def test_of_series_without_a_change_no_more_are_split_than_the_level_allows() -> None:
    """500 series of noise at a level of 5 %: 25 are expected, and 40 or more come once in a thousand times."""
    test = Permutations(199, 0.05)
    split = sum(bool(change_points(np.array(noisy(24, seed)), test)) for seed in range(500))
    assert 10 <= split <= 40


def test_the_permutations_follow_from_the_seed() -> None:
    """The same answer each time, and p is that of counting."""
    values = np.array([*noisy(12, 5), *noisy(12, 6, level=103)])
    found = [change_points(values, Permutations(999, 0.2, seed)) for seed in (1, 1, 2)]
    assert found[0] == found[1]
    assert all(1 / 1000 <= one.p <= 0.2 for splits in found for one in splits)


def test_one_new_result_is_expected_within_students_interval() -> None:
    """m +- t s sqrt(1 + 1/n) on the logarithm, by hand for eight results."""
    values = [100.0, 101, 99, 102, 98, 100, 101, 99, 100]
    logs = np.log(values[:-1])
    half = 2.364624 * logs.std(ddof=1) * math.sqrt(1 + 1 / 8)
    found = only(values)
    assert found.expected == pytest.approx((math.exp(logs.mean() - half), math.exp(logs.mean() + half)))
    assert found.usual == pytest.approx(math.exp(logs.mean()))
    assert (found.n, found.verdict) == (8, "no_difference")


@pytest.mark.parametrize(("better", "verdict"), [("less", "worse"), ("more", "better")])
def test_whether_more_is_worse_depends_on_the_figure(better: Better, verdict: str) -> None:
    """A newest result that is 20 % higher at 2 % noise."""
    (found,) = examine([series([*noisy(12), 120.0], better)], Sensitivity())
    assert found.verdict == verdict
    assert found.recent[0].p_holm < ALPHA


def test_a_small_change_is_found_when_five_results_show_it() -> None:
    """5 % at 2 % noise: not by the first, but by the fifth."""
    before = noisy(20, 3)
    assert only([*before, 105.0]).verdict == "no_difference"
    assert only([*before, *noisy(5, 4, level=105)]).verdict == "worse"


def test_one_bad_result_is_no_trend() -> None:
    """The results after it are as usual."""
    before = [*noisy(20, 3), 140.0]
    assert only(before).verdict == "worse"
    assert [only([*before, *noisy(k, 9)]).verdict for k in (1, 2, 3, 4)] == ["no_difference"] * 4


def test_results_far_from_the_others_do_not_blind_the_check() -> None:
    """Two slow results among twenty have no say in the noise, and are counted."""
    values = noisy(20, 3)
    values[4], values[11] = 150.0, 60.0
    found = only([*values, 112.0])
    assert (found.outliers, found.n, found.verdict) == (2, 18, "worse")


def test_where_half_of_the_results_are_equal_none_is_left_out() -> None:
    """Their spread is not the noise; nor are many far ones left out."""
    assert len(settled(np.array([1.0] * 10 + [2.0]))) == 11
    assert len(settled(np.array([1.0, 1.1, 0.9, 1.05, 0.95, 9.0, 9.1, 8.9]))) == 8


def test_a_figure_that_never_varied_differs_for_certain_or_not_at_all() -> None:
    """Success rates, and simulations of one seed."""
    assert only([1.0] * 12).verdict == "no_difference"
    found = only([*[1.0] * 12, 1.03])
    assert (found.verdict, found.recent[0].p_holm) == ("worse", 0.0)


@pytest.mark.parametrize(("counted", "p"), [(50, 0.995), (50, 0.99), (100, 0.998), (200, 0.99)])
def test_a_success_rate_is_as_noisy_as_counting(counted: int, p: float) -> None:
    """Of few requests one more fails now and then: where nothing changed, fewer than 2 checks in 100 raise an alarm."""
    rng, alarms = np.random.default_rng(5), 0
    for _ in range(300):
        values = rng.binomial(counted, p, 9) / counted
        found = FigureSeries("success_rate", "more", "ratio", True, values, counted)
        alarms += examine([found], Sensitivity())[0].verdict == "worse"
    assert alarms < 6


def test_what_fails_more_than_counting_explains_is_found() -> None:
    """One failure after none is no claim, a tenth of all is worse; without the number of requests neither is."""
    for counted, newest, verdict in (
        (50, 0.98, "no_difference"),
        (50, 0.90, "worse"),
        (5000, 0.98, "worse"),
        (0, 0.90, "no_difference"),
    ):
        values = np.array([*[1.0] * 8, newest])
        found = examine([FigureSeries("s", "more", "ratio", True, values, counted)], Sensitivity())[0]
        assert found.verdict == verdict, (counted, newest)


def test_what_is_certain_but_small_is_no_regression() -> None:
    """The threshold is of practical importance."""
    values = [*[100.0] * 12, 100.5]
    assert [only(values, threshold=limit).verdict for limit in (0.004, 0.006)] == ["worse", "no_difference"]


def test_a_lasting_change_stays_reported_and_is_no_part_of_the_noise() -> None:
    """When the results after it are the newest thirty, it is the level."""
    values = [*noisy(30, 1), *noisy(12, 2, level=108)]
    found = only(values)
    assert [(one.at, one.stands) for one in found.levels] == [(30, True)]
    assert math.expm1(found.levels[0].change) == pytest.approx(0.08, abs=0.02)
    assert found.verdict == "worse"
    assert found.n == 11
    assert found.usual == pytest.approx(108, rel=0.02)
    assert only([*values, *noisy(25, 3, level=108)]).verdict == "no_difference"


def test_holms_correction_is_over_all_deciding_figures() -> None:
    """What suffices for one figure does not among forty; those that do not decide pay apart."""
    values = [*noisy(12, 4), 108.5]
    alone = only(values)
    others = [series(noisy(13, 100 + at), name=str(at)) for at in range(39)]
    found = examine([series(values), *others], Sensitivity())[0]
    shown = examine([series(values), *(series(list(one.values), name=one.name, deciding=False) for one in others)],
                    Sensitivity())[0]  # fmt: skip
    assert (alone.verdict, found.verdict, shown.verdict) == ("worse", "no_difference", "worse")
    assert found.detectable is not None
    assert alone.detectable is not None
    assert found.detectable > alone.detectable


def test_figures_that_need_not_be_above_zero_keep_their_scale() -> None:
    """A reduction in percentage points, an overhead in ms."""
    points = FigureSeries("reduction", "more", "points", True, np.array([*np.linspace(-1, 1, 12), -40.0]))
    overhead = FigureSeries("overhead", "less", "difference", True, np.array([*np.linspace(9, 11, 12), 30.0]))
    found = examine([points, overhead], Sensitivity())
    assert [one.verdict for one in found] == ["worse", "worse"]
    assert [one.change for one in found] == pytest.approx([-40, 20])
    assert not matters(points, -0.9, 50.0, 0.01)
    assert matters(overhead, 0.2, 10.0, 0.01)
    assert shown_change(points, 2.0, 50.0) == 2.0


def ratio(values: list[float]) -> FigureFinding:
    """What a rate shows, where more is better."""
    return examine([FigureSeries("goodput", "more", "ratio", True, np.array(values))], Sensitivity())[0]


def test_changes_of_a_ratio_are_shares_of_the_usual_value_also_where_a_result_was_0() -> None:
    """Which has no logarithm: goodput of a VALID run in which nothing met its objectives."""
    usual = [8.0, 8.1, 8.2] * 4
    found = ratio([*usual, 0.0])
    assert (found.change, found.verdict) == (-1.0, "worse")
    assert all(0 < one < 0.1 for one in (found.noise, found.detectable) if one is not None)
    once = ratio([*usual[:5], 0.0, *usual[5:], 7.0])
    assert once.change == pytest.approx(7.0 / 8.1 - 1, abs=0.01)
    (newest, _) = once.recent
    assert shown_change(once.series, newest.change, newest.usual) == once.change
    levels = ratio([*[0.0, *[8.0, 8.1, 8.2] * 8], *[4.0, 4.1, 4.2] * 4])
    (level,) = levels.levels
    assert shown_change(levels.series, level.change, level.usual) == pytest.approx(-0.5, abs=0.02)


def test_there_is_no_share_of_0() -> None:
    """What was always 0 and no longer is has changed, by no percentage."""
    found = ratio([*[0.0] * 10, 5.0])
    assert (found.usual, found.change, found.noise, found.detectable) == (0.0, None, None, None)
    assert found.verdict == "better"


@pytest.mark.parametrize("scale", ["ratio", "points", "difference"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_figures_of_any_size_give_finite_answers(scale: Scale, sign: float) -> None:
    """Up to the largest and down to the smallest that an entry may have."""
    values = np.array([*[1e100, 5e-324] * 12, sign * 1e100])
    found = examine([FigureSeries("x", "less", scale, True, values)], Sensitivity())[0]
    numbers = [found.usual, *found.expected, found.change, found.noise, found.detectable]
    assert all(math.isfinite(one) for one in numbers if one is not None)


def test_the_variance_of_the_middle_three_of_five_is_that_of_normal_values() -> None:
    """By a million draws."""
    drawn = np.sort(np.random.default_rng(0).standard_normal((1_000_000, 5)), axis=1)[:, 1:4].mean(axis=1)
    assert drawn.var() == pytest.approx(TRIMMED[5], rel=0.01)
