"""The examination of a machine before anything is measured on it: what was read, and what each reading means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from inferometer.documents.note import Fact
from inferometer.documents.part import Part
from inferometer.telemetry.host import Environment
from inferometer.telemetry.machine_readings import (
    ClockState,
    Limits,
    MemoryPressure,
    Processor,
    Swap,
    Thermal,
)
from inferometer.telemetry.other_load import OtherLoad
from inferometer.telemetry.processes import EngineProcess

SCHEMA: Final = "inferometer/doctor/1"

CheckStatus = Literal["good", "note", "mend", "unknown"]
"""good: nothing to do. note: worth knowing, and figures stand. mend: figures measured now may be wrong or not repeatable.
unknown: the system does not show it; it is neither good nor bad."""


class TimerSeries(Part, frozen=True):
    """Lateness of the load generator's timer at `n` instants, in ms."""

    n: int
    p50_ms: float
    p99_ms: float
    max_ms: float


class StampSeries(Part, frozen=True):
    """Bytes sent over loopback and read as a run reads them. `stamped`: reads with a kernel stamp; `implausible`: stamps that
    lie before the bytes were sent or after they were read; `lag_p50_ms`: read less stamp, None without stamps."""

    reads: int
    stamped: int
    implausible: int
    lag_p50_ms: float | None


class MachineState(Part, frozen=True):
    """What was read of a machine. `swapped_out_pages`, `throttled`, `clock_step_ms`: growth, or change, while it was
    examined."""

    environment: Environment
    chip: str | None
    os_version: str | None
    pressure: MemoryPressure
    swap: Swap
    swapped_out_pages: int | None
    thermal: Thermal
    throttled: int | None
    processor: Processor
    clock: ClockState
    clock_step_ms: float
    limits: Limits
    engines: tuple[EngineProcess, ...]
    load: OtherLoad
    timer: TimerSeries
    stamps: StampSeries


class DoctorFinding(Part, frozen=True):
    """One check: its code, its status, and the values of which it speaks."""

    code: str
    status: CheckStatus
    facts: Mapping[str, Fact] = {}


class DoctorCheck(Part, frozen=True):
    """A finding in words. `why`: what it does to a measurement; `advice`: what to do, None if nothing; `command`: a command
    line that does it, None where there is none."""

    code: str
    status: CheckStatus
    facts: Mapping[str, Fact]
    title: str
    finding: str
    why: str
    advice: str | None
    command: str | None


class Doctor(Part, frozen=True):
    """An examination. `mend`: the codes of the checks that found something to mend; `state`: the readings themselves, without
    command lines of processes."""

    schema: Literal["inferometer/doctor/1"]
    examined: str
    mend: tuple[str, ...]
    checks: tuple[DoctorCheck, ...]
    state: MachineState
