"""What is measured of conversations and of users, on records written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from inferometer.journal.schema import EventClass
from inferometer.measure.breakdown import MOST_TURNS, conversations, held
from inferometer.measure.lengths import prompt_lengths
from inferometer.measure.measurement import samples_of
from inferometer.measure.record import Record
from inferometer.plan.schema import Plan


def turn(session: int | None, at: int, of: int, start: float, **more: Any) -> dict[str, Any]:
    """One turn that is answered with two tokens, 5 ms and 10 ms later, unless said otherwise."""
    events = [(start + 5, EventClass.CONTENT), (start + 10, EventClass.CONTENT)]
    return {"session": session, "turn": at, "turns": of, "t_intended": start, "events": events} | more


FAILED = {"outcome": "timeout", "events": []}


def test_conversations_end_in_one_of_three_ways_and_leave_out_what_they_leave_out(
    build: Callable[..., Record], plan_of: Callable[..., Plan]
) -> None:
    """Finished, broken by a turn that failed, or cut; the same session in another cycle is another conversation."""
    record = build(
        turn(0, 0, 2, 0), turn(0, 1, 2, 20),
        turn(1, 0, 3, 0), turn(1, 1, 3, 30, **FAILED),
        turn(2, 0, 4, 40), turn(2, 1, 4, 60),
        turn(0, 0, 2, 90, cycle=1), turn(0, 1, 2, 120, cycle=1, **FAILED),
        turn(9, 0, 9, 0, phase=0),
    )  # fmt: skip
    found = conversations(record, samples_of(plan_of(), record))
    assert found is not None
    assert (found.begun, found.finished, found.broken, found.cut, found.left_out) == (4, 1, 2, 1, 3)
    assert [(one.turn, one.sent, one.completed, one.and_later) for one in found.by_turn] == [
        (1, 4, 4, False), (2, 4, 2, False),
    ]  # fmt: skip


def test_each_turn_has_its_own_latencies_lengths_and_cached_share(
    build: Callable[..., Record], plan_of: Callable[..., Plan]
) -> None:
    """The cached share is of those whose server told it; turns from the last one told apart on are taken together."""
    first = turn(0, 0, 20, 0, usage_input=10, usage_cached=0)
    later = [
        turn(
            0,
            at,
            20,
            100.0 * at,
            usage_input=100,
            usage_cached=60 if at % 2 else None,
            input_tokens_repeated=90,
        )
        for at in range(1, 20)
    ]
    record = build(first, *later)
    found = conversations(record, samples_of(plan_of(), record))
    assert found is not None
    assert len(found.by_turn) == MOST_TURNS
    one, two, three, *_, rest = found.by_turn
    assert (one.cached_share, three.cached_share) == (0, None)
    assert two.cached_share == pytest.approx(0.6)
    assert (one.repeated_mean, two.repeated_mean) == (0, 90)
    assert one.ttft_ms is not None
    assert one.ttft_ms.p50 == pytest.approx(5)
    assert (rest.turn, rest.and_later, rest.sent) == (MOST_TURNS, True, 20 - MOST_TURNS + 1)


def test_requests_that_stand_alone_are_no_conversations(
    build: Callable[..., Record], plan_of: Callable[..., Plan]
) -> None:
    """Nor are they users'."""
    record = build({"t_intended": 0.0, "events": [(1.0, EventClass.CONTENT)]})
    assert conversations(record, samples_of(plan_of(), record)) is None
    assert held(record) is None


def test_a_request_is_held_by_as_much_as_it_is_due_behind_its_own_instant(
    build: Callable[..., Record],
) -> None:
    """From the phase's start, which is where everybody's first request stands; the warm-up has one of its own."""
    ms = 1_000_000
    rows = [
        {"t_intended": 500.0 + due + late, "user": 0, "due_ns": due * ms}
        for due, late in ((0, 0), (10, 0), (20, 7), (30, 3))
    ]
    found = held(build(*rows, {"t_intended": 1.0, "user": 0, "due_ns": 0, "phase": 0}))
    assert found is not None
    assert (found.requests, found.of) == (2, 4)
    assert found.ms is not None
    assert found.ms.min == pytest.approx(3)
    assert found.ms.max == pytest.approx(7)


@pytest.mark.parametrize("read", [True, False])
def test_a_server_that_does_not_read_what_is_repeated_is_found_out(
    read: bool, build: Callable[..., Record], plan_of: Callable[..., Plan]
) -> None:
    """A template around each message is told apart from a history that is missing."""
    rows = []
    for session in range(30):
        for at in range(3):
            sent = 50 + at * 70
            server = (sent if read else 50) + 4 + 9 * at
            rows.append(
                turn(session, at, 3, 1000.0 * session + 100 * at, input_tokens_asked=sent, input_tokens_sent=sent,
                     usage_input=server, input_tokens_repeated=at * 70)
            )  # fmt: skip
    record = build(*rows)
    samples = samples_of(plan_of(), record)
    for with_template in (False, True):
        asked = record.input_tokens_asked + (4 if with_template else 0)
        changed = build(
            *[row | {"input_tokens_asked": int(one)} for row, one in zip(rows, asked, strict=True)]
        )
        found = prompt_lengths(changed, samples, native=True, with_template=with_template)
        assert found.misses == (0 if read else 60)
    assert np.isfinite(samples.e2e).all()
