"""How TTFT grows with the prompt: which simple model fits the mean TTFT of several input lengths best (draft 5.9.3 to 5.9.5).

Symbols: x_i input tokens, y_i mean TTFT in ms, n lengths, S = sum of (y_i - fitted_i)^2, p the model's parameters.

| model     | y =             | p | fitted                                                                                    |
| --------- | --------------- | - | ----------------------------------------------------------------------------------------- |
| linear    | a + b x         | 2 | least squares                                                                             |
| power     | a x^k           | 2 | k by least squares on ln y over ln x, as the draft's exponent is; then a by those on y    |
| quadratic | a + b x + c x^2 | 3 | least squares                                                                             |

R^2 = 1 - S / sum (y_i - mean y)^2, on the linear scale for all three.
AICc = n ln(S / n) + 2 q + 2 q (q + 1) / (n - q - 1) with q = p + 1, since the variance is estimated too. It exists for
n > q + 1 only: from five lengths on, of the quadratic model from six. A model without it is no candidate, and with fewer than
five lengths none is best. Residuals that are nothing but rounding count as equal; then the first of the table is best.

The means are not weighted. Simulated, with eight lengths from 1,024 to 131,072 and 1,000 draws: lines whose error is alike at
all lengths are found linear in 98 %, lines whose error is 3 % of each mean in 66 %, and else are taken for a slight curve. So
R^2 and k with its interval stand beside the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from inferometer.measure.record import Floats
from inferometer.metrics.statistics import Interval

ModelName = Literal["linear", "power", "quadratic"]

ROUNDING = 1e-9
"""Residuals below this part of the largest TTFT are rounding, not misfit."""

LENGTHS_LEAST = 2
"""Two lengths make a line; its R^2 is then 1 and says nothing."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model: its coefficients (a, b), (a, k) or (a, b, c) in ms and tokens; None: the lengths are too few."""

    name: ModelName
    coefficients: tuple[float, ...]
    r_squared: float | None
    aicc: float | None


@dataclass(frozen=True, slots=True)
class Scaling:
    """The fit over `lengths` input lengths. `exponent` is k with its 95 % interval (Student's t, n - 2); `us_per_token` the
    slope b of the linear model, with its own; `best` names the candidate of the lowest AICc."""

    lengths: int
    models: tuple[Model, ...]
    best: ModelName | None
    exponent: float
    exponent_ci95: Interval | None
    us_per_token: float
    us_per_token_ci95: Interval | None


def fit(lengths: Sequence[float], mean_ttft_ms: Sequence[float]) -> Scaling:
    """Fit the models to the mean TTFT of each input length. ValueError unless there are two different lengths, as many means,
    and all are finite and above 0."""
    x, y = np.asarray(lengths, np.float64), np.asarray(mean_ttft_ms, np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError("a mean TTFT is needed for every length, and a length for every mean TTFT")
    if not (np.isfinite(x).all() and np.isfinite(y).all() and (x > 0).all() and (y > 0).all()):
        raise ValueError("lengths and mean TTFT have to be finite numbers above 0")
    if len(np.unique(x)) < LENGTHS_LEAST:
        raise ValueError("at least two different lengths are needed")
    linear, k = _polynomial(x, y, 1), _polynomial(np.log(x), np.log(y), 1)[1]
    power = (float(y @ x**k / (x**k @ x**k)), k)
    models = [
        _model("linear", linear, lambda at: linear[0] + linear[1] * at, x, y),
        _model("power", power, lambda at: power[0] * at**k, x, y),
    ]
    if len(np.unique(x)) > LENGTHS_LEAST:
        bent = _polynomial(x, y, 2)
        models.append(_model("quadratic", bent, lambda at: bent[0] + bent[1] * at + bent[2] * at * at, x, y))
    scores = {one.name: one.aicc for one in models if one.aicc is not None}
    ranked = sorted(scores, key=scores.__getitem__)
    return Scaling(
        lengths=len(x),
        models=tuple(models),
        best=ranked[0] if ranked else None,
        exponent=k,
        exponent_ci95=_slope_interval(np.log(x), np.log(y)),
        us_per_token=linear[1] * 1_000,
        us_per_token_ci95=_slope_interval(x, y * 1_000),
    )


def _polynomial(x: Floats, y: Floats, degree: int) -> tuple[float, ...]:
    """Least-squares coefficients from the constant up."""
    scale = float(np.abs(x).max()) or 1.0  # 131,072 squared beside 1 would cost half the digits
    columns = np.vander(x / scale, degree + 1, increasing=True)
    found = np.linalg.lstsq(columns, y, rcond=None)[0]
    return tuple(float(one) / scale**power for power, one in enumerate(found))


def _model(
    name: ModelName, coefficients: tuple[float, ...], at: Callable[[Floats], Floats], x: Floats, y: Floats
) -> Model:
    n, q = len(x), len(coefficients) + 1
    least = n * (ROUNDING * float(y.max())) ** 2
    rest = max(float(((y - at(x)) ** 2).sum()), least)
    total = float(((y - y.mean()) ** 2).sum())
    aicc = n * math.log(rest / n) + 2 * q + 2 * q * (q + 1) / (n - q - 1) if n > q + 1 else None
    return Model(name, coefficients, 1 - rest / total if total > least else None, aicc)


def _slope_interval(x: Floats, y: Floats) -> Interval | None:
    """Student's 95 % interval of the slope of a least-squares line; None for two points."""
    from scipy import special  # here, since it takes longer to import than all the rest

    n = len(x)
    if n < 3:
        return None
    a, b = _polynomial(x, y, 1)
    spread = float(((x - x.mean()) ** 2).sum())
    error = math.sqrt(float(((y - a - b * x) ** 2).sum()) / (n - 2) / spread)
    half = float(special.stdtrit(n - 2, 0.975)) * error
    return b - half, b + half
