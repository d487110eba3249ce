"""The difference of two means over the requests that both sides have, where one of them has more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.ttft_gap import Buckets, extras_ms, ttft_gap_ms

UPPER = np.array([1.0, 5.0, 20.0, 100.0, np.inf])
TIMES = st.lists(st.floats(0.0, 300.0), min_size=1, max_size=30)
MORE = st.lists(st.floats(0.0, 300.0), max_size=5)


def histogram(observed: list[float]) -> Buckets:
    """The counts of these in buckets up to and including each bound."""
    places = np.searchsorted(UPPER, observed, "left")
    return UPPER, np.bincount(places, minlength=len(UPPER)).astype(float)


@given(common=TIMES, way=st.floats(-5.0, 50.0), more=MORE)
def test_whichever_the_servers_others_are_the_true_gap_lies_between_the_bounds(
    common: list[float], way: float, more: list[float]
) -> None:
    """Law: with first tokens that only the server has, of any duration, the gap over ours is within the bounds."""
    client = np.array(common) + way
    found = ttft_gap_ms(client, len(common) + len(more), sum(common) + sum(more), histogram(common + more))
    assert found is not None
    assert found[0] - 1e-6 <= way <= found[1] + 1e-6
    assert more or found == pytest.approx((way, way), abs=1e-6)


@given(common=TIMES, way=st.floats(-5.0, 50.0), more=MORE)
def test_whichever_the_clients_others_are_the_true_gap_lies_between_the_bounds(
    common: list[float], way: float, more: list[float]
) -> None:
    """Law: the same where only the client has them, and it knows each."""
    client = np.array([one + way for one in common] + more)
    found = ttft_gap_ms(client, len(common), sum(common), None)
    assert found is not None
    assert found[0] - 1e-6 <= way <= found[1] + 1e-6


@given(observed=TIMES, k=st.integers(0, 30))
def test_no_k_observations_sum_up_to_less_or_more(observed: list[float], k: int) -> None:
    """Law: the k least and the k most of what a histogram counted lie within what its buckets allow."""
    k = min(k, len(observed))
    least, most = extras_ms(k, histogram(observed))
    ordered = sorted(observed)
    assert least <= sum(ordered[:k]) + 1e-9
    assert most >= sum(ordered[len(ordered) - k :]) - 1e-9


def test_a_side_without_first_tokens_has_no_gap() -> None:
    """Law: no number where there is nothing to compare."""
    assert ttft_gap_ms(np.zeros(0), 5, 10.0, None) is None
    assert ttft_gap_ms(np.ones(5), 0, 0.0, None) is None
