"""What a power meter reads, and why it may not.

| scope         | what it covers                                             | contained in         |
| ------------- | ---------------------------------------------------------- | -------------------- |
| `accelerator` | one accelerator with its own memory                        | `machine`; on Apple's chips in `package` too |
| `package`     | one processor package (on Apple's: CPU, GPU and ANE)       | `machine`            |
| `memory`      | the DRAM of one package                                    | `machine`            |
| `machine`     | everything behind one plug, or the platform (psys)         | nothing              |
| `other`       | a part of a package, for a comparison only                 | `package`            |

Readings of one meter and one scope are of different devices and can be added up. Readings of different scopes or meters
cannot: one may contain the other.

| method    | `joules`                                    | `watts`                                                          |
| --------- | ------------------------------------------- | ---------------------------------------------------------------- |
| `counter` | energy since some unknown start             | power now, where the meter has that too                          |
| `power`   | None                                        | power now; how meters average it: docs/power-and-energy.md      |
| `mean`    | None                                        | the mean since the last reading                                  |
"""

from __future__ import annotations

import math
import re
from typing import Literal, Protocol

from inferometer.printable import printable
from inferometer.telemetry.machine_readings import Reading

Scope = Literal["accelerator", "package", "memory", "machine", "other"]
Method = Literal["counter", "power", "mean"]
FailureCode = Literal["absent", "permission", "vanished", "timeout", "malformed"]

_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{0,30})?([eE][+-]?[0-9]{1,3})?")

LARGEST_W = 1e6
"""Watts of one reading. A rack of accelerators draws a tenth of it: more is no reading."""
LARGEST_DEVICE_W = 1e4
"""Watts of one accelerator, processor package or memory, several times what any draws: more is another unit."""
LARGEST_J = 1e15
"""Joules of a counter: more than LARGEST_W for thirty years."""


class PowerReading(Reading, frozen=True):
    """One device at one moment. `device` distinguishes the readings of one meter and scope. `watts` and `joules`: by `method`,
    see above. `wraps_at`: the counter's range in joules, after which it starts at 0 again; None if unknown or endless."""

    meter: str
    scope: Scope
    device: str
    watts: float | None = None
    joules: float | None = None
    method: Method = "power"
    wraps_at: float | None = None


class MeterFailed(Exception):
    """There is no reading. The text says why and what helps, on one line.

    | code         | means                                                           |
    | ------------ | --------------------------------------------------------------- |
    | `absent`     | the machine has no such meter, or its library is not installed  |
    | `permission` | the meter may not be read by this user                          |
    | `vanished`   | it answered before, or part of it did, and does no more         |
    | `timeout`    | no reading in time                                              |
    | `malformed`  | what came is no reading                                         |
    """

    def __init__(self, meter: str, code: FailureCode, words: str) -> None:
        super().__init__(printable(f"{meter}: {words}"))
        self.meter, self.code = meter, code


class Meter(Protocol):
    """One source of readings. `name`: as in PowerReading.meter. Each call returns within the meter's limit of time."""

    name: str

    def read(self) -> tuple[PowerReading, ...]:
        """All devices now, always in the same order. Raises MeterFailed."""
        ...

    def close(self) -> None:
        """Release what the meter holds; more than once does no harm. Never raises."""
        ...


def checked_watts(meter: str, watts: float) -> float:
    """The watts, if a machine can draw them. Raises MeterFailed (`malformed`)."""
    return _checked(meter, watts, LARGEST_W, "W")


def checked_joules(meter: str, joules: float) -> float:
    """The joules, if a counter can show them. Raises MeterFailed (`malformed`)."""
    return _checked(meter, joules, LARGEST_J, "J")


def _checked(meter: str, value: float, largest: float, unit: str) -> float:
    if not math.isfinite(value) or not 0 <= value <= largest:
        words = f"the reading is {value:g} {unit}, and has to be from 0 to {largest:g}"
        raise MeterFailed(meter, "malformed", words)
    return value


def number(meter: str, text: str) -> float:
    """Text that is one decimal number in watts. Raises MeterFailed (`malformed`)."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        shown = " ".join(text.split())[:60]
        raise MeterFailed(meter, "malformed", f"not a number of watts: {shown!r}")
    return checked_watts(meter, float(found[0]))
