"""Figures that no machine can have: they are unknown, with the reason among what was left out.

Single values beyond a limit are no readings (telemetry/machines/terms.py). What several of them come to has these limits:

| figure                                      | is at most                         |
| ------------------------------------------- | ---------------------------------- |
| processors in use, of all, a role or others | SLACK times the machine's          |
| share of the time lost to waiting           | SLACK                              |
| memory available or in use                  | the memory there is                |

Counters are read some milliseconds before or after their stamp, so that a growth over a short time may be somewhat too large.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from inferometer.measure.machine_figures import Accelerator, Cores, MachineSeen, Memory, Role, Stalls

SLACK = 1.25


def possible(seen: MachineSeen) -> MachineSeen:
    """The figures without those that no machine can have."""
    wrong: list[str] = []
    count = None if seen.cores is None else seen.cores.of
    return replace(
        seen,
        cores=_cores(seen.cores, wrong),
        stalls=tuple(_stalls(one, wrong) for one in seen.stalls),
        memory=_memory(seen.memory, wrong),
        roles=tuple(_role(one, count, wrong) for one in seen.roles),
        accelerators=tuple(_accelerator(one, wrong) for one in seen.accelerators),
        left_out=(*seen.left_out, *dict.fromkeys(wrong)),
    )


def _cores(one: Cores | None, wrong: list[str]) -> Cores | None:
    if one is None or one.of is None or not _over((one.busy, one.others, one.stolen, one.busiest), one.of):
        return one
    wrong.append(f"processors in use: more than the {one.of} that there are")
    return Cores(one.of, None, None, None, None)


def _stalls(one: Stalls, wrong: list[str]) -> Stalls:
    if not _over((one.some, one.full), 1):
        return one
    wrong.append(f"time lost to waiting for {one.resource}: more than all time")
    return Stalls(one.resource, None, None)


def _memory(one: Memory | None, wrong: list[str]) -> Memory | None:
    if one is None or one.total is None or (one.least_available or 0) <= one.total:
        return one
    wrong.append("memory available: more than there is")
    return replace(one, least_available=None, total=None)


def _role(one: Role, count: int | None, wrong: list[str]) -> Role:
    if count is None or not _over((one.cores,), count):
        return one
    wrong.append(f"processors in use by role {one.role}: more than the {count} that there are")
    return replace(one, cores=None)


def _accelerator(one: Accelerator, wrong: list[str]) -> Accelerator:
    if one.memory_total is None or (one.memory_most or 0) <= one.memory_total:
        return one
    wrong.append(f"memory in use of accelerator {one.device}: more than it has")
    return replace(one, memory_most=None, memory_total=None)


def _over(values: Iterable[float | None], limit: float) -> bool:
    return any(value is not None and value > SLACK * limit for value in values)
