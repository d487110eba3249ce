"""The state of accelerators: documented readings in their units, throttling by name, and None for what is not there."""

from __future__ import annotations

import threading

from power_play import played_amdsmi, played_nvml

from inferometer.telemetry.accelerators import AcceleratorState, NoAccelerators, this_machines_accelerators
from inferometer.telemetry.amd import AmdAccelerators
from inferometer.telemetry.amd import throttle_reasons as amd_reasons
from inferometer.telemetry.nvidia import NvidiaAccelerators, throttle_reasons
from inferometer.telemetry.power.readings import MeterFailed

BRIEF_S = 1.0


def test_the_state_of_nvidia_gpus_at_three_moments() -> None:
    """All members in their units; what a GPU does not have is None."""
    played, library = played_nvml()
    states = NvidiaAccelerators(library)
    idle, old = states.read()
    assert idle == AcceleratorState(
        "0",
        "nvidia",
        "NVIDIA H100 80GB HBM3",
        612 * 1024**2,
        85520809984,
        0.0,
        0.0,
        1980.0,
        2619.0,
        31.0,
        700.0,
        (),
        0,
        0,
    )
    assert (old.throttle, old.ecc_uncorrected, old.performance_state) == ((), None, None)
    played.moment = 1
    assert states.read()[0].throttle == ("sw_power_cap",)
    played.moment = 2
    assert states.read()[0].throttle == ("sw_power_cap", "hw_slowdown", "hw_thermal")


def test_idle_and_clocks_that_were_set_are_not_throttling() -> None:
    """Only reasons that hold a busy GPU below the clocks it could have count; unknown ones are reported by their bits."""
    assert throttle_reasons(0x1 | 0x2 | 0x100) == ()
    assert throttle_reasons(0x10 | 0x20 | 0x80 | 0x200 | 0x400) == (
        "sync_boost", "sw_thermal", "hw_power_brake", "board_limit", "reliability",
    )  # fmt: skip
    assert throttle_reasons(1 << 33 | 4) == ("sw_power_cap", "unknown_0x200000000")


def test_a_gpu_that_is_lost_is_unknown_and_does_not_raise() -> None:
    """All its members are None, and the others are read on."""
    played, library = played_nvml()
    states = NvidiaAccelerators(library, timeout_s=BRIEF_S)
    played.moments[0][0] = {key: {"error": 15} for key in played.moments[0][0]}
    lost, other = states.read()
    assert lost == AcceleratorState("0", "nvidia")
    assert other.name == "Tesla P40"
    played.stopped = threading.Event()
    assert states.read() == (AcceleratorState("0", "nvidia"), AcceleratorState("1", "nvidia"))
    states.close()
    played.stopped.set()


def test_the_state_of_amd_gpus() -> None:
    """All members in their units, and no serial number anywhere."""
    _, library = played_amdsmi()
    new, old = AmdAccelerators(library).read()
    assert new == AcceleratorState(
        "0",
        "amd",
        "AMD Instinct MI300X",
        123456789504,
        206141652992,
        97.0,
        41.0,
        2103.0,
        1300.0,
        78.0,
        750.0,
        ("power_cap",),
        0,
    )
    assert (old.name, old.sm_mhz, old.throttle) == ("AMD Instinct MI100", 1502.0, None)
    assert "1234567890" not in repr(new)
    assert amd_reasons({"active_ppt_pwr": "N/A"}) is None


def test_the_machine_has_the_accelerators_of_the_vendor_that_answers() -> None:
    """A vendor whose library is missing or shows no GPU is passed over; without any there are none, and nothing raises."""

    def absent() -> NvidiaAccelerators:
        raise MeterFailed("nvml", "absent", "nothing there")

    played, library = played_amdsmi()
    opened = this_machines_accelerators([absent, lambda: AmdAccelerators(library)])
    assert [state.vendor for state in opened.read()] == ["amd", "amd"]
    played.moments = [[]]
    assert isinstance(this_machines_accelerators([lambda: AmdAccelerators(library)]), NoAccelerators)
    assert this_machines_accelerators([absent]).read() == ()
    this_machines_accelerators().close()
