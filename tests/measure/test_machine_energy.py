"""Energy of a run from readings of a machine's meters in common terms: tokens, baseline, counters and their ranges."""

from __future__ import annotations

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
