"""Checks of closed loops, on a whole run of which one thing is changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from inferometer.judge.judge import judge
from inferometer.judge.verdict import Check, Verdict

MS = 1_000_000


def closed(run: Any, in_flight: int, asked: int, **changes: Any) -> Check:
    """The check on a closed loop that asked for `asked` slots and kept `in_flight` of them busy."""
    return closed_loop(run, in_flight, asked, 0, changes).check("concurrency_held")


def closed_loop(
    run: Any, in_flight: int, asked: int, drained: int, changes: Mapping[str, Callable[[Any], Any]]
) -> Verdict:
    """The verdict on such a loop, with `drained` ns without a request before the measured ones, which otherwise follow those of
    the warm-up without a pause."""
    lanes = np.arange(1300) % in_flight
    turn = np.arange(1300) // in_flight
    start = 10**12 + turn * 100 * MS + lanes + drained * (np.arange(1300) >= 100)
    times = start[:, None] + np.array([20, 40, 60, 80, 99]) * MS
    plan = {"load": {"model": "closed", "concurrency": asked, "requests": 1200, "rate": None}}
    columns = {
        "t_intended": start,
        "t_taken": start,
        "t_send": start,
        "t_submit": start,
        "t_end": times[:, -1] + MS,
        "event_ns": list(times),
    } | {name: change(start) for name, change in changes.items()}
    return judge(*run(plan=plan, **columns))


@pytest.mark.parametrize(
    ("slots", "drained", "value", "status"),
    [(10, 0, 0, "pass"), (5, MS, 4, "pass"), (10, MS, 9, "unsure"), (20, MS, 19, "unsure")],
)
def test_a_closed_loop_that_starts_on_an_idle_server_is_not_valid(
    run: Any, slots: int, drained: int, value: int, status: str
) -> None:
    """Requests count that were sent before all slots were in use: up to 6 of 1,200 may be, half of what a P99 is made of."""
    check = closed_loop(run, slots, slots, drained, {}).check("first_wave")
    assert (check.status, check.value, check.limit) == (status, value, 6)


def test_answers_that_end_together_leave_no_slot_unused(run: Any) -> None:
    """Law: where ten answers end at one instant and their slots send again one after the other, each due at that instant, only
    the start of the loop is a first wave; it is one although all of its requests were due at once."""

    def at_once(sends: Any) -> Any:
        return sends - np.arange(1300) % 10

    def together(sends: Any) -> Any:
        return at_once(sends) + 99 * MS + MS - 1

    changes = {"t_intended": at_once, "t_end": together}
    assert closed_loop(run, 10, 10, 0, changes).check("first_wave").value == 9
    assert closed_loop(run, 10, 10, MS, changes).check("first_wave").value == 9
    led_in = changes | {"phase": lambda sends: np.where(np.arange(len(sends)) < 100, 3, 1)}
    assert closed_loop(run, 10, 10, 0, led_in).check("first_wave").value == 0


def test_a_cold_start_and_a_single_slot_have_no_first_wave_to_judge(run: Any) -> None:
    """The wave of a cold start is what is to be measured; one slot has none; an open loop has no slots."""
    for load in ({"concurrency": 1}, {"concurrency": 10, "cold_start": True}):
        plan = {"load": {"model": "closed", "requests": 1200, "rate": None, "warmup": 0, **load}}
        assert judge(*run(plan=plan)).check("first_wave").status == "na"
    assert judge(*run()).check("first_wave").status == "na"


def test_lateness_in_closed_loop_is_the_share_of_time_a_slot_stands_empty(run: Any) -> None:
    """Law: late / (late + service) against a hundredth; the same lateness that ruins a fast answer is nothing to a slow one."""
    _, _, record = run(plan={"load": {"model": "closed", "concurrency": 4}})
    service = float(np.mean(record.t_end - record.t_submit.values))
    for share, status in ((0.005, "pass"), (0.02, "fail")):
        late = int(service * share / (1 - share))
        plan = {"load": {"model": "closed", "concurrency": 4, "rate": None}}
        check = judge(*run(plan=plan, t_intended=lambda _, by=late: record.t_submit.values - by)).check(
            "lateness"
        )
        assert check.status == status
        assert check.value == pytest.approx(share, rel=0.05)


def test_concurrency_is_held_when_the_slots_are_full(run: Any) -> None:
    """Law: 10 of 10 slots busy passes, 9 of 10 fails; the ramp and the tail are not looked at."""
    assert closed(run, 10, 10).status == "pass"
    assert closed(run, 9, 10).status == "fail"
    assert closed(run, 9, 10).value == pytest.approx(0.9, abs=0.01)


def test_a_slot_is_held_while_a_connection_is_opened_for_its_request(run: Any) -> None:
    """Law: a fifth of each turn spent connecting leaves no slot empty; on a connection opened ahead it does."""
    sent = {"t_send": lambda v: v + 19 * MS, "t_submit": lambda v: v + 19 * MS}
    opened = closed(run, 10, 10, **sent, t_connect=lambda v: v, t_connected=lambda v: v + 19 * MS)
    assert opened.status == "pass"
    ahead = closed(run, 10, 10, **sent, t_connect=lambda v: v - 1, t_connected=lambda v: v + 19 * MS)
    assert ahead.status == "fail"
    assert ahead.value == pytest.approx(0.81, abs=0.01)


def test_concurrency_is_not_judged_when_no_slot_was_ever_used_twice(run: Any) -> None:
    """Law: with as many slots as requests there is no span in which all should be full."""
    assert closed(run, 10, 1200).status == "na"


def test_a_server_that_does_not_read_leaves_no_slot_empty(run: Any) -> None:
    """Law: a slot is held from a request's first byte, however long its last one takes."""
    assert closed(run, 10, 10, t_submit=lambda v: v + 19 * MS).status == "pass"


def turned_away(lanes: int) -> dict[str, Callable[[Any], Any]]:
    """A server that ends the requests of all slots but the first `lanes` as soon as they are sent; all are sent at one instant,
    and each is due when its slot was free."""

    def refused(sends: Any) -> Any:
        return np.arange(len(sends)) % 10 >= lanes

    def at_once(sends: Any) -> Any:
        return sends - np.arange(len(sends)) % 10

    def due(sends: Any) -> Any:
        later = np.arange(len(sends)) >= 10
        return at_once(sends) - 100 * MS * (refused(sends) & later)

    return {
        "t_intended": due,
        "t_taken": at_once,
        "t_send": at_once,
        "t_submit": at_once,
        "t_end": lambda sends: np.where(refused(sends), at_once(sends), at_once(sends) + 100 * MS),
        "outcome": lambda sends: np.where(refused(sends), "http_5xx", "ok").tolist(),
    }


@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_a_server_that_turns_requests_away_has_no_first_wave_and_empties_its_slots_itself(
    run: Any, lanes: int
) -> None:
    """Law: whatever share is ended at once, every slot is in use right after a sending, and that few are in flight on average
    is a note with the number of failures."""
    verdict = closed_loop(run, 10, 10, 0, turned_away(lanes))
    assert verdict.check("first_wave").status == "pass"
    held = verdict.check("concurrency_held")
    assert (held.status, held.facts["failed"]) == ("note", 1200 * (10 - lanes) // 10)
    assert held.value == pytest.approx(lanes / 10, abs=0.01)
    assert verdict.check("error_rate").status == "fail"


def test_a_few_failures_do_not_explain_a_slot_that_stands_empty(run: Any) -> None:
    """Law: 9 of 10 slots and one failure in a hundred: had those lasted as long as the others, a slot would still be empty."""
    failed = {
        "outcome": lambda sends: np.where(np.arange(len(sends)) % 100 == 0, "http_5xx", "ok").tolist(),
        "t_end": lambda sends: sends + 100 * MS * (np.arange(len(sends)) % 100 != 0),
    }
    assert closed(run, 9, 10, **failed).status == "fail"


def test_requests_that_this_machine_could_not_send_excuse_no_empty_slot(run: Any) -> None:
    """Law: those are the client's doing, and so are the slots that they leave."""
    own = turned_away(2) | {
        "outcome": lambda sends: np.where(np.arange(len(sends)) % 10 >= 2, "client_limit", "ok").tolist()
    }
    assert closed(run, 10, 10, **own).status == "fail"


def test_where_nothing_succeeds_nothing_says_that_the_client_left_slots_empty(run: Any) -> None:
    """Law: then every empty slot followed a failure."""
    failed = {"outcome": lambda sends: ["http_5xx"] * len(sends), "t_end": lambda sends: sends + MS}
    assert closed(run, 10, 10, **failed).status == "note"
