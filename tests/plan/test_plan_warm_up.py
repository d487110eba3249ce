"""What a plan may say of its warm-up, and what its parts forbid each other."""

from __future__ import annotations

import pytest

from inferometer.errors import PlanError
from inferometer.plan.rules import check
from inferometer.plan.schema import Load, Plan


def planned(**load: object) -> Plan:
    """A plan with this load, checked."""
    return check(Plan(load=Load.model_validate({"concurrency": 2, "requests": 10, **load})))


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ({"warmup": 0, "warmup_tokens": 5}, "there is none: set load.warmup"),
        ({"warmup": 0, "warmup_probes": 12}, "there is none: set load.warmup"),
        ({"warmup_probes": 2}, "3 probes in a row have to agree"),
        ({"cold_start": True, "warmup": 1}, "leave load.warmup out"),
        ({"cold_start": True, "warmup_probes": 3}, "leave load.warmup_probes out"),
        ({"cold_start": True, "warmup_tokens": 3}, "leave load.warmup_tokens out"),
    ],
)
def test_what_a_warm_up_cannot_be_is_told(load: dict[str, object], said: str) -> None:
    """Volume and probes need a warm-up, three probes are the least that can agree, and a cold start has nothing before it."""
    with pytest.raises(PlanError, match=said):
        planned(**load)


def test_a_cold_start_implies_that_there_is_no_warm_up() -> None:
    """Where the plan says nothing of it, and then only."""
    assert planned(cold_start=True).load.warmup == 0
    assert planned().load.warmup == 10
    assert planned(warmup=3, warmup_tokens=7, warmup_probes=12).load.warmup_prefixes
