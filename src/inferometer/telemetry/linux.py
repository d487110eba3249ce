"""Readings of a Linux machine, from /proc and /sys.

| reading                | source                                                                                   |
| ---------------------- | ---------------------------------------------------------------------------------------- |
| memory pressure        | /proc/pressure/memory, avg10 (Documentation/accounting/psi.rst)                           |
| swap                   | SwapTotal less SwapFree of /proc/meminfo; pswpout of /proc/vmstat                         |
| thermal level          | each zone of /sys/class/thermal against its own trip points                               |
| thermal speed limit    | scaling_max_freq / cpuinfo_max_freq: thermal cooling lowers the first (cpufreq cooling)    |
| throttle count         | thermal_throttle/{core,package}_throttle_count (x86)                                      |
| governor, frequency    | cpufreq/scaling_governor, scaling_cur_freq; without cpufreq "cpu MHz" of /proc/cpuinfo      |
| clock                  | adjtimex(2) without a change, which needs no privilege                                    |

An administrator can lower scaling_max_freq too: either way a processor is slower than it could be, which is what the reading
says. In a container all files are the host's, and some are hidden.
"""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

from inferometer.telemetry.clock_state import kernel_clock
from inferometer.telemetry.machine_readings import (
    ClockState,
    MemoryPressure,
    Processor,
    Swap,
    Thermal,
    ThermalLevel,
    pressure_level,
)

ROOT = Path("/")

_TRIPS: tuple[tuple[str, ThermalLevel], ...] = (
    ("critical", "critical"),
    ("hot", "serious"),
    ("passive", "fair"),
)
"""Kinds of trip points, the worst first. At `passive` the kernel begins to slow processors down, at `hot` it warns, at
`critical` it shuts down (Documentation/driver-api/thermal/sysfs-api.rst). `active` starts a fan, which costs no speed."""
_WORST = [level for _, level in _TRIPS]
NOMINAL: ThermalLevel = "nominal"


class Linux:
    """See Machine. `root`: the folder that holds `proc` and `sys`."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def memory_pressure(self) -> MemoryPressure:
        """See Machine."""
        some, full = pressure(self._text("proc/pressure/memory"))
        return MemoryPressure(pressure_level(some, full), some, full)

    def swap(self) -> Swap:
        """See Machine."""
        return Swap(
            swap_used(self._text("proc/meminfo")),
            counter(self._text("proc/vmstat"), "pswpout"),
            os.sysconf("SC_PAGE_SIZE"),
        )

    def thermal(self) -> Thermal:
        """See Machine."""
        zones = [self._zone(zone) for zone in self._list("sys/class/thermal", "thermal_zone*")]
        levels = [level for level in zones if level is not None]
        throttled = self._throttled()
        return Thermal(
            level=worst(levels),
            speed_limit_percent=self._speed_limit(),
            throttled_count=max(throttled.values(), default=None),
            throttled_by_cpu=throttled,
        )

    def processor(self) -> Processor:
        """See Machine."""
        cpus = self._list("sys/devices/system/cpu", "cpu[0-9]*")
        governors = {text for cpu in cpus if (text := _read(cpu / "cpufreq/scaling_governor"))}
        now = _present(_number(cpu / "cpufreq/scaling_cur_freq") for cpu in cpus)
        highest = _present(_number(cpu / "cpufreq/cpuinfo_max_freq") for cpu in cpus)
        mhz = [khz / 1000 for khz in now] or frequencies(self._text("proc/cpuinfo"))
        return Processor(
            governors=tuple(sorted(governors)) or None,
            mhz_low=min(mhz, default=None),
            mhz_high=max(mhz, default=None),
            mhz_max=max(highest) / 1000 if highest else None,
        )

    def clock(self) -> ClockState:
        """See Machine. It is the running kernel's, whatever `root` is."""
        kernel = kernel_clock()
        return ClockState(kernel.synchronised, kernel.max_error_ms)

    def ports(self) -> int | None:
        """See Machine."""
        return port_count(self._text("proc/sys/net/ipv4/ip_local_port_range"))

    def chip(self) -> str | None:
        """See Machine."""
        return model_name(self._text("proc/cpuinfo"))

    def os_version(self) -> str | None:
        """See Machine."""
        return pretty_name(self._text("etc/os-release")) or f"Linux {platform.release()}"

    def _zone(self, folder: Path) -> ThermalLevel | None:
        """Of one thermal zone, in thousandths of a degree; None without a temperature or a trip point that counts."""
        now = _number(folder / "temp")
        trips: dict[str, float] = {}
        for path in folder.glob("trip_point_*_type"):
            kind = _read(path)
            limit = _number(path.with_name(path.name.replace("_type", "_temp")))
            if kind and limit is not None and limit > 0:  # 0 and less: a trip point that is switched off
                trips[kind] = min(limit, trips.get(kind, limit))
        return None if now is None else thermal_level(now, trips)

    def _speed_limit(self) -> float | None:
        limits = []
        for cpu in self._list("sys/devices/system/cpu", "cpu[0-9]*"):
            allowed = _number(cpu / "cpufreq/scaling_max_freq")
            highest = _number(cpu / "cpufreq/cpuinfo_max_freq")
            if allowed is not None and highest:
                limits.append(min(100.0, 100 * allowed / highest))
        return min(limits, default=None)

    def _throttled(self) -> dict[str, int]:
        """Each processor's count: those of a package all count the package's events."""
        counts = {}
        for cpu in self._list("sys/devices/system/cpu", "cpu[0-9]*"):
            parts = (_number(cpu / f"thermal_throttle/{part}_throttle_count") for part in ("core", "package"))
            if present := _present(parts):
                counts[cpu.name.removeprefix("cpu")] = int(sum(present))
        return counts

    def _text(self, path: str) -> str:
        return _read(self._root / path) or ""

    def _list(self, folder: str, pattern: str) -> list[Path]:
        try:
            return sorted((self._root / folder).glob(pattern))
        except OSError:
            return []


def pressure(text: str) -> tuple[float | None, float | None]:
    """`some` and `full` avg10 of a pressure file, in percent."""
    found = dict(re.findall(r"^(some|full) avg10=(\d+(?:\.\d+)?)", text, re.MULTILINE))
    some, full = (float(found[kind]) if kind in found else None for kind in ("some", "full"))
    return some, full


def swap_used(meminfo: str) -> int | None:
    """Bytes of swap in use, from /proc/meminfo; None of figures that contradict each other, as some containers show."""
    sizes = dict(re.findall(r"^(SwapTotal|SwapFree):\s+(\d+) kB", meminfo, re.MULTILINE))
    used = int(sizes["SwapTotal"]) - int(sizes["SwapFree"]) if len(sizes) == 2 else -1
    return used * 1024 if used >= 0 else None


def counter(vmstat: str, name: str) -> int | None:
    """A counter of /proc/vmstat."""
    found = re.search(rf"^{name} (\d+)$", vmstat, re.MULTILINE)
    return int(found[1]) if found else None


def thermal_level(now: float, trips: dict[str, float]) -> ThermalLevel | None:
    """The level of a zone at the temperature `now` with trip points by kind; None if no kind of them counts."""
    counting = [(level, trips[kind]) for kind, level in _TRIPS if kind in trips]
    if not counting:
        return None
    return next((level for level, limit in counting if now >= limit), NOMINAL)


def worst(levels: Iterable[ThermalLevel]) -> ThermalLevel | None:
    """The worst of the levels; None of none."""
    present = set(levels)
    return next((level for level in (*_WORST, NOMINAL) if level in present), None)


def frequencies(cpuinfo: str) -> list[float]:
    """MHz of each processor, from /proc/cpuinfo; empty where it does not say (ARM)."""
    return [float(mhz) for mhz in re.findall(r"^cpu MHz\s*:\s*(\d+(?:\.\d+)?)", cpuinfo, re.MULTILINE)]


def model_name(cpuinfo: str) -> str | None:
    """The processor's name, from /proc/cpuinfo."""
    found = re.search(r"^(?:model name|Model)\s*:\s*(.+?)\s*$", cpuinfo, re.MULTILINE)
    return found[1] if found else None


def port_count(text: str) -> int | None:
    """From ip_local_port_range: the first and the last port, both included; None of a range that is none."""
    ends = text.split()
    if len(ends) != 2 or not all(map(str.isdecimal, ends)):
        return None
    first, last = map(int, ends)
    return last - first + 1 if first <= last < 1 << 16 else None


def pretty_name(os_release: str) -> str | None:
    """PRETTY_NAME of os-release(5)."""
    found = re.search(r'^PRETTY_NAME="?([^"\n]+)"?$', os_release, re.MULTILINE)
    return found[1] if found else None


def footprint(smaps_rollup: str) -> int | None:
    """Bytes of memory that belong to a process: its PSS, in which a page shared by n processes counts 1/n, and its share of
    swap (proc_pid_smaps(5))."""
    sizes = dict(re.findall(r"^(Pss|SwapPss):\s+(\d+) kB", smaps_rollup, re.MULTILINE))
    return (int(sizes["Pss"]) + int(sizes.get("SwapPss", 0))) * 1024 if "Pss" in sizes else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip() or None
    except OSError:
        return None


def _number(path: Path) -> float | None:
    text = _read(path)
    try:
        number = None if text is None else float(text)
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
