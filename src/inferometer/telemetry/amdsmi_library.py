"""AMD's system management interface as its Python package calls it: the functions that are used, and what its errors mean.

| AMD SMI's status                                                        | here                        |
| ----------------------------------------------------------------------- | --------------------------- |
| NOT_SUPPORTED (2), NOT_YET_IMPLEMENTED (3), NO_DATA (40)                | this one reading is unknown |
| NO_PERM (10)                                                            | `permission`                |
| INIT_ERROR (18), NOT_INIT (32), DRIVER_NOT_LOADED (34)                  | `absent`                    |
| TIMEOUT (8)                                                             | `timeout`                   |
| all others                                                              | `vanished`                  |

Not tried on an AMD GPU: written from the package's documentation and source (ROCm 6 and 7). The package has to be of the same
version as the driver's library, and so comes with ROCm: pip install /opt/rocm/share/amd_smi.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar, cast

from inferometer.telemetry.power.readings import FailureCode, MeterFailed

T = TypeVar("T")

NAME = "amdsmi"
Fields = Mapping[str, object]
"""What the package returns for a reading of several numbers. `N/A` stands for one that the GPU does not have."""

_UNSUPPORTED = frozenset({2, 3, 40})
_CODES: dict[int, FailureCode] = {
    8: "timeout", 10: "permission", 18: "absent", 32: "absent", 34: "absent",
}  # fmt: skip
_REMEDIES: dict[FailureCode, str] = {
    "absent": "load the amdgpu driver (amd-smi list must work)",
    "permission": "add the user to the groups render and video",
    "timeout": "the driver does not answer; see the system's log (dmesg)",
    "vanished": "the GPU may be lost; see the system's log (dmesg)",
}


class Choices(Protocol):
    """An enumeration of the package, read by name."""

    def __getitem__(self, name: str) -> object:
        """The member of this name."""
        ...


class AmdSmi(Protocol):
    """The functions of the package `amdsmi` that are used, under its names. A handle is the package's, and opaque."""

    AmdSmiException: type[Exception]
    AmdSmiMemoryType: Choices
    AmdSmiClkType: Choices
    AmdSmiTemperatureType: Choices
    AmdSmiTemperatureMetric: Choices

    def amdsmi_init(self) -> None:
        """Start; GPUs only."""
        ...

    def amdsmi_shut_down(self) -> None:
        """Stop."""
        ...

    def amdsmi_get_processor_handles(self) -> list[object]:
        """All GPUs."""
        ...

    def amdsmi_get_energy_count(self, handle: object) -> Fields:
        """`energy_accumulator` (before ROCm 6.2 `power`) in units of `counter_resolution` microjoules."""
        ...

    def amdsmi_get_power_info(self, handle: object) -> Fields:
        """`current_socket_power` (MI300 and newer) and `average_socket_power` in watts."""
        ...

    def amdsmi_get_power_cap_info(self, handle: object) -> Fields:
        """`power_cap` in microwatts."""
        ...

    def amdsmi_get_gpu_asic_info(self, handle: object) -> Fields:
        """`market_name`, among others."""
        ...

    def amdsmi_get_gpu_memory_total(self, handle: object, kind: object) -> int:
        """Bytes."""
        ...

    def amdsmi_get_gpu_memory_usage(self, handle: object, kind: object) -> int:
        """Bytes."""
        ...

    def amdsmi_get_gpu_activity(self, handle: object) -> Fields:
        """`gfx_activity`, `umc_activity` (memory controller) in percent."""
        ...

    def amdsmi_get_clock_info(self, handle: object, kind: object) -> Fields:
        """`clk` (before ROCm 6.1 `cur_clk`) in MHz."""
        ...

    def amdsmi_get_temp_metric(self, handle: object, sensor: object, metric: object) -> int:
        """Degrees Celsius."""
        ...

    def amdsmi_get_gpu_total_ecc_count(self, handle: object) -> Fields:
        """`uncorrectable_count` since the driver was loaded."""
        ...

    def amdsmi_get_violation_status(self, handle: object) -> Fields:
        """`active_...`: whether a limit slows the GPU down now (MI300 and newer)."""
        ...


def load() -> AmdSmi:
    """The package `amdsmi`. Raises MeterFailed (`absent`)."""
    try:
        return cast("AmdSmi", importlib.import_module("amdsmi"))
    except (ImportError, OSError, KeyError) as cause:  # it loads the driver's library when it is imported
        words = f"AMD SMI cannot be loaded ({cause}): install ROCm's own, pip install /opt/rocm/share/amd_smi"
        raise MeterFailed(NAME, "absent", words) from None


def supported(library: AmdSmi, call: Callable[[], T]) -> T | None:
    """What a call returns; None where this GPU or driver has no such reading. Raises MeterFailed."""
    try:
        return call()
    except AttributeError:  # an older package lacks the function
        return None
    except library.AmdSmiException as failure:
        if _number(failure) in _UNSUPPORTED:
            return None
        raise failed(failure) from None


def failed(failure: Exception) -> MeterFailed:
    """The package's error in our terms."""
    code = _CODES.get(_number(failure), "vanished")
    return MeterFailed(NAME, code, f"{' '.join(str(failure).split())}: {_REMEDIES[code]}")


def started(library: AmdSmi) -> list[object]:
    """Start the library; the handles of all GPUs. Raises MeterFailed."""
    try:
        library.amdsmi_init()
    except library.AmdSmiException as failure:
        raise failed(failure) from None
    try:
        return library.amdsmi_get_processor_handles()
    except library.AmdSmiException as failure:
        stopped(library)
        raise failed(failure) from None


def stopped(library: AmdSmi) -> None:
    """Undo one start: the library counts them, and others of this process may have started it too. Never raises."""
    with contextlib.suppress(library.AmdSmiException):
        library.amdsmi_shut_down()


def quantity(fields: Fields | None, *names: str) -> float | None:
    """The first of these members that is a number; None: the GPU has none of them."""
    for name in names:
        value = (fields or {}).get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
    return None


def _number(failure: Exception) -> int:
    return abs(int(getattr(failure, "err_code", 0) or 0))
