"""This machine, read at one instant, as text under common terms.

| reading                      | source on Linux                        | on macOS                                          |
| ---------------------------- | -------------------------------------- | ------------------------------------------------- |
| processor time, by mode      | /proc/stat (psutil)                    | host_cpu_load_info (psutil)                       |
| time lost to waiting         | /proc/pressure/{cpu,memory,io}, total  | none                                              |
| memory, swap                 | /proc/meminfo, /proc/vmstat            | vm_statistics64 (psutil), vm.swapusage            |
| heat, speed limit, throttles | telemetry/linux.py                     | telemetry/macos.py                                |
| network                      | /proc/net/dev (psutil)                 | the routing socket (psutil)                       |
| memory of processes          | smaps_rollup (PSS), every PSS_EVERY-th | ri_phys_footprint                                 |
| accelerators, power          | accelerators.py, power/                | power/                                            |

PSS makes the kernel walk a process's page tables, which for an engine of many gigabytes takes long and holds its memory map
meanwhile: so it is read seldom, and resident memory always.

A reading that fails is left out, and so is null in the record: nothing here raises but what a programming error would.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from inferometer.telemetry.host import usable_cores
from inferometer.telemetry.linux import ROOT
from inferometer.telemetry.machine_readings import Machine
from inferometer.telemetry.machines.exposition_text import Text
from inferometer.telemetry.processes import physical_footprint

PSS_EVERY = 10
FAMILY_EVERY = 5
"""Readings from one look for children of processes to the next: it reads the whole table of processes."""
MODES = ("user", "nice", "system", "irq", "softirq", "steal", "iowait", "idle")
LEVELS = {"nominal": 0, "fair": 1, "serious": 2, "critical": 3}
STALLS = ("cpu", "memory", "io")

Part = Callable[[Text], None]
"""Adds its readings to a text, and may raise only what it documents."""


class LocalMachine:
    """This machine, read over and over.

    Args:
        machine: the readings of the operating system.
        roles: by the role of some processes (`client`, `engine`) the first process of each; their children count too.
        parts: further readings, such as meters of power.
        root: the folder that holds `proc`.
    """

    def __init__(
        self,
        machine: Machine,
        roles: Mapping[str, Sequence[int]],
        parts: Sequence[Part] = (),
        root: Path = ROOT,
    ) -> None:
        self._machine, self._roles, self._parts, self._root = machine, roles, parts, root
        self._families: dict[str, list[psutil.Process]] = {}
        self._spent: dict[str, RoleTime] = {}
        self._number = 0

    def text(self) -> str:
        """All readings now."""
        found = Text()
        own: tuple[Part, ...] = (
            *(self._cpu, self._stalls, self._memory),
            *(self._heat, self._network, self._processes),
        )
        for part in own:
            with contextlib.suppress(OSError, psutil.Error, NotImplementedError):
                part(found)
        for part in self._parts:
            part(found)
        self._number += 1
        return str(found)

    def _cpu(self, found: Text) -> None:
        times = psutil.cpu_times()
        for mode in MODES:
            found.add("cpu_seconds", getattr(times, mode, None), {"mode": mode})
        found.add("cores", psutil.cpu_count() or usable_cores())
        now = self._machine.processor()
        for which, mhz in (("lowest", now.mhz_low), ("highest", now.mhz_high)):
            found.add("cpu_hertz", None if mhz is None else mhz * 1e6, {"which": which})
        for governor in now.governors or ():
            found.add("governor", 1, {"governor": governor})

    def _stalls(self, found: Text) -> None:
        for resource in STALLS:
            try:
                text = (self._root / "proc/pressure" / resource).read_text()
            except OSError:
                continue  # the kernel was built without it, or this resource is not there
            for kind, seconds in stalled(text):
                found.add("stalled_seconds", seconds, {"resource": resource, "kind": kind})

    def _memory(self, found: Text) -> None:
        memory, swap = psutil.virtual_memory(), self._machine.swap()
        found.add("memory_available", memory.available)
        found.add("memory_total", memory.total)
        found.add("swap_used", swap.used_bytes)
        found.add("swapped_out", swap.swapped_out_pages)

    def _heat(self, found: Text) -> None:
        thermal = self._machine.thermal()
        found.add("thermal_level", None if thermal.level is None else LEVELS[thermal.level])
        limit = thermal.speed_limit_percent
        found.add("speed_limit", None if limit is None else limit / 100)
        for cpu, count in thermal.throttled_by_cpu.items():
            found.add("cpu_throttles", count, {"cpu": cpu})
        sensors = getattr(psutil, "sensors_temperatures", None)  # not on macOS
        for chip, several in (sensors() if sensors is not None else {}).items():
            for number, one in enumerate(several):
                found.add("temperature", one.current, {"zone": f"{chip} {one.label or number}"})

    def _network(self, found: Text) -> None:
        for device, counts in psutil.net_io_counters(pernic=True).items():
            found.add("received", counts.bytes_recv, {"device": device})
            found.add("sent", counts.bytes_sent, {"device": device})

    def _processes(self, found: Text) -> None:
        if self._number % FAMILY_EVERY == 0:
            taken: set[int] = set()
            self._families = {role: list(_family(heads, taken)) for role, heads in self._roles.items()}
        for role, family in self._families.items():
            labels = {"role": role}
            cpu = self._spent.setdefault(role, RoleTime()).after(
                {one: seconds for one in family if (seconds := _cpu_of(one)) is not None}
            )
            resident = [size for one in family if (size := _resident(one)) is not None]
            found.add("process_cpu", cpu, labels)
            found.add("process_rss", sum(resident) if resident else None, labels)
            if self._number % PSS_EVERY == 0:
                own = [physical_footprint(one.pid, self._root) for one in family]
                known = [size for size in own if size is not None]
                found.add("process_memory", sum(known) if known and len(known) == len(own) else None, labels)


class RoleTime:
    """Processor time of processes that come and go: a counter that never falls. One that has ended takes back nothing, and
    one that is new adds all that it has spent."""

    def __init__(self) -> None:
        self._total = 0.0
        self._last: dict[Hashable, float] = {}

    def after(self, spent: Mapping[Hashable, float]) -> float | None:
        """The total, by the s that each process has spent; None where none can be read."""
        for process, seconds in spent.items():
            self._total += max(0.0, seconds - self._last.get(process, 0.0))
        self._last |= spent  # of those that are gone too: one may be out of sight, and come back
        return self._total if spent else None


def stalled(text: str) -> Iterator[tuple[str, float]]:
    """The kinds of a file of /proc/pressure and the time lost since the machine started, in s (psi.rst:
    `some avg10=0.00 avg60=0.00 avg300=0.00 total=1234`, in microseconds)."""
    for line in text.splitlines():
        kind, *members = line.split()
        for member in members:
            name, _, value = member.partition("=")
            if name == "total" and value.isdigit() and kind in ("some", "full"):
                yield kind, int(value) / 1e6


def _family(heads: Sequence[int], taken: set[int]) -> Iterator[psutil.Process]:
    """The processes of a role with their children, but for those that another role has `taken`."""
    for pid in heads:
        try:
            head = psutil.Process(pid)
            for one in (head, *head.children(recursive=True)):
                if one.pid not in taken:
                    taken.add(one.pid)
                    yield one
        except psutil.Error:
            continue  # it has ended


def _cpu_of(one: psutil.Process) -> float | None:
    """Processor time of a process, without its children."""
    try:
        times = one.cpu_times()
    except psutil.Error:
        return None
    return float(times.user + times.system)


def _resident(one: psutil.Process) -> int | None:
    try:
        return int(one.memory_info().rss)
    except psutil.Error:
        return None
