"""What is measured of recorded agent sessions, by hand and by laws that hold for any of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session_play import CLOSE_MS, FAN_OUT, GAP_MS, LATE_MS, TOKENS, TTFT_MS, Faults, Played, Step, play

from inferometer.journal.schema import EventClass
from inferometer.measure.agent_sessions import (
    MOST_AGENTS,
    MOST_POSITIONS,
    UNNAMED,
    AgentSessions,
    agent_sessions,
)
from inferometer.measure.kv_reuse import BLOCK
from inferometer.measure.measurement import measure, samples_of
from inferometer.measure.record import REST
from inferometer.measure.session_time import session_times
from inferometer.measure.stats import describe, describe_in_groups
from inferometer.plan.schema import Plan

REQUEST_MS = LATE_MS + TTFT_MS + GAP_MS * (TOKENS - 1) + CLOSE_MS
"""From a step's due instant to its end."""
WALL_MS = 20 + 55 + 40 + 4 * REQUEST_MS
"""Of FAN_OUT: the subagent takes longer than the branch of the main agent."""


def measured(
    sessions: Any, *, slos: tuple[str, ...] = (), server_replies: bool = False, **played: Any
) -> AgentSessions:
    """The measurement of sessions that are played."""
    return measured_of(play(sessions, **played), slos=slos, server_replies=server_replies)


def measured_of(played: Played, *, slos: tuple[str, ...] = (), server_replies: bool = False) -> AgentSessions:
    """The measurement of what was played."""
    load = {"model": "open", "rate": 10.0, "requests": 30}
    plan = Plan.model_validate({"load": load, "tokenizer": {"name": "cl100k_base"}, "slos": slos})
    runs = played.runs(server_replies=server_replies)
    samples = samples_of(plan, runs.record)
    return agent_sessions(runs, samples, measure(plan, runs.record, samples).window)


def test_the_time_of_a_session_follows_its_critical_path() -> None:
    """By hand: plan, the subagent's two steps, the answer. The main agent's own branch runs beside them, tool and all, and is
    on no path; the shares sum to one."""
    found = measured([FAN_OUT] * 2, every_ms=5_000.0)
    assert found.duration_ms is not None
    assert found.time is not None
    assert found.path_steps is not None
    wall = WALL_MS
    assert found.duration_ms.mean == pytest.approx(wall)
    assert found.path_steps.mean == 4
    time = found.time
    assert time.tools.value == pytest.approx((20 + 50 + 10) / wall)
    assert time.thinking.value == pytest.approx((5 + 30) / wall)
    assert time.waiting.value == pytest.approx(4 * LATE_MS / wall)
    parts = (time.model, time.tools, time.thinking, time.waiting)
    assert sum(part.value for part in parts) == pytest.approx(1.0)


def test_what_the_user_sees_is_of_visible_steps_alone() -> None:
    """The first token of a planning step is none of the task's; the last answer ends before what runs on behind it."""
    tail = (*FAN_OUT, Step((4,), 4, tool=500.0, agent="main"))
    found = measured([tail] * 2, every_ms=5_000.0)
    assert found.ttft_ms is not None
    assert found.last_answer_ms is not None
    assert found.duration_ms is not None
    due = WALL_MS - REQUEST_MS
    assert found.ttft_ms.mean == pytest.approx(due + LATE_MS + TTFT_MS)
    assert found.last_answer_ms.mean == pytest.approx(due + REQUEST_MS - CLOSE_MS)
    assert found.duration_ms.mean == pytest.approx(due + REQUEST_MS + 500 + REQUEST_MS)
    unseen = measured([(Step(), Step((0,), 0))] * 2)
    assert unseen.ttft_ms is None
    assert unseen.last_answer_ms is None


def test_the_first_token_of_a_task_is_one_of_its_answer_and_not_of_the_reasoning_before_it() -> None:
    """Reasoning is a token to the system, and nothing to the user: two events of it move the task's TTFT by their gaps."""
    played = play([(Step(visible=True),)] * 2)
    rows = []
    for one in played.rows:
        classes = [EventClass.REASONING] * 2 + [EventClass.CONTENT] * (TOKENS - 2)
        events = [(at, kind) for (at, _), kind in zip(one["events"], classes, strict=True)]
        rows.append({**one, "events": events, "first_answer": 2})
    thought = replace(played, rows=tuple(rows))
    plain, reasoned = measured_of(played).ttft_ms, measured_of(thought).ttft_ms
    assert plain is not None
    assert reasoned is not None
    assert reasoned.mean == pytest.approx(plain.mean + 2 * GAP_MS)


def test_steps_behind_the_end_of_the_load_are_not_said_to_follow_a_failure() -> None:
    """A chain of five of which the load's end kept all but two: nothing failed, so nothing was skipped. With a failure in
    another session only what waits for that counts."""
    chain = tuple(Step(*(((at - 1,), at - 1) if at else ())) for at in range(5))
    cut = play([chain], Faults(dropped=[(0, 2)]))
    steps = measured_of(cut).steps
    assert (steps.planned, steps.sent, steps.skipped, steps.unsent) == (5, 2, 0, 3)
    failing = (chain[0], replace(chain[1], ok=False), *chain[2:])
    both = measured_of(play([chain, failing], Faults(dropped=[(0, 2)]))).steps
    assert (both.sent, both.skipped, both.unsent) == (4, 3, 3)


def test_sessions_end_in_one_of_three_ways_and_steps_behind_a_failure_are_skipped() -> None:
    """Finished, broken by the outcome of its first failed step, or cut."""
    broken = (FAN_OUT[0], FAN_OUT[1], Step(agent="search", ok=False), *FAN_OUT[3:])
    found = measured([FAN_OUT, broken, FAN_OUT])
    assert (found.begun, found.finished, found.broken, found.cut) == (3, 2, 1, 0)
    assert found.broken_by == {"timeout": 1}
    steps = found.steps
    assert (steps.planned, steps.sent, steps.succeeded, steps.skipped, steps.unsent) == (15, 13, 12, 2, 0)
    assert found.success is not None
    assert found.success.value == pytest.approx(2 / 3)
    assert found.duration_ms is not None
    assert found.duration_ms.n == 2


def test_the_context_grows_and_its_reuse_is_what_the_session_had_computed() -> None:
    """By hand: 400, 504 and 608 tokens. The second can reuse the 400 of the first and its answer of 4, the third 508; a cache
    of whole blocks less; a recorded answer is new to the server."""
    chain = (Step(own_tokens=400), Step((0,), 0), Step((1,), 1, visible=True))
    found = measured([chain] * 2, cached=0.5)
    assert found.context_growth is not None
    assert found.reuse is not None
    prompts, possible = 400 + 504 + 608, 404 + 508
    assert found.context_growth.mean == 208
    assert found.reuse.possible.value == pytest.approx(possible / prompts)
    blocks = sum(tokens // BLOCK * BLOCK for tokens in (404, 508))
    assert found.reuse.best.value == pytest.approx(blocks / prompts)
    assert found.reuse.seen.value == pytest.approx((202 + 254) / prompts)
    recorded = tuple(Step(one.after, one.extends, own_tokens=one.own_tokens, reply=b"{}") for one in chain)
    of_recorded = measured([recorded] * 2).reuse
    assert of_recorded is not None
    assert of_recorded.possible.value == pytest.approx((400 + 504) / prompts)
    replaced = measured([recorded] * 2, server_replies=True).reuse
    assert replaced is not None
    assert replaced.possible.value == pytest.approx(possible / prompts)
    assert measured([chain] * 2, usage_cached=None).reuse is None


def test_goodput_counts_sessions_all_of_whose_steps_meet_the_objectives() -> None:
    """One slow step spoils its session, and no other."""
    slow = (*FAN_OUT[:3], Step((2,), 2, agent="search", slow=100.0), FAN_OUT[4])
    found = measured([FAN_OUT, slow, FAN_OUT, FAN_OUT], slos=("ttft_p99<100ms",))
    assert found.good is not None
    assert found.good.value == pytest.approx(3 / 4)
    assert found.goodput_s is not None
    assert found.sessions_s is not None
    assert found.goodput_s.value <= found.sessions_s.value
    assert measured([FAN_OUT] * 2).good is None


def test_steps_are_told_apart_by_position_and_by_agent() -> None:
    """Those of high positions, and of rare agents, together; steps without a name where others have one."""
    long = (
        Step(agent="a"),
        *(Step((at,), at, agent=f"b{at % 20}") for at in range(MOST_POSITIONS + 4)),
        Step(),
    )
    found = measured([long] * 2)
    assert [group.position for group in found.by_position] == list(range(1, MOST_POSITIONS + 1))
    assert [group.and_later for group in found.by_position].count(True) == 1
    assert found.by_position[-1].sent == 2 * (len(long) - MOST_POSITIONS + 1)
    names = [group.agent for group in found.by_agent]
    assert len(names) == MOST_AGENTS + 2
    assert names[-2:] == [REST, UNNAMED]
    assert sum(group.sent for group in found.by_agent) == 2 * len(long)
    first = found.by_position[0]
    assert first.ttft_ms is not None
    assert first.ttft_ms.mean == pytest.approx(TTFT_MS)
    assert first.itl_ms is not None
    assert first.itl_ms.mean == pytest.approx(GAP_MS)
    assert measured([(Step(),)] * 2).by_agent == ()


def test_intervals_take_the_session_for_one_event() -> None:
    """Law: steps that differ between sessions and hardly within them tell as much as their sessions, not as their number."""
    random = np.random.default_rng(5)
    luck = random.exponential(200.0, 60)
    chains = [
        (
            Step(slow=float(slow), agent="a"),
            *(Step((at,), at, slow=float(slow), agent="a") for at in range(9)),
        )
        for slow in luck
    ]
    found = measured(chains, every_ms=10_000.0)
    (group,) = found.by_agent
    assert group.ttft_ms is not None
    assert group.ttft_ms.n == 600
    assert group.ttft_ms.n_effective is not None
    assert group.ttft_ms.n_effective < 120
    assert found.time is not None
    assert found.time.model.ci95 is not None
    low, high = found.time.model.ci95
    assert 0 <= low <= found.time.model.value <= high <= 1


def test_intervals_of_steps_hold_the_truth_as_often_as_they_say() -> None:
    """Law: in 200 seeded runs of 60 sessions of ten steps that share their session's luck, sent between each other's, the 95 %
    interval of the mean holds the truth in at least 92 %; one that takes each step for itself does so in about half."""
    random = np.random.default_rng(1)
    sessions, steps, truth = 60, 10, 250.0
    session = np.repeat(np.arange(sessions), steps)
    sent = np.argsort(session + np.tile(np.arange(steps) * sessions / 8, sessions), kind="stable")
    held = {"session": 0, "step": 0}
    for _ in range(200):
        luck = np.repeat(random.exponential(200.0, sessions), steps)
        values = luck + random.exponential(50.0, len(luck))
        for unit, stats in (
            ("session", describe_in_groups(values, session)),
            ("step", describe(values[sent])),
        ):
            assert stats is not None
            bounds = stats.ci95.mean
            held[unit] += bounds is None or bounds[0] <= truth <= bounds[1]
    assert held["session"] >= 184
    assert held["step"] < 130


steps_of_sessions = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.floats(0, 300), st.floats(0, 300), st.floats(0, 100)),
    min_size=1,
    max_size=9,
)


def session_of(drawn: list[Any]) -> tuple[Step, ...]:
    made = [Step(slow=drawn[0][4])]
    for number, (one, other, think, tool, slow) in enumerate(drawn[1:], 1):
        after = tuple({one % number, other % number}) if one else ()
        made.append(Step(after, None, think, tool, slow=slow))
    return tuple(made)


@given(st.lists(steps_of_sessions.map(session_of), min_size=1, max_size=5), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_parts_of_time_sum_to_the_wall_time_whatever_a_record_says(
    sessions: list[tuple[Step, ...]], seed: int
) -> None:
    """Law: to the nanosecond, none below zero; also where a damaged record has steps that end before they begin."""
    played = play(sessions)
    runs = played.runs()
    times = session_times(runs, np.ones(len(runs), np.bool_))
    assert np.array_equal(times.parts_ns.sum(axis=1), times.wall_ns)
    assert (times.parts_ns >= 0).all()
    assert (times.depth >= 1).all()
    random = np.random.default_rng(seed)
    shifted = tuple(one | {"t_end": one["t_end"] + random.uniform(-1000, 1000)} for one in played.rows)
    fresh = Played(played.schedule, played.steps, shifted).runs()
    times = session_times(fresh, np.ones(len(fresh), np.bool_))
    assert np.array_equal(times.parts_ns.sum(axis=1), times.wall_ns)
    assert (times.parts_ns >= 0).all()
