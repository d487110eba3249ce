"""What exporters of machines call what: from the names that they expose to common terms. Data.

| term                          | kind    | unit, labels                                                             |
| ----------------------------- | ------- | ------------------------------------------------------------------------ |
| cpu_seconds                   | counter | s of all processors; `mode` as in /proc/stat                             |
| cores                         | level   | processors that are online                                               |
| stalled_seconds               | counter | s in which a task (`kind` some) or every task (full) waited; `resource`   |
| memory_available, _total      | level   | bytes                                                                    |
| swap_used, swap_free, _total  | level   | bytes; an exporter has either the first or the other two                 |
| swapped_out                   | counter | pages                                                                    |
| temperature                   | level   | degrees Celsius; `zone`                                                  |
| thermal_level                 | level   | 0 nominal, 1 fair, 2 serious, 3 critical                                 |
| speed_limit                   | level   | highest processor speed allowed, as a share of the highest there is      |
| cpu_throttles                 | counter | times that the hardware slowed a processor down; `cpu`, `package`        |
| cpu_hertz                     | level   | frequency now; `cpu`, or `which` lowest and highest                      |
| governor                      | level   | 1; `governor`                                                            |
| received, sent                | counter | bytes; `device`                                                          |
| process_memory, process_rss   | level   | bytes that belong to the processes of a `role` (PSS, footprint); resident |
| process_cpu                   | counter | s of the processes of a `role`                                           |
| accelerator                   | level   | 1; `device`, `vendor`, `name`                                            |
| accelerator_memory_used, _free, _total | level | bytes; `device`                                                  |
| accelerator_busy              | level   | share of time in which something ran; `device`                           |
| accelerator_hertz, accelerator_memory_hertz | level | clocks of the compute units and the memory; `device`        |
| accelerator_temperature       | level   | degrees Celsius; `device`                                                |
| accelerator_throttled         | level   | 1 or 0; `device`, `reason` as the vendor's library names it               |
| accelerator_reasons           | level   | the same reasons as NVML's bits; `device`                                |
| accelerator_ecc               | counter | uncorrected errors; `device`                                             |
| power                         | level   | W; `meter`, `scope`, `device`, `method` (power/readings.py)              |
| energy                        | counter | J since some start; the same labels                                      |
| energy_range                  | level   | J after which that counter starts at 0 again; the same labels            |
| meter_failed                  | level   | 1; `meter`, `code`, `words`: there is no reading, and why                |
| meter_age                     | level   | s since that `meter` was read, where it was before this answer           |
| clock                         | level   | s since the epoch by the machine's own clock, as it answered             |

Names are families' (a counter's without `_total`). Those of node_exporter and of NVIDIA's DCGM exporter are from their
documentation (docs/host-telemetry.md says which were held against a running exporter).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inferometer.telemetry.power.readings import LARGEST_J, LARGEST_W

OWN, NODE, DCGM = "inferometer", "node_exporter", "dcgm-exporter"
"""Whose names an endpoint shows."""
PREFIX = "inferometer_host_"
"""Of our own names: PREFIX and the term, with its unit where exporters write one."""

_HIGHEST_HZ = 2e10
"""Twice what any processor has reached."""
_COLDEST, _HOTTEST = -100.0, 250.0
"""Degrees Celsius. Sensors that are not connected show less, and no chip works beyond."""
LARGEST = 1e18
"""Beyond it a number is one that an exporter writes where it has none."""
ACCELERATORS = "accelerators"
"""The `meter` of a failure to read the state of accelerators."""
COUNTERS = frozenset(
    {
        "cpu_seconds", "stalled_seconds", "swapped_out", "cpu_throttles", "received", "sent", "process_cpu",
        "accelerator_ecc", "energy",
    }
)  # fmt: skip

_METER = ("meter", "scope", "device", "method")
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "cpu_seconds": ("mode",),
    "stalled_seconds": ("resource", "kind"),
    "governor": ("governor",),
    "received": ("device",),
    "sent": ("device",),
    "process_memory": ("role",),
    "process_rss": ("role",),
    "process_cpu": ("role",),
    "accelerator_throttled": ("device", "reason"),
    "power": _METER[:3],
    "energy": _METER[:3],
    "energy_range": _METER[:3],
    "meter_failed": ("meter", "code", "words"),
    "meter_age": ("meter",),
}
_RANGES: Mapping[str, tuple[float, float]] = {
    "cores": (1, 1e6),
    "cpu_hertz": (1e5, _HIGHEST_HZ),
    "speed_limit": (0, 1),
    "governor": (0, 1),
    "temperature": (_COLDEST, _HOTTEST),
    "thermal_level": (0, 3),
    "accelerator": (0, 1),
    "accelerator_hertz": (0, _HIGHEST_HZ),
    "accelerator_memory_hertz": (0, _HIGHEST_HZ),
    "accelerator_temperature": (_COLDEST, _HOTTEST),
    "accelerator_throttled": (0, 1),
    "accelerator_reasons": (0, 2**53),
    "accelerator_busy": (0, 1),
    "power": (0, LARGEST_W),
    "energy": (0, LARGEST_J),
    "energy_range": (0, LARGEST_J),
    "meter_age": (-60, 3600),
}


def needed_labels(term: str) -> tuple[str, ...]:
    """Without which a value of the term says nothing: of which device, of whose processes, for which reason."""
    return _NEEDED.get(term, ("device",) if term.startswith("accelerator") else ())


def value_range(term: str) -> tuple[float, float]:
    """The least and the largest value that a reading of the term can have; any other number is no reading."""
    return _RANGES.get(term, (0, LARGEST))


@dataclass(frozen=True, slots=True)
class Name:
    """A family as one exporter has it. `scale`: its unit in ours; `where`: the only series that count; `labels`: labels that
    this family implies; `keep`: ours by theirs; `parts`: theirs by which series are parts of one sum. Series that differ in
    any other label are of the same thing, which exporters list once for each user of it."""

    family: str
    term: str
    scale: float = 1.0
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[str, ...] = ()


def _own(term: str, unit: str = "", *labels: str) -> Name:
    return Name(f"{PREFIX}{term}{unit}", term, keep={label: label for label in labels})


OURS = (
    _own("cpu_seconds", "", "mode"),
    _own("cores"),
    _own("stalled_seconds", "", "resource", "kind"),
    _own("memory_available", "_bytes"),
    _own("memory_total", "_bytes"),
    _own("swap_used", "_bytes"),
    _own("swapped_out", "_pages"),
    _own("temperature", "_celsius", "zone"),
    _own("thermal_level"),
    _own("speed_limit", "_ratio"),
    _own("cpu_throttles", "", "cpu"),
    _own("cpu_hertz", "", "which"),
    _own("governor", "_info", "governor"),
    _own("received", "_bytes", "device"),
    _own("sent", "_bytes", "device"),
    _own("process_memory", "_bytes", "role"),
    _own("process_rss", "_bytes", "role"),
    _own("process_cpu", "_seconds", "role"),
    _own("accelerator", "_info", "device", "vendor", "name"),
    _own("accelerator_memory_used", "_bytes", "device"),
    _own("accelerator_memory_total", "_bytes", "device"),
    _own("accelerator_busy", "_ratio", "device"),
    _own("accelerator_hertz", "", "device"),
    _own("accelerator_memory_hertz", "", "device"),
    _own("accelerator_temperature", "_celsius", "device"),
    _own("accelerator_throttled", "", "device", "reason"),
    _own("accelerator_ecc", "_errors", "device"),
    _own("power", "_watts", *_METER),
    _own("energy", "_joules", *_METER),
    _own("energy_range", "_joules", *_METER),
    _own("meter_failed", "", "meter", "code", "words"),
    _own("meter_age", "_seconds", "meter"),
    _own("clock", "_seconds"),
)
"""Our own names, which `inferometer telemetry serve` exposes and a run records of this machine."""


def _pressure(resource: str) -> tuple[Name, ...]:
    """Of Linux' pressure stall information; `stalled` is what the kernel calls full."""
    return tuple(
        Name(
            f"node_pressure_{resource}_{word}_seconds",
            "stalled_seconds",
            labels={"resource": resource, "kind": kind},
        )
        for word, kind in (("waiting", "some"), ("stalled", "full"))
    )


_OF_NODE = (
    Name("node_cpu_seconds", "cpu_seconds", keep={"mode": "mode"}, parts=("cpu",)),
    *(name for resource in ("cpu", "memory", "io") for name in _pressure(resource)),
    Name("node_memory_MemAvailable_bytes", "memory_available"),
    Name("node_memory_MemTotal_bytes", "memory_total"),
    Name("node_memory_SwapFree_bytes", "swap_free"),
    Name("node_memory_SwapTotal_bytes", "swap_total"),
    Name("node_vmstat_pswpout", "swapped_out"),
    Name("node_thermal_zone_temp", "temperature", keep={"zone": "zone"}),
    Name("node_hwmon_temp_celsius", "temperature", keep={"chip": "zone", "sensor": "sensor"}),
    Name("node_cpu_core_throttles", "cpu_throttles", keep={"package": "package", "core": "cpu"}),
    Name("node_cpu_package_throttles", "cpu_throttles", keep={"package": "package"}),
    Name("node_cpu_scaling_frequency_hertz", "cpu_hertz", keep={"cpu": "cpu"}),
    Name("node_cpu_scaling_governor", "governor", keep={"governor": "governor"}),
    Name("node_network_receive_bytes", "received", keep={"device": "device"}),
    Name("node_network_transmit_bytes", "sent", keep={"device": "device"}),
    Name(
        "node_rapl_package_joules",
        "energy",
        labels={"meter": "rapl", "scope": "package", "method": "counter"},
        keep={"path": "device"},
    ),
    Name(
        "node_rapl_dram_joules",
        "energy",
        labels={"meter": "rapl", "scope": "memory", "method": "counter"},
        keep={"path": "device"},
    ),
    Name("node_time_seconds", "clock"),
)
_MIB, _MHZ = float(1 << 20), 1e6
_GPU = {"gpu": "device"}
_BOARD = {"meter": "dcgm", "scope": "accelerator", "method": "counter"}
_OF_DCGM = (
    Name("DCGM_FI_DEV_FB_USED", "accelerator_memory_used", _MIB, keep=_GPU),
    Name("DCGM_FI_DEV_FB_FREE", "accelerator_memory_free", _MIB, keep=_GPU),
    Name("DCGM_FI_DEV_GPU_UTIL", "accelerator_busy", 0.01, keep=_GPU),
    Name("DCGM_FI_DEV_SM_CLOCK", "accelerator_hertz", _MHZ, keep=_GPU),
    Name("DCGM_FI_DEV_MEM_CLOCK", "accelerator_memory_hertz", _MHZ, keep=_GPU),
    Name("DCGM_FI_DEV_GPU_TEMP", "accelerator_temperature", keep=_GPU),
    Name("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "accelerator_reasons", keep=_GPU),
    Name("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "accelerator_reasons", keep=_GPU),
    Name("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "accelerator_ecc", keep=_GPU),
    Name("DCGM_FI_DEV_POWER_USAGE", "power", labels=_BOARD, keep=_GPU),
    Name("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "energy", 1e-3, labels=_BOARD, keep=_GPU),
)

SOURCES: Mapping[str, tuple[Name, ...]] = {OWN: OURS, NODE: _OF_NODE, DCGM: _OF_DCGM}
BY_FAMILY: Mapping[str, tuple[str, Name]] = {
    name.family: (source, name) for source, names in SOURCES.items() for name in names
}
"""Whose name it is, and what it means."""
