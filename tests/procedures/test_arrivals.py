"""The tests of draft section 5 with conversations and recorded sessions: what a rate counts, and how long a level lasts.

The engine computes the same for a step that continues nothing as for a request by itself. So what it can do is known in
requests a second, and sessions of k such steps have to come to a k-th of it, whatever passes between them.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from procedures.driving import Ran, carried_out
from procedures.modelled import summary
from procedures.summaries import changed

from inferometer.measure.breakdown import Conversations
from inferometer.plan.schema import Plan
from inferometer.procedures.arrivals import REQUESTS, Arrivals, arrivals_of, unit_of
from inferometer.procedures.plateau import SIZING
from inferometer.procedures.setup import workload_key
from inferometer.procedures.step import KnownLimits
from inferometer.server.engine.settings import Settings

ENGINE = Settings(step_base_ns=20_000_000, step_per_request_ns=2_000_000, max_batch=8, jitter=0.01)
"""A batch of 8 takes 36 ms a step: some 220 output tokens a second, less prefill."""
OUTPUTS = (8, 24)


def sessions(folder: Path, steps: int, tool_ms: float = 0) -> Plan:
    """Sessions of steps that each begin a conversation of their own."""
    rng, lines = random.Random(5), []
    for number in range(240 // steps):
        made: list[dict[str, Any]] = []
        for at in range(steps):
            text = " ".join(rng.choice(("river", "long", "the", "of", "blue", "stone")) for _ in range(30))
            one: dict[str, Any] = {"messages": [{"role": "user", "content": text}], "extends": None,
                                   "reply": {"content": "ok"}, "output_tokens": rng.randint(*OUTPUTS)}  # fmt: skip
            made.append(one | ({"after": [at - 1], "tool_ms": tool_ms} if at else {}))
        lines.append(json.dumps({"session": f"s{number}", "steps": made}))
    path = folder / f"{steps}-{tool_ms:g}.jsonl"
    path.write_text("\n".join(lines))
    return Plan.model_validate({"workload": {"sessions": str(path)}, "load": {"rate": 1}})


def maximum(folder: Path, plan: Plan) -> Ran:
    """5.2's search."""
    wanted = {"throughput": {"duration_s": 20, "limit_levels": 1}, "search": {"pilot_concurrency": 8}}
    return carried_out(folder, "throughput", engine=ENGINE, plan=plan, tests=wanted, quick=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> float:
    """What the engine can do, requests a second: of sessions of one step."""
    folder = tmp_path_factory.mktemp("alone")
    return float(maximum(folder, sessions(folder, 1)).value("throughput", "max_request_s"))


@pytest.mark.parametrize(("steps", "tool_ms"), [(6, 0), (6, 3_000)])
def test_sessions_come_to_the_saturation_of_their_requests(
    tmp_path: Path, alone: float, steps: int, tool_ms: float
) -> None:
    """Law: without reuse, sessions of k steps saturate at a k-th of the requests; with tools it takes more of them in flight
    than the batch has room for."""
    ran = maximum(tmp_path, sessions(tmp_path, steps, tool_ms))
    rate = ran.value("throughput", "sustainable_rate")
    assert rate * steps == pytest.approx(alone, rel=0.05)
    assert ran.value("throughput", "max_request_s") == pytest.approx(alone, rel=0.05)
    units = {one["name"]: one["unit"] for one in ran.test("throughput")["values"]}
    assert (units["sustainable_rate"], units["limited_rate"], units["max_request_s"]) == (
        "sessions/s", "sessions/s", "req/s",
    )  # fmt: skip
    climbed = [run["at"]["concurrency"] for run in ran.test("throughput")["runs"] if run["part"] == "pilot"]
    assert max(climbed) > 8 * (3 if tool_ms else 1)
    levels = ran.of("throughput", "level")
    assert [one["load"]["offered"]["rate_of"] for one in levels] == ["sessions"] * len(levels)
    longest = max(one["agent_sessions"]["duration_ms"]["p50"] for one in levels[:1])
    assert min(one["window"]["duration_s"] for one in levels) > 2 * longest / 1000


def test_percentages_of_sessions_are_of_the_rate_of_sessions(tmp_path: Path, alone: float) -> None:
    """Law: at 50 % of saturation half of what the engine can do is offered, in requests, by whatever sessions."""
    wanted = {"ttft": {"percent": [50], "requests": 600}, "search": {"pilot_concurrency": 8}}
    ran = carried_out(
        tmp_path, "ttft", engine=ENGINE, plan=sessions(tmp_path, 6, 500), tests=wanted, quick=True
    )
    (level,) = ran.of("ttft", "level")
    assert level["plan"]["load"]["rate"] * 6 == pytest.approx(alone / 2, rel=0.1)
    assert level["steady"]["completion_ratio"] > 0.92
    assert "sessions/s" in ran.test("ttft")["runs"][-1]["why"]
    assert "requests/s" not in ran.test("ttft")["runs"][-1]["why"]
    assert {run["part"] for run in ran.test("ttft")["runs"]} >= {SIZING, "base-pilot", "level"}


def test_levels_of_the_tradeoff_last_as_long_as_their_sessions_need(tmp_path: Path, alone: float) -> None:
    """Law: levels are percentages of a rate of sessions, in its unit, and none that is carried is too short for them."""
    wanted = {"tradeoff": {"percent": [40, 80]}, "search": {"pilot_concurrency": 8}}
    plan = sessions(tmp_path, 6, 2_000)
    ran = carried_out(tmp_path, "tradeoff", engine=ENGINE, plan=plan, tests=wanted, quick=True)
    base = next(one for one in ran.test("tradeoff")["values"] if one["name"] == "capacity_rate")
    assert base["unit"] == "sessions/s"
    assert base["value"] * 6 == pytest.approx(alone, rel=0.1)
    first = ran.of("tradeoff", "level")[0]
    assert first["plan"]["load"]["rate"] == pytest.approx(0.4 * base["value"], rel=1e-3)
    assert "filling" not in {one["code"] for one in ran.test("tradeoff")["verdict"]["reasons"]}


def test_a_maximum_with_filters_is_of_whole_sessions(tmp_path: Path) -> None:
    """Law: slots that begin together send the same steps together, so a run with a full system goes through its sessions
    several times, however short a run was asked for."""
    wanted = {
        "guardrail": {"concurrency": 32, "throughput_s": 2, "percent": [50], "configurations": ["output"]},
        "search": {"pilot_concurrency": 8},
    }
    ran = carried_out(
        tmp_path, "guardrail", engine=ENGINE, plan=sessions(tmp_path, 6, 500), tests=wanted, quick=True
    )
    full = ran.of("guardrail", "throughput")
    assert full
    assert all(one["agent_sessions"]["finished"] >= 2 * 32 for one in full)


def test_a_level_of_sessions_in_flight_has_them_in_flight(tmp_path: Path) -> None:
    """Law: a level of so many sessions at once goes through several for each slot, however few requests were asked for."""
    wanted = {
        "capacity": {
            "initial": 8,
            "maximum": 32,
            "completions_per_slot": 2,
            "duration_s": 1,
            "ttft_p99_ms": 60_000,
        }
    }
    ran = carried_out(
        tmp_path, "capacity", engine=ENGINE, plan=sessions(tmp_path, 6, 0), tests=wanted, quick=True
    )
    found = ran.of("capacity", "level")
    assert max(one["plan"]["load"]["concurrency"] for one in found) == 32
    assert all(one["agent_sessions"]["begun"] >= 3 * one["plan"]["load"]["concurrency"] for one in found)


def test_a_level_that_is_short_beside_its_sessions_decides_nothing(tmp_path: Path) -> None:
    """Law: a run that ends about when its first sessions do is of a system that they never filled: `filling` leaves it open."""
    plan = sessions(tmp_path, 6, 4_000)
    wanted = {"ttft": {"rates": [1], "requests": 60}}
    ran = carried_out(tmp_path, "ttft", engine=ENGINE, plan=plan, tests=wanted, quick=True)
    verdict = ran.test("ttft")["verdict"]
    assert verdict["status"] == "INCONCLUSIVE"
    assert "filling" in {one["code"] for one in verdict["reasons"]}


def test_conversations_saturate_by_their_turns(tmp_path: Path) -> None:
    """Law: a search offers conversations by their turns: at the rate that it answers, the engine keeps up with as many requests
    as it was measured to do, and 5.2's other rates are of requests."""
    words = {
        "name": "custom",
        "input_tokens": 40,
        "output_tokens": 16,
        "turns": "uniform(2,6)",
        "think_ms": 300,
    }
    plan = Plan.model_validate({"workload": words, "load": {"rate": 1}})
    ran = maximum(tmp_path, plan)
    rate, requests = (ran.value("throughput", name) for name in ("sustainable_rate", "max_request_s"))
    assert rate * 4 == pytest.approx(requests, rel=0.1)
    rates = [one["plan"]["load"]["rate"] for one in ran.of("throughput", "level")]
    assert max(rates) < 1.3 * rate
    (offered,) = {
        one["unit"] for one in ran.test("throughput")["tables"][2]["columns"] if one["name"] == "rate"
    }
    assert offered == "conversations/s"


def talks(begun: int, left_out: int, turns_std: float) -> Conversations:
    """What a run saw of its conversations."""
    return Conversations(begun, begun, 0, 0, left_out, (), turns_std)


def test_what_an_arrival_brings_is_counted_in_those_that_were_begun() -> None:
    """Law: steps planned by sessions begun; of drawn turns the distribution's mean; one each where nothing tells."""
    plan = Plan.model_validate({"workload": {"sessions": "s.jsonl"}})
    run = changed(summary(plan, request_s=5.0, completed=30), conversations=talks(10, 10, 2.0))
    found = arrivals_of(plan, [run, run])
    assert (found.unit, found.each) == ("sessions", 4.0)
    assert found.half == pytest.approx(1.96 * 2.0 / 4.0 / math.sqrt(20))
    assert run.requests_each == 4.0
    assert arrivals_of(plan, []) == Arrivals("sessions")
    drawn = Plan.model_validate({"workload": {"turns": "uniform(2,6)"}})
    assert arrivals_of(drawn, [run]) == Arrivals("conversations", 4.0)
    assert arrivals_of(Plan(), [run]) is REQUESTS
    assert unit_of(Plan()) == "requests"


@pytest.mark.parametrize("lengths", [(1,) * 9 + (41,), (10, 90), (5, 5)])
def test_chance_of_sessions_is_that_of_all_their_steps(lengths: tuple[int, ...]) -> None:
    """Law: of sessions that bring k requests each, their number varies E[k^2] / E[k] times as much as that of single ones, and
    the mean of k by its deviation, however long the longest are."""
    mean, square = (sum(k**power for k in lengths) / len(lengths) for power in (1, 2))
    of_all = talks(len(lengths), 0, math.sqrt(square - mean**2))
    plan = Plan.model_validate({"workload": {"sessions": "s.jsonl"}})
    run = changed(summary(plan, request_s=5.0, completed=sum(lengths)), conversations=of_all)
    assert run.requests_at_once == pytest.approx(square / mean)
    cv = math.sqrt(square / mean**2 - 1)
    assert arrivals_of(plan, [run]).half == pytest.approx(1.96 * cv / math.sqrt(len(lengths)))


def test_a_rate_of_arrivals_and_one_of_requests_are_each_others_inverse() -> None:
    """Law: requests(rate(x)) is x, and an interval holds its value and grows by the chance of how many an arrival brings."""
    four = Arrivals("conversations", 4.0, 0.1)
    assert four.requests(four.rate(10.0)) == pytest.approx(10.0)
    assert four.seconds(100, 2.5) == pytest.approx(10.0)
    ends = four.rates((9.0, 11.0))
    assert ends is not None
    assert ends[0] < 9 / 4 < 2.5 < 11 / 4 < ends[1]
    assert REQUESTS.rates((9.0, 11.0)) == (9.0, 11.0)
    assert (four.column, REQUESTS.column, REQUESTS.per_second) == ("conversations/s", "req/s", "requests/s")


def test_what_is_known_of_conversations_is_not_known_of_their_requests() -> None:
    """Law: a saturation rate is of one workload, turns included, so that it is never taken in another unit."""
    one, four = (Plan.model_validate({"workload": {"turns": turns}}) for turns in (None, 4))
    assert workload_key(one) != workload_key(four)
    known = KnownLimits({workload_key(four): 2.0}, lives={workload_key(four): 9.0}) | KnownLimits()
    assert workload_key(one) not in known.saturation
    assert known.lives == {workload_key(four): 9.0}
