"""The difference of two medians: its interval holds the truth whether neighbours are alike or not, or there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.median_difference import median_difference
from inferometer.measure.record import Floats
from inferometer.metrics.statistics import Interval

RUNS, REQUESTS = 120, 450


FEWER_DRAWS = 300
"""Which moves the ends by chance, to a tenth of a width: the share held is the same."""


def load(random: np.random.Generator, n: int, memory: float) -> Floats:
    """A stationary autoregression of variance 1, whose correlation falls to 1 / e within so many requests."""
    weight = math.exp(-1 / memory) if memory else 0.0
    steps = random.normal(size=n) * math.sqrt(1 - weight**2)
    level, found = float(random.normal()), np.empty(n)
    for at in range(n):
        level = weight * level + steps[at]
        found[at] = level
    return found


def run_of(random: np.random.Generator, states: Floats, lengths: Floats, cost: float) -> Floats:
    """Latencies: a length, a cost that grows with the load, and luck of each request."""
    found: Floats = lengths + cost * np.exp(0.7 * states) + random.uniform(0, 10, len(states))
    return found


def pairs(
    seed: int, runs: int, memory: float, *, paired: bool, n: int = REQUESTS
) -> Iterator[tuple[Floats, Floats]]:
    """Runs without and with what makes the system slower, the more it is loaded."""
    random = np.random.default_rng(seed)
    for _ in range(runs):
        states, lengths = load(random, n, memory), random.uniform(20, 60, n)
        before = run_of(random, states, lengths, 5)
        if not paired:
            states, lengths = load(random, n, memory), random.uniform(20, 60, n)
        yield before, run_of(random, states, lengths, 12)


def truth() -> float:
    """Of so many requests that it is known to 0.05 ms; whoever their neighbours are."""
    ((before, after),) = pairs(99, 1, 0.0, paired=True, n=400_000)
    return float(np.median(after) - np.median(before))


def intervals(seed: int, memory: float, *, paired: bool) -> list[Interval | None]:
    return [
        median_difference(before, after, paired=paired, most_draws=FEWER_DRAWS)
        for before, after in pairs(seed, RUNS, memory, paired=paired)
    ]


def half(found: list[Interval | None]) -> float:
    """The median half-width."""
    return float(np.median([high - low for low, high in filter(None, found)])) / 2


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("memory", [0, 4, 20])
def test_it_holds_the_truth_whether_or_not_neighbours_are_alike(memory: float, paired: bool) -> None:
    """Law: 95 % of the runs, chance allowed for, though blocks of a twentieth of a run would be hardly longer than the longest
    of these memories. Runs have an interval, but for some of those that met ten states of the load or so."""
    found = [ends for ends in intervals(7, memory, paired=paired) if ends is not None]
    true = truth()
    assert len(found) >= (0.75 if memory > 10 else 0.99) * RUNS
    assert np.mean([low <= true <= high for low, high in found]) >= 0.9


def test_what_is_in_both_runs_cancels() -> None:
    """Law: lengths and loads that vary more than the difference leave it known all the same, in pairs."""
    assert half(intervals(3, 4, paired=True)) < 0.7 * half(intervals(3, 4, paired=False))


def test_a_longer_memory_leaves_the_difference_less_known() -> None:
    """Law: of as many requests, the interval is the wider the longer they remember."""
    widths = [half(intervals(5, memory, paired=True)) for memory in (0, 4, 20)]
    assert widths == sorted(widths)
    assert widths[-1] > 1.5 * widths[0]


def test_a_run_hardly_longer_than_its_memory_has_no_interval() -> None:
    """Law: a load that drifts through the whole run is one state of it, from which nothing follows for others."""
    random, states = np.random.default_rng(2), np.linspace(-2, 2, REQUESTS)
    lengths = random.uniform(20, 60, REQUESTS)
    without, with_ = (run_of(random, states, lengths, cost) for cost in (5, 12))
    assert median_difference(without, with_, paired=True) is None


def test_a_queue_that_only_one_run_had_shows_in_the_pairs() -> None:
    """Law: where the difference itself drifts, no interval is given of runs that do not show it one by one."""
    random = np.random.default_rng(4)
    without = random.uniform(0, 1_000, REQUESTS)
    with_ = without + np.linspace(0, 40, REQUESTS) + random.uniform(0, 1, REQUESTS)
    assert median_difference(without, with_, paired=True) is None
    assert median_difference(without, with_, paired=False) is not None


@given(st.integers(0, 2**32), st.floats(1, 1e6))
def test_a_few_long_requests_change_nothing(seed: int, factor: float) -> None:
    """Law: how long the longest took moves neither a median nor how long the load is remembered."""
    random = np.random.default_rng(seed)
    before, after = random.uniform(10, 20, 200), random.uniform(18, 28, 200)
    longer = np.where(after > np.quantile(after, 0.98), factor * after, after)
    found = [median_difference(before, one, paired=False) for one in (after, longer)]
    assert found[0] == pytest.approx(found[1]) if found[0] and found[1] else found[0] == found[1]


def test_a_cost_that_is_the_same_for_all_is_known_exactly() -> None:
    """Law: an interval of no width; of other requests, one that holds it."""
    before = np.random.default_rng(6).integers(10, 500, 300).astype(np.float64)
    assert median_difference(before, before + 8, paired=True) == (8.0, 8.0)
    assert median_difference(before[:19], before[:19] + 8, paired=True) is None
    free = median_difference(before, before + 8, paired=False)
    assert free is not None
    assert free[0] < 8 < free[1]
