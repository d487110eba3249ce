"""Loops, early stops and overlap of answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.answer_check import LOOP_WORDS, REPEATS, ends_in_loop, overlap, stops_early

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f"]), max_size=30).map(" ".join)


@given(WORDS, WORDS)
def test_overlap_is_a_share_that_does_not_depend_on_who_is_first(one: str, other: str) -> None:
    """1 of a text with itself, 0 without a common word."""
    assert overlap(one, other) == overlap(other, one)
    assert 0 <= overlap(one, other) <= 1
    assert overlap(one, one) == 1
    assert overlap(one + " x", "y") == 0


@given(st.integers(1, 64), st.integers(0, 40), st.integers(0, 63))
def test_a_block_that_repeats_to_the_end_is_a_loop_wherever_it_was_cut_off(
    block: int, before: int, cut: int
) -> None:
    """Of any length up to 64 words, behind any beginning."""
    words = [f"w{at}" for at in range(block)]
    many = max(REPEATS, -(-LOOP_WORDS // block)) + 1
    looped = (words * many)[: block * many - min(cut, block - 1)]
    text = [f"b{at}" for at in range(before)] + looped
    assert ends_in_loop(" ".join(text))
    assert not ends_in_loop(" ".join([*text, "end"]))


def test_lists_and_short_repetitions_are_no_loop() -> None:
    """Numbered lines differ, and three times is emphasis."""
    assert not ends_in_loop(" ".join(f"{at}. the same words again" for at in range(50)))
    assert not ends_in_loop("very " * 10)
    assert not ends_in_loop(" ".join([f"w{at}" for at in range(20)] * 3))


def test_an_answer_stops_early_by_itself_alone() -> None:
    """Below half of the median; not if the limit of tokens ended it, nor with nothing to compare with."""
    others = ["a " * 10, "a " * 20, "a " * 100]
    assert stops_early("a " * 9, "stop", others)
    assert not stops_early("a " * 10, "stop", others)
    assert not stops_early("a", "length", others)
    assert not stops_early("a", "stop", [])
