"""How much of the processors other programs use: all busy time of the machine between two instants, less this program's and
the engines'."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import psutil

from inferometer.telemetry.machine_readings import Reading
from inferometer.telemetry.processes import Process, family

_BUSY = ("user", "nice", "system", "irq", "softirq", "steal")
"""Of psutil's processor times; time of guests is in `user`, and waiting for a disk is not busy."""


class OtherLoad(Reading, frozen=True):
    """Processors in use by others than this program and the engines, over `elapsed_s`, of `cores`. `stolen_cores`: of these,
    what the hypervisor gave to other machines, None where that is not counted; `busiest`: the process that used most of the
    rest, and how many processors."""

    elapsed_s: float
    cores: int
    busy_cores: float
    stolen_cores: float | None
    busiest: str | None
    busiest_cores: float | None


@dataclass(frozen=True, slots=True)
class CpuSnapshot:
    """Processor time so far, in s: of the machine, of it stolen by the hypervisor, and by process."""

    at_s: float
    busy_s: float
    stolen_s: float | None
    by_process: Mapping[tuple[int, float | None], Process]


def snapshot(running: Sequence[Process]) -> CpuSnapshot:
    """Now. `running`: as of `processes`, just read."""
    times = psutil.cpu_times()
    return CpuSnapshot(
        at_s=time.monotonic(),
        busy_s=sum(getattr(times, name, 0.0) for name in _BUSY),
        stolen_s=getattr(times, "steal", None),
        by_process={(one.pid, one.started): one for one in running},
    )


def between(
    before: CpuSnapshot,
    after: CpuSnapshot,
    cores: int,
    engines: Collection[int] = (),
    own: int | None = None,
) -> OtherLoad:
    """The load of others between two snapshots.

    Args:
        cores: processors of the machine.
        engines: numbers of the engines' first processes, which do not count, with all below them.
        own: number of this program's process; None: of this one.
    """
    elapsed = max(after.at_s - before.at_s, 1e-9)
    running = tuple(after.by_process.values())
    apart = {pid for head in (*engines, own or os.getpid()) for pid in family(head, running)}
    used = {key: _used(before, key, process) for key, process in after.by_process.items()}
    ours = sum(seconds for (pid, _), seconds in used.items() if pid in apart)
    others = {key: seconds for key, seconds in used.items() if key[0] not in apart and seconds > 0}
    busiest = max(others, key=lambda key: others[key], default=None)
    stolen = None if after.stolen_s is None or before.stolen_s is None else after.stolen_s - before.stolen_s
    return OtherLoad(
        elapsed_s=elapsed,
        cores=cores,
        busy_cores=max(after.busy_s - before.busy_s - ours, 0.0) / elapsed,
        stolen_cores=None if stolen is None else stolen / elapsed,
        busiest=None if busiest is None else after.by_process[busiest].name,
        busiest_cores=None if busiest is None else others[busiest] / elapsed,
    )


def _used(before: CpuSnapshot, key: tuple[int, float | None], process: Process) -> float:
    """Processor time of a process since `before`; one that began later has used all of its own since then."""
    earlier = before.by_process.get(key)
    return (process.cpu_s or 0.0) - ((earlier.cpu_s or 0.0) if earlier is not None else 0.0)
