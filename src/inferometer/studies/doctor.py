"""`inferometer doctor`: read the machine's state twice, about a second apart, and in between try the instrument's timer and
stamps. The findings are of judge/doctor.py, their words of report/doctor.py."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from inferometer.documents.doctor import SCHEMA, Doctor, MachineState
from inferometer.drive import clock
from inferometer.engines.adapters.registry import ADAPTERS
from inferometer.judge.doctor import examine, to_mend
from inferometer.report.doctor import worded
from inferometer.studies import instrument_trial
from inferometer.telemetry.host import environment
from inferometer.telemetry.machine import limits, this_machine
from inferometer.telemetry.machine_readings import Machine, Thermal
from inferometer.telemetry.other_load import between, snapshot
from inferometer.telemetry.processes import EngineProcess, engine_processes, listening, own_line, processes

LOOK_S = 1.0
"""Between the two readings, at least: processor times are counted in hundredths of a second."""
MEND_EXIT = 4


def doctor() -> Doctor:
    """Examine this machine. Takes about two seconds."""
    examined = datetime.now(UTC).isoformat(timespec="seconds")
    state = machine_state(this_machine(), {key: one.processes for key, one in ADAPTERS.items()})
    findings = examine(state)
    return Doctor(
        schema=SCHEMA,
        examined=examined,
        mend=to_mend(findings),
        checks=tuple(worded(one, platform.system()) for one in findings),
        state=state,
    )


def exit_code(document: Doctor) -> int:
    """0: nothing to mend; 4: something."""
    return MEND_EXIT if document.mend else 0


def machine_state(machine: Machine, patterns: Mapping[str, Sequence[str]]) -> MachineState:
    """What can be read of a machine. `patterns`: of engine processes, by the engine's key."""
    begun = time.monotonic()
    swap, thermal, offset = machine.swap(), machine.thermal(), clock.realtime_offset_ns()
    before = snapshot(processes())
    timer, stamps = instrument_trial.timer(), instrument_trial.stamps()
    instrument_trial.pause(begun + LOOK_S - time.monotonic())
    running = processes()
    after = snapshot(running)
    engines = engine_processes(patterns, running, listening(), own_line(running))
    swap_after, thermal_after = machine.swap(), machine.thermal()
    return MachineState(
        environment=environment(),
        chip=machine.chip(),
        os_version=machine.os_version(),
        pressure=machine.memory_pressure(),
        swap=swap_after,
        swapped_out_pages=_grown(swap.swapped_out_pages, swap_after.swapped_out_pages),
        thermal=thermal_after,
        throttled=_throttled(thermal, thermal_after),
        processor=machine.processor(),
        clock=machine.clock(),
        clock_step_ms=instrument_trial.clock_step_ms(offset),
        limits=limits(machine),
        engines=tuple(_without_command(one) for one in engines),
        load=between(before, after, os.cpu_count() or 1, [one.process.pid for one in engines]),
        timer=timer,
        stamps=stamps,
    )


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before


def _throttled(before: Thermal, after: Thermal) -> int | None:
    """The most that one processor was slowed down between two readings."""
    both = before.throttled_by_cpu.keys() & after.throttled_by_cpu.keys()
    each = [after.throttled_by_cpu[cpu] - before.throttled_by_cpu[cpu] for cpu in both]
    return max(each) if each else _grown(before.throttled_count, after.throttled_count)


def _without_command(one: EngineProcess) -> EngineProcess:
    """A command line can hold paths and keys."""
    return msgspec.structs.replace(one, process=msgspec.structs.replace(one.process, command=None))
