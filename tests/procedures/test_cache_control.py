"""The control group of `prefix-cache`: requests that share nothing, without and with the cache."""

from __future__ import annotations

import numpy as np
import pytest

from inferometer.measure.record import Floats
from inferometer.measure.request_times import RequestTimes
from inferometer.procedures.cache_control import control

N = 400


def times(ttft_ms: Floats, shared: Floats) -> RequestTimes:
    places = np.arange(len(ttft_ms))
    nothing = np.full(len(ttft_ms), np.nan)
    return RequestTimes(places, np.zeros_like(places), nothing, ttft_ms, ttft_ms, nothing, shared)


def drawn(seed: int, alone: int = N // 5) -> tuple[Floats, Floats]:
    """TTFT without a cache, and what requests have in common: nothing for so many of them."""
    random = np.random.default_rng(seed)
    shared = np.where(random.permutation(N) < alone, 0.0, 500.0)
    return 80.0 + 40.0 * random.random(N), shared


@pytest.mark.parametrize(
    ("sharing", "alone", "quicker"),
    [(0.3, 1.0, False), (0.3, 0.8, False), (0.67, 0.67, True), (1.0, 0.97, False), (0.3, 0.5, True), (1.0, 1.4, False)],
)  # fmt: skip
@pytest.mark.parametrize("seed", range(3))
def test_a_control_group_that_gains_like_the_others_shows_another_system(
    sharing: float, alone: float, quicker: bool, seed: int
) -> None:
    """Law: by 5 % and by half of what those that share gain; waiting a little less for others is no proof."""
    before, shared = drawn(seed)
    after = np.where(shared > 0, sharing, alone) * before
    found = control(times(before, shared), times(after, shared))
    assert found is not None
    assert found.quicker is quicker
    assert found.reduction == pytest.approx(100 * (1 - alone))
    assert found.sharing == pytest.approx(100 * (1 - sharing))
    assert found.ci is not None
    assert found.ci[0] - 1e-6 <= found.reduction <= found.ci[1] + 1e-6


def test_chance_is_not_taken_for_another_system() -> None:
    """Of 40 runs in which nothing is cached and each pass has chances of its own, none is blamed."""
    random = np.random.default_rng(1)
    for seed in range(40):
        before, shared = drawn(seed)
        found = control(times(before, shared), times(80.0 + 40.0 * random.random(N), shared))
        assert found is not None
        assert not found.quicker


@pytest.mark.parametrize("alone", [0, 10, N - 10, N])
def test_without_either_group_there_is_no_control(alone: int) -> None:
    before, shared = drawn(1, alone)
    assert control(times(before, shared), times(before, shared)) is None
    assert control(None, times(before, shared)) is None
