"""What a prompt's length costs: TTFT by input length, and a curve through it (draft 5.6.4).

A prompt takes time by its length alone, so to compare requests of several lengths each TTFT is divided by what its length
costs. A run's samples are grouped by length, each group's ends within a factor RATIO: within one, what lengths cost differs by
no more than that, so that the spread of TTFT / cost is off by at most RATIO^2 / 12 - about 0.0002 of Jain's index.

The curve is f(L) = a + b L + c L^2 in ms, a, b, c >= 0: time to begin, time by token, time by pair of tokens (attention). It
minimises sum of n_g (m_g / f(L_g) - 1)^2 over the groups g of n_g samples with mean TTFT m_g and mean length L_g: relative
errors, so that short prompts count like long ones. Least squares are repeated with the weights of the curve before; of the
curves over each subset of the three terms the best without a negative coefficient is taken. Above 0 everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from inferometer.measure.jain import Shares, shares_of
from inferometer.measure.record import Floats

RATIO = 1.05
"""The longest of a group is less than this times as long as the shortest."""
_ROUNDS = 8
_TERMS = [terms for size in (1, 2, 3) for terms in combinations(range(3), size)]


@dataclass(frozen=True, slots=True)
class LengthGroup:
    """Samples of about one prompt length: how many, their mean length in tokens, mean TTFT and its standard deviation (None of
    a single one), in ms."""

    n: int
    tokens: float
    mean_ms: float
    std_ms: float | None


def by_length(tokens: Floats, ttft_ms: Floats) -> tuple[LengthGroup, ...]:
    """Groups in ascending order of length, of the samples of which both are known."""
    known = ~np.isnan(tokens) & ~np.isnan(ttft_ms) & (tokens >= 1)
    tokens, ttft_ms = tokens[known], ttft_ms[known]
    keys = np.floor(np.log(tokens) / np.log(RATIO) + 1e-9)
    groups = []
    for key in np.unique(keys):
        mine = keys == key
        waits = ttft_ms[mine]
        spread = float(waits.std(ddof=1)) if len(waits) > 1 else None
        groups.append(LengthGroup(len(waits), float(tokens[mine].mean()), float(waits.mean()), spread))
    return tuple(groups)


@dataclass(frozen=True, slots=True)
class LengthCost:
    """The curve: ms, ms a token, ms a squared token."""

    base: float
    per_token: float
    per_pair: float

    def ms(self, tokens: float) -> float:
        """What a prompt of this length costs."""
        return self.base + self.per_token * tokens + self.per_pair * tokens * tokens


def cost_of(groups: Sequence[LengthGroup]) -> LengthCost | None:
    """The curve through the groups. None without any, or where a mean is not above 0."""
    if not groups or any(not group.mean_ms > 0 for group in groups):
        return None
    n = np.array([group.n for group in groups], float)
    lengths = np.array([group.tokens for group in groups])
    means = np.array([group.mean_ms for group in groups])
    scale = lengths.max()
    powers = np.stack([np.ones_like(lengths), lengths / scale, (lengths / scale) ** 2], axis=1)
    fitted = [_fit(powers, terms, means, n) for terms in _TERMS]
    best = min((one for one in fitted if one is not None), key=lambda one: one[0])[1]
    return LengthCost(float(best[0]), float(best[1] / scale), float(best[2] / scale**2))


def slowdowns_of(groups: Sequence[LengthGroup], cost: LengthCost) -> Shares | None:
    """TTFT over what a prompt of its length costs, of all requests of the groups. None where there are none."""
    return shares_of((group.n, group.mean_ms, group.std_ms, cost.ms(group.tokens)) for group in groups)


def _fit(powers: Floats, terms: tuple[int, ...], means: Floats, n: Floats) -> tuple[float, Floats] | None:
    """The sum of squared relative errors of the curve over these terms, and its coefficients. None if one is negative."""
    chosen = powers[:, terms]
    fitted, coefficients = means, np.zeros(3)
    for _ in range(_ROUNDS):
        weights = np.sqrt(n) / fitted
        found = np.linalg.lstsq(chosen * weights[:, None], means * weights, rcond=None)[0]
        if (found < 0).any() or not (found > 0).any():
            return None
        coefficients = np.zeros(3)
        coefficients[list(terms)] = found
        fitted = chosen @ found
    return float((n * (means / fitted - 1) ** 2).sum()), coefficients
