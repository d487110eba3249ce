"""Plans of tasks: their flags, what they imply, and what another plan's keys become under them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inferometer.errors import PlanError
from inferometer.plan.parse import build
from inferometer.plan.reach import reach
from inferometer.plan.schema import Plan
from inferometer.plan.workload import TasksWorkload


def test_flags_reach_their_keys(tmp_path: Path) -> None:
    """Law: tasks go out as they are, and answers end where they end, unless a plan says otherwise."""
    file = tmp_path / "t.jsonl"
    file.write_text("{}")
    workload = build(None, {"--tasks": str(file), "--task-commands": True, "--spans": "s.jsonl"}).workload
    assert isinstance(workload, TasksWorkload)
    assert (workload.path, workload.task_commands, workload.spans) == (str(file), True, "s.jsonl")
    assert (workload.repeatable_prompts, workload.ignore_eos, workload.turns) == (True, False, None)


def test_tasks_take_the_place_of_a_plans_prompts(tmp_path: Path) -> None:
    plan, file = tmp_path / "p.json", tmp_path / "t.jsonl"
    file.write_text("{}")
    plan.write_text(json.dumps({"workload": {"prompts": "p.jsonl", "order": "shuffled", "turns": 3}}))
    workload = build(plan, {"--tasks": str(file)}).workload
    assert isinstance(workload, TasksWorkload)
    assert workload.order == "shuffled"


def test_an_objective_on_task_success_needs_tasks(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text("{}")
    (objective,) = build(None, {"--tasks": str(file), "--slo": ["task_success_rate>90%"]}).slos
    assert (objective.metric, objective.limit) == ("task_success_rate", 0.9)
    with pytest.raises(PlanError, match="is about tasks: set --tasks"):
        build(None, {"--slo": ["task_success_rate>90%"]})
    with pytest.raises(PlanError, match=r"write task_success_rate>0\.99"):
        build(None, {"--tasks": str(file), "--slo": ["task_success_rate>1"]})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="--tasks"):
        build(None, {"--tasks": str(tmp_path / "none")}, environ={})


@pytest.mark.parametrize("allowed", [False, True])
def test_a_saved_plan_says_whether_commands_of_the_file_would_run(allowed: bool) -> None:
    plan = Plan.model_validate({"workload": {"tasks": "t.jsonl", "task_commands": allowed}})
    assert ("workload.task_commands" in dict(reach(plan))) == allowed
