"""Options B and C of draft 4.6.3: beside the gaps that the client measured, under names of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from inferometer.journal.schema import EventClass
from inferometer.measure.measurement import Measurement, measure
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan

CONTENT = EventClass.CONTENT
Build = Callable[..., Record]
PlanOf = Callable[..., Plan]


def answers(sizes: list[int], together: int, per_event: int = 1) -> list[dict[str, Any]]:
    """Answers of these numbers of events, a token every 5 ms by the server's clock, `together` of them arriving at once."""
    rows: list[dict[str, Any]] = []
    for number, size in enumerate(sizes):
        begin = 1_000.0 * number
        arrivals = [begin + 20 + 5 * together * (index // together) for index in range(size)]
        rows.append(
            {
                "index": number,
                "t_intended": begin,
                "events": [(at, CONTENT) for at in arrivals],
                "usage_output": size * per_event,
                "emitted_ns": [10**15 + 5_000_000 * index for index in range(size)],
            }
        )
    return rows


def measured(build: Build, plan_of: PlanOf, rows: list[dict[str, Any]]) -> Measurement:
    return measure(plan_of(), build(*rows))


@pytest.mark.parametrize("together", [1, 4])
def test_the_servers_gaps_are_the_engines_however_tokens_arrive(
    build: Build, plan_of: PlanOf, together: int
) -> None:
    """Law: ITL by the server's stamps is 5 ms behind any proxy, and the client's own figure does not change for it."""
    rows = answers([40, 7, 1, 100], together)
    found = measured(build, plan_of, rows)
    server = found.metrics.itl_server_ms
    assert server is not None
    assert (server.n, server.min, server.max) == (39 + 6 + 0 + 99, 5.0, 5.0)
    bare = measured(build, plan_of, [row | {"emitted_ns": None} for row in rows])
    assert bare.metrics.itl_server_ms is None
    assert bare.metrics.itl_ms == found.metrics.itl_ms
    assert bare.metrics.chunk_gap_ms == found.metrics.chunk_gap_ms
    assert bare.tokens.itl_method == found.tokens.itl_method == ("direct" if together == 1 else "chunk")


def test_stamps_that_are_no_tokens_or_go_back_count_for_nothing(build: Build, plan_of: PlanOf) -> None:
    """Law: an answer with a missing stamp or with a clock that was set back has no gaps by the server; nor has a run whose
    events hold several tokens, since one stamp is not that of each."""
    rows = answers([10, 10, 10], 1)
    rows[0]["emitted_ns"] = rows[0]["emitted_ns"][:-1]
    rows[1]["emitted_ns"][5] -= 20_000_000
    server = measured(build, plan_of, rows).metrics.itl_server_ms
    assert server is not None
    assert (server.n, server.min) == (9, 5.0)
    assert measured(build, plan_of, answers([10, 10], 1, per_event=3)).metrics.itl_server_ms is None


@pytest.mark.parametrize(("together", "per_event"), [(4, 1), (1, 3), (2, 2)])
def test_distributed_gaps_are_those_between_chunks_and_a_zero_for_each_further_token(
    build: Build, plan_of: PlanOf, together: int, per_event: int
) -> None:
    """Law: n tokens in c chunks have n - 1 gaps, of which c - 1 are those between chunks and n - c are zero (option B); their
    sum is the time from the first chunk to the last. Where gaps are direct there are none."""
    sizes = [40, 7, 100]
    found = measured(build, plan_of, answers(sizes, together, per_event)).metrics
    spread, chunks = found.itl_distributed_ms, found.chunk_gap_ms
    assert spread is not None
    assert chunks is not None
    assert spread.n == sum(size * per_event - 1 for size in sizes)
    assert spread.mean * spread.n == pytest.approx(chunks.mean * chunks.n)
    assert (spread.min, spread.max) == (0.0, chunks.max)
    assert measured(build, plan_of, answers(sizes, 1)).metrics.itl_distributed_ms is None


def test_answers_without_a_count_have_no_distributed_gaps(build: Build, plan_of: PlanOf) -> None:
    """Law: how many tokens a chunk holds is the server's count; an answer without one is left out whole."""
    rows = answers([40, 40], 4)
    rows[1]["usage_output"] = None
    spread = measured(build, plan_of, rows).metrics.itl_distributed_ms
    assert spread is not None
    assert spread.n == 39
    assert np.isclose(spread.mean * spread.n, 9 * 20.0)
