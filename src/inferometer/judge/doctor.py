"""What the state of a machine means for a measurement on it: one finding a check, in the order of the table.

| check           | mend                                                                  | note                            |
| --------------- | --------------------------------------------------------------------- | ------------------------------- |
| memory_pressure | the level is warning or critical                                       |                                 |
| swap            | pages were swapped out while we looked                                 | more than 500 MB are in use     |
| thermal         | above nominal, the speed is limited, or throttled while we looked      |                                 |
| governor        | a governor other than `performance`                                    |                                 |
| clock           | the wall clock stepped by more than 1 ms while we looked               | it is not synchronised          |
| descriptors     | fewer than 2,048                                                       |                                 |
| ports           | fewer than 6,000                                                       |                                 |
| engines         | an engine runs more than once                                          |                                 |
| other_load      | others use more than a tenth of the processors                         |                                 |
| timer           | P99 of its lateness is more than 0.2 ms                                |                                 |
| stamps          | the kernel has stamps, and a read was without one or with a wrong one  | the system has no such stamps   |
"""

from __future__ import annotations

from collections.abc import Sequence

from inferometer.documents.doctor import CheckStatus, DoctorFinding, MachineState
from inferometer.documents.note import Fact
from inferometer.judge.checks import CLOCK_STEP_MS, LATENESS_LEAST_MS

SWAP_USED_BYTES = 500 * 1000 * 1000
"""As much as the quality gate of a benchmark lets swap grow: parts of a model may be among it."""
DESCRIPTORS = 2048
"""1,000 streams, each with a connection in use and one being opened, and what the program itself has open."""
PORTS = 6000
"""A server that closes each connection costs a port a request, which TCP holds back for 60 s: 100 requests per second."""
OTHER_SHARE = 0.1
"""A tenth of the processors that comes and goes moves a figure by about as much."""
BEST_GOVERNOR = "performance"

Facts = dict[str, Fact]


def examine(state: MachineState) -> tuple[DoctorFinding, ...]:
    """Every check of the table, whatever is known."""
    return (
        _pressure(state),
        _swap(state),
        _thermal(state),
        _governor(state),
        _clock(state),
        _least("descriptors", state.limits.descriptors_hard, DESCRIPTORS, unlimited=True),
        _least("ports", state.limits.ports, PORTS),
        _engines(state),
        _other_load(state),
        _timer(state),
        _stamps(state),
    )


def to_mend(findings: Sequence[DoctorFinding]) -> tuple[str, ...]:
    """The codes of the findings that ask for something."""
    return tuple(one.code for one in findings if one.status == "mend")


def _pressure(state: MachineState) -> DoctorFinding:
    one = state.pressure
    facts: Facts = {
        "level": one.level,
        "some_percent": one.some_percent,
        "full_percent": one.full_percent,
    }
    status: CheckStatus = "unknown" if one.level is None else "good" if one.level == "normal" else "mend"
    return DoctorFinding("memory_pressure", status, facts)


def _swap(state: MachineState) -> DoctorFinding:
    used, pages = state.swap.used_bytes, state.swapped_out_pages
    status: CheckStatus = "good"
    if pages:
        status = "mend"
    elif used is None:
        status = "unknown"
    elif used > SWAP_USED_BYTES:
        status = "note"
    return DoctorFinding("swap", status, {"used_bytes": used, "swapped_out_pages": pages})


def _thermal(state: MachineState) -> DoctorFinding:
    one = state.thermal
    limit = one.speed_limit_percent
    status: CheckStatus = "good"
    if one.level not in (None, "nominal") or (limit is not None and limit < 100) or state.throttled:
        status = "mend"
    elif one.level is None and limit is None and one.throttled_count is None:
        status = "unknown"
    facts: Facts = {
        "level": one.level,
        "speed_limit_percent": limit,
        "throttled_count": one.throttled_count,
        "throttled": state.throttled,
    }
    return DoctorFinding("thermal", status, facts)


def _governor(state: MachineState) -> DoctorFinding:
    one = state.processor
    status: CheckStatus = "unknown"
    if one.governors is not None:
        status = "good" if one.governors == (BEST_GOVERNOR,) else "mend"
    facts: Facts = {
        "governors": one.governors,
        "mhz_low": one.mhz_low,
        "mhz_high": one.mhz_high,
        "mhz_max": one.mhz_max,
    }
    return DoctorFinding("governor", status, facts)


def _clock(state: MachineState) -> DoctorFinding:
    one = state.clock
    status: CheckStatus = "unknown"
    if one.synchronised is not None:
        status = "good" if one.synchronised else "note"
    if state.clock_step_ms > CLOCK_STEP_MS:
        status = "mend"
    facts: Facts = {
        "synchronised": one.synchronised,
        "max_error_ms": one.max_error_ms,
        "step_ms": state.clock_step_ms,
    }
    return DoctorFinding("clock", status, facts)


def _least(code: str, value: int | None, least: int, *, unlimited: bool = False) -> DoctorFinding:
    """A limit of the system that should not be below `least`. `unlimited`: None means that there is no limit."""
    status: CheckStatus = "mend"
    if value is None:
        status = "good" if unlimited else "unknown"
    elif value >= least:
        status = "good"
    return DoctorFinding(code, status, {"value": value, "least": least})


def _engines(state: MachineState) -> DoctorFinding:
    keys = [one.engine for one in state.engines if one.ports is None or one.ports]
    twice = tuple(sorted({key for key in keys if keys.count(key) > 1}))
    running = tuple(_named(one.engine, one.ports, one.process.pid) for one in state.engines)
    return DoctorFinding("engines", "mend" if twice else "good", {"running": running, "twice": twice})


def _named(engine: str, ports: tuple[int, ...] | None, pid: int) -> str:
    if ports is None:
        return f"{engine} (process {pid}, ports hidden)"
    if not ports:
        return f"{engine} (process {pid}, no port)"
    return f"{engine} (process {pid}, port{'s' if len(ports) > 1 else ''} {', '.join(map(str, ports))})"


def _other_load(state: MachineState) -> DoctorFinding:
    one = state.load
    facts: Facts = {
        "cores": one.cores,
        "busy_cores": one.busy_cores,
        "stolen_cores": one.stolen_cores,
        "busiest": one.busiest,
        "busiest_cores": one.busiest_cores,
    }
    return DoctorFinding("other_load", "mend" if one.busy_cores > OTHER_SHARE * one.cores else "good", facts)


def _timer(state: MachineState) -> DoctorFinding:
    one = state.timer
    facts: Facts = {"n": one.n, "p50_ms": one.p50_ms, "p99_ms": one.p99_ms, "max_ms": one.max_ms}
    return DoctorFinding("timer", "good" if one.p99_ms <= LATENESS_LEAST_MS else "mend", facts)


def _stamps(state: MachineState) -> DoctorFinding:
    one = state.stamps
    status: CheckStatus = "good"
    if not one.stamped:
        status = "note"
    elif one.implausible or one.stamped < one.reads:
        status = "mend"
    facts: Facts = {
        "reads": one.reads,
        "stamped": one.stamped,
        "implausible": one.implausible,
        "lag_p50_ms": one.lag_p50_ms,
    }
    return DoctorFinding("stamps", status, facts)
