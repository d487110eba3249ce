"""Laws that any load in virtual time keeps, whatever the engine: arrivals as drawn, slots never empty, nobody overtakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examined
from hypothesis import strategies as st

from inferometer.server.engine.settings import Settings
from inferometer.simulation.client import PERFECT
from inferometer.simulation.driver import PULSE_NS, START_NS

Rows = list[dict[str, Any]]
Play = Callable[..., Rows]
LENGTHS = st.lists(st.tuples(st.integers(1, 600), st.integers(1, 30)), min_size=1, max_size=40)
MS = 1_000_000
lawful = examined(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)


def levels(rows: Rows, begin: str = "t_send") -> list[tuple[int, int]]:
    """(instant, requests in flight from then on), one entry an instant."""
    changes: Counter[int] = Counter()
    for row in rows:
        changes[row[begin]] += 1
        changes[row["t_end"]] -= 1
    instants = sorted(changes)
    return list(zip(instants, accumulate(changes[at] for at in instants), strict=True))


@lawful
@given(LENGTHS, st.data())
def test_open_loop_sends_exactly_at_the_instants_drawn(
    play: Play, lengths: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Intended, taken and sent are one instant, the one in the schedule: nothing is late and no answer moves an arrival."""
    due = sorted(data.draw(st.lists(st.integers(0, 400 * MS), min_size=len(lengths), max_size=len(lengths))))
    rows = play(lengths, due=due)
    assert [row["t_intended"] - START_NS for row in rows] == due
    assert all(row["t_intended"] == row["t_taken"] == row["t_send"] == row["t_submit"] for row in rows)
    assert all(row["outcome"] == "ok" for row in rows)


@lawful
@given(LENGTHS, st.integers(1, 8))
def test_closed_loop_keeps_every_slot_taken_until_the_last_request(
    play: Play, lengths: list[tuple[int, int]], slots: int
) -> None:
    """Until the last is due, the number due or in flight is the number of slots, at every instant, and never above. Each is
    sent when the worker has had its time to react, and not a moment later."""
    rows = play(lengths, slots=slots)
    last = max(row["t_intended"] for row in rows)
    held = min(slots, len(lengths))
    taken = levels(rows, "t_intended")
    assert {level for at, level in taken if at < last} <= {held}
    assert max(level for _, level in taken) == held
    assert {row["t_send"] - row["t_intended"] for row in rows} == {PERFECT.reaction(slots)}
    assert len(rows) == len(lengths)


@lawful
@given(LENGTHS, st.data())
def test_the_first_tokens_come_in_the_order_of_the_requests(
    play: Play, lengths: list[tuple[int, int]], data: st.DataObject
) -> None:
    """First come, first served: nobody who was sent later has its first token sooner."""
    due = sorted(
        data.draw(
            st.lists(st.integers(0, 40 * MS), min_size=len(lengths), max_size=len(lengths), unique=True)
        )
    )
    rows = play(lengths, due=due)
    firsts = [row["event_ns"][row["first_visible"]] for row in rows]
    assert all(one <= other for one, other in pairwise(firsts))


@lawful
@given(LENGTHS, st.integers(1, 8))
def test_little_holds_of_the_record(play: Play, lengths: list[tuple[int, int]], slots: int) -> None:
    """The mean number in flight is the rate of arrivals times the mean time in the system: the integral of the first over
    the run is the sum of the times."""
    rows = play(lengths, slots=slots)
    steps = levels(rows)
    area = sum(level * (later - at) for (at, level), (later, _) in pairwise(steps))
    assert area == sum(row["t_end"] - row["t_send"] for row in rows)


@lawful
@given(LENGTHS, st.integers(1, 8))
def test_every_token_asked_for_is_on_record(play: Play, lengths: list[tuple[int, int]], slots: int) -> None:
    """Tokens are conserved: events, text and counts say what was asked, and times never run backwards."""
    for row in play(lengths, slots=slots):
        prompt, output = lengths[row["index"]]
        assert list(row["event_class"]) == [0, *[1] * output, 5, 9]
        assert (row["usage_input"], row["usage_output"], row["usage_cached"]) == (prompt, output, 0)
        assert row["finish_reason"] == "length"
        assert row["event_ns"] == sorted(row["event_ns"])
        assert row["t_send"] == row["t_first_byte"] < row["event_ns"][0]
        assert row["t_end"] == row["event_ns"][-1]


def test_two_of_a_kind_are_the_same(play: Play) -> None:
    """The same load on the same engine is the same record."""
    lengths = [(i * 37 % 500 + 1, i % 20 + 1) for i in range(200)]
    assert play(lengths, slots=5) == play(lengths, slots=5)


def test_a_full_queue_is_an_answer_of_503(play: Play) -> None:
    """Who finds it full has its outcome at once, and its slot goes on."""
    crowd = Settings(max_batch=1, queue_limit=1)
    rows = play([(1, 5)] * 4, due=[0, 1, 2, 3], settings=crowd)
    assert [row["outcome"] for row in rows] == ["ok", "ok", "http_5xx", "http_5xx"]
    assert {row["status"] for row in rows[2:]} == {503}


def test_drafts_and_refusals_end_with_what_the_engine_gave(play: Play) -> None:
    """Fewer events than tokens with speculative decoding; and fewer tokens than asked for where a guardrail refuses."""
    (drafted,) = play([(1, 40)], slots=1, settings=Settings(draft_tokens=3, acceptance=1))
    assert list(drafted["event_class"]).count(1) == 11
    assert drafted["usage_output"] == 40
    (refused,) = play(
        [(1, 40)], slots=1, settings=Settings(refusal_share=1, refusal_tokens=6, input_check_ns=1e6)
    )
    assert (refused["usage_output"], refused["finish_reason"]) == (6, "content_filter")


def test_an_hour_of_nothing_costs_no_time(play: Play) -> None:
    """Time goes from event to event: two requests an hour apart."""
    hour = 3_600_000 * MS
    rows = play([(1, 1), (1, 1)], due=[0, hour])
    assert rows[1]["t_send"] - rows[0]["t_send"] == hour


def test_a_request_is_given_up_at_its_deadline(play: Play) -> None:
    """The timeout of the plan, to the nanosecond; what had come by then is kept, and its slot goes on."""
    rows = play([(1, 1_000_000), (1, 1)], slots=1, timeout_ns=50 * MS)
    assert [row["outcome"] for row in rows] == ["timeout", "ok"]
    assert rows[0]["t_end"] - rows[0]["t_send"] == 50 * MS
    assert 1 < len(rows[0]["event_ns"]) < 30
    assert rows[1]["t_intended"] == rows[0]["t_end"]


def test_a_load_that_ends_by_time_drains_and_then_cancels(play: Play) -> None:
    """No send at or after the end; what is still in flight when the drain is over is cancelled there."""
    rows = play([(1, 20), (1, 1_000)], slots=3, duration_ns=300 * MS, drain_ns=100 * MS, again=True)
    assert max(row["t_send"] for row in rows) < START_NS + 300 * MS
    cancelled = [row for row in rows if row["outcome"] == "cancelled"]
    assert cancelled
    assert {row["t_end"] for row in cancelled} == {START_NS + 400 * MS}
    assert {row["cycle"] for row in rows} > {0}


def test_who_asks_to_stop_is_heard(play: Play) -> None:
    """Asked to stop without a drain, everything in flight ends as cancelled and the rest is never sent."""
    rows = play([(1, 20_000)] * 10, slots=2, heard=lambda: 0)
    assert [row["outcome"] for row in rows] == ["cancelled"] * 2


@pytest.mark.parametrize("slots", [1, 4])
def test_the_clock_starts_where_null_cannot_be_meant(play: Play, slots: int) -> None:
    """0 means "did not happen" in a record, so virtual time begins later, and a pulse is not waited for."""
    rows = play([(1, 1)] * slots, slots=slots)
    assert all(row["t_intended"] == START_NS for row in rows)
    assert rows[0]["t_end"] < START_NS + PULSE_NS
