"""Energy of a run from readings of a machine's meters in common terms: tokens, baseline, counters and their ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from inferometer.measure.machine_energy import machine_energy
from inferometer.measure.measurement import samples_of
from inferometer.measure.samples import Samples
from inferometer.telemetry.machines.tracks import THIS_MACHINE, MachineTrack, MachineTracks

S = 1_000_000_000
BEGIN, END = 100 * S, 130 * S
BOARD = {"meter": "nvml", "scope": "accelerator", "device": "0", "method": "power"}


def track(term: str, values: np.ndarray[Any, Any], **labels: str) -> MachineTrack:
    """A reading a second, from ten seconds before the measured phase on."""
    times = (90 + np.arange(len(values), dtype=np.int64)) * S
    return MachineTrack(term, labels, times, np.asarray(values, float))


def machine(*tracks: MachineTrack, idle_until: int | None = 99 * S) -> MachineTracks:
    """Times of the first of them."""
    times = tracks[0].times
    return MachineTracks(
        THIS_MACHINE, "inferometer", times, np.full(len(times), -1), 0, 0, tracks, idle_until
    )


@pytest.fixture(scope="module")
def samples(build: Any, plan_of: Any, random_rows: Any) -> Samples:
    """Of requests of every kind. Their times lie before those of the readings: energy by token has tests of its own."""
    return samples_of(plan_of(), build(*random_rows(1, 50)))


def test_constant_power_is_power_times_time(samples: Samples) -> None:
    """Law: 300 W for 30 s; idle at 60 W before, a fifth of it."""
    watts = np.where(np.arange(60) < 10, 60.0, 300.0)
    (found,) = machine_energy(machine(track("power", watts, **BOARD)), samples, BEGIN, END)
    assert (found.meter, found.scope, found.method, found.valid) == ("nvml", "accelerator", "power", True)
    assert found.joules == pytest.approx(9000.0)
    assert found.idle_w == pytest.approx(60.0)
    assert found.idle_share == pytest.approx(0.2)


def test_a_counter_decides_and_its_range_is_known(samples: Samples) -> None:
    """Law: a counter that wraps counts on; the energy by power stands beside it."""
    labels = BOARD | {"method": "counter"}
    counter = (np.arange(60) * 250.0 + 100.0) % 5_000.0
    tracks = machine(
        track("energy", counter, **labels),
        track("energy_range", np.full(60, 5_000.0), **labels),
        track("power", np.full(60, 260.0), **labels),
    )
    (found,) = machine_energy(tracks, samples, BEGIN, END)
    assert found.method == "counter"
    assert found.joules == pytest.approx(7500.0)
    assert found.other_joules == pytest.approx(7800.0)


def test_a_counter_of_unknown_range_that_falls_has_no_energy(samples: Samples) -> None:
    """Law: null with its reason, never a guess."""
    counter = np.arange(60) * 10.0
    counter[40:] -= 300
    labels = BOARD | {"method": "counter"}
    (found,) = machine_energy(machine(track("energy", counter, **labels)), samples, BEGIN, END)
    assert (found.joules, found.reason) == (None, "counter_reset")


def test_devices_of_a_scope_are_added_and_scopes_are_not(samples: Samples) -> None:
    """Two boards and the machine that holds them: two figures."""
    found = machine_energy(
        machine(
            track("power", np.full(60, 300.0), **BOARD),
            track("power", np.full(60, 200.0), **BOARD | {"device": "1"}),
            track("power", np.full(60, 900.0), **BOARD | {"meter": "command", "scope": "machine"}),
        ),
        samples,
        BEGIN,
        END,
    )
    assert {(one.scope, len(one.devices), round(one.mean_w or 0)) for one in found} == {
        ("accelerator", 2, 500),
        ("machine", 1, 900),
    }


def test_without_readings_before_the_load_there_is_no_baseline(samples: Samples) -> None:
    """Law: what a machine takes while idle is read, or not known."""
    watts = track("power", np.full(60, 300.0), **BOARD)
    for idle_until in (None, 90 * S, 80 * S):
        (found,) = machine_energy(machine(watts, idle_until=idle_until), samples, BEGIN, END)
        assert found.idle_w is None
        assert found.joules == pytest.approx(9000.0)


def test_readings_that_do_not_enclose_the_load_have_no_energy(samples: Samples) -> None:
    """Law: nothing is extrapolated."""
    (found,) = machine_energy(machine(track("power", np.full(35, 300.0), **BOARD)), samples, BEGIN, END)
    assert (found.joules, found.reason) == (None, "not_covered")


def test_a_machine_without_meters_has_no_energy(samples: Samples) -> None:
    """Nothing is said."""
    assert machine_energy(machine(track("memory_available", np.ones(60))), samples, BEGIN, END) == ()


def exporter(*tracks: MachineTrack) -> MachineTracks:
    """The same of a DCGM exporter."""
    return replace(machine(*tracks), url="http://gpus:9400/metrics", exporter="dcgm-exporter")


@pytest.mark.parametrize("every", [1, 2, 5, 10])
@pytest.mark.parametrize("terms", [("energy",), ("power",), ("energy", "power")])
def test_a_reading_that_is_shown_again_is_no_sample(
    samples: Samples, every: int, terms: tuple[str, ...]
) -> None:
    """Law: scraped each second, what is read every n seconds has gaps of n seconds."""
    at = np.arange(70) // every * every
    values = {"energy": at * 300.0, "power": 300.0 + at % 7}
    tracks = [track(term, values[term], **BOARD | {"method": "counter"}) for term in terms]
    (found,) = machine_energy(exporter(*tracks), samples, BEGIN, END)
    assert found.largest_gap_s == float(every)
    assert found.valid is (every <= 3)


def test_the_same_power_is_a_sample_where_another_reading_has_changed(samples: Samples) -> None:
    """Law: a steady power is known as long as anything shows that the exporter reads anew."""
    steady = track("power", np.full(60, 300.0), **BOARD)
    warming = track("accelerator_temperature", 40.0 + np.arange(60) % 2, device="0")
    (found,) = machine_energy(exporter(steady, warming), samples, BEGIN, END)
    assert found.joules == pytest.approx(9000.0)
    assert (found.valid, found.largest_gap_s) == (True, 1.0)
    (found,) = machine_energy(exporter(steady), samples, BEGIN, END)
    assert not found.valid


@pytest.mark.parametrize(
    ("factor", "valid"), [(0.001, False), (0.6, False), (0.7, True), (1.4, True), (30.0, False)]
)
def test_a_counter_that_its_power_contradicts_is_not_valid(
    samples: Samples, factor: float, valid: bool
) -> None:
    """Law: joules called millijoules are not an energy, though the counter grows steadily."""
    labels = BOARD | {"method": "counter"}
    tracks = machine(
        track("energy", np.arange(60) * 300.0 * factor, **labels),
        track("power", np.full(60, 300.0), **labels),
    )
    (found,) = machine_energy(tracks, samples, BEGIN, END)
    assert (found.valid, found.reason) == (valid, None if valid else "disagree")
