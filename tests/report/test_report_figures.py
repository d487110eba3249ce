"""Figures: what is printed is the number, to four significant digits, and outside text is harmless."""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.report import figures

REAL = st.floats(min_value=1e-6, max_value=1e12) | st.floats(min_value=-1e12, max_value=-1e-6)


def parsed(text: str) -> float:
    return float(text.replace(figures.THIN, "").replace("\u2212", "-"))


@given(REAL)
def test_a_figure_reads_back_within_half_a_unit_of_its_fourth_digit(value: float) -> None:
    """|printed - value| <= 0.5e-3 |value|: four significant digits lose no more."""
    assert abs(parsed(figures.figure(value)) - value) <= 0.5001e-3 * abs(value)


@given(st.integers(-(10**12), 10**12))
def test_a_whole_number_is_printed_in_full(value: int) -> None:
    """Counts are exact: no digit of an integer is rounded away."""
    assert parsed(figures.figure(value)) == value


@given(st.integers(10_000, 10**12))
def test_thousands_are_groups_of_three(value: int) -> None:
    """From five digits on, every group but the first has exactly three digits."""
    first, *rest = figures.figure(value).split(figures.THIN)
    assert 1 <= len(first) <= 3
    assert all(len(group) == 3 for group in rest)


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (0.0123461, "0.01235"),
        (31.2945, "31.29"),
        (1116.43, "1116"),
        (9.99996, "10.00"),
        (50.0, "50"),
        (0, "0"),
        (-3.5, "\u22123.500"),
    ],
)
def test_figures_follow_the_table_of_the_module(value: float, printed: str) -> None:
    """The convention in the module's opening, example by example."""
    assert figures.figure(value) == printed


@pytest.mark.parametrize(
    ("bounds", "printed"),
    [
        ((4.99996, 5.0), "5.000 \u2013 5.000"),
        ((5.0, 5.0), "5 \u2013 5"),
        ((5, 12), "5 \u2013 12"),
        ((5, 12.345), "5.000 \u2013 12.35"),
        ((-3.0, 0.5), "\u22123.000 \u2013 0.5000"),
        ((0, 0.0123461), "0 \u2013 0.01235"),
        ((99.5, 100), "99.50 \u2013 100.0"),
        ((999.5, 12_345), "999.5 \u2013 12 345"),
        (None, figures.ABSENT),
    ],
)
def test_the_ends_of_an_interval_are_written_alike(bounds: tuple[float, float] | None, printed: str) -> None:
    """Law: both whole, or both with their significant digits, as long as these go behind the point."""
    assert figures.interval(bounds).replace(figures.THIN, " ") == printed


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_an_end_has_a_point_wherever_the_other_needs_one(low: float, high: float) -> None:
    """Law: below 1,000 and beside 0, an end is without decimals only if both are."""
    ends = figures.interval((low, high)).split(f"{figures.THIN}{figures.DASH}{figures.THIN}")
    small = [end for end, value in zip(ends, (low, high), strict=True) if 0 < abs(value) < 999]
    assert len({"." in end for end in small}) <= 1


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_what_is_not_a_number_is_a_dash(value: float | None) -> None:
    """An absent or undefined value never looks like a measured zero."""
    assert figures.figure(value) == figures.ABSENT


def test_durations_are_in_the_unit_a_person_would_use() -> None:
    """Below two minutes seconds, below two hours minutes, then hours."""
    spoken = [figures.seconds(value).replace("\u00a0", " ") for value in (0.4211, 61.24, 725, 11_520, None)]
    assert spoken == ["0.421 s", "61.2 s", "12 min 5 s", "3 h 12 min", figures.ABSENT]


def test_bytes_are_in_binary_multiples() -> None:
    """1024 is the step, and the largest fitting unit is taken."""
    assert [figures.size(value) for value in (0, 512, 1536, 270582939648)] == [
        "0 B",
        "512 B",
        "1.5 KiB",
        "252 GiB",
    ]


@given(st.text())
def test_outside_text_is_cleaned_to_one_line_without_controls(text: str) -> None:
    """No line break, escape sequence, direction override or surrogate survives, whatever the server calls itself."""
    cleaned = figures.clean(text)
    assert not any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in cleaned)
    cleaned.encode("utf-8")


@given(st.text())
def test_ascii_only_is_ascii(text: str) -> None:
    """A console that knows no Unicode never sees any."""
    assert figures.ascii_only(text).isascii()


@dataclass(frozen=True)
class Samples:
    """Statistics of n samples."""

    n: int
    mean: float = 1.0
    p99: float = 1.0


def test_a_percentile_is_marked_exactly_below_the_samples_it_needs() -> None:
    """999 samples are too few for P99, 1,000 are enough (draft 5.1.2.1)."""
    assert figures.marked(Samples(999), "p99")[1]
    assert not figures.marked(Samples(1000), "p99")[1]
    assert not figures.marked(Samples(1), "mean")[1]
