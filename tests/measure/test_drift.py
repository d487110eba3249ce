"""Changes of speed over time: the statistic, the effect of the load, and what is seen of engines that become slower."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from benchmarks.drift_power import Cell, alarms, line, played, step
from inferometer.judge.steadiness import DRIFT_LIMIT, SWING_LIMIT
from inferometer.measure.drift import centred_ranks, change_point, given_load, proportional, swings
from inferometer.measure.record import Floats


def correlated(draw: np.random.Generator, n: int, phi: float) -> np.ndarray:
    """An autoregression of order 1 from its stationary start."""
    noise = draw.normal(size=n)
    values = np.empty(n)
    values[0] = noise[0] / np.sqrt(1 - phi * phi)
    for i in range(1, n):
        values[i] = phi * values[i - 1] + noise[i]
    return values


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.8])
def test_a_correlated_series_without_a_change_raises_few_alarms(phi: float) -> None:
    """Law: of 400 series of 500 values at most 3 are beyond the limit, which chance exceeds in 1 of 2,000."""
    draw = np.random.default_rng(5)
    found = [change_point(correlated(draw, 500, phi))[0] for _ in range(400)]
    assert sum(one > DRIFT_LIMIT for one in found) <= 3


def test_blocks_that_are_alike_by_chance_raise_few_alarms() -> None:
    """Law: of 1,000 series of 1,000 independent values at most 3 have a ratio beyond the limit, which chance exceeds in 1 of
    2,000; one that swings by its standard deviation has, and a constant one has none."""
    draw = np.random.default_rng(6)
    found = [swings(draw.normal(size=1_000), 100.0)[0] for _ in range(1_000)]
    assert sum(one > SWING_LIMIT for one in found) <= 3
    wave = np.sin(np.linspace(0, 4 * np.pi, 1_000))
    assert swings(draw.normal(size=1_000) + wave, 100.0)[0] > SWING_LIMIT
    assert swings(np.ones(1_000), 100.0) == swings(wave, 20.0) == (0.0, 0.0)


def test_the_statistic_is_of_ranks() -> None:
    """Law: it is the same for any increasing function of the values, and k is where they change."""
    values = np.random.default_rng(1).normal(size=300) + np.where(np.arange(300) < 120, 0.0, 3.0)
    found, k = change_point(values)
    assert found > DRIFT_LIMIT
    assert abs(k - 120) <= 3
    assert change_point(np.exp(values)) == (found, k)


def test_ranks_are_those_of_scipy() -> None:
    """Law: whole numbers, which are counted, have the ranks of other numbers in the same order, and those that scipy gives."""
    draw = np.random.default_rng(4)
    for values in (np.round(draw.normal(0, 5, 200)), np.zeros(3), np.array([7.0, -2.0, 7.0])):
        expected = (rankdata(values) - 0.5) / len(values) - 0.5
        for same in (values, values * 0.37 + 0.1, values * 1e9):
            assert centred_ranks(same) == pytest.approx(expected, abs=1e-12)


def test_a_change_of_the_load_is_none_of_the_server() -> None:
    """Law: a latency that follows its load alone shows no change; one that also doubles shows the doubling."""
    draw = np.random.default_rng(2)
    waiting = draw.uniform(1, 20, 1000) + np.linspace(0, 20, 1000)
    load: Floats = np.column_stack((waiting, draw.uniform(50, 500, 1000))).astype(np.float64)
    latency = (5.0 + load @ np.array([2.0, 0.05])) * np.exp(draw.normal(0, 0.1, 1000))
    slower = np.where(np.arange(1000) < 500, 0.0, np.log(2.0))
    steady, changed = (proportional(np.log(latency) + part, load) for part in (np.zeros(1000), slower))
    assert change_point(steady)[0] < DRIFT_LIMIT
    assert change_point(changed)[0] > DRIFT_LIMIT
    assert changed[500:].mean() - changed[:500].mean() == pytest.approx(np.log(2.0), abs=0.05)


def test_the_effect_of_the_load_is_known_from_a_part_of_the_values() -> None:
    """Law: found from every third of the values, the effect of the load is what all of them say, within its own error."""
    draw = np.random.default_rng(5)
    load: Floats = draw.uniform(1, 20, (3_000, 1))
    values = np.log((5.0 + 2.0 * load[:, 0]) * np.exp(draw.normal(0, 0.1, 3_000)))
    whole, thinned = proportional(values, load), proportional(values, load, most=1_000)
    assert not np.array_equal(whole, thinned)
    assert thinned == pytest.approx(whole, abs=0.03)


def test_the_effect_of_powers_of_the_load_is_subtracted() -> None:
    """Law: what is left of y = 0.7 x + noise has no correlation with x; a constant load leaves all."""
    draw = np.random.default_rng(3)
    load = draw.normal(size=(500, 1))
    left = given_load(0.7 * load[:, 0] + draw.normal(0, 0.1, 500), load)
    assert abs(np.corrcoef(left, load[:, 0])[0, 1]) < 0.15
    values = draw.normal(size=500)
    assert np.array_equal(given_load(values, np.ones((500, 1))), values)


LOADS = [Cell("tiny-cpu", "varied", 1_000, share=0.6), Cell("testbed", "constant", 1_000, slots=8)]


@pytest.mark.parametrize("cell", LOADS, ids=["open", "closed"])
@pytest.mark.parametrize("factor", [line(1.5), step(1.3)], ids=["line", "step"])
def test_an_engine_that_becomes_slower_is_seen(cell: Cell, factor: object) -> None:
    """Law: 1.5 times slower over the run, or 1.3 times from half-way on, raises an alarm in both loops."""
    assert all(alarms(cell, played(cell, seed, factor)).drift for seed in (1, 2, 3))  # type: ignore[arg-type]


@pytest.mark.parametrize("cell", LOADS, ids=["open", "closed"])
def test_a_steady_engine_raises_no_alarm(cell: Cell) -> None:
    """Law: the same engines without a change, 10 seeds each."""
    assert {alarms(cell, played(cell, seed)) for seed in range(1, 11)} == {(False, False, False)}


def test_an_overloaded_engine_has_a_growing_queue() -> None:
    """Law: at 120 % of capacity each run of 1,000 requests is seen to pile them up."""
    cell = Cell("testbed", "varied", 1_000, share=1.2)
    assert all(alarms(cell, played(cell, seed)).stationary for seed in (1, 2, 3))
