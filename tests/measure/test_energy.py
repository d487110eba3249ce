"""Energy of a span from a meter's samples: exact for what is known exactly, additive, the same by every method, and None with a
reason where the samples do not tell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.energy import LARGEST_GAP_S, SpanEnergy, averaged, counted, integrated
from inferometer.measure.record import Floats, Ints
from inferometer.units import NS_PER_S

S = NS_PER_S
SINCE_BOOT = 86_400 * 365 * S
"""An instant as large as a clock's."""


def seconds(*at: float) -> Ints:
    return np.array([SINCE_BOOT + round(one * S) for one in at], dtype=np.int64)


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def ns(at: float) -> int:
    return SINCE_BOOT + round(at * S)


@st.composite
def samples(draw: st.DrawFn) -> tuple[Ints, Floats]:
    """Instants at gaps of 1 ms to 3 s, and powers up to a kilowatt."""
    gaps = draw(st.lists(st.integers(1, 3000), min_size=1, max_size=40))
    power = draw(st.lists(st.floats(0.5, 1000), min_size=len(gaps) + 1, max_size=len(gaps) + 1))
    t_ns = SINCE_BOOT + np.cumsum([0, *gaps]).astype(np.int64) * 1_000_000
    return t_ns, np.array(power)


@st.composite
def spans(draw: st.DrawFn) -> tuple[Ints, Floats, list[int]]:
    """Samples, and three instants in order within them."""
    t_ns, power = draw(samples())
    inside = st.integers(int(t_ns[0]), int(t_ns[-1]))
    cuts = sorted(draw(st.lists(inside, min_size=3, max_size=3, unique=True)))
    return t_ns, power, cuts


def charge(t_ns: Ints, power: Floats) -> Floats:
    """The counter of a device whose power is linear between the samples."""
    steps = (power[1:] + power[:-1]) / 2 * np.diff(t_ns) / S
    return np.concatenate([[0.0], np.cumsum(steps)])


def test_a_ramp_is_cut_at_both_ends_on_the_line() -> None:
    """0 to 100 W in 10 s, from 2.5 to 7.5 s: 5 s at 50 W; power at 0, 5 and 10 s only."""
    found = integrated(seconds(0, 5, 10), floats(0, 50, 100), ns(2.5), ns(7.5))
    assert found.joules == pytest.approx(250, rel=1e-12)
    assert (found.samples, found.largest_gap_s, found.rate_hz, found.valid) == (3, 5.0, 0.2, False)


def test_means_hold_back_to_the_sample_before() -> None:
    """10 W until 1 s and 30 W until 2 s: the first sample's own mean is of the time before it."""
    found = averaged(seconds(0, 1, 2), floats(99, 10, 30), ns(0.5), ns(2))
    assert found.joules == pytest.approx(35, rel=1e-12)


def test_a_counter_is_read_between_its_samples() -> None:
    """100 J a second, from half of one second to half of another."""
    found = counted(seconds(0, 1, 2, 3), floats(7, 107, 207, 307), ns(0.5), ns(2.5))
    assert found.joules == pytest.approx(200, rel=1e-12)
    assert (found.samples, found.valid) == (4, True)


@given(spans(), st.floats(0.001, 1e5))
def test_constant_power_gives_power_times_time(drawn: tuple[Ints, Floats, list[int]], watts: float) -> None:
    """However the samples lie; by trapezoids and by means."""
    t_ns, power, (begin, _, end) = drawn
    constant = np.full_like(power, watts)
    for method in (integrated, averaged):
        found = method(t_ns, constant, begin, end).joules
        assert found == pytest.approx(watts * ((end - begin) / S), rel=1e-9)


@given(spans())
def test_two_spans_that_touch_add_up(drawn: tuple[Ints, Floats, list[int]]) -> None:
    """E(b, m) + E(m, e) = E(b, e), by each method."""
    t_ns, power, (begin, middle, end) = drawn
    counter = charge(t_ns, power + 1)
    for values, method in ((power, integrated), (power, averaged), (counter, counted)):
        parts = [method(t_ns, values, *span).joules for span in ((begin, middle), (middle, end))]
        whole = method(t_ns, values, begin, end).joules
        assert None not in (*parts, whole)
        assert sum(part or 0.0 for part in parts) == pytest.approx(whole, rel=1e-9, abs=1e-6)


@given(spans(), st.lists(st.floats(0.01, 0.99), max_size=10))
def test_more_samples_on_the_line_change_nothing(
    drawn: tuple[Ints, Floats, list[int]], shares: list[float]
) -> None:
    """A meter that reads a linear power more often measures the same energy."""
    t_ns, power, (begin, _, end) = drawn
    more = np.unique([*t_ns, *(int(t_ns[0] + share * (t_ns[-1] - t_ns[0])) for share in shares)]).astype(
        np.int64
    )
    line = np.interp((more - t_ns[0]) / S, (t_ns - t_ns[0]) / S, power)
    expected = integrated(t_ns, power, begin, end).joules
    assert integrated(more, line, begin, end).joules == pytest.approx(expected, rel=1e-6, abs=1e-4)


@given(samples())
def test_a_counter_and_the_power_of_one_device_agree(drawn: tuple[Ints, Floats]) -> None:
    """Over spans that begin and end with a sample, where neither has to guess."""
    t_ns, power = drawn
    power = power + 1
    begin, end = int(t_ns[0]), int(t_ns[-1])
    by_power = integrated(t_ns, power, begin, end).joules
    assert counted(t_ns, charge(t_ns, power) + 12345, begin, end).joules == pytest.approx(by_power, rel=1e-6)


@given(spans(), st.floats(0, 1), st.floats(1.0, 1000))
def test_a_counter_that_wraps_counts_on(
    drawn: tuple[Ints, Floats, list[int]], offset: float, more: float
) -> None:
    """For any range that does not wrap twice between two samples, and wherever it wraps first."""
    t_ns, power, (begin, _, end) = drawn
    endless = charge(t_ns, power + 1)
    wraps_at = float(np.diff(endless).max()) * (1 + more)
    wrapped = (endless + offset * wraps_at) % wraps_at
    expected = counted(t_ns, endless, begin, end).joules
    assert counted(t_ns, wrapped, begin, end, wraps_at).joules == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_counter_that_goes_backwards_is_no_energy() -> None:
    """Unless its range is known and large enough; what lies outside of the span does not matter."""
    t_ns, counter = seconds(0, 1, 2, 3), floats(500, 600, 20, 120)
    assert counted(t_ns, counter, ns(0), ns(3)).reason == "counter_reset"
    assert counted(t_ns, counter, ns(0), ns(3), 100.0).reason == "counter_reset"
    assert counted(t_ns, counter, ns(0), ns(3), 700.0).joules == pytest.approx(320)
    assert counted(t_ns, counter, ns(2), ns(3)).joules == pytest.approx(100)


def test_a_counter_that_began_anew_is_no_wrap() -> None:
    """100 W, and 160 kW if a range of 262 kJ were added; a wrap of a range that fits is one."""
    t_ns = seconds(0, 1, 2, 3, 4)
    anew = floats(101_300, 101_400, 5, 105, 205)
    assert counted(t_ns, anew, ns(0), ns(4), 262_143.3).reason == "counter_reset"
    assert counted(t_ns, anew, ns(0), ns(4), 101_495.0).joules == pytest.approx(400)


STEADY = st.lists(st.floats(50, 400), min_size=12, max_size=30)


@given(STEADY, st.floats(1e4, 9e5), st.data())
def test_a_counter_that_jumps_ahead_is_no_energy(
    watts: list[float], more: float, data: st.DataObject
) -> None:
    """Law: wherever it jumps within the span, of whatever range, once; before and behind the span it does not matter."""
    counter = np.concatenate([[5e4], 5e4 + np.cumsum(watts)])
    place, t_ns = data.draw(st.integers(1, len(watts))), seconds(*range(len(counter)))
    jumped = counter + np.where(np.arange(len(counter)) >= place, more, 0.0)
    begin, end = 2, len(watts) - 2
    for wraps_at in (None, 5e6):
        found = counted(t_ns, jumped, ns(begin), ns(end), wraps_at)
        assert (found.reason == "counter_jumped") == (begin < place <= end)


@given(STEADY, st.integers(1, 9), st.data())
def test_a_counter_that_stands_still_was_not_read(
    watts: list[float], still: int, data: st.DataObject
) -> None:
    """Law: from anywhere in the span, whether it goes on from there or catches up, the gap is that between its moves."""
    counter = np.concatenate([[5e4], 5e4 + np.cumsum(watts)])
    place = data.draw(st.integers(0, len(watts)))
    last = min(place + still, len(watts))
    frozen = counter.copy()
    frozen[place : last + 1] = counter[place]
    t_ns = seconds(*range(len(counter)))
    lost = frozen - np.where(np.arange(len(counter)) > last, counter[last] - counter[place], 0.0)
    for shown in (frozen, lost):
        found = counted(t_ns, shown, ns(0), ns(len(watts)))
        if found.reason != "counter_jumped":
            assert found.largest_gap_s == max(1.0, last - place + (last < len(watts)))
            assert found.valid == (found.largest_gap_s <= LARGEST_GAP_S)


@pytest.mark.parametrize("watts", [-500.0, 1.1e6, 1e14])
def test_a_power_that_no_machine_draws_is_no_energy(watts: float) -> None:
    """Law: by none of the methods, in whatever sample."""
    t_ns = seconds(0, 1, 2)
    for method in (integrated, averaged):
        assert method(t_ns, floats(10, watts, 10), ns(0), ns(2)).reason == "implausible"
    if watts > 0:
        assert counted(t_ns, floats(0, 10, 10 + watts), ns(0), ns(2)).reason == "implausible"


def test_a_counter_that_never_moves_is_no_energy() -> None:
    """No device draws nothing: its counter is not supported, and says so by standing still."""
    assert counted(seconds(0, 1, 2), floats(70, 70, 70), ns(0), ns(2)).reason == "counter_stuck"


@pytest.mark.parametrize("method", [integrated, averaged])
def test_a_power_that_is_always_nothing_is_no_energy(method: Callable[..., SpanEnergy]) -> None:
    """A plug that shows 0 W is not the one that the machine hangs on; one reading of something tells that it is."""
    assert method(seconds(0, 1, 2), floats(0, 0, 0), ns(0), ns(2)).reason == "no_power"
    assert method(seconds(0, 1, 2), floats(0, 0, 5), ns(0), ns(2)).joules


@pytest.mark.parametrize("method", [integrated, averaged, counted])
def test_samples_that_do_not_tell_have_a_reason(method: object) -> None:
    """None, one, and some that do not reach both ends; the ends themselves are enough."""
    assert callable(method)
    t_ns, values = seconds(1, 2, 3), floats(1, 2, 3)
    assert method(seconds(), floats(), ns(0), ns(1)).reason == "no_readings"
    assert method(t_ns, np.full(3, np.nan), ns(1), ns(3)).reason == "no_readings"
    assert method(seconds(1), floats(1), ns(1), ns(2)).reason == "too_few"
    assert method(t_ns, floats(1, np.nan, np.nan), ns(1), ns(2)).reason == "too_few"
    assert method(t_ns, values, ns(0.9), ns(2)).reason == "not_covered"
    assert method(t_ns, values, ns(2), ns(3.1)).reason == "not_covered"
    assert method(t_ns, values, ns(1), ns(3)).valid
    for found in (method(t_ns, values, ns(5), ns(6)), method(t_ns, values, ns(0), ns(9))):
        assert (found.joules, found.reason, found.valid) == (None, "not_covered", False)
    with pytest.raises(ValueError, match="no length"):
        method(t_ns, values, ns(2), ns(2))


@pytest.mark.parametrize(("gap", "valid"), [(3.0, True), (3.001, False)])
def test_a_gap_is_valid_up_to_three_seconds_across_the_ends_too(gap: float, valid: bool) -> None:
    """Inside of the span, and where its beginning or its end lies between two samples."""
    assert LARGEST_GAP_S == 3.0
    inside = integrated(seconds(0, 1, 1 + gap, 2 + gap), floats(1, 1, 1, 1), ns(0.5), ns(1.5 + gap))
    begin = integrated(seconds(0, gap, gap + 1), floats(1, 1, 1), ns(gap - 0.1), ns(gap + 1))
    end = integrated(seconds(0, 1, 1 + gap), floats(1, 1, 1), ns(0), ns(1.1))
    for found in (inside, begin, end):
        assert found.valid is valid
        assert found.largest_gap_s == pytest.approx(gap)
    apart = integrated(seconds(0, 100, 101, 102, 200), floats(1, 1, 1, 1, 1), ns(100), ns(102))
    assert (apart.largest_gap_s, apart.samples) == (1.0, 3)


@given(spans(), st.integers(0, 39))
def test_samples_out_of_order_or_without_a_number_are_left_out(
    drawn: tuple[Ints, Floats, list[int]], place: int
) -> None:
    """One that repeats an earlier instant, or is not finite, changes nothing."""
    t_ns, power, (begin, _, end) = drawn
    expected = integrated(t_ns, power, begin, end)
    at = place % len(t_ns) + 1
    for instant, value in (
        (t_ns[at - 1], 5e5),
        (t_ns[0], 5e5),
        (t_ns[at - 1], np.inf),
        (t_ns[at - 1], np.nan),
    ):
        found = integrated(np.insert(t_ns, at, instant), np.insert(power, at, value), begin, end)
        assert found == expected
