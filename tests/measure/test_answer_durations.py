"""TTFT's components by the durations that come with answers (draft 5.1.4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from inferometer.journal.schema import EventClass as E
from inferometer.measure.measurement import Measurement, measure
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan

MS = 1_000_000

Build = Callable[..., Record]
PlanOf = Callable[..., Plan]


def answer(index: int, first: float, **more: Any) -> dict[str, Any]:
    """A request at 100 ms times its index whose first token comes `first` ms later."""
    start = 100.0 * index
    events = [(start + first, E.CONTENT), (start + first + 10, E.CONTENT)]
    return {"index": index, "t_intended": start, "t_submit": start, "events": events, **more}


def measured(build: Build, plan_of: PlanOf, *rows: dict[str, Any]) -> Measurement:
    """By their own plan."""
    return measure(plan_of(load={"requests": len(rows)}), build(*rows))


def test_ttft_is_load_prefill_and_the_rest(build: Build, plan_of: PlanOf) -> None:
    """Per request, so that the means add up; a load that is not reported took no time."""
    loads = ({"server_load_ns": 5 * MS}, {"server_load_ns": 7 * MS})
    found = measured(
        build, plan_of, *(answer(i, 40, server_prefill_ns=20 * MS, **load) for i, load in enumerate(loads))
    ).metrics
    parts = found.load_server_ms, found.prefill_server_ms, found.ttft_outside_ms
    assert [part and part.mean for part in parts] == [6.0, 20.0, 14.0]
    without = measured(build, plan_of, answer(0, 40, server_prefill_ns=20 * MS)).metrics
    assert without.load_server_ms is None
    assert without.ttft_outside_ms is not None
    assert without.ttft_outside_ms.mean == pytest.approx(20.0)


def test_an_engine_that_claims_more_than_ttft_leaves_no_rest(build: Build, plan_of: PlanOf) -> None:
    """No negative wait: such a request is excluded and counted."""
    rows = (answer(0, 40, server_prefill_ns=50 * MS), answer(1, 40, server_prefill_ns=30 * MS))
    found = measured(build, plan_of, *rows)
    assert found.metrics.ttft_outside_ms is not None
    assert found.metrics.ttft_outside_ms.n == 1
    assert found.metrics.ttft_outside_ms.mean == pytest.approx(10.0)
    assert found.excluded["ttft_outside_ms"] == 1


def test_answers_without_durations_have_no_parts(build: Build, plan_of: PlanOf) -> None:
    """And the wait is not called the client's."""
    found = measured(build, plan_of, answer(0, 40)).metrics
    assert (found.load_server_ms, found.prefill_server_ms, found.ttft_outside_ms) == (None, None, None)
