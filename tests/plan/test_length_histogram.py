"""Bins for lengths: every length in one, few of them, none narrower than the one before."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from inferometer.plan.length_histogram import FEWEST, MOST, WIDE, LengthHistogram, histogram

LENGTHS = st.lists(st.integers(0, 10_000_000) | st.integers(0, 300), max_size=200)


@given(LENGTHS, LENGTHS)
def test_every_length_is_in_one_bin_of_bins_that_never_narrow(asked: list[int], counted: list[int]) -> None:
    """Counts are those of going through the lengths by hand; edges are whole and rise; at most MOST bins."""
    found = histogram({"asked": asked, "counted": counted})
    if not asked and not counted:
        assert found is None
        return
    assert found is not None
    edges = found.edges
    widths = [b - a for a, b in pairwise(edges)]
    assert widths == sorted(widths)
    assert widths[0] >= 1
    assert edges[0] == min(asked + counted)
    assert edges[-2] <= max(asked + counted) < edges[-1]
    assert len(widths) <= MOST
    assert set(found.counts) == {name for name, of in (("asked", asked), ("counted", counted)) if of}
    for name, of in (("asked", asked), ("counted", counted)):
        expected = tuple(sum(a <= length < b for length in of) for a, b in pairwise(edges))
        assert found.counts.get(name, (0,) * len(widths)) == expected


def test_a_wide_range_grows_and_a_narrow_one_does_not() -> None:
    """From WIDE times the shortest on the axis is logarithmic; few whole numbers are each a bin of their own."""
    wide, narrow = histogram({"asked": [10, 10 * WIDE]}), histogram({"asked": [10, 10 * WIDE - 1]})
    assert wide is not None
    assert narrow is not None
    assert (wide.log, narrow.log) == (True, False)
    few = histogram({"asked": [512, 512, 512 + FEWEST - 1]})
    assert few is not None
    assert few.edges == tuple(range(512, 512 + FEWEST + 1))


def test_a_length_nobody_counted_is_in_no_bin() -> None:
    """NaN is no length, and a set of them only is left out."""
    found = histogram({"asked": [5.0, 6.0], "counted": [float("nan"), 5.0], "sent": [float("nan")]})
    assert found == LengthHistogram((5, 6, 7), False, {"asked": (1, 1), "counted": (1, 0)})
