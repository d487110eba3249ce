"""AMD GPUs by AMD SMI: the energy accumulator and the socket's power. Not tried on an AMD GPU.

Some GPUs show an accumulator that never moves (MI100): the arithmetic reports it as stuck and takes the power instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from inferometer.telemetry import amdsmi_library
from inferometer.telemetry.amdsmi_library import NAME, AmdSmi, quantity, supported
from inferometer.telemetry.power.bounded_calls import TIMEOUT_S, BoundedCalls
from inferometer.telemetry.power.devices import selected
from inferometer.telemetry.power.readings import MeterFailed, PowerReading, checked_joules, checked_watts


class AmdSmiMeter:
    """See Meter. `devices`: the numbers of the GPUs to read; None: all. `library`: None loads it. Raises MeterFailed."""

    name = NAME

    def __init__(
        self,
        devices: Sequence[int] | None = None,
        library: AmdSmi | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._library = library or amdsmi_library.load()
        self._call = BoundedCalls(NAME, self._library, timeout_s)
        handles = self._call(lambda: amdsmi_library.started(self._library))
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
                self._call(lambda: amdsmi_library.stopped(self._library))

    def _reading(self, number: int, handle: object) -> PowerReading:
        library = self._library
        energy = supported(library, lambda: library.amdsmi_get_energy_count(handle))
        units, unit_uj = (
            quantity(energy, "energy_accumulator", "power"),
            quantity(energy, "counter_resolution"),
        )
        joules = None if units is None or not unit_uj else units * unit_uj / 1e6
        power = supported(library, lambda: library.amdsmi_get_power_info(handle))
        watts = quantity(power, "current_socket_power", "average_socket_power")
        if joules is None and watts is None:
            raise MeterFailed(NAME, "absent", f"GPU {number} measures neither energy nor power")
        return PowerReading(
            NAME,
            "accelerator",
            str(number),
            watts=None if watts is None else checked_watts(NAME, watts),
            joules=None if joules is None else checked_joules(NAME, joules),
            method="power" if joules is None else "counter",
        )
