"""The spread of iteration times: what grows with them told apart from what does not, and drawn again as it was."""

from __future__ import annotations

import random

import numpy as np
import pytest

from inferometer.server.engine.noise import PROBABILITIES, drawn, quantiles, spelled
from inferometer.server.engine.settings import Settings
from inferometer.simulation.residuals import spread

MS = 1_000_000
ROWS = 6_000
QUANTILES = (-3, -2, -1.5, -1, -0.5, 0, 0.4, 1, 2, 6, 9, 14, 20, 40)


def iterations(seed: int) -> tuple[np.random.Generator, np.ndarray]:
    """Predicted times as an engine has them: nine in ten of decoding alone, one with a prompt of some length."""
    chance = np.random.default_rng(seed)
    times = 12 * MS + 0.3 * MS * chance.integers(1, 9, ROWS)
    return chance, times + np.where(
        chance.random(ROWS) < 0.1, 3 * MS + 0.2 * MS * chance.integers(16, 500, ROWS), 0
    )


@pytest.mark.parametrize("seed", range(4))
def test_a_spread_in_proportion_alone_is_jitter(seed: int) -> None:
    """Law: without noise the jitter is the half width, within 3 %, and no noise is set."""
    chance, times = iterations(seed)
    found = spread(0.03 * times * chance.uniform(-1, 1, ROWS), times)
    assert found.jitter == pytest.approx(0.03, rel=0.03)
    assert found.noise == ()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("jitter", [0.0, 0.03])
def test_noise_is_told_from_jitter(seed: int, jitter: float) -> None:
    """Law: of skewed noise with a tail beside a jitter each comes back: the quartiles of the noise within 0.1 ms and its P95
    and P99 within a fifth; a jitter is at most 0.02 off."""
    chance, times = iterations(seed)
    noise = chance.lognormal(0, 1, ROWS) * MS - MS
    found = spread(jitter * times * chance.uniform(-1, 1, ROWS) + noise, times)
    assert found.jitter == pytest.approx(jitter, abs=0.02)
    at = dict(zip(PROBABILITIES, found.noise, strict=True))
    for share in (0.25, 0.5, 0.75):
        assert at[share] == pytest.approx(np.quantile(noise, share), abs=0.1 * MS)
    for share in (0.95, 0.99):
        assert at[share] == pytest.approx(np.quantile(noise, share), rel=0.2)


@pytest.mark.parametrize("seed", range(4))
def test_stalls_are_noise_and_no_jitter(seed: int) -> None:
    """Law: delays of 30 ms in one iteration in fifty leave the jitter as it is, and stand in the tail of the noise."""
    chance, times = iterations(seed)
    stalls = np.where(chance.random(ROWS) < 0.02, chance.exponential(30 * MS, ROWS), 0)
    found = spread(0.03 * times * chance.uniform(-1, 1, ROWS) + stalls, times)
    assert found.jitter == pytest.approx(0.03, rel=0.1)
    at = dict(zip(PROBABILITIES, found.noise, strict=True))
    assert abs(at[0.5]) < 0.1 * MS
    assert at[0.99] == pytest.approx(np.quantile(stalls, 0.99), rel=0.25)


def test_what_is_drawn_has_the_quantiles_that_were_set() -> None:
    """Law: drawing from a setting's noise gives its quantiles back, also through its spelling."""
    values = quantiles(",".join(f"{one}ms" for one in QUANTILES))
    assert quantiles(spelled(values)) == values == tuple(one * MS for one in QUANTILES)
    chance = random.Random(3)
    drawn_ms = np.array([drawn(values, chance) for _ in range(100_000)]) / MS
    assert (drawn_ms.min() >= QUANTILES[0], drawn_ms.max() <= QUANTILES[-1]) == (True, True)
    for share, value in list(zip(PROBABILITIES, QUANTILES, strict=True))[1:-1]:
        # Five standard errors of a share.
        assert (drawn_ms <= value).mean() == pytest.approx(
            share, abs=5 * np.sqrt(share * (1 - share) / len(drawn_ms))
        )


@pytest.mark.parametrize("text", ["1ms", "x", ",".join(["1ms"] * 13 + ["0ms"]), ",".join(["1"] * 14)])
def test_what_is_no_distribution_is_refused(text: str) -> None:
    """Law: too few quantiles, quantiles that fall and times without a unit are no noise."""
    with pytest.raises(ValueError, match="noise"):
        Settings(noise=text)
