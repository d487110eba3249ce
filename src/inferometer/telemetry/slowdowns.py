"""What slows a machine's processes down without their doing: heat, and the CPU limit of a control group, which is how
containers and jobs are given a share of a machine. Both are counted by the kernel since the machine or the group began.

| figure  | source                                                                                               |
| ------- | ---------------------------------------------------------------------------------------------------- |
| thermal | thermal_throttle counts of each processor (linux.py)                                                 |
| held    | cpu.stat of the group and those above: throttled_usec (cgroup v2), throttled_time in ns (v1, `cpu`)  |

Elsewhere than on Linux neither is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from inferometer.telemetry.linux import ROOT, Linux

GROUPS = "sys/fs/cgroup"
_NS = {"throttled_usec": 1_000, "throttled_time": 1}


@dataclass(frozen=True, slots=True)
class Slowdowns:
    """Counts at one instant. `thermal`: slow-downs by hardware, by processor. `held_ns`: how long tasks of this process's
    control group, and of those above it, waited for a CPU limit; None: there is none, or it is not shown."""

    thermal: dict[str, int]
    held_ns: int | None


@dataclass(frozen=True, slots=True)
class Slowed:
    """Between two instants. `thermal`: slow-downs by hardware of the processor that had most; `held_ms`: waits for the CPU
    limit. None: not known."""

    thermal: int | None
    held_ms: float | None

    @property
    def at_all(self) -> bool:
        """Whether anything was."""
        return bool(self.thermal) or bool(self.held_ms)


def read(root: Path = ROOT) -> Slowdowns:
    """As of now. `root`: the folder that holds `proc` and `sys`."""
    return Slowdowns(dict(Linux(root).thermal().throttled_by_cpu), _held_ns(root))


def between(before: Slowdowns, after: Slowdowns) -> Slowed:
    """What came between; a count that fell began anew and is not known."""
    rises = [count - before.thermal[cpu] for cpu, count in after.thermal.items() if cpu in before.thermal]
    held = None if before.held_ns is None or after.held_ns is None else after.held_ns - before.held_ns
    return Slowed(
        max(rises) if rises and min(rises) >= 0 else None,
        None if held is None or held < 0 else held / 1e6,
    )


def _held_ns(root: Path) -> int | None:
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        for folder in (root / GROUPS / controllers, root / GROUPS / "cpu"):
            if held := _counted(folder, path):
                return sum(held)
    return None


def _counted(hierarchy: Path, path: str) -> list[int]:
    """The waits in ns of a group and of those above it, each of which counts those for its own limit alone."""
    group = PurePosixPath(path)
    found = []
    for one in (group, *group.parents):
        text = _text(hierarchy / str(one).lstrip("/") / "cpu.stat")
        counts = ((_counter(text, name), unit_ns) for name, unit_ns in _NS.items())
        found += [count * unit_ns for count, unit_ns in counts if count is not None]
    return found


def _counter(text: str, name: str) -> int | None:
    words = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    return int(words[name]) if words.get(name, "").isdecimal() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
