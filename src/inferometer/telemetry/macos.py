"""Readings of a macOS machine, from its commands. Written from their documented output and not yet tried on a Mac.

| reading             | command                                                                                      |
| ------------------- | -------------------------------------------------------------------------------------------- |
| memory pressure     | sysctl -n kern.memorystatus_vm_pressure_level: 1, 2, 4 (DISPATCH_MEMORYPRESSURE_*)             |
| swap                | sysctl -n vm.swapusage; Swapouts of vm_stat                                                   |
| thermal level       | notifyutil -g com.apple.system.thermalpressurelevel (OSThermalNotification.h), no privilege    |
| thermal speed limit | CPU_Speed_Limit of pmset -g therm; a Mac that never recorded one prints none                   |
| ports               | sysctl -n net.inet.ip.portrange.first, .last                                                  |
| chip, version       | sysctl -n machdep.cpu.brand_string; sw_vers -productVersion                                   |

macOS has no governor, shows no frequency without privileges, and its clock daemon does not tell adjtime's interface whether
the clock is synchronised: these are None.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

from inferometer.telemetry.machine_readings import (
    ClockState,
    MemoryPressure,
    PressureLevel,
    Processor,
    Swap,
    Thermal,
    ThermalLevel,
)

TIMEOUT_S = 5.0
"""For a command that answers in milliseconds."""

Ask = Callable[[tuple[str, ...]], str]
"""A command to what it prints; empty if it cannot be run or fails."""

PRESSURE: dict[str, PressureLevel] = {"1": "normal", "2": "warning", "4": "critical"}
THERMAL: dict[str, ThermalLevel] = {
    "0": "nominal", "1": "fair", "2": "serious", "3": "critical", "4": "critical",
}  # fmt: skip
"""kOSThermalPressureLevel: nominal, moderate, heavy, trapping, sleeping."""
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def printed(command: tuple[str, ...]) -> str:
    """What a command prints; empty if it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)  # noqa: S603 - commands of this file
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


class MacOS:
    """See Machine. `ask` runs a command."""

    def __init__(self, ask: Ask = printed) -> None:
        self._ask = ask

    def memory_pressure(self) -> MemoryPressure:
        """See Machine."""
        return MemoryPressure(PRESSURE.get(self._sysctl("kern.memorystatus_vm_pressure_level")))

    def swap(self) -> Swap:
        """See Machine."""
        pages, page_bytes = swapouts(self._ask(("vm_stat",)))
        return Swap(swap_used(self._sysctl("vm.swapusage")), pages, page_bytes)

    def thermal(self) -> Thermal:
        """See Machine."""
        level = thermal_level(self._ask(("notifyutil", "-g", "com.apple.system.thermalpressurelevel")))
        return Thermal(level, speed_limit(self._ask(("pmset", "-g", "therm"))), None)

    def processor(self) -> Processor:
        """See Machine."""
        return Processor()

    def clock(self) -> ClockState:
        """See Machine."""
        return ClockState()

    def ports(self) -> int | None:
        """See Machine."""
        first, last = (self._sysctl(f"net.inet.ip.portrange.{end}") for end in ("first", "last"))
        return int(last) - int(first) + 1 if first.isdecimal() and last.isdecimal() else None

    def chip(self) -> str | None:
        """See Machine."""
        return self._sysctl("machdep.cpu.brand_string") or None

    def os_version(self) -> str | None:
        """See Machine."""
        version = self._ask(("sw_vers", "-productVersion")).strip()
        return f"macOS {version}" if version else None

    def _sysctl(self, name: str) -> str:
        return self._ask(("sysctl", "-n", name)).strip()


def swap_used(text: str) -> int | None:
    """Bytes in use, from vm.swapusage."""
    found = re.search(r"used = (\d+(?:\.\d+)?)([KMGT])", text)
    return round(float(found[1]) * _UNITS[found[2]]) if found else None


def swapouts(text: str) -> tuple[int | None, int | None]:
    """Pages swapped out since the machine started, and the bytes of a page, from vm_stat."""
    pages = re.search(r"^Swapouts:\s+(\d+)\.", text, re.MULTILINE)
    size = re.search(r"page size of (\d+) bytes", text)
    return int(pages[1]) if pages else None, int(size[1]) if size else None


def thermal_level(text: str) -> ThermalLevel | None:
    """From notifyutil, which prints the notification's name and its state."""
    found = re.search(r"thermalpressurelevel (\d+)\s*$", text, re.MULTILINE)
    return THERMAL.get(found[1]) if found else None


def speed_limit(text: str) -> float | None:
    """CPU_Speed_Limit in percent, from pmset -g therm."""
    found = re.search(r"CPU_Speed_Limit\s*=\s*(\d+)", text)
    return float(found[1]) if found else None
