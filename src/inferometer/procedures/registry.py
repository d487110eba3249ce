"""All procedures by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

from inferometer.plan.schema import Plan
from inferometer.procedures import (
    capacity,
    cold_start,
    fairness,
    guardrail,
    itl,
    long_context,
    memory_pressure,
    prefix_cache,
    throughput,
    tradeoff,
    ttft,
)
from inferometer.procedures.full_again import checked_at_end
from inferometer.procedures.results import Results
from inferometer.procedures.same_load import held_together
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import Performed, Steps
from inferometer.procedures.task_results import with_tasks


@dataclass(frozen=True, slots=True)
class Procedure:
    """One test: its name, its section of the draft, its steps, its results, and the plan of one of its levels as far as it is
    known before the start. `by_request`: its results need the requests of its runs one by one, not the summaries alone."""

    name: str
    section: str
    steps: Callable[[Setup], Steps]
    results: Callable[[Setup, Sequence[Performed]], Results]
    planned: Callable[[Setup], Plan]
    by_request: bool


def _procedure(module: ModuleType) -> Procedure:
    return Procedure(
        module.NAME,
        module.SECTION,
        checked_at_end(module.steps),
        with_tasks(held_together(module.results)),
        getattr(module, "planned", _as_it_is),
        getattr(module, "BY_REQUEST", False),
    )


def _as_it_is(setup: Setup) -> Plan:
    return setup.plan


PROCEDURES = {
    module.NAME: _procedure(module)
    for module in (
        ttft,
        throughput,
        tradeoff,
        itl,
        capacity,
        fairness,
        prefix_cache,
        memory_pressure,
        long_context,
        guardrail,
        cold_start,
    )
}
"""Of draft section 5, and the cold start of 4.5.3."""
