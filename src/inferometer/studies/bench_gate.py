"""Around an engine's turn: may it begin on this machine, and may the next one?

| gate (asiai's methodology, Protocol 1)      | then                                    |
| ------------------------------------------- | --------------------------------------- |
| memory pressure is critical                 | refused                                 |
| the processor's speed limit is below 80 %   | refused                                 |
| one of the two cannot be read               | a remark: the gate did not look at it   |
| the engine runs on another machine          | a remark: the gate read the client's    |

A refusal may be overridden; it is a remark then. The cool-down (Protocol 6) waits at most 30 s for normal memory pressure, and
then 5 s whatever it is. Where the pressure cannot be read, only those 5 s are waited.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from inferometer.documents.bench import Remark

LEAST_SPEED_PERCENT = 80.0
PATIENCE_S = 30.0
COOLDOWN_S = 5.0
POLL_S = 1.0


class Pressure(Protocol):
    """See telemetry's MemoryPressure."""

    @property
    def level(self) -> str | None:
        """normal, warning or critical; None: unknown."""


class Thermal(Protocol):
    """See telemetry's Thermal."""

    @property
    def level(self) -> str | None:
        """In the system's words; None: unknown."""

    @property
    def speed_limit_percent(self) -> float | None:
        """Of the processor's highest speed; None: unknown."""


class Machine(Protocol):
    """The readings that a benchmark needs of the machine it runs on. Each is taken anew; none raises."""

    def memory_pressure(self) -> Pressure:
        """Now."""

    def thermal(self) -> Thermal:
        """Now."""

    def chip(self) -> str | None:
        """The processor's name."""

    def os_version(self) -> str | None:
        """The operating system and its version."""


class Clock(Protocol):
    """Time, as an argument."""

    def now_ns(self) -> int:
        """Of the monotonic clock that a run's record has its times by."""

    def sleep(self, seconds: float) -> None:
        """Let this time pass."""


class RealClock:
    """See Clock."""

    def now_ns(self) -> int:
        """See Clock."""
        return time.monotonic_ns()

    def sleep(self, seconds: float) -> None:
        """See Clock."""
        time.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate found. `refuses`: nothing should be measured now."""

    refuses: bool
    remarks: tuple[Remark, ...]


def gate(machine: Machine, *, elsewhere: bool = False) -> Gate:
    """Look at this machine before an engine's turn. `elsewhere`: the engine runs on another one, of which nothing is read;
    a client without memory, or one that is slowed down, measures wrongly all the same."""
    pressure, limit = machine.memory_pressure().level, machine.thermal().speed_limit_percent
    refusals = []
    if pressure == "critical":
        refusals.append(Remark("pressure_critical"))
    if limit is not None and limit < LEAST_SPEED_PERCENT:
        refusals.append(Remark("speed_limited", {"percent": limit, "least": LEAST_SPEED_PERCENT}))
    unread = [
        what for what, value in (("memory pressure", pressure), ("speed limit", limit)) if value is None
    ]
    notes = [Remark("gate_unread", {"what": " and ".join(unread)})] if unread else []
    if elsewhere:
        notes.append(Remark("gate_of_client"))
    return Gate(bool(refusals), (*refusals, *notes))


def cool_down(machine: Machine, clock: Clock) -> Remark | None:
    """Wait as the table above has it. A remark if the pressure did not become normal."""
    begun = clock.now_ns()
    level = machine.memory_pressure().level
    while level not in (None, "normal") and clock.now_ns() - begun < PATIENCE_S * 1e9:
        clock.sleep(POLL_S)
        level = machine.memory_pressure().level
    clock.sleep(COOLDOWN_S)
    return None if level in (None, "normal") else Remark("pressure_remains", {"level": level})
