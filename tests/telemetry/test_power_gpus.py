"""NVML and AMD SMI: documented readings become power and energy; what the library refuses, loses or never answers has a name, a
remedy and a limit of time."""

from __future__ import annotations

import ast
import contextlib
import inspect
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
from power_play import played_amdsmi, played_nvml

from inferometer.telemetry import nvml_library
from inferometer.telemetry.nvml_library import Nvml
from inferometer.telemetry.power.amdsmi import AmdSmiMeter
from inferometer.telemetry.power.nvml import NvmlMeter
from inferometer.telemetry.power.readings import MeterFailed, PowerReading

BRIEF_S = 1.0


def test_nvml_gives_the_counter_where_there_is_one_and_the_power_otherwise() -> None:
    """Millijoules and milliwatts become joules and watts; a GPU before Volta has no counter."""
    played, library = played_nvml()
    meter = NvmlMeter(library=library)
    assert meter.read() == (
        PowerReading("nvml", "accelerator", "0", watts=71.25, joules=1_500_000.0, method="counter"),
        PowerReading("nvml", "accelerator", "1", watts=48.917, method="power"),
    )
    played.moment = 1
    assert meter.read()[0].joules == 1_500_688.4
    meter.close()
    assert played.calls[-1] == "shutdown"


def test_only_the_gpus_that_were_named_are_read() -> None:
    """By their numbers; one that does not exist is refused, and the library is released."""
    _, library = played_nvml()
    assert [reading.device for reading in NvmlMeter((1,), library).read()] == ["1"]
    played, library = played_nvml()
    with pytest.raises(MeterFailed, match="there is no GPU 2; this machine has 2") as failure:
        NvmlMeter((0, 2), library)
    assert failure.value.code == "absent"
    assert played.calls[-1] == "shutdown"


@pytest.mark.parametrize(
    ("number", "code", "remedy"),
    [
        (4, "permission", "/dev/nvidiactl"),
        (9, "absent", "driver"),
        (12, "absent", "driver"),
        (18, "absent", "driver"),
        (10, "timeout", "dmesg"),
        (15, "vanished", "dmesg"),
        (16, "vanished", "dmesg"),
        (999, "vanished", "dmesg"),
    ],
)
def test_an_error_of_nvml_has_a_code_and_a_remedy(number: int, code: str, remedy: str) -> None:
    """At the start and in the middle of a run."""
    played, library = played_nvml()
    meter = NvmlMeter(library=library)
    played.everywhere = number
    for fails in (meter.read, lambda: NvmlMeter(library=library)):
        with pytest.raises(MeterFailed, match=remedy) as failure:
            fails()
        assert failure.value.code == code
    meter.close()


def test_a_driver_that_hangs_costs_its_limit_of_time_and_is_not_called_again() -> None:
    """A reading that hangs is a timeout; until it returns the next fails at once; afterwards the meter works."""
    played, library = played_nvml()
    meter = NvmlMeter(library=library, timeout_s=BRIEF_S)
    played.stopped = threading.Event()
    calls = len(played.calls)
    for _ in range(3):
        with pytest.raises(MeterFailed) as failure:
            meter.read()
        assert failure.value.code == "timeout"
    meter.close()
    assert len(played.calls) == calls + 1
    hanging, played.stopped = played.stopped, None
    hanging.set()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with contextlib.suppress(MeterFailed):
            assert len(meter.read()) == 2
            return
    pytest.fail("the meter does not recover")


def test_a_library_is_stopped_as_often_as_it_was_started() -> None:
    """It counts its starts, and the state of the GPUs may be read by the same process."""
    for played, meter in (
        ((nvml := played_nvml())[0], NvmlMeter(library=nvml[1])),
        ((amd := played_amdsmi())[0], AmdSmiMeter(library=amd[1])),
    ):
        meter.close()
        meter.close()
        assert (played.calls.count("init"), played.calls.count("shutdown")) == (1, 1)
    played, library = played_nvml()
    played.everywhere = 9
    with pytest.raises(MeterFailed):
        NvmlMeter(library=library)
    assert played.calls == ["init"]


def test_a_function_that_an_older_package_lacks_is_an_unknown_reading() -> None:
    """The power is left, without the counter."""

    class Older:
        """The vectors' library before it had the counter."""

        def __init__(self) -> None:
            self.played = played_nvml()[0]

        def __getattr__(self, name: str) -> Any:
            if name == "nvmlDeviceGetTotalEnergyConsumption":
                raise AttributeError(name)
            return getattr(self.played, name)

    assert [one.method for one in NvmlMeter(library=cast("Nvml", Older())).read()] == ["power", "power"]


def test_nonsense_of_a_driver_is_no_reading() -> None:
    """A power or a counter that no GPU can have is malformed, not a figure."""
    for function, value in (
        ("nvmlDeviceGetPowerUsage", 10**12),
        ("nvmlDeviceGetTotalEnergyConsumption", 2**64 - 1),
    ):
        played, library = played_nvml()
        played.moments[0][0][function] = value
        with pytest.raises(MeterFailed) as failure:
            NvmlMeter(library=library).read()
        assert failure.value.code == "malformed"


def test_a_gpu_without_either_reading_is_absent() -> None:
    """There is nothing to measure its power by."""
    played, library = played_nvml()
    played.moments[0][1]["nvmlDeviceGetPowerUsage"] = {"error": 3}
    with pytest.raises(MeterFailed, match="GPU 1 measures neither") as failure:
        NvmlMeter(library=library).read()
    assert failure.value.code == "absent"


def test_the_names_that_are_called_are_those_of_the_library() -> None:
    """nvidia-ml-py has each function of the protocol with as many arguments, and the constants have its values."""
    import pynvml

    tree = ast.parse(inspect.getsource(nvml_library))
    protocol = next(one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "Nvml")
    functions = [one for one in protocol.body if isinstance(one, ast.FunctionDef)]
    assert len(functions) == 16
    for one in functions:
        parameters = inspect.signature(getattr(pynvml, one.name)).parameters.values()
        needed = [parameter for parameter in parameters if parameter.default is parameter.empty]
        assert len(needed) <= len(one.args.args) - 1 <= len(parameters), one.name
    assert issubclass(pynvml.NVMLError, Exception)
    assert pynvml.NVMLError(15).value == 15
    assert (pynvml.NVML_CLOCK_SM, pynvml.NVML_CLOCK_MEM) == (nvml_library.CLOCK_SM, nvml_library.CLOCK_MEM)
    assert pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED == nvml_library.ECC_UNCORRECTED
    assert pynvml.NVML_VOLATILE_ECC == nvml_library.ECC_VOLATILE
    assert pynvml.NVML_TEMPERATURE_GPU == nvml_library.TEMPERATURE_GPU
    assert pynvml.NVML_PSTATE_UNKNOWN == nvml_library.P_STATE_UNKNOWN


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has NVIDIA's driver")
def test_a_machine_without_the_driver_says_what_to_install() -> None:
    """The real library, where there is no driver for it."""
    with pytest.raises(MeterFailed, match="driver") as failure:
        NvmlMeter()
    assert failure.value.code == "absent"


def test_amd_gives_the_accumulator_in_joules_and_the_socket_power() -> None:
    """Units of 15.3 microjoules; older GPUs have the average power, and the accumulator under another name."""
    played, library = played_amdsmi()
    meter = AmdSmiMeter(library=library)
    first = meter.read()
    assert [(one.device, one.watts, one.method) for one in first] == [
        ("0", 141, "counter"),
        ("1", 34, "counter"),
    ]
    assert first[0].joules == pytest.approx(15_300.0)
    played.moment = 1
    second = meter.read()
    assert second[0].joules is not None
    assert first[0].joules is not None
    assert second[0].joules - first[0].joules == pytest.approx(700, abs=0.01)
    assert second[1].joules == first[1].joules
    meter.close()
    assert played.calls[-1] == "shutdown"


@pytest.mark.parametrize(
    ("number", "code"), [(10, "permission"), (34, "absent"), (18, "absent"), (8, "timeout"), (14, "vanished")]
)
def test_an_error_of_amd_smi_has_a_code(number: int, code: str) -> None:
    """At the start and in the middle of a run."""
    played, library = played_amdsmi()
    meter = AmdSmiMeter(library=library)
    played.everywhere = number
    for fails in (meter.read, lambda: AmdSmiMeter(library=library)):
        with pytest.raises(MeterFailed) as failure:
            fails()
        assert failure.value.code == code
