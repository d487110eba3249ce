"""The machine that this process runs on, by its operating system."""

from __future__ import annotations

import platform

from inferometer.telemetry.linux import Linux
from inferometer.telemetry.machine_readings import (
    ClockState,
    Limits,
    Machine,
    MemoryPressure,
    Processor,
    Swap,
    Thermal,
)
from inferometer.telemetry.macos import MacOS


class Unknown:
    """See Machine. A system for which no reading is implemented: everything is unknown."""

    def memory_pressure(self) -> MemoryPressure:
        """See Machine."""
        return MemoryPressure()

    def swap(self) -> Swap:
        """See Machine."""
        return Swap()

    def thermal(self) -> Thermal:
        """See Machine."""
        return Thermal()

    def processor(self) -> Processor:
        """See Machine."""
        return Processor()

    def clock(self) -> ClockState:
        """See Machine."""
        return ClockState()

    def ports(self) -> int | None:
        """See Machine."""
        return None

    def chip(self) -> str | None:
        """See Machine."""
        return None

    def os_version(self) -> str | None:
        """See Machine."""
        return platform.platform(terse=True) or None


def this_machine(system: str | None = None) -> Machine:
    """The readings of this machine. `system`: as platform.system() names it; None: this one."""
    match system or platform.system():
        case "Linux":
            return Linux()
        case "Darwin":
            return MacOS()
    return Unknown()


def limits(machine: Machine) -> Limits:
    """The limits on sockets of this process."""
    try:
        import resource
    except ImportError:  # not on Windows
        return Limits(ports=machine.ports())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    return Limits(None if soft == unlimited else soft, None if hard == unlimited else hard, machine.ports())
