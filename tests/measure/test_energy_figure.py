"""What a run spent: devices of one scope added up, the method that all of them have, idle power, and energy per token with an
interval or a reason."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.measure.block_ratio import Ratio, block_count, block_ratio
from inferometer.measure.energy_figure import EnergyFigure, Tokens, energy_figure
from inferometer.measure.power_series import PowerSeries, by_scope, power_series
from inferometer.telemetry.power.readings import Method, PowerReading, Scope
from inferometer.units import NS_PER_S

S = NS_PER_S


def gpu(device: str, watts: float | None, joules: float | None, scope: Scope = "accelerator") -> PowerReading:
    method: Method = "power" if joules is None else "counter"
    return PowerReading("nvml", scope, device, watts=watts, joules=joules, method=method)


def sampled(
    *devices: tuple[float, float | None], seconds: int = 70, idle: int = 10
) -> tuple[PowerSeries, ...]:
    """Devices at these watts, and half of them while idle; the second of a pair is where the counter starts, None: none."""
    moments = []
    for at in range(seconds + 1):
        spent = max(0, at - idle) + 0.5 * min(at, idle)
        present = [
            gpu(
                str(number),
                watts if at > idle else watts / 2,
                None if start is None else start + watts * spent,
            )
            for number, (watts, start) in enumerate(devices)
        ]
        moments.append((at * S, present))
    return power_series(moments)


def test_devices_of_one_scope_are_added_up() -> None:
    """Two GPUs by their counters: 60 s at 300 W and 100 W; idle at half of it before."""
    found = energy_figure(sampled((300, 1e6), (100, 5)), 10 * S, 70 * S, baseline=(0, 10 * S))
    assert (found.meter, found.scope, found.devices, found.method) == (
        "nvml",
        "accelerator",
        ("0", "1"),
        "counter",
    )
    assert found.joules == pytest.approx(24_000)
    assert (found.mean_w, found.idle_w, found.idle_share) == pytest.approx((400, 200, 0.5))
    assert (found.samples, found.rate_hz, found.largest_gap_s, found.valid, found.reason) == (
        61,
        1.0,
        1.0,
        True,
        None,
    )
    assert (found.joules_per_output_token, found.output_tokens_per_s_per_w) == (None, None)
    assert found.other_joules == pytest.approx(
        23_900
    )  # the trapezoid of the first second begins at half the power


def plug(watts: Sequence[float], scope: Scope = "machine") -> tuple[PowerSeries, ...]:
    """A wall meter's reading a second."""
    return power_series(
        [(at * S, [PowerReading("http", scope, "plug", watts=one)]) for at, one in enumerate(watts)]
    )


@given(
    st.floats(0.5, 500),
    st.lists(st.floats(1, 5), min_size=7, max_size=30),
    st.data(),
    st.sampled_from([1e3, 1e-3]),
)
def test_a_meter_that_changes_its_unit_has_no_energy(
    watts: float, loads: list[float], data: st.DataObject, factor: float
) -> None:
    """Law: wherever some readings of a plug are in another unit, before the load or in it, a run has neither energy nor an idle
    share."""
    true = [watts * load for load in loads]
    other = data.draw(st.sets(st.integers(0, len(true) - 1), min_size=1, max_size=len(true) - 1))
    if max(true) < 5 * min(true) * (1 - 1e-9):
        shown = plug([one * factor if at in other else one for at, one in enumerate(true)])
        found = energy_figure(shown, 3 * S, (len(true) - 2) * S, baseline=(0, 2 * S))
        assert (found.joules, found.idle_w, found.reason, found.valid) == (None, None, "unit_changes", False)


@given(st.lists(st.floats(5, 700) | st.just(0.0), min_size=7, max_size=30))
def test_no_step_of_a_load_is_taken_for_another_unit(watts: list[float]) -> None:
    """Law: from 5 W to 700 W and back, and to 0, is a load."""
    found = energy_figure(plug([*watts, 5.0]), 3 * S, 6 * S, baseline=(0, 2 * S))
    assert found.reason != "unit_changes"


@pytest.mark.parametrize("scope", ["accelerator", "package", "memory", "other"])
def test_one_device_does_not_draw_what_a_hall_of_machines_does(scope: Scope) -> None:
    """Law: 300 kW of an accelerator are another unit, by its power or its counter; of a machine they may be."""
    for number, valid in ((300.0, True), (3e5, False)):
        for joules in (False, True):
            readings = [
                (
                    at * S,
                    [
                        PowerReading(
                            "m", scope, "0", None if joules else number, number * at if joules else None
                        )
                    ],
                )
                for at in range(9)
            ]
            found = energy_figure(power_series(readings), S, 7 * S)
            assert (found.valid, found.reason) == (valid, None if valid else "implausible")
    assert energy_figure(plug([3e5] * 9), S, 7 * S).valid


def test_a_unit_that_a_library_defines_does_not_change() -> None:
    """Law: an idle part of a chip draws a thousandth of what it draws under load."""
    found = energy_figure(plug([0.004] * 3 + [40.0] * 6, "other"), 3 * S, 8 * S)
    assert found.joules == pytest.approx(200)


def test_scopes_meters_and_the_same_device_are_never_added_up() -> None:
    """One may contain the other."""
    one, two = sampled((1, 0), (2, 0))
    series = power_series([(at * S, [gpu("0", 1, at), gpu("0", 5, 5 * at, "machine")]) for at in range(9)])
    with pytest.raises(ValueError, match="one meter and one scope"):
        energy_figure(series, 0, 8 * S)
    with pytest.raises(ValueError, match="one meter and one scope"):
        energy_figure((), 0, 8 * S)
    with pytest.raises(ValueError, match="twice"):
        energy_figure((one, one), 0, 8 * S)
    assert {key: len(group) for key, group in by_scope((*series, two)).items()} == {
        ("nvml", "accelerator"): 2,
        ("nvml", "machine"): 1,
    }


def test_all_devices_are_measured_by_a_method_that_all_have() -> None:
    """A GPU without a counter makes it the power of both; a stuck or reset counter says why it was not used."""
    mixed = energy_figure(sampled((300, 1e6), (100, None)), 20 * S, 60 * S)
    assert (mixed.method, mixed.counter_reason) == ("power", "no_readings")
    assert mixed.joules == pytest.approx(16_000)
    plain = energy_figure(sampled((300, None)), 20 * S, 60 * S)
    assert (plain.method, plain.counter_reason, plain.other_joules) == ("power", None, None)
    moments = [(at * S, [gpu("0", 100.0, 70.0)]) for at in range(31)]
    stuck = energy_figure(power_series(moments), 0, 30 * S)
    assert (stuck.method, stuck.counter_reason) == ("power", "counter_stuck")
    assert stuck.joules == pytest.approx(3000)


def test_without_power_a_counter_that_fails_is_the_reason() -> None:
    """Null with its reason, and never a guess."""
    moments = [(at * S, [gpu("0", None, 70.0)]) for at in range(31)]
    found = energy_figure(power_series(moments), 0, 30 * S, baseline=(0, S))
    assert (found.joules, found.mean_w, found.idle_w, found.valid) == (None, None, None, False)
    assert found.reason == found.counter_reason == "counter_stuck"
    late = energy_figure(power_series(moments[10:]), 0, 30 * S)
    assert late.reason == "not_covered"


def test_means_are_not_trapezoids() -> None:
    """What powermetrics gives holds back to its last reading."""
    readings = [
        (at * S, [PowerReading("powermetrics", "package", "package", watts=watts, method="mean")])
        for at, watts in enumerate((0.0, 10.0, 30.0))
    ]
    found = energy_figure(power_series(readings), 0, 2 * S)
    assert found.method == "mean"
    assert found.joules == pytest.approx(40)


def test_a_gap_makes_a_figure_invalid_and_a_baseline_unknown() -> None:
    """The figure is there with its gap and the limit."""
    (series,) = sampled((100, 0))
    keep = ~np.isin(series.t_ns, np.array([3, 4, 5, 6, 30, 31, 32, 33]) * S)
    cut = PowerSeries(
        series.meter,
        series.scope,
        series.device,
        series.method,
        series.t_ns[keep],
        series.watts[keep],
        series.joules[keep],
    )
    found = energy_figure([cut], 10 * S, 70 * S, baseline=(0, 10 * S))
    assert found.joules == pytest.approx(6000)
    assert (found.valid, found.reason) == (False, "gap")
    assert (found.largest_gap_s, found.largest_gap_limit_s) == (5.0, 3.0)
    assert (found.idle_w, found.idle_reason) == (None, "gap")


def test_energy_per_token_and_its_inverse() -> None:
    """100 W and 50 tokens/s: 2 J a token, half a token/s a watt; tokens outside of the span do not count."""
    at = np.arange(-100, 70 * 50, dtype=np.int64) * (S // 50)
    output = Tokens(at, np.ones(len(at), dtype=np.int64))
    total = Tokens(at, np.full(len(at), 4, dtype=np.int64))
    found = energy_figure(sampled((100, 0)), 10 * S, 70 * S, output=output, total=total, memory_s=0.5)
    per_output, per_total, per_watt = (
        found.joules_per_output_token, found.joules_per_total_token, found.output_tokens_per_s_per_w,
    )  # fmt: skip
    assert per_output is not None
    assert per_total is not None
    assert per_watt is not None
    assert (per_output.value, per_total.value, per_watt.value) == pytest.approx((2, 0.5, 0.5), rel=1e-3)
    assert per_output.blocks == 12
    for ratio in (per_output, per_total, per_watt):
        assert ratio.interval is not None
        assert ratio.interval[0] <= ratio.value <= ratio.interval[1]
        assert ratio.interval[1] - ratio.interval[0] < 0.01 * ratio.value
    short = energy_figure(
        sampled((100, 0)), 10 * S, 34 * S, output=output, memory_s=0.5
    ).joules_per_output_token
    assert short is not None
    assert (short.interval, short.withheld) == (None, "few_blocks")
    slow = energy_figure(
        sampled((100, 0)), 10 * S, 70 * S, output=output, memory_s=2.5
    ).joules_per_output_token
    assert slow is not None
    assert slow.withheld == "few_blocks"
    unknown = energy_figure(sampled((100, 0)), 10 * S, 70 * S, output=output).output_tokens_per_s_per_w
    assert unknown is not None
    assert unknown.value == pytest.approx(0.5, rel=1e-3)
    assert (unknown.interval, unknown.withheld, unknown.blocks) == (None, "memory_unknown", 0)
    nothing = energy_figure(sampled((100, 0)), 10 * S, 70 * S, output=Tokens(at[:50], output.counts[:50]))
    assert (nothing.joules_per_output_token, nothing.output_tokens_per_s_per_w) == (None, None)


def test_a_figure_survives_json() -> None:
    """It is a document's part: what is written is read back."""
    found = energy_figure(sampled((100, 0)), 10 * S, 70 * S)
    assert msgspec.json.decode(msgspec.json.encode(found), type=EnergyFigure) == found


def test_the_interval_is_students_of_the_residuals() -> None:
    """By hand: six blocks, x = 10, 12, 11, 9, 10, 8 J and y = 5, 6, 5, 5, 5, 4 tokens; R = 2, residuals 0, 0, 1, -1, 0, 0."""
    found = block_ratio(np.array([10.0, 12, 11, 9, 10, 8]), np.array([5.0, 6, 5, 5, 5, 4]))
    assert found is not None
    half = 2.570582 * (2 * 6 / 5) ** 0.5 / 30
    assert found.value == 2
    assert found.interval == pytest.approx((2 - half, 2 + half), rel=1e-6)
    assert found.inverse() == Ratio(0.5, pytest.approx((1 / (2 + half), 1 / (2 - half)), rel=1e-6), 6)  # type: ignore[arg-type]  # approx is no tuple


def test_what_a_request_leaves_in_the_next_block_widens_the_interval() -> None:
    """By sqrt(1 / (1 - m)), up to the shortest block that is allowed."""
    above, below = np.array([10.0, 12, 11, 9, 10, 8]), np.array([5.0, 6, 5, 5, 5, 4])

    def half(remembered: float) -> float:
        found = block_ratio(above, below, remembered)
        assert found is not None
        assert found.interval is not None
        return found.interval[1] - found.value

    assert half(0.1) == pytest.approx(half(0) / 0.9**0.5)
    assert half(0.9) == half(0.2) == pytest.approx(half(0) / 0.8**0.5)


def test_an_interval_is_withheld_with_its_reason() -> None:
    """Too few blocks, too many without a token, one that would reach zero."""
    few = block_ratio(np.ones(4), np.ones(4))
    empty = block_ratio(np.ones(6), np.array([0.0, 0, 1, 1, 1, 1]))
    wide = block_ratio(np.array([30.0, 0, 0, 0, 0]), np.ones(5))
    assert [one and (one.withheld, one.interval) for one in (few, empty, wide)] == [
        ("few_blocks", None), ("few_tokens", None), ("wide", None),
    ]  # fmt: skip
    assert block_ratio(np.ones(6), np.zeros(6)) is None
    assert block_ratio(np.zeros(6), np.ones(6)) is None
    assert block_ratio(np.array([]), np.array([])) is None


@given(st.floats(0.1, 1e5), st.floats(0, 100))
def test_blocks_are_long_against_the_meter_and_the_requests(duration_s: float, memory_s: float) -> None:
    """Five to twenty, each at least 5 s and five times what a request leaves behind; otherwise none."""
    blocks = block_count(duration_s, memory_s)
    assert blocks == 0 or 5 <= blocks <= 20
    if blocks:
        assert duration_s / blocks >= max(5.0, 5 * memory_s) * (1 - 1e-9)
    else:
        assert duration_s < 5 * max(5.0, 5 * memory_s)


@given(
    st.lists(st.tuples(st.floats(1, 1e4), st.floats(1, 1e4)), min_size=5, max_size=20), st.floats(0.01, 100)
)
def test_the_ratio_scales_with_its_units(pairs: list[tuple[float, float]], unit: float) -> None:
    """In other units of energy it is the same ratio, and so is its interval."""
    above, below = np.array(pairs).T
    one, other = block_ratio(above, below), block_ratio(above * unit, below)
    assert one is not None
    assert other is not None
    assert other.value == pytest.approx(one.value * unit)
    if one.interval is not None and other.interval is not None:
        assert np.allclose(other.interval, np.array(one.interval) * unit, atol=1e-9)
