# ruff: noqa: N802 - the names are NVML's
"""NVIDIA's management library as nvidia-ml-py calls it: the functions that are used, and what its errors mean.

| NVML's error                                                              | here                                    |
| ------------------------------------------------------------------------- | --------------------------------------- |
| NOT_SUPPORTED (3), FUNCTION_NOT_FOUND (13), NO_DATA (21)                  | this one reading is unknown             |
| NO_PERMISSION (4)                                                         | `permission`                            |
| DRIVER_NOT_LOADED (9), LIBRARY_NOT_FOUND (12), LIB_RM_VERSION_MISMATCH (18) | `absent`                              |
| TIMEOUT (10)                                                              | `timeout`                               |
| all others, as GPU_IS_LOST (15) and RESET_REQUIRED (16)                   | `vanished`                              |

Units are NVML's (NVML API Reference Guide, Device Queries): energy in mJ since the driver was loaded, power in mW, clocks in
MHz, memory in bytes, temperatures in degrees Celsius.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from inferometer.telemetry.power.readings import FailureCode, MeterFailed

T = TypeVar("T")

NAME = "nvml"
CLOCK_SM, CLOCK_MEM = 1, 2
TEMPERATURE_GPU = 0
ECC_UNCORRECTED, ECC_VOLATILE = 1, 0
P_STATE_UNKNOWN = 32

_UNSUPPORTED = frozenset({3, 13, 21})
_CODES: dict[int, FailureCode] = {
    4: "permission", 9: "absent", 10: "timeout", 12: "absent", 18: "absent",
}  # fmt: skip
_REMEDIES: dict[FailureCode, str] = {
    "absent": "install or reload NVIDIA's driver (nvidia-smi must work)",
    "permission": "run as a user who may open /dev/nvidiactl, in a container with --gpus",
    "timeout": "the driver does not answer; see the system's log (dmesg)",
    "vanished": "the GPU is lost or has to be reset; see the system's log (dmesg)",
}


class Memory(Protocol):
    """Bytes."""

    used: int
    total: int


class Utilisation(Protocol):
    """Percent of the last sampling period in which a kernel ran, or memory was read or written."""

    gpu: int
    memory: int


class Nvml(Protocol):
    """The functions of the module `pynvml` that are used, under its names. A handle is NVML's, and opaque."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> None: ...  # noqa: D102 - NVML's documentation is its own
    def nvmlShutdown(self) -> None: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetCount(self) -> int: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetHandleByIndex(self, index: int) -> object: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetName(self, handle: object) -> str | bytes: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetTotalEnergyConsumption(self, handle: object) -> int: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetPowerUsage(self, handle: object) -> int: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetEnforcedPowerLimit(self, handle: object) -> int: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetMemoryInfo(self, handle: object) -> Memory: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetUtilizationRates(self, handle: object) -> Utilisation: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetClockInfo(self, handle: object, kind: int) -> int: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetTemperature(self, handle: object, sensor: int) -> int: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: object) -> int: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: object) -> int: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetTotalEccErrors(self, handle: object, kind: int, counter: int) -> int: ...  # noqa: D102 - see nvmlInit
    def nvmlDeviceGetPerformanceState(self, handle: object) -> int: ...  # noqa: D102 - see nvmlInit


def load() -> Nvml:
    """The module `pynvml` of nvidia-ml-py. Raises MeterFailed (`absent`)."""
    try:
        return cast("Nvml", importlib.import_module("pynvml"))
    except ImportError:
        words = "nvidia-ml-py is not installed: pip install 'inferometer[nvidia]'"
        raise MeterFailed(NAME, "absent", words) from None


def supported(library: Nvml, call: Callable[[], T]) -> T | None:
    """What a call returns; None where this GPU or driver has no such reading. Raises MeterFailed."""
    try:
        return call()
    except AttributeError:  # an older package lacks the function
        return None
    except library.NVMLError as failure:
        if _number(failure) in _UNSUPPORTED:
            return None
        raise failed(failure) from None


def failed(failure: Exception) -> MeterFailed:
    """NVML's error in our terms."""
    code = _CODES.get(_number(failure), "vanished")
    return MeterFailed(NAME, code, f"{failure}: {_REMEDIES[code]}")


def started(library: Nvml) -> list[object]:
    """Start NVML; the handles of all GPUs, which are numbered in the order of their PCI addresses. Raises MeterFailed."""
    try:
        library.nvmlInit()
    except library.NVMLError as failure:
        raise failed(failure) from None
    try:
        return [library.nvmlDeviceGetHandleByIndex(index) for index in range(library.nvmlDeviceGetCount())]
    except library.NVMLError as failure:
        stopped(library)
        raise failed(failure) from None


def stopped(library: Nvml) -> None:
    """Undo one start: the library counts them, and others of this process may have started it too. Never raises."""
    with contextlib.suppress(library.NVMLError):
        library.nvmlShutdown()


def _number(failure: Exception) -> int:
    return int(getattr(failure, "value", 999))
