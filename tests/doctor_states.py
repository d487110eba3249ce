"""States of machines for tests of their examination: one that is good in everything, one that shows nothing."""

from __future__ import annotations

from inferometer.documents.doctor import MachineState, StampSeries, TimerSeries
from inferometer.telemetry.host import environment
from inferometer.telemetry.machine_readings import (
    ClockState,
    Limits,
    MemoryPressure,
    Processor,
    Swap,
    Thermal,
)
from inferometer.telemetry.other_load import OtherLoad
from inferometer.telemetry.processes import EngineProcess, Process

GOOD = MachineState(
    environment=environment(),
    chip="Example CPU",
    os_version="Example Linux 1",
    pressure=MemoryPressure("normal", 0.0, 0.0),
    swap=Swap(0, 0, 4096),
    swapped_out_pages=0,
    thermal=Thermal("nominal", 100.0, 0),
    throttled=0,
    processor=Processor(("performance",), 3000.0, 3000.0, 3000.0),
    clock=ClockState(True, 1.5),
    clock_step_ms=0.0,
    limits=Limits(1024, 1_048_576, 28_232),
    engines=(),
    load=OtherLoad(1.0, 8, 0.1, 0.0, "sshd", 0.05),
    timer=TimerSeries(500, 0.001, 0.01, 0.1),
    stamps=StampSeries(200, 200, 0, 0.01),
)
UNKNOWN = MachineState(
    environment=environment(),
    chip=None,
    os_version=None,
    pressure=MemoryPressure(),
    swap=Swap(),
    swapped_out_pages=None,
    thermal=Thermal(),
    throttled=None,
    processor=Processor(),
    clock=ClockState(),
    clock_step_ms=0.0,
    limits=Limits(),
    engines=(),
    load=OtherLoad(1.0, 8, 0.0, None, None, None),
    timer=TimerSeries(500, 0.001, 0.01, 0.1),
    stamps=StampSeries(200, 200, 0, 0.01),
)


def engine(key: str, pid: int, ports: tuple[int, ...] | None) -> EngineProcess:
    """The first process of an engine."""
    return EngineProcess(key, Process(pid, 1, key, None, 0.0, 0.0), ports)
