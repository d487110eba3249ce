"""The state of NVIDIA GPUs, from NVML.

| bit of the clocks event reasons   | name              | holds the clocks down because                                  |
| --------------------------------- | ----------------- | -------------------------------------------------------------- |
| 0x4 SwPowerCap                    | `sw_power_cap`    | the power limit is reached                                     |
| 0x8 HwSlowdown                    | `hw_slowdown`     | the hardware slows down: heat, external brake, power           |
| 0x10 SyncBoost                    | `sync_boost`      | another GPU of its group is slower                             |
| 0x20 SwThermalSlowdown            | `sw_thermal`      | the chip or its memory is over its working temperature         |
| 0x40 HwThermalSlowdown            | `hw_thermal`      | the chip is too hot                                            |
| 0x80 HwPowerBrakeSlowdown         | `hw_power_brake`  | the system's power supply asks for it                          |
| 0x200 BoardLimit                  | `board_limit`     | the board's electrical limit is reached                        |
| 0x400 Reliability                 | `reliability`     | the voltage is limited for reliability                         |
| any other                         | `unknown_0x...`   | a driver newer than this table                                 |

Not throttling: 0x1 GpuIdle, 0x2 ApplicationsClocksSetting (clocks that somebody has set) and 0x100 DisplayClockSetting.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from inferometer.telemetry import nvml_library as nvml
from inferometer.telemetry.accelerator_readings import AcceleratorState
from inferometer.telemetry.nvml_library import Nvml, supported
from inferometer.telemetry.power.bounded_calls import TIMEOUT_S, BoundedCalls
from inferometer.telemetry.power.readings import MeterFailed

T = TypeVar("T")

_REASONS = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal",
    0x40: "hw_thermal",
    0x80: "hw_power_brake",
    0x200: "board_limit",
    0x400: "reliability",
}
REASONS = tuple(_REASONS.values())
_NO_THROTTLING = 0x1 | 0x2 | 0x100


class NvidiaAccelerators:
    """See Accelerators. `library`: None loads it. Raises MeterFailed if there is none, or no driver."""

    def __init__(self, library: Nvml | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._library = library or nvml.load()
        self._call = BoundedCalls(nvml.NAME, self._library, timeout_s)
        self._handles = self._call(lambda: nvml.started(self._library))
        self._open = True

    def read(self) -> tuple[AcceleratorState, ...]:
        """See Accelerators."""
        return self._call(lambda: tuple(self._state(*one) for one in enumerate(self._handles)))

    def close(self) -> None:
        """See Accelerators."""
        if self._open:
            self._open = False
            with contextlib.suppress(MeterFailed):
                self._call(lambda: nvml.stopped(self._library))

    def _state(self, number: int, handle: object) -> AcceleratorState:
        library = self._library
        memory = self._known(lambda: library.nvmlDeviceGetMemoryInfo(handle))
        busy = self._known(lambda: library.nvmlDeviceGetUtilizationRates(handle))
        limit_mw = self._known(lambda: library.nvmlDeviceGetEnforcedPowerLimit(handle))
        state = self._known(lambda: library.nvmlDeviceGetPerformanceState(handle))
        return AcceleratorState(
            str(number),
            "nvidia",
            name=_text(self._known(lambda: library.nvmlDeviceGetName(handle))),
            memory_used_bytes=None if memory is None else memory.used,
            memory_total_bytes=None if memory is None else memory.total,
            utilisation_percent=None if busy is None else float(busy.gpu),
            memory_utilisation_percent=None if busy is None else float(busy.memory),
            sm_mhz=_float(self._known(lambda: library.nvmlDeviceGetClockInfo(handle, nvml.CLOCK_SM))),
            memory_mhz=_float(self._known(lambda: library.nvmlDeviceGetClockInfo(handle, nvml.CLOCK_MEM))),
            temperature_c=_float(
                self._known(lambda: library.nvmlDeviceGetTemperature(handle, nvml.TEMPERATURE_GPU))
            ),
            power_limit_w=None if limit_mw is None else limit_mw / 1e3,
            throttle=self._throttle(handle),
            ecc_uncorrected=self._known(
                lambda: library.nvmlDeviceGetTotalEccErrors(handle, nvml.ECC_UNCORRECTED, nvml.ECC_VOLATILE)
            ),
            performance_state=None if state == nvml.P_STATE_UNKNOWN else state,
        )

    def _throttle(self, handle: object) -> tuple[str, ...] | None:
        library = self._library
        bits = self._known(lambda: library.nvmlDeviceGetCurrentClocksEventReasons(handle))
        if bits is None:  # drivers before 535 have it under its former name
            bits = self._known(lambda: library.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
        return None if bits is None else throttle_reasons(bits)

    def _known(self, call: Callable[[], T]) -> T | None:
        """What a call returns; None where it fails, for whatever reason: other readings of the GPU may still work."""
        try:
            return supported(self._library, call)
        except MeterFailed:
            return None


def throttle_reasons(bits: int) -> tuple[str, ...]:
    """The names of the reasons that hold the clocks down, by the table above."""
    each = [1 << place for place in range(bits.bit_length()) if bits >> place & 1]
    return tuple(_REASONS.get(bit, f"unknown_{bit:#x}") for bit in each if not bit & _NO_THROTTLING)


def _text(name: str | bytes | None) -> str | None:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
