"""Conversations and users in the plan: what they imply, what they need, what they forbid."""

from __future__ import annotations

from typing import Any

import pytest

from inferometer.documents.workload import disclosed
from inferometer.errors import PlanError
from inferometer.plan.arrivals import instants, user_instants
from inferometer.plan.lengths import fixed, uniform
from inferometer.plan.parse import build
from inferometer.plan.schema import Load, Plan


def test_the_flags_reach_their_keys() -> None:
    """Users are a load of their own with even arrivals; turns make a standard workload custom and say so."""
    plan = build(
        None,
        {
            "--users": "40", "--user-rate": "0.5", "--turns": "uniform(2,6)", "--think-ms": "300",
            "--replies": "recorded",
        },
    )  # fmt: skip
    load, workload = plan.load, plan.workload
    assert (load.model, load.users, load.user_rate, load.arrival) == ("users", 40, 0.5, "constant")
    assert load.offered_rate == 20
    assert (workload.turns, workload.think_ms, workload.replies) == (uniform(2, 6), fixed(300), "recorded")
    assert (workload.name, workload.based_on) == ("custom", "synthetic-uniform")
    assert any("turns" in line for line in workload.deviations)
    assert "recorded answers" in str(disclosed(plan).prefix)
    again = Plan.model_validate(plan.model_dump(mode="json", by_alias=True))
    assert again == plan


def test_a_flag_of_another_load_takes_the_files_users_away(tmp_path: Any) -> None:
    """As --rate does with a file's concurrency."""
    path = tmp_path / "plan.yaml"
    path.write_text("load: {users: 5, user_rate: 2}\n")
    assert build(path, {}).load.model == "users"
    assert build(path, {"--rate": "3"}).load.model == "open"
    assert build(path, {"--concurrency": "3"}).load.model == "closed"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"--users": "4"}, "--user-rate"),
        ({"--user-rate": "4"}, "--users"),
        ({"--users": "4", "--user-rate": "1", "--rate": "2"}, "choose one"),
        ({"--users": "4", "--user-rate": "1", "--concurrency": "2"}, "choose one"),
        ({"--think-ms": "5"}, "--turns"),
        ({"--replies": "recorded"}, "--turns"),
        ({"--turns": "3", "--api": "completions"}, "--api"),
        ({"--turns": "3", "--extra-body": '{"messages": []}'}, "--extra-body"),
        ({"--turns": "empirical"}, "empirical"),
        ({"--turns": "0"}, "whole number"),
        ({"--users": "9", "--user-rate": "0.000001", "--requests": "100"}, "days"),
        ({"--trace": "t.jsonl", "--users": "4", "--user-rate": "1"}, "--users"),
        ({"--trace": "t.jsonl", "--turns": "4"}, "--turns"),
        ({"--arrival": "gamma"}, "--users"),
    ],
)
def test_what_cannot_be_carried_out_is_told_with_the_flag(flags: dict[str, str], told: str) -> None:
    """Each names the flag to mend."""
    with pytest.raises(PlanError) as raised:
        build(None, flags)
    assert told in str(raised.value)


@pytest.mark.parametrize("users", [1, 3, 7])
def test_constant_users_stand_on_one_even_grid(users: int) -> None:
    """Together they are constant arrivals at the sum of their rates."""
    load = Load(users=users, user_rate=5.0)
    each = [user_instants(load, 1, user) for user in range(users)]
    together = sorted(next(one) for one in each for _ in range(20))
    even = instants(Load(rate=5.0 * users, arrival="constant"), 1, 20 * users, None)
    assert together == even.tolist()


def test_drawn_users_are_independent_and_repeatable() -> None:
    """Each has the mean gap of its rate, its own instants, and the same again from the same seed."""
    load = Load(users=2, user_rate=10.0, arrival="poisson")
    first, second = (
        [next(one) for _ in range(9000)] for one in (user_instants(load, 1, user) for user in (0, 1))
    )
    assert first != second
    assert first[:50] == [next(one) for one in [user_instants(load, 1, 0)] for _ in range(50)]
    assert first == sorted(first)
    assert abs(first[-1] / 9000 / 1e8 - 1) < 5 / 9000**0.5  # five standard errors
