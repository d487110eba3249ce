"""How much repeated tasks tell: the interval of the share that succeeded takes the task as its unit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.measure.tasks import effective


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_different_tasks_are_as_many_trials(hits: list[bool]) -> None:
    """Law: without repetition nothing is taken off."""
    assert effective(np.array(hits), range(len(hits))) == len(hits)


@given(st.lists(st.booleans(), min_size=2, max_size=20), st.integers(2, 6))
def test_repeating_what_always_ends_alike_tells_nothing_new(hits: list[bool], times: int) -> None:
    """Law: n passes of m tasks whose outcome is the task's alone tell no more than the m."""
    units = [unit for unit in range(len(hits)) for _ in range(times)]
    found = effective(np.repeat(np.array(hits), times), units)
    assert found == pytest.approx(len(hits) if all(hits) or not any(hits) else len(hits) - 1)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_repeating_what_chance_alone_decides_tells_nearly_as_much(seed: int) -> None:
    """Law: where tasks do not differ, passes count; never more than there are."""
    rng = np.random.default_rng(seed)
    units = np.repeat(np.arange(200), 5)
    found = effective(rng.random(1000) < 0.5, units.tolist())
    assert 500 < found <= 1000


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=30))
def test_it_lies_between_one_and_all(pairs: list[tuple[bool, int]]) -> None:
    hits, units = np.array([hit for hit, _ in pairs]), [unit for _, unit in pairs]
    assert 0 < effective(hits, units) <= len(pairs)
