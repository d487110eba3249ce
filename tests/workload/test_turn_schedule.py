"""Which requests are whose, and when: laws of places."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.plan.lengths import fixed, uniform
from inferometer.plan.schema import Load
from inferometer.plan.workload import AnyWorkload, workload_of
from inferometer.workload.turn_schedule import MOST_TURNS, ONE_TURN, Place, arranged, drawn

turns = st.integers(1, 6).flatmap(lambda low: st.integers(low, 8).map(lambda high: uniform(low, high)))
thinks = st.one_of(st.none(), st.integers(1, 50).map(fixed))
LOADS = {
    "open": Load(rate=20, requests=1, warmup=0),
    "closed": Load(concurrency=4, requests=1, warmup=0),
    "users": Load(users=5, user_rate=3, requests=1, warmup=0),
}


def placed(load: Load, spec: AnyWorkload, requests: int) -> list[Place]:
    load = load.model_copy(update={"requests": requests})
    return arranged(load, spec.seed, drawn(spec), requests, warm=False, alone=False)


@given(turns, thinks, st.integers(1, 120), st.sampled_from(sorted(LOADS)), st.integers(0, 9))
def test_sessions_stand_one_after_the_other_and_only_the_last_is_cut(
    length: object, think: object, requests: int, model: str, seed: int
) -> None:
    """Turns count from 0 to the session's own number, think times are the plan's, and there are as many places as asked for."""
    spec = workload_of({"turns": length, "think_ms": think, "seed": seed})
    places = placed(LOADS[model], spec, requests)
    assert len(places) == requests
    groups = [list(group) for _, group in groupby(places, lambda place: place.session)]
    assert [group[0].session for group in groups] == list(range(len(groups)))
    for group, session in zip(groups, drawn(spec), strict=False):
        assert [place.turn for place in group] == list(range(len(group)))
        assert {place.turns for place in group} == {len(session)}
        assert [place.think_ns for place in group] == list(session[: len(group)])
        assert len(group) == len(session) or group is groups[-1]


@given(turns, st.integers(1, 150), st.integers(0, 9))
def test_an_open_loops_sessions_begin_at_the_arrivals_and_later_turns_have_no_instant(
    length: object, requests: int, seed: int
) -> None:
    """The first turn alone is an arrival."""
    spec = workload_of({"turns": length, "seed": seed})
    places = placed(LOADS["open"], spec, requests)
    starts = [place.due_ns for place in places if place.turn == 0]
    assert starts == sorted(starts)  # type: ignore[type-var] # none of them is None
    assert all(place.due_ns is None for place in places if place.turn)


@given(turns, st.integers(1, 150), st.sampled_from(["constant", "poisson", "gamma"]), st.integers(0, 9))
@settings(deadline=None)
def test_a_user_asks_at_each_of_its_instants_in_turn_and_none_is_left_behind(
    length: object, requests: int, arrival: str, seed: int
) -> None:
    """Instants of a user ascend and belong to one conversation after the other; without turns they are shared out evenly."""
    load = LOADS["users"].model_copy(update={"arrival": arrival})
    spec = workload_of({"turns": length, "seed": seed})
    places = placed(load, spec, requests)
    for user in range(5):
        mine = [place for place in places if place.user == user]
        assert all(a.due_ns < b.due_ns for a, b in pairwise(mine))  # type: ignore[operator]
        assert [place.session for place in mine] == sorted(place.session for place in mine)  # type: ignore[type-var]
    alone = arranged(load, seed, iter(lambda: ONE_TURN, None), requests, warm=False, alone=True)
    assert [place.due_ns for place in alone] == sorted(place.due_ns for place in alone)  # type: ignore[type-var]
    assert {place.session for place in alone} == {None}
    if arrival == "constant":
        counts = Counter(place.user for place in alone)
        assert max(counts.values()) - min(counts[user] for user in range(5)) <= 1


def test_a_duration_ends_users_and_starts() -> None:
    """No instant at its end or behind it, and none missing before it."""
    load = Load(users=4, user_rate=10, duration_s=2)
    places = arranged(load, 1, drawn(workload_of({"turns": 3})), None, warm=False, alone=False)
    assert sorted(place.due_ns for place in places) == [i * 25_000_000 for i in range(80)]  # type: ignore[type-var]
    load = Load(rate=10, duration_s=2, arrival="constant")
    places = arranged(load, 1, drawn(workload_of({"turns": 3})), None, warm=False, alone=False)
    assert (len(places), places[-1].session) == (60, 19)


def test_what_is_drawn_for_a_session_does_not_depend_on_how_many_are_asked_for() -> None:
    """And a cap of turns takes nothing from the generator."""
    spec = workload_of({"turns": "uniform(1,9)", "think_ms": "uniform(1,99)"})
    free = list(islice(drawn(spec), 30))
    capped = list(drawn(spec, [2] * 30))
    assert capped == [session[:2] for session in free]
    assert list(islice(drawn(spec), 5)) == free[:5]


def test_no_conversation_has_more_turns_than_a_schedule_can_count() -> None:
    most = next(drawn(workload_of({"turns": fixed(MOST_TURNS)})))
    assert len(most) == MOST_TURNS
    longer = workload_of({"turns": fixed(MOST_TURNS + 1)})
    with pytest.raises(PlanError, match="turns"):
        next(drawn(longer))
    assert len(next(drawn(longer, [3]))) == 3
