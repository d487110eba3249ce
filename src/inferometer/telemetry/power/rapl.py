"""Processor packages and memory by RAPL, as the kernel's powercap class shows it (Documentation/power/powercap/powercap.rst).

| zone, by its `name`      | scope     | device                  |
| ------------------------ | --------- | ----------------------- |
| `package-N`, `package-N-die-M` | `package` | the name          |
| `dram`, in a package     | `memory`  | the package's name      |
| `core`, `uncore`, in a package | `other` | package and own name, as `package-0/core` |
| `psys`                   | `machine` | `psys`                  |

A zone's `energy_uj` counts microjoules up to `max_energy_range_uj`, and then from 0 again: on a package at 300 W after some
15 minutes. `intel-rapl-mmio` shows the same packages once more and is not read. The driver's name is intel-rapl on AMD too.
psys is what the board's firmware connects to it, on many laptops without the display.

Since Linux 5.10 only root may read the counters (CVE-2020-8694), until somebody allows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from inferometer.telemetry.power.readings import MeterFailed, PowerReading, Scope, checked_joules

NAME = "rapl"
ROOT = Path("/sys/class/powercap")
REMEDY = (
    "only root may read the counters: sudo chmod a+r"
    " /sys/class/powercap/intel-rapl:*/energy_uj /sys/class/powercap/intel-rapl:*/max_energy_range_uj"
)

_ZONE = re.compile(r"intel-rapl:(\d+)(:\d+)?")
_DIGITS = re.compile(r"[0-9]{1,20}")
"""The kernel's counters have 64 bits."""


class _Zone:
    """One zone: what it covers, and the files of its counter."""

    def __init__(self, folder: Path, scope: Scope, device: str, wraps_at: float | None) -> None:
        self.counter = folder / "energy_uj"
        self.scope, self.device, self.wraps_at = scope, device, wraps_at


def zones(root: Path = ROOT) -> list[Path]:
    """The folders of all zones, packages before their parts."""
    try:
        return sorted(path for path in root.iterdir() if _ZONE.fullmatch(path.name))
    except OSError:
        return []


class RaplMeter:
    """See Meter. `root`: the folder of the powercap class; `read`: the text of a file, or OSError. Raises MeterFailed."""

    name = NAME

    def __init__(self, root: Path = ROOT, read: Callable[[Path], str] = Path.read_text) -> None:
        self._read = read
        folders = zones(root)
        if not folders:
            words = (
                f"there is no zone in {root}: no RAPL (a virtual machine, ARM), or modprobe intel_rapl_msr"
            )
            raise MeterFailed(NAME, "absent", words)
        names = {folder.name: self._text(folder / "name") for folder in folders}
        self._zones = [self._zone(folder, names) for folder in folders]

    def read(self) -> tuple[PowerReading, ...]:
        """See Meter."""
        return tuple(self._reading(zone) for zone in self._zones)

    def close(self) -> None:
        """See Meter."""

    def _zone(self, folder: Path, names: dict[str, str]) -> _Zone:
        name = names[folder.name]
        package = names.get(folder.name.rpartition(":")[0])  # of a package zone itself: none
        scope: Scope = "other"
        device = name if package is None else f"{package}/{name}"
        if package is None:
            scope = "machine" if name == "psys" else "package" if name.startswith("package") else "other"
        elif name == "dram":
            scope, device = "memory", package
        return _Zone(folder, scope, device, self._range(folder / "max_energy_range_uj"))

    def _reading(self, zone: _Zone) -> PowerReading:
        text = self._text(zone.counter)
        if not _DIGITS.fullmatch(text):
            raise MeterFailed(NAME, "malformed", f"{zone.counter} is not a whole number: {text[:40]!r}")
        joules = checked_joules(NAME, int(text) / 1e6)
        return PowerReading(
            NAME, zone.scope, zone.device, joules=joules, method="counter", wraps_at=zone.wraps_at
        )

    def _range(self, path: Path) -> float | None:
        """Joules; None if it may not be read: then a wrap is taken for a counter that went backwards."""
        try:
            text = self._read(path).strip()
        except (OSError, ValueError):
            return None
        return int(text) / 1e6 if _DIGITS.fullmatch(text) and int(text) else None

    def _text(self, path: Path) -> str:
        try:
            return self._read(path).strip()
        except PermissionError:
            raise MeterFailed(NAME, "permission", REMEDY) from None
        except OSError as cause:
            raise MeterFailed(NAME, "vanished", f"{path} cannot be read: {cause.strerror}") from None
        except ValueError:
            raise MeterFailed(NAME, "malformed", f"{path} is not text") from None
