"""The tests of draft section 5 with tasks for a compound system and with recorded sessions of agents (draft 4.1.3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import recorded_sessions
from procedures.driving import carried_out

from inferometer.errors import PlanError
from inferometer.plan.campaign import ALL, campaign
from inferometer.plan.schema import Plan

WITH_TASKS = {"ttft", "throughput", "tradeoff", "itl", "capacity", "guardrail"}
WITH_SESSIONS = {"ttft", "throughput", "tradeoff", "itl", "capacity", "guardrail"}


def tasks(folder: Path) -> str:
    """A file of tasks, which name lengths of their own."""
    path = folder / "tasks.jsonl"
    rows = [
        {"task": f"t{n}", "input": f"Say {n}.", "output_tokens": 20 + n, "criterion": {"regex": "."}}
        for n in range(5)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def sessions(folder: Path) -> str:
    """A file of sessions of four steps each."""
    path = recorded_sessions.written(folder / "s.jsonl", [recorded_sessions.agent(f"s{n}") for n in range(6)])
    return str(path)


def refused(
    names: tuple[str, ...], workload: dict[str, Any], *parameters: str, **more: str
) -> dict[str, str]:
    """Which of these tests are refused for a system behind a URL, and with what words."""
    given = {"url": "http://127.0.0.1:1", "rate": "1", "boundary": "compound", **workload, **more}
    flags = {f"--{name}": value for name, value in given.items()}
    try:
        campaign(names, None, flags, parameters, own_system=True)
    except PlanError as wrong:
        return {problem.where: problem.message for problem in wrong.problems}
    return {}


def test_levels_send_the_tasks_themselves_and_so_does_the_warm_up(tmp_path: Path) -> None:
    """Law: no run of a test sends a compound system anything but its tasks, and the rate counts tasks."""
    plan = Plan.model_validate({"workload": {"tasks": tasks(tmp_path)}, "load": {"rate": 20, "requests": 50}})
    ran = carried_out(tmp_path, "ttft", plan=plan, tests={"ttft": {"requests": 60}}, quick=True)
    assert len(ran.summaries) == 2
    assert {one["plan"]["workload"]["kind"] for one in ran.summaries.values()} == {"tasks"}
    assert all(one["tasks"]["all"]["ended"] == one["requests"]["sent"] for one in ran.summaries.values())
    (level,) = ran.of("ttft", "level")
    assert (level["load"]["offered"]["rate"], level["requests"]["sent"]) == (20, 60)
    names = [one["name"] for one in ran.test("ttft")["values"]]
    assert "task_success" not in names, "an engine's filler is not judged"


def test_answers_whose_lengths_tasks_name_are_not_called_of_one_length(tmp_path: Path) -> None:
    """Law: capacity asks for answers of one length (draft 5.5.2), and says that a file of tasks has its own."""
    plan = Plan.model_validate({"workload": {"tasks": tasks(tmp_path)}, "load": {"rate": 20, "requests": 50}})
    wanted = {"capacity": {"initial": 2, "maximum": 4, "duration_s": 1, "completions_per_slot": 2}}
    ran = carried_out(tmp_path, "capacity", plan=plan, tests=wanted, quick=True)
    assert ran.value("capacity", "max_concurrency") == 4
    assert '"D-5.5.2-output"' in json.dumps(ran.test("capacity")["compliance"]["deviations"])


def test_a_rate_of_sessions_counts_sessions(tmp_path: Path) -> None:
    """Law: a level of recorded sessions begins sessions at its rate, sends all their steps, and is called by that rate."""
    plan = Plan.model_validate(
        {
            "workload": {"sessions": sessions(tmp_path), "output_tokens": 4},
            "load": {"rate": 5, "requests": 40},
        }
    )
    ran = carried_out(
        tmp_path, "ttft", plan=plan, tests={"ttft": {"requests": 240, "rates": [5, 6]}}, quick=True
    )
    assert {one["at"] for one in ran.test("ttft")["values"]} == {"5 sessions/s", "6 sessions/s"}
    level, _ = ran.of("ttft", "level")
    begun = level["agent_sessions"]
    assert level["requests"]["sent"] == 240
    assert begun["begun"] == 60
    seconds = level["window"]["duration_s"]
    assert 60 / seconds == pytest.approx(5, rel=0.5)
    assert {one["plan"]["workload"]["kind"] for one in ran.summaries.values()} == {"sessions"}


def test_capacity_is_of_sessions_at_once(tmp_path: Path) -> None:
    """Law: a slot of capacity holds a session until all its steps have ended."""
    plan = Plan.model_validate(
        {
            "workload": {"sessions": sessions(tmp_path), "output_tokens": 4},
            "load": {"rate": 5, "requests": 40},
        }
    )
    wanted = {"capacity": {"initial": 2, "maximum": 4, "duration_s": 1, "completions_per_slot": 4}}
    ran = carried_out(tmp_path, "capacity", plan=plan, tests=wanted, quick=True)
    assert ran.value("capacity", "max_concurrency") == 4
    assert all(one["agent_sessions"] for one in ran.of("capacity", "level"))


def test_tests_of_other_words_are_refused_with_the_reason(tmp_path: Path) -> None:
    """Law: a test that would send what is no task, or no session, is refused, and each by its own reason."""
    of_tasks = refused(ALL, {"tasks": tasks(tmp_path)})
    assert set(of_tasks) == set(ALL) - WITH_TASKS
    assert "inside its boundary" in of_tasks["prefix-cache"]
    of_sessions = refused(ALL, {"sessions": sessions(tmp_path)})
    assert set(of_sessions) == set(ALL) - WITH_SESSIONS
    assert "repeat its own words" in of_sessions["prefix-cache"]
    assert refused(("ttft",), {"sessions": sessions(tmp_path)}, "ttft.percent=[50]") == {}


def test_a_search_by_tokens_that_nobody_counts_is_refused(tmp_path: Path) -> None:
    """Law: without a tokenizer a compound system has no output tokens per second, by which a search goes."""
    given = {"tasks": tasks(tmp_path)}
    assert (
        "output tokens per second" in refused(("throughput", "itl"), given, tokenizer="none")["--tokenizer"]
    )
    assert refused(("ttft", "capacity"), given, tokenizer="none") == {}
