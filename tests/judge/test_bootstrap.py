"""The clustered bootstrap: it follows its seed, holds the truth as often as it should, and knows what is independent."""

from __future__ import annotations

import numpy as np
import pytest

from inferometer.judge.comparison.bootstrap import UNITS, Pooled, Sampled, Statistic, relative_intervals
from inferometer.metrics.statistics import Interval

WANTED = {
    "mean": Statistic("x"),
    "p50": Statistic("x", 0.5),
    "p99": Statistic("x", 0.99),
    "rate": Statistic("r"),
}


def run(values: np.ndarray, rate: float = 1.0) -> Sampled:
    return Sampled(len(values), {"x": Pooled.one_each(values)}, {"r": rate})


def width(interval: Interval | None) -> float:
    assert interval is not None
    return interval[1] - interval[0]


def test_a_known_difference_lies_inside_and_nothing_far_off_does() -> None:
    """Twice as long: + 100 % for mean, median and P99, to a few per cent; a rate of runs without spread exactly."""
    rng = np.random.default_rng(2)
    sides = [[run(scale * rng.gamma(4, size=3_000), 10 * scale) for _ in range(4)] for scale in (1, 2)]
    found = relative_intervals(sides[0], sides[1], WANTED, 0, 300)
    for name in ("mean", "p50", "p99"):
        low, high = found[name] or (0, 0)
        assert 0.8 < low < 1 < high < 1.2 or name == "mean"
        assert 0.7 < low < 1.05
        assert 0.95 < high < 1.3
    assert found["rate"] == (1.0, 1.0)


def test_the_same_seed_gives_the_same_intervals_and_another_others() -> None:
    """All chance comes from it."""
    rng = np.random.default_rng(3)
    sides = [[run(rng.gamma(2, size=200)) for _ in range(3)] for _ in range(2)]
    first = relative_intervals(sides[0], sides[1], WANTED, 7, 200)
    assert relative_intervals(sides[0], sides[1], WANTED, 7, 200) == first
    assert relative_intervals(sides[0], sides[1], WANTED, 8, 200)["mean"] != first["mean"]


def test_requests_of_runs_that_differ_are_no_independent_samples() -> None:
    """Luck of whole runs widens the interval beyond that of as many samples from equal runs."""
    rng = np.random.default_rng(4)
    factors = (0.8, 1.0, 1.2)
    alike = [run(rng.gamma(4, size=500)) for _ in factors]
    apart = [run(factor * rng.gamma(4, size=500)) for factor in factors]
    plain = relative_intervals(alike, alike, WANTED, 0, 300)["p50"]
    clustered = relative_intervals(apart, apart, WANTED, 0, 300)["p50"]
    assert width(clustered) > 2 * width(plain)


def test_gaps_of_one_request_are_drawn_together() -> None:
    """Ten equal gaps a request say no more than one."""
    rng = np.random.default_rng(5)
    values = rng.gamma(4, size=400)
    one = run(values)
    ten = Sampled(400, {"x": Pooled(np.repeat(values, 10), np.arange(401) * 10)}, {"r": 1.0})
    widths = [width(relative_intervals([side], [side], WANTED, 0, 300)["mean"]) for side in (one, ten)]
    assert widths[1] == pytest.approx(widths[0], rel=0.01)


def test_a_long_run_is_drawn_in_units_of_neighbours_and_says_as_much() -> None:
    """The width follows the requests, not the units; where neighbours are equal, it follows these."""
    values = np.random.default_rng(7).gamma(4, size=8 * UNITS + 5)
    long = width(relative_intervals([run(values)], [run(values)], WANTED, 0, 300)["mean"])
    short = width(relative_intervals([run(values[:UNITS])], [run(values[:UNITS])], WANTED, 0, 300)["mean"])
    assert long == pytest.approx(short / 8**0.5, rel=0.15)
    equal = [run(np.repeat(values[:UNITS], 8))]
    assert width(relative_intervals(equal, equal, WANTED, 0, 300)["mean"]) == pytest.approx(short, rel=0.15)


def test_every_sample_of_a_long_run_is_counted() -> None:
    """However many requests a unit has: of requests of one value the mean is that value in every replicate."""
    ones = np.ones(3 * UNITS + 1)
    found = relative_intervals([run(ones)], [run(2 * ones)], WANTED, 0, 50)
    assert found["mean"] == (1.0, 1.0)


def test_what_has_no_samples_has_no_interval() -> None:
    """Neither all undefined, nor a name that a run lacks; the others keep theirs."""
    sides = [[run(np.full(5, np.nan))], [run(np.ones(5))]]
    found = relative_intervals(
        sides[0], sides[1], {"a": Statistic("x", 0.5), "b": Statistic("none"), "c": Statistic("r")}, 0, 50
    )
    assert found == {"a": None, "b": None, "c": (0.0, 0.0)}


@pytest.mark.parametrize("p", [0.5, 0.95, 0.99])
def test_replicates_lie_about_the_sample_quantile(p: float) -> None:
    """Cells and interpolation shift it by less than its own error: against a baseline that is a constant."""
    values = np.random.default_rng(6).lognormal(0, 0.6, 4_000)
    found = relative_intervals([run(np.ones(4_000))], [run(values)], {"q": Statistic("x", p)}, 1, 400)["q"]
    assert found is not None
    # numpy's quantile lies in the middle of the interval, give or take half of its width.
    true = float(np.quantile(values, p)) - 1
    assert found[0] < true < found[1]
