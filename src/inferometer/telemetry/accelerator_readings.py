"""The state of a machine's accelerators at one moment: what they hold, how fast they run, and what slows them down.

None is unknown: the accelerator or its driver has no such reading, or does not answer. No serial number and no address of a
device is read: a record is shared, and the name of a model is enough to repeat a measurement.
"""

from __future__ import annotations

from typing import Literal, Protocol

from inferometer.telemetry.machine_readings import Reading

Vendor = Literal["nvidia", "amd"]


class AcceleratorState(Reading, frozen=True):
    """One accelerator. `device`: its number, as in PowerReading.device of the vendor's meter.

    | member                       | unit and meaning                                                              |
    | ---------------------------- | ----------------------------------------------------------------------------- |
    | `memory_used_bytes`, `memory_total_bytes` | of its own memory, by all processes                              |
    | `utilisation_percent`        | share of the driver's last period (up to 1 s) in which some kernel ran        |
    | `memory_utilisation_percent` | share of that period in which its memory was read or written                  |
    | `sm_mhz`, `memory_mhz`       | clocks now                                                                    |
    | `temperature_c`              | of the chip; AMD: its hottest spot                                            |
    | `power_limit_w`              | the limit in force                                                            |
    | `throttle`                   | reasons that hold its clocks down now, by name; empty: none                   |
    | `ecc_uncorrected`            | memory errors not corrected since the driver was loaded                       |
    | `performance_state`          | NVIDIA's P-state: 0 is the fastest                                            |
    """

    device: str
    vendor: Vendor
    name: str | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    utilisation_percent: float | None = None
    memory_utilisation_percent: float | None = None
    sm_mhz: float | None = None
    memory_mhz: float | None = None
    temperature_c: float | None = None
    power_limit_w: float | None = None
    throttle: tuple[str, ...] | None = None
    ecc_uncorrected: int | None = None
    performance_state: int | None = None


class Accelerators(Protocol):
    """The accelerators of this machine. Each method returns within a limit of time."""

    def read(self) -> tuple[AcceleratorState, ...]:
        """All of them now, in the order of their numbers; empty: there are none. One that is lost has a state of which nothing
        is known. Raises MeterFailed where none can be read, such as `timeout` for a library that hangs."""
        ...

    def close(self) -> None:
        """Release what is held; more than once does no harm. Never raises."""
        ...
