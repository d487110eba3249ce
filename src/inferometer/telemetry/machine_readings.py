"""The state of a machine at one moment, as far as it decides whether a measurement on it can be repeated.

| member is None         | because                                                                          |
| ---------------------- | -------------------------------------------------------------------------------- |
| on Linux               | the kernel or the container does not show the file                                |
| on macOS               | the system has no such reading, or its command printed something else             |
| on another system      | no reading is implemented                                                         |

None is unknown: never normal, and never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

import msgspec

PressureLevel = Literal["normal", "warning", "critical"]
ThermalLevel = Literal["nominal", "fair", "serious", "critical"]
"""The four words of Apple's NSProcessInfo.ThermalState. Which reading of a system has which level is in linux.py and
macos.py."""

WARNING_SOME_PERCENT = 1.0
"""Linux: from this share of time on in which at least one task waited for memory, the level is warning. A wait in one
percent of the time can be the wait of one percent of the requests, and so decides a P99."""
CRITICAL_FULL_PERCENT = 10.0
"""Linux: from this share of time on in which every task waited for memory, the level is critical: a tenth of the machine's
time is lost, to all, so no rate measured then is the engine's."""


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A struct of readings: immutable, and strict about its members."""


class MemoryPressure(Reading, frozen=True):
    """`some_percent`, `full_percent`: share of the last 10 s in which some task, or every task, waited for memory
    (Linux only). `level`: by the limits above, or the system's own word (macOS)."""

    level: PressureLevel | None = None
    some_percent: float | None = None
    full_percent: float | None = None


class Swap(Reading, frozen=True):
    """`used_bytes`: now. `swapped_out_pages`: since the machine started, of `page_bytes` each."""

    used_bytes: int | None = None
    swapped_out_pages: int | None = None
    page_bytes: int | None = None


class Thermal(Reading, frozen=True):
    """`speed_limit_percent`: the highest processor speed that is allowed now, of the highest that it has; the lowest over the
    processors. `throttled_count`: how often the hardware has slowed a processor down since the machine started, the largest
    over the processors; `throttled_by_cpu`: each one's, of which only the growth can be compared: one that had many events
    before hides another one's new ones. None of them is about an accelerator."""

    level: ThermalLevel | None = None
    speed_limit_percent: float | None = None
    throttled_count: int | None = None
    throttled_by_cpu: Mapping[str, int] = {}


class Processor(Reading, frozen=True):
    """`governors`: the different frequency governors of the processors. `mhz_low`, `mhz_high`: the slowest and the fastest
    processor now; `mhz_max`: the highest frequency of the fastest."""

    governors: tuple[str, ...] | None = None
    mhz_low: float | None = None
    mhz_high: float | None = None
    mhz_max: float | None = None


class ClockState(Reading, frozen=True):
    """Whether the kernel holds the wall clock to be synchronised, and the largest error that it allows for, in ms."""

    synchronised: bool | None = None
    max_error_ms: float | None = None


class Limits(Reading, frozen=True):
    """`descriptors`: open files and sockets of one process, now; `descriptors_hard`: to which it may raise that itself; None
    also where there is no limit. `ports`: how many local ports connections are given."""

    descriptors: int | None = None
    descriptors_hard: int | None = None
    ports: int | None = None


class Machine(Protocol):
    """What is asked of a machine. No method raises; each reads anew."""

    def memory_pressure(self) -> MemoryPressure:
        """Whether tasks wait for memory."""
        ...

    def swap(self) -> Swap:
        """Memory that was written to disk."""
        ...

    def thermal(self) -> Thermal:
        """Whether heat slows the processors down."""
        ...

    def processor(self) -> Processor:
        """How the processors' frequency is governed."""
        ...

    def clock(self) -> ClockState:
        """Whether the wall clock is synchronised."""
        ...

    def ports(self) -> int | None:
        """How many local ports connections are given."""
        ...

    def chip(self) -> str | None:
        """The processor's name."""
        ...

    def os_version(self) -> str | None:
        """The operating system and its version."""
        ...


def pressure_level(some_percent: float | None, full_percent: float | None) -> PressureLevel | None:
    """The level by the limits above; None without a reading."""
    if some_percent is None and full_percent is None:
        return None
    if (full_percent or 0.0) >= CRITICAL_FULL_PERCENT:
        return "critical"
    return "warning" if (some_percent or 0.0) >= WARNING_SOME_PERCENT else "normal"
