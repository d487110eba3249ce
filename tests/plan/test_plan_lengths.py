"""Length distributions: spelling, canonical form, means."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from inferometer.plan.lengths import (
    EXAMPLES,
    LONGEST,
    Clamped,
    Distribution,
    Empirical,
    Fixed,
    Length,
    fixed,
    histogram,
    lognormal,
    normal,
    parse,
    quantiles,
    uniform,
)

tokens = st.integers(1, LONGEST)


def in_order(low: int | None, high: int | None) -> dict[str, int | None]:
    """Bounds the right way round."""
    if low is not None and high is not None:
        low, high = min(low, high), max(low, high)
    return {"min": low, "max": high}


bounds = st.builds(in_order, st.none() | tokens, st.none() | tokens)
distributions = st.one_of(
    st.builds(fixed, tokens),
    st.builds(lambda a, b, c: uniform(min(a, b), max(a, b), **c), tokens, tokens, bounds),
    st.builds(lambda m, s, c: normal(m, s, **c), st.floats(-1e6, 1e7), st.floats(1e-9, 1e7), bounds),
    st.builds(lambda m, s, c: lognormal(m, s, **c), st.floats(-16, 16), st.floats(1e-3, 10), bounds),
    st.builds(
        lambda m, s, half: lognormal(
            m, s, min=max(1, round(math.exp(m) / 2)), max=round(math.exp(m + half)) + 1, within="redraw"
        ),
        st.floats(0, 14),
        st.floats(1e-3, 10),
        st.floats(0.01, 2),
    ),
    st.builds(
        lambda bins, c: histogram(bins.items(), **c),
        st.dictionaries(tokens, st.floats(1e-9, 1e15), min_size=1, max_size=6),
        bounds,
    ),
    st.builds(
        lambda percents, values, c: quantiles(
            zip([0, *sorted(percents), 100], sorted(values[: len(percents) + 2]), strict=True), **c
        ),
        st.sets(st.floats(0.01, 99.99), max_size=4),
        st.lists(tokens, min_size=6, max_size=6),
        bounds,
    ),
    st.just(Empirical()),
)


@given(distributions)
def test_the_canonical_string_reads_back_as_the_same_length(length: Distribution) -> None:
    """parse(str(x)) == x for every distribution, bounds and floats included."""
    assert parse(str(length)) == length


@given(distributions)
def test_a_plan_field_serialises_to_the_canonical_string(length: Distribution) -> None:
    """In JSON a length is the string it was parsed from, in its canonical form."""
    adapter = TypeAdapter[Distribution](Length)
    assert adapter.dump_python(length, mode="json") == str(length)
    assert adapter.validate_python(str(length)) == length


@pytest.mark.parametrize("example", EXAMPLES.values())
def test_every_example_of_an_error_message_is_right_and_canonical(example: str) -> None:
    """What a message tells the user to write is accepted, and comes back as it was written."""
    assert str(parse(example)) == example


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (320, "320"),
        (" fixed(320) ", "320"),
        ("uniform( 128 , 512 )", "uniform(128,512)"),
        ("uniform(low=128,high=512)", "uniform(128,512)"),
        ("normal(550.0,150, max=900)", "normal(550,150,max=900)"),
        ("histogram(256:3,128:1)", "histogram(128:1,256:3)"),
        ({"kind": "normal", "mean": 550, "std": 150, "min": 16}, "normal(550,150,min=16)"),
        (
            "lognormal(5.5,1.0,within=redraw, min=64,max=256)",
            "lognormal(5.5,1.0,min=64,max=256,within=redraw)",
        ),
        ("lognormal(5.5,1.0,max=256,within=clamp)", "lognormal(5.5,1.0,max=256)"),
        (
            {"kind": "lognormal", "mu": 5.5, "sigma": 1, "min": 64, "within": "redraw"},
            "lognormal(5.5,1.0,min=64,within=redraw)",
        ),
        ({"kind": "histogram", "bins": {"128": 1, "256": 3}}, "histogram(128:1,256:3)"),
        ("quantiles(0:8, 50.0:156, 100:4096, max=900)", "quantiles(0:8,50:156,100:4096,max=900)"),
        ({"kind": "quantiles", "points": [[0, 8], [100, 9]]}, "quantiles(0:8,100:9)"),
        ({"kind": "empirical"}, "empirical"),
    ],
)
def test_other_spellings_come_to_the_canonical_one(written: object, canonical: str) -> None:
    """Ints, spaces, parameter names, mappings and unsorted histograms mean the same."""
    assert str(parse(written)) == canonical


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("unifrm(1,2)", ["unifrm", "uniform(128,512)"]),
        ("uniform(512,128)", ["512", "128", "above"]),
        ("uniform(1)", ["high"]),
        ("uniform(1,2,3)", ["2 numbers"]),
        ("uniform(1,2,low=3)", ["2 numbers"]),
        ("uniform(1,2,mean=3)", ["'mean'"]),
        ("uniform(1,2,min=3,min=4)", ["min", "twice"]),
        ("uniform(1,2,min=9,max=3)", ["min=9", "max=3"]),
        ("uniform(min=1,2)", ["'2'", "after"]),
        ("uniform(1,x)", ["'x'", "number"]),
        ("normal(550,0)", ["standard deviation", "above 0"]),
        ("normal(nan,1)", ["number"]),
        ("lognormal(550,150)", ["logarithm"]),
        ("lognormal(5.5,1.0,max=256,within=reject)", ["within", "clamp or redraw", "'reject'"]),
        ("lognormal(5.5,1.0,within=redraw)", ["min or max"]),
        ("lognormal(5.5,1.0,min=20000,within=redraw)", ["20000", "too little"]),
        ("uniform(1,9,max=5,within=redraw)", ["'within'"]),
        ("histogram()", ["at least one"]),
        ("histogram(128)", ["'128'", "value:weight"]),
        ("histogram(128:0)", ["weight", "above 0"]),
        ("histogram(128:1,128:2)", ["128", "twice"]),
        ("0", ["1 to"]),
        (-5, ["1 to"]),
        (1.5, ["whole number"]),
        (True, ["True"]),
        (None, ["None"]),
        ([1], ["[1]"]),
        ("", ["320"]),
        ("lots", ["'lots'"]),
        (10**400, ["number"]),
        ("9" * 400, ["number"]),
        ({"kind": "normal", "mean": 5}, ["std"]),
        ({"mean": 5}, ["None"]),
        ({"kind": "histogram", "bins": 5}, ["value:weight"]),
        ("quantiles(50:156,100:200)", ["first", "0"]),
        ("quantiles(0:8,50:156)", ["last", "100"]),
        ("quantiles(0:8,60:20,50:30,100:40)", ["increase"]),
        ("quantiles(0:9,50:8,100:40)", ["increase"]),
        ("quantiles(0:9,100)", ["'100'", "percent:value"]),
        ("empirical(min=3)", ["'min'"]),
    ],
)
def test_a_refusal_names_what_is_wrong_and_shows_a_right_example(written: object, names: list[str]) -> None:
    """Each message holds the culprit and at least one string that would have been accepted."""
    with pytest.raises(ValueError, match=r"\w") as caught:
        parse(written)
    message = str(caught.value)
    assert [name for name in names if name not in message] == []
    assert any(example in message for example in EXAMPLES.values())


@given(
    st.text(max_size=40) | st.integers() | st.floats() | st.dictionaries(st.text(max_size=5), st.integers())
)
def test_nothing_but_a_value_error_is_raised(written: object) -> None:
    """Whatever stands in a plan, the answer is a length or a ValueError: never another exception."""
    try:
        parse(written)
    except ValueError:
        return


@given(distributions, st.floats(-1e9, 1e9) | st.just(math.inf))
def test_clamping_gives_a_whole_number_within_the_bounds(length: Distribution, value: float) -> None:
    """clamp(x) is an int between floor and cap, and rounding to the nearest comes first."""
    if isinstance(length, Fixed | Empirical):
        return
    assert isinstance(length, Clamped)
    clamped = length.clamp(value)
    assert type(clamped) is int
    assert length.floor <= clamped <= length.cap
    if math.isfinite(value):
        assert clamped == min(max(round(value), length.floor), length.cap)


@given(st.integers(1, 60), st.integers(0, 60), bounds)
def test_the_uniform_mean_is_that_of_its_values(low: int, width: int, limits: dict[str, int | None]) -> None:
    """The closed form equals the plain average of every clamped value."""
    length = uniform(low, low + width, **limits)
    values = [length.clamp(value) for value in range(low, low + width + 1)]
    assert length.mean() == pytest.approx(sum(values) / len(values))


@pytest.mark.parametrize(
    ("length", "mean"),
    [
        (lognormal(5.5, 1.0, min=32, max=4096), 399.6),  # a little below exp(6) = 403, for it is capped
        (lognormal(5.5, 1.0), math.exp(6)),
        (lognormal(5.5, 1.0, max=10**6, within="redraw"), math.exp(6)),
        (lognormal(9.0, 0.5, min=3, max=3 + 10**6, within="redraw"), math.exp(9 + 1 / 8)),
        (normal(550, 150), 550),
        (normal(0, 100, min=1, max=LONGEST), 100 / math.sqrt(2 * math.pi)),
        (histogram([(128, 1), (256, 3)]), 224),
        (histogram([(128, 1), (256, 3)], max=200), 182),
        (fixed(7), 7),
        (quantiles([(0, 100), (100, 100)]), 100),
        (quantiles([(0, 1), (100, 1000)]), 999 / math.log(1000)),
        (
            quantiles([(0, 1), (50, 2), (100, 100)], max=10),
            0.5 / math.log(2) + (4 + 5 * math.log(10)) / math.log(50),
        ),
    ],
)
def test_means_agree_with_theory(length: Distribution, mean: float) -> None:
    """Known expectations: exp(mu + sigma^2 / 2), the half-normal's sigma / sqrt(2 pi), weighted averages."""
    assert length.mean() == pytest.approx(mean, rel=0.02)
