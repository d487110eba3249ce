"""All procedures by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from inferometer.procedures import (
    capacity,
    cold_start,
    itl,
    long_context,
    memory_pressure,
    throughput,
    tradeoff,
    ttft,
)
from inferometer.procedures.results import Results
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import Done, Steps


@dataclass(frozen=True, slots=True)
class Procedure:
    """One test: what it is called, where it stands in the draft, what it is for, how it goes, and what comes of it."""

    name: str
    section: str
    title: str
    objective: str
    steps: Callable[[Setup], Steps]
    results: Callable[[Setup, Sequence[Done]], Results]


def _procedure(module: ModuleType) -> Procedure:
    found: Any = module
    return Procedure(found.NAME, found.SECTION, found.TITLE, found.OBJECTIVE, found.steps, found.results)


PROCEDURES = {
    module.NAME: _procedure(module)
    for module in (ttft, throughput, tradeoff, itl, capacity, memory_pressure, long_context, cold_start)
}
"""Of draft section 5, and the cold start of 4.5.3."""
