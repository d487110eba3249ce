"""The state of AMD GPUs, from AMD SMI. Not tried on an AMD GPU.

| member of the violation status (MI300 and newer) | name             | holds the clocks down because                  |
| ------------------------------------------------ | ---------------- | ---------------------------------------------- |
| `active_ppt_pwr`                                 | `power_cap`      | the package's power limit is reached           |
| `active_prochot_thrm`                            | `prochot`        | the board signals that a processor is too hot  |
| `active_socket_thrm`                             | `socket_thermal` | the chip is over its working temperature       |
| `active_vr_thrm`                                 | `vr_thermal`     | the voltage regulators are too hot             |
| `active_hbm_thrm`                                | `memory_thermal` | the memory is too hot                          |
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from inferometer.telemetry import amdsmi_library as amdsmi
from inferometer.telemetry.accelerator_readings import AcceleratorState
from inferometer.telemetry.amdsmi_library import AmdSmi, Fields, quantity, supported
from inferometer.telemetry.power.bounded_calls import TIMEOUT_S, BoundedCalls
from inferometer.telemetry.power.readings import MeterFailed

T = TypeVar("T")

_REASONS = {
    "active_ppt_pwr": "power_cap",
    "active_prochot_thrm": "prochot",
    "active_socket_thrm": "socket_thermal",
    "active_vr_thrm": "vr_thermal",
    "active_hbm_thrm": "memory_thermal",
}
REASONS = tuple(_REASONS.values())


class AmdAccelerators:
    """See Accelerators. `library`: None loads it. Raises MeterFailed if there is none, or no driver."""

    def __init__(self, library: AmdSmi | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._library = library or amdsmi.load()
        self._call = BoundedCalls(amdsmi.NAME, self._library, timeout_s)
        self._handles = self._call(lambda: amdsmi.started(self._library))
        self._open = True

    def read(self) -> tuple[AcceleratorState, ...]:
        """See Accelerators."""
        return self._call(lambda: tuple(self._state(*one) for one in enumerate(self._handles)))

    def close(self) -> None:
        """See Accelerators."""
        if self._open:
            self._open = False
            with contextlib.suppress(MeterFailed):
                self._call(lambda: amdsmi.stopped(self._library))

    def _state(self, number: int, handle: object) -> AcceleratorState:
        library = self._library
        memory = library.AmdSmiMemoryType["VRAM"]
        sensor, now = library.AmdSmiTemperatureType["HOTSPOT"], library.AmdSmiTemperatureMetric["CURRENT"]
        about = self._known(lambda: library.amdsmi_get_gpu_asic_info(handle)) or {}
        busy = self._known(lambda: library.amdsmi_get_gpu_activity(handle))
        limit_uw = quantity(self._known(lambda: library.amdsmi_get_power_cap_info(handle)), "power_cap")
        errors = quantity(
            self._known(lambda: library.amdsmi_get_gpu_total_ecc_count(handle)), "uncorrectable_count"
        )
        temperature = self._known(lambda: library.amdsmi_get_temp_metric(handle, sensor, now))
        return AcceleratorState(
            str(number),
            "amd",
            name=str(about["market_name"]) if about.get("market_name") else None,
            memory_used_bytes=self._known(lambda: library.amdsmi_get_gpu_memory_usage(handle, memory)),
            memory_total_bytes=self._known(lambda: library.amdsmi_get_gpu_memory_total(handle, memory)),
            utilisation_percent=quantity(busy, "gfx_activity"),
            memory_utilisation_percent=quantity(busy, "umc_activity"),
            sm_mhz=self._clock(handle, "GFX"),
            memory_mhz=self._clock(handle, "MEM"),
            temperature_c=None if temperature is None else float(temperature),
            power_limit_w=None if limit_uw is None else limit_uw / 1e6,
            throttle=throttle_reasons(self._known(lambda: library.amdsmi_get_violation_status(handle))),
            ecc_uncorrected=None if errors is None else int(errors),
        )

    def _clock(self, handle: object, kind: str) -> float | None:
        chosen = self._library.AmdSmiClkType[kind]
        found = self._known(lambda: self._library.amdsmi_get_clock_info(handle, chosen))
        return quantity(found, "clk", "cur_clk")

    def _known(self, call: Callable[[], T]) -> T | None:
        """What a call returns; None where it fails, for whatever reason: other readings of the GPU may still work."""
        try:
            return supported(self._library, call)
        except MeterFailed:
            return None


def throttle_reasons(status: Fields | None) -> tuple[str, ...] | None:
    """The names of the reasons that hold the clocks down, by the table above; None where the GPU does not say."""
    known = {name: status[name] for name in _REASONS if isinstance(status.get(name), bool)} if status else {}
    return tuple(_REASONS[name] for name, holds in known.items() if holds) if known else None
