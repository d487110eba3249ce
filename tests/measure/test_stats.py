"""Statistics: exact percentiles and intervals that cover what they promise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.coverage import queue
from inferometer.measure.load_states import LoadStates
from inferometer.measure.stats import describe, describe_at, percentile, share_interval
from inferometer.measure.zeros import Zeros
from inferometer.metrics.statistics import Interval, Stats

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
    """Law: the definitions, on 1, 2, 3, 4: mean 2.5, std sqrt(5/3), P50 2.5, P90 3.7."""
    stats = describe(np.array([4.0, 1.0, 3.0, 2.0]))
    assert stats is not None
    assert (stats.n, stats.mean, stats.min, stats.max, stats.p50) == (4, 2.5, 1.0, 4.0, 2.5)
    assert stats.std == pytest.approx(math.sqrt(5 / 3))
    assert stats.p75 == pytest.approx(3.25)
    assert stats.p90 == pytest.approx(3.7)
    assert stats.p99_9 == pytest.approx(3.997)


def test_nothing_is_described_as_nothing() -> None:
    """Law: no sample, no statistics: None, never zero; undefined samples (NaN) are no samples."""
    assert describe(np.zeros(0)) is None
    assert describe(np.array([np.nan, np.nan])) is None
    assert describe_at(np.zeros(0), np.zeros(0, np.int64)) is None


@example(gaps=[(7.5e-122, 0)], zeros=[(19, 0)])
@given(
    st.lists(st.tuples(st.floats(0, 1e4), st.integers(0, 10**10)), max_size=80),
    st.lists(st.tuples(st.integers(1, 300), st.integers(0, 10**10)), min_size=1, max_size=20),
)
@settings(deadline=None)
def test_zeros_that_are_counted_are_values_like_others(
    gaps: list[tuple[float, int]], zeros: list[tuple[int, int]]
) -> None:
    """Law: zeros told by their number have the statistics that they have one by one, but for rounding."""
    values, at_ns = np.array([one for one, _ in gaps], float), np.array([at for _, at in gaps], np.int64)
    counts, instants = np.array(zeros, np.int64).T
    found = describe_at(values, at_ns, zeros=Zeros(instants, counts))
    each = describe_at(
        np.concatenate((values, np.zeros(counts.sum()))), np.concatenate((at_ns, np.repeat(instants, counts)))
    )
    assert found is not None
    assert each is not None
    assert (found.n, found.min, found.max, found.p50, found.p99) == (
        each.n,
        each.min,
        each.max,
        each.p50,
        each.p99,
    )
    assert found.mean == pytest.approx(each.mean, rel=1e-12)
    assert (found.std is None) == (each.std is None)
    assert found.std is None or found.std == pytest.approx(each.std, rel=1e-9)
    for name in ("p50", "p90", "p99"):
        interval, by_each = getattr(found.ci95, name), getattr(each.ci95, name)
        assert (interval is None) == (by_each is None)
        assert interval is None or interval == pytest.approx(by_each, rel=1e-9, abs=1e-9)


def test_billions_of_zeros_cost_nothing() -> None:
    """Law: as many as the journal keeps of a claim, of each of many answers."""
    found = describe_at(
        np.array([5.0]), np.array([7]), zeros=Zeros(np.arange(1_000), np.full(1_000, 2**31 - 1))
    )
    assert found is not None
    assert (found.n, found.min, found.p99_9, found.max) == (1 + 1_000 * (2**31 - 1), 0.0, 0.0, 5.0)


def test_one_sample_has_no_spread_and_no_interval() -> None:
    """Law: the standard deviation (n - 1) and every interval are undefined for n = 1."""
    stats = describe(np.array([5.0, np.nan]))
    assert stats is not None
    assert (stats.n, stats.mean, stats.p99_9, stats.std) == (1, 5.0, 5.0, None)
    assert stats.ci95.mean is None
    assert stats.ci95.p50 is None
    assert stats.ci95.withheld["mean"] == "few"


def covered(stats: Stats | None, name: str, truth: float) -> bool | None:
    """Whether the statistic's interval holds the truth; None without an interval."""
    assert stats is not None
    interval: Interval | None = getattr(stats.ci95, name)
    assert (interval is None) == (name in stats.ci95.withheld)
    return None if interval is None else interval[0] <= truth <= interval[1]


def share(outcomes: list[bool | None]) -> tuple[float, float]:
    """Of how many there is an interval, and how many of those hold the truth."""
    known = [one for one in outcomes if one is not None]
    return len(known) / len(outcomes), sum(known) / max(len(known), 1)


@pytest.mark.parametrize(("name", "p", "n"), [("p50", 0.5, 100), ("p90", 0.9, 400), ("p99", 0.99, 2000)])
def test_percentile_intervals_of_independent_samples_cover(name: str, p: float, n: int) -> None:
    """Law: over repeated exponential samples the interval is there in 90 % and holds the true quantile in 92 to 99 %."""
    random = np.random.default_rng(7)
    given_in, holds = share(
        [covered(describe(random.exponential(1, n)), name, -math.log(1 - p)) for _ in range(300)]
    )
    assert given_in >= 0.9
    assert 0.92 <= holds <= 0.995


def test_mean_intervals_of_independent_samples_cover() -> None:
    """Law: the interval of the mean of normal samples holds the truth in 92 to 99 % of repeats."""
    random = np.random.default_rng(8)
    given_in, holds = share([covered(describe(random.normal(3, 1, 100)), "mean", 3) for _ in range(400)])
    assert given_in == 1
    assert 0.92 <= holds <= 0.99


@pytest.mark.parametrize(
    ("name", "truth"), [("mean", 2.0), ("p50", math.log(2) * 2), ("p90", math.log(10) * 2)]
)
def test_intervals_of_a_queue_at_half_load_cover(name: str, truth: float) -> None:
    """Law: times in an M/M/1 queue at rho 0.5 (exponential with mean 2) are correlated, and 1,000 of them still give intervals
    that hold the truth in 92 % and more; independent ones would in 50 to 70 %."""
    random = np.random.default_rng(9)
    outcomes = []
    for _ in range(200):
        times, states = queue(random, 1000, 0.5)
        outcomes.append(covered(describe(times, states, float(times.max() - times.mean())), name, truth))
    given_in, holds = share(outcomes)
    assert given_in >= 0.9
    assert holds >= 0.92


def test_a_queue_near_saturation_gives_no_interval_rather_than_a_narrow_one() -> None:
    """Law: 1,000 requests at rho 0.95 see a few busy periods: an interval that misses the truth is there in few of the runs."""
    random = np.random.default_rng(10)
    wrong = {"mean": 0, "p90": 0, "p99": 0}
    for _ in range(100):
        times, states = queue(random, 1000, 0.95)
        stats = describe(times, states, float(times.max() - times.mean()))
        for name, truth in (("mean", 20.0), ("p90", math.log(10) * 20), ("p99", math.log(100) * 20)):
            wrong[name] += covered(stats, name, truth) is False
    assert max(wrong.values()) <= 3


def test_what_withholds_an_interval_is_named() -> None:
    """Law: a few samples, a random walk and one huge value withhold the mean's interval, each for its reason."""
    random = np.random.default_rng(11)
    few = describe(np.array([4.0, 1.0, 3.0, 2.0]))
    walk = describe(np.cumsum(random.normal(0, 1, 1000)) + 1000)
    spike = describe(np.append(random.exponential(1, 999), 1e6))
    assert few is not None
    assert walk is not None
    assert spike is not None
    assert few.ci95.withheld["mean"] == "few"
    assert walk.ci95.withheld["mean"] == "correlated"
    assert spike.ci95.withheld["mean"] == "skewed"
    assert few.ci95.mean is None


def test_a_load_that_moves_slowly_withholds_the_intervals_of_what_it_carries() -> None:
    """Law: samples that look independent give intervals with many states of the load and none with three."""
    values = np.random.default_rng(12).exponential(1, 1000)
    calm, moving = describe(values), describe(values, LoadStates(3.0, believed=False))
    assert calm is not None
    assert moving is not None
    assert calm.ci95.mean is not None
    assert moving.ci95.mean is None
    assert set(moving.ci95.withheld.values()) == {"correlated"}


def test_constant_samples_have_an_interval_of_no_width() -> None:
    """Law: what never varies is known exactly."""
    stats = describe(np.full(50, 3.0))
    assert stats is not None
    assert stats.ci95.mean == (3.0, 3.0)


@pytest.mark.parametrize(("samples", "known"), [(10, {"p50"}), (100, {"p50", "p90", "p95"}), (500, {"p99"})])
def test_equal_samples_tell_of_a_percentile_what_their_number_can(samples: int, known: set[str]) -> None:
    """Law: a value that one request in fifty has is missed by most runs of ten, so ten equal samples have no P99, as ten
    unequal ones have none; and none have an interval where the load's states are too few."""
    stats = describe(np.full(samples, 3.0))
    assert stats is not None
    given_in = {name for name in ("p50", "p90", "p95", "p99") if getattr(stats.ci95, name) is not None}
    assert given_in >= known
    assert ("p99" in given_in) == (samples == 500)
    assert {getattr(stats.ci95, name) for name in given_in} == {(3.0, 3.0)}
    moving = describe(np.full(samples, 3.0), LoadStates(3.0, believed=False))
    assert moving is not None
    assert set(moving.ci95.withheld.values()) == {"correlated"}


@given(st.integers(1, 2000), st.floats(0, 1), st.floats(0.05, 1))
@settings(deadline=None)
def test_the_interval_of_a_share_holds_the_share(trials: int, part: float, worth: float) -> None:
    """Law: to the last digit, so that nothing but successes is never below 1, and none at all never above 0."""
    for successes in (0, round(part * trials), trials):
        found = share_interval(successes, trials, worth * trials)
        assert found is not None
        assert 0.0 <= found[0] <= successes / trials <= found[1] <= 1.0


def test_a_tie_at_the_largest_value_has_no_interval_of_no_width() -> None:
    """Law: where one event gives many neighbours the same largest value, a percentile among them is as uncertain as one event
    is: no interval, never one that is a point."""
    sample = np.random.default_rng(1).exponential(1.0, 1000)
    sample[500:530] = sample.max() + 1
    stats = describe(sample)
    assert stats is not None
    assert stats.p99 == stats.max
    assert stats.ci95.p99 is None


def test_pooled_gaps_of_unlike_requests_get_intervals_that_still_cover() -> None:
    """Law: when requests differ, pooling pretends to more evidence than there is; gaps binned by their instants cover about
    95 % all the same."""
    random = np.random.default_rng(9)
    truth = float(np.quantile(np.exp(random.normal(0, 0.3, 400_000) + random.normal(0, 0.1, 400_000)), 0.9))
    outcomes = []
    for _ in range(200):
        gaps = np.exp(np.repeat(random.normal(0, 0.3, 100), 50) + random.normal(0, 0.1, 5000))
        outcomes.append(covered(describe_at(gaps, np.arange(5000) * 1000), "p90", truth))
    given_in, holds = share(outcomes)
    assert given_in >= 0.8
    assert holds >= 0.9


def test_a_stall_that_all_requests_see_is_one_event() -> None:
    """Law: 16 streams in step that stall together tell no more than one stream: the interval of the mean gap covers."""
    random = np.random.default_rng(13)
    outcomes = []
    for _ in range(150):
        steps = random.exponential(1, 2000) + (random.random(2000) < 0.02) * 20
        at = np.cumsum(steps * 1e6).astype(np.int64)
        outcomes.append(covered(describe_at(np.tile(steps, 16), np.tile(at, 16)), "mean", 1.4))
    given_in, holds = share(outcomes)
    assert given_in >= 0.8
    assert holds >= 0.88


def test_the_instants_order_the_gaps_and_not_the_array() -> None:
    """Law: pooled samples with their instants, in any order of the array, have the same statistics."""
    random = np.random.default_rng(14)
    gaps, at = random.exponential(1, 4000), np.sort(random.integers(0, 10**9, 4000))
    shuffled = random.permutation(4000)
    one, other = describe_at(gaps, at), describe_at(gaps[shuffled], at[shuffled])
    assert one is not None
    assert other is not None
    assert one.ci95.mean == pytest.approx(other.ci95.mean)
    assert one.ci95.p99 == pytest.approx(other.ci95.p99)


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
