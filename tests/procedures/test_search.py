"""The search finds the highest load a system sustains, whatever the system, and ends."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.procedures.search import MOST_TRIALS, Answer, Ladder, Trial, advance


def search(ladder: Ladder, system: Callable[[float, int], bool | None]) -> tuple[Answer, list[Trial]]:
    """A search carried out on a system that says whether it sustains a level, given how long it is tried."""
    trials: list[Trial] = []
    while not isinstance(move := advance(ladder, trials), Answer):
        trials.append(Trial(move.level, system(move.level, move.times), move.times, move.confirms))
        assert len(trials) <= MOST_TRIALS
    return move, trials


def ladders() -> st.SearchStrategy[Ladder]:
    return st.builds(
        lambda first, step, factor, resolution, whole: Ladder(
            first=first if not whole else max(1.0, float(round(first))),
            step=max(1.0, float(round(step))) if whole else step,
            most=1e4,
            least=1.0 if whole else 1e-2,
            factor=factor,
            resolution=resolution,
            integral=whole,
        ),
        st.floats(0.5, 100),
        st.floats(0.5, 50),
        st.sampled_from([1.0, 1.25, 2.0]),
        st.sampled_from([0.02, 0.05, 0.15]),
        st.booleans(),
    )


@given(ladders(), st.floats(1.0, 1000))
def test_the_answer_lies_within_the_resolution_below_the_true_capacity(
    ladder: Ladder, capacity: float
) -> None:
    """With a system that sustains exactly the loads up to its capacity."""
    found, trials = search(ladder, lambda level, _: level <= capacity)
    if found.why == "endless":  # a step that is tiny against the capacity
        assert capacity / ladder.step > MOST_TRIALS / 2
        return
    assert found.why == "bracketed"
    assert found.level is not None
    assert found.below is not None
    assert found.level <= capacity < found.below
    assert ladder.narrow(found.level, found.below)
    assert trials[-1].confirms
    assert trials[-1].level == found.level


@given(ladders())
def test_a_system_that_sustains_anything_is_asked_for_the_most_and_no_more(ladder: Ladder) -> None:
    """The ceiling is an answer of its own kind."""
    found, trials = search(ladder, lambda *_: True)
    assert found.why in ("ceiling", "endless")
    assert max(trial.level for trial in trials) <= ladder.most
    assert found.why == "endless" or found.level == ladder.most


@given(ladders())
def test_a_system_that_sustains_nothing_is_asked_down_to_the_least(ladder: Ladder) -> None:
    """The floor too."""
    found, trials = search(ladder, lambda *_: False)
    assert found.why == "floor"
    assert found.level is None
    assert min(trial.level for trial in trials) >= ladder.least


@given(ladders(), st.floats(1.0, 1000), st.integers(0, 3))
def test_what_is_not_settled_runs_longer_before_it_counts(
    ladder: Ladder, capacity: float, needed: int
) -> None:
    """A level is asked again at twice the length until it is settled, and no longer than that."""

    def system(level: float, times: int) -> bool | None:
        return level <= capacity if times >= 2**needed else None

    found, trials = search(ladder, system)
    if needed > ladder.longer:
        assert found.level is None
        assert set(found.unsettled) == {trial.level for trial in trials}
        return
    assert not found.unsettled
    for before, after in pairwise(trials):
        if before.sustained is None:
            assert (after.level, after.times) == (before.level, 2 * before.times)
        else:
            assert after.times == 1


def test_an_answer_that_is_not_confirmed_is_given_up_for_a_lower_one() -> None:
    """The guard against a lucky run."""
    lucky = {8.0: [True, False]}

    def system(level: float, _: int) -> bool:
        said = lucky.get(level)
        return said.pop(0) if said else level <= 6

    found, trials = search(Ladder(first=4, step=4, most=64, least=1, integral=True), system)
    assert found.level == 6
    assert Trial(8.0, False, 1, confirms=True) in trials


@given(st.data(), ladders())
def test_every_search_ends_whatever_the_system_says(data: st.DataObject, ladder: Ladder) -> None:
    """Also with answers at random."""
    search(ladder, lambda *_: data.draw(st.sampled_from([True, False, None])))


@pytest.mark.parametrize(("capacity", "expected"), [(64, 64), (100, 100), (127, 127), (8, 8), (513, 512)])
def test_doubling_and_bisecting_whole_levels_finds_small_capacities_exactly(
    capacity: int, expected: int
) -> None:
    """Draft 5.5's search: to a gap of 1, or 5 %, whichever is larger."""
    ladder = Ladder(first=8, step=0, factor=2.0, most=512, least=1, integral=True)
    found, _ = search(ladder, lambda level, _: level <= capacity)
    assert found.level is not None
    assert expected * 0.95 - 1 <= found.level <= expected
