"""The scaling fit finds what was put in, and says how sure it is."""

from __future__ import annotations

import numpy as np
import pytest

from inferometer.measure.record import Floats
from inferometer.measure.scaling import Scaling, fit

LENGTHS = [1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131072.0]


def model(found: Scaling, name: str) -> tuple[float, ...]:
    return next(one.coefficients for one in found.models if one.name == name)


def test_an_exact_line_is_a_line() -> None:
    """Law: y = a + b x gives back a and b, R^2 of 1 and 1000 b us a token; the quadratic model fits as well and costs more."""
    found = fit(LENGTHS, [20 + 0.07 * x for x in LENGTHS])
    assert found.best == "linear"
    assert found.us_per_token == pytest.approx(70)
    assert model(found, "linear") == pytest.approx((20, 0.07))
    assert [one.r_squared for one in found.models if one.name != "power"] == pytest.approx([1, 1])


def test_exact_attention_is_quadratic() -> None:
    """Law: y = a + b x + c x^2 gives back all three."""
    found = fit(LENGTHS, [20 + 0.05 * x + 4e-7 * x * x for x in LENGTHS])
    assert found.best == "quadratic"
    assert model(found, "quadratic") == pytest.approx((20, 0.05, 4e-7))


@pytest.mark.parametrize("k", [0.5, 0.8, 1.3, 1.7, 3.0])
def test_an_exact_power_has_its_exponent(k: float) -> None:
    """Law: y = a x^k gives back a and k, with an interval of no width around k."""
    found = fit(LENGTHS, [0.02 * x**k for x in LENGTHS])
    assert found.best == "power"
    assert model(found, "power") == pytest.approx((0.02, k))
    assert found.exponent == pytest.approx(k)
    assert found.exponent_ci95 == pytest.approx((k, k))


def test_the_drafts_own_table_has_these_figures() -> None:
    """Known vector: draft table 12, by hand 69.2 us a token and R^2 0.9986; five lengths have no AICc for three parameters."""
    found = fit([1024, 4096, 16384, 65536, 131072], [89, 289, 1023, 4234, 9123])
    assert found.us_per_token == pytest.approx(69.2, abs=0.05)
    linear = next(one for one in found.models if one.name == "linear")
    assert linear.r_squared == pytest.approx(0.9986, abs=5e-5)
    assert next(one.aicc for one in found.models if one.name == "quadratic") is None
    assert found.best in ("linear", "power")


def test_figures_are_those_of_a_library() -> None:
    """Independent partner: scipy's linregress on the logarithms, and its interval."""
    from scipy.stats import linregress, t

    random = np.random.default_rng(5)
    y = [0.03 * x**1.1 * random.lognormal(0, 0.1) for x in LENGTHS]
    found, other = fit(LENGTHS, y), linregress(np.log(LENGTHS), np.log(y))
    half = t.ppf(0.975, len(LENGTHS) - 2) * other.stderr
    line = linregress(LENGTHS, np.array(y) * 1_000)
    slope_half = t.ppf(0.975, len(LENGTHS) - 2) * line.stderr
    assert found.us_per_token_ci95 == pytest.approx((line.slope - slope_half, line.slope + slope_half))
    assert found.exponent == pytest.approx(other.slope)
    assert found.exponent_ci95 == pytest.approx((other.slope - half, other.slope + half))


def test_the_interval_of_the_exponent_holds_it() -> None:
    """Law: of 400 noisy power laws 95 % have their exponent inside; 92 % allows three standard errors of chance."""
    random = np.random.default_rng(11)
    inside = 0
    for _ in range(400):
        y = 0.03 * np.array(LENGTHS) ** 1.2 * random.lognormal(0, 0.2, len(LENGTHS))
        interval = fit(LENGTHS, y.tolist()).exponent_ci95
        assert interval is not None
        inside += interval[0] <= 1.2 <= interval[1]
    assert inside >= 0.92 * 400


def test_noise_rarely_bends_a_line() -> None:
    """AICc: with an error that is alike at all lengths few of 200 lines become curves, and no clear curve a line."""
    random = np.random.default_rng(3)
    x = np.array(LENGTHS)

    def noisy(y: Floats) -> str | None:
        return fit(LENGTHS, (y + random.normal(0, 40, len(x))).tolist()).best

    lines = [noisy(300 + 0.07 * x) for _ in range(200)]
    curves = [noisy(300 + 0.05 * x + 4e-7 * x * x) for _ in range(200)]
    assert lines.count("linear") >= 0.95 * 200
    assert curves.count("linear") == 0


def test_few_lengths_choose_nothing() -> None:
    """Law: under five lengths no model has an AICc: figures, but no best; two lengths are a line and no curve."""
    four = fit(LENGTHS[:4], [10, 20, 40, 80])
    assert four.best is None
    assert all(one.aicc is None for one in four.models)
    two = fit([100, 200], [10, 20])
    assert [one.name for one in two.models] == ["linear", "power"]
    assert two.us_per_token == pytest.approx(100)
    assert two.exponent_ci95 is None


def test_the_unit_of_length_changes_no_choice() -> None:
    """Law: k, R^2 and the choice stay when lengths are told in thousands; TTFT in other units too."""
    y = [12.0, 19, 44, 80, 171, 370, 800, 1900]
    one, two = fit(LENGTHS, y), fit([x / 1000 for x in LENGTHS], [1000 * at for at in y])
    assert one.best == two.best
    assert one.exponent == pytest.approx(two.exponent)
    assert [m.r_squared for m in one.models] == pytest.approx([m.r_squared for m in two.models])


@pytest.mark.parametrize(
    ("x", "y"), [([1, 2], [1]), ([0, 1], [1, 1]), ([1, 2], [1, np.nan]), ([5, 5], [1, 2]), ([], [])]
)
def test_what_cannot_be_fitted_is_said(x: list[float], y: list[float]) -> None:
    """ValueError, never a figure."""
    with pytest.raises(ValueError, match="length"):
        fit(x, y)
