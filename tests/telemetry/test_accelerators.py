"""The state of accelerators: documented readings in their units, throttling by name, and None for what is not there."""

from __future__ import annotations

import re
import threading
from typing import get_args

import pytest
from power_play import played_amdsmi, played_nvml

from inferometer.telemetry.accelerators import AcceleratorState, NoAccelerators, this_machines_accelerators
from inferometer.telemetry.amd import AmdAccelerators
from inferometer.telemetry.amd import throttle_reasons as amd_reasons
from inferometer.telemetry.machines.exposition_text import Text
from inferometer.telemetry.machines.meters import AcceleratorPart
from inferometer.telemetry.nvidia import NvidiaAccelerators, throttle_reasons
from inferometer.telemetry.power.nvml import NvmlMeter
from inferometer.telemetry.power.readings import FailureCode, MeterFailed

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


def test_a_gpu_that_is_lost_is_unknown_and_a_driver_that_hangs_is_a_reason() -> None:
    """All its members are None, and the others are read on. A driver that hangs is a reason, within its limit of time."""
    played, library = played_nvml()
    states = NvidiaAccelerators(library, timeout_s=BRIEF_S)
    played.moments[0][0] = {key: {"error": 15} for key in played.moments[0][0]}
    lost, other = states.read()
    assert lost == AcceleratorState("0", "nvidia")
    assert other.name == "Tesla P40"
    played.stopped = threading.Event()
    with pytest.raises(MeterFailed, match="has not answered"):
        states.read()
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


@pytest.mark.parametrize("code", [code for code in get_args(FailureCode) if code != "absent"])
def test_a_vendor_whose_library_fails_is_not_a_vendor_without_accelerators(code: FailureCode) -> None:
    """Law: without another one that answers, there may be some, and why they are not known is said."""

    def broken() -> NvidiaAccelerators:
        raise MeterFailed("nvml", code, "why")

    _, library = played_amdsmi()
    assert this_machines_accelerators([broken, lambda: AmdAccelerators(library)]).read()
    with pytest.raises(MeterFailed, match="why"):
        this_machines_accelerators([broken])


@pytest.mark.parametrize("opened", [False, True])
def test_a_library_that_hangs_is_a_row_with_its_reason_and_left_alone(opened: bool) -> None:
    """Law: at each reading, from its start or later, whoever asks and however often it is opened; one call waits."""
    played, library = played_nvml()
    part = AcceleratorPart(
        lambda: this_machines_accelerators([lambda: NvidiaAccelerators(library, timeout_s=0.05)])
    )
    if opened:
        part(Text())
    played.stopped, before = threading.Event(), len(played.calls)
    found = []
    for _ in range(3):
        text = Text()
        part(text)
        found += re.findall("meter_failed{(.*)} 1", str(text))
    assert [re.findall('"(.*?)"', one)[:2] for one in found] == [["accelerators", "timeout"]] * 3
    assert len(played.calls) == before + 1
    with pytest.raises(MeterFailed, match="still hangs"):
        NvmlMeter(library=library, timeout_s=0.05)
    played.stopped.set()


@pytest.mark.parametrize(
    "failure", [MeterFailed("nvml", "vanished", "hunter2"), OSError("/home/alice/hunter2")]
)
def test_what_others_read_of_failing_accelerators_are_fixed_words(failure: Exception) -> None:
    """Law: as of a meter; what the library said is told once."""

    def broken() -> NvidiaAccelerators:
        raise failure

    told: list[str] = []
    part, text = AcceleratorPart(broken, told.append), Text()
    part(text)
    part(text)
    assert "hunter2" not in str(text)
    assert "meter_failed" in str(text)
    assert ["hunter2" in one for one in told] == [True]
