"""NVIDIA GPUs by NVML: the energy counter where there is one (Volta and newer), and the power now.

GPUs from Ampere on, except GA100, average the power over 1 s (nvmlDeviceGetPowerUsage). Both figures are of the whole board
with its memory, whatever part of it an engine uses; a MIG instance has none of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from inferometer.telemetry import nvml_library
from inferometer.telemetry.nvml_library import NAME, Nvml, supported
from inferometer.telemetry.power.bounded_calls import TIMEOUT_S, BoundedCalls
from inferometer.telemetry.power.devices import selected
from inferometer.telemetry.power.readings import MeterFailed, PowerReading, checked_joules, checked_watts


class NvmlMeter:
    """See Meter. `devices`: the numbers of the GPUs to read; None: all. `library`: None loads it. Raises MeterFailed."""

    name = NAME

    def __init__(
        self, devices: Sequence[int] | None = None, library: Nvml | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        self._library = library or nvml_library.load()
        self._call = BoundedCalls(NAME, self._library, timeout_s)
        handles = self._call(lambda: nvml_library.started(self._library))
        self._open = True
        try:
            self._handles = selected(NAME, handles, devices)
        except MeterFailed:
            self.close()
            raise

    def read(self) -> tuple[PowerReading, ...]:
        """See Meter."""
        return self._call(lambda: tuple(self._reading(*one) for one in self._handles.items()))

    def close(self) -> None:
        """See Meter."""
        if self._open:
            self._open = False
            with contextlib.suppress(MeterFailed):
                self._call(lambda: nvml_library.stopped(self._library))

    def _reading(self, number: int, handle: object) -> PowerReading:
        library = self._library
        energy = supported(library, lambda: library.nvmlDeviceGetTotalEnergyConsumption(handle))
        power = supported(library, lambda: library.nvmlDeviceGetPowerUsage(handle))
        if energy is None and power is None:
            raise MeterFailed(NAME, "absent", f"GPU {number} measures neither energy nor power")
        return PowerReading(
            NAME,
            "accelerator",
            str(number),
            watts=None if power is None else checked_watts(NAME, power / 1e3),
            joules=None if energy is None else checked_joules(NAME, energy / 1e3),
            method="power" if energy is None else "counter",
        )
