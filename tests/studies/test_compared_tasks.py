"""Comparisons of systems that were given tasks, and of recorded sessions: what only the answers, or whole sessions, show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recorded_sessions import agent, written
from simulating import simulated

from inferometer.documents.comparison import ComparisonDocument, Difference
from inferometer.studies.comparison import Question, compare_folders

TASKS = [
    {"task": "product", "input": "What is 17 * 23?", "criterion": {"regex": "391"}, "output_tokens": 40},
    {"task": "sum", "input": "What is 12 + 30?", "criterion": {"number": 42}, "output_tokens": 40},
]


def sides(tmp_path: Path, flags: dict[str, object], changed: str, system: str | None) -> ComparisonDocument:
    """Three runs of a system as it is, and three with a setting changed."""
    for name, settings in (("A", ()), ("B", (changed,))):
        for seed in (1, 2, 3):
            simulated(tmp_path / name, flags | {"--seed": str(seed)}, *settings, system=system)
    return compare_folders([str(tmp_path / "A"), str(tmp_path / "B")], Question()).document


def figure(found: ComparisonDocument, name: str) -> Difference:
    return next(one for one in found.contrasts[0].metrics if one.name == name)


@pytest.mark.parametrize(("wrong", "outcome"), [("0", "no_regression"), ("0.5", "regression")])
def test_a_system_that_answers_as_fast_and_more_often_wrongly_is_a_regression(
    wrong: str, outcome: str, tmp_path: Path
) -> None:
    """Law: nothing but the answers differs, and the share of tasks that succeeded decides."""
    file = tmp_path / "t.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in TASKS))
    flags: dict[str, object] = {
        "--boundary": "compound", "--tasks": str(file), "--rate": "5", "--requests": "200", "--warmup": "0",
    }  # fmt: skip
    found = sides(tmp_path, flags, f"wrong_answer={wrong}", "agent")
    assert found.outcome == outcome
    success = figure(found, "task_success_rate")
    assert success.deciding
    assert success.verdict == ("worse" if outcome == "regression" else "no_difference")
    assert figure(found, "e2e_p50").relative == 0


@pytest.mark.parametrize(("wrong", "met"), [("0", True), ("0.9", False)])
def test_an_objective_on_task_success_is_decided_by_its_interval(
    wrong: str, met: bool, tmp_path: Path
) -> None:
    file = tmp_path / "t.jsonl"
    tasks = [{**TASKS[at % 2], "task": str(at)} for at in range(100)]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in tasks))
    flags: dict[str, object] = {
        "--boundary": "compound", "--tasks": str(file), "--rate": "5", "--requests": "100", "--warmup": "0",
        "--slo": ["task_success_rate>90%"],
    }  # fmt: skip
    (outcome,) = simulated(tmp_path, flags, f"wrong_answer={wrong}", system="agent").summary.slos
    assert outcome.met is met
    assert outcome.value == pytest.approx(1 - float(wrong), abs=0.12)


def test_sessions_are_compared_as_wholes(tmp_path: Path) -> None:
    """Law: an engine of half the speed takes longer to the last answer, and ends fewer sessions a second."""
    file = written(tmp_path / "s.jsonl", [agent(str(at)) for at in range(60)])
    flags: dict[str, object] = {"--sessions": str(file), "--concurrency": "8", "--warmup": "0"}
    found = sides(tmp_path, flags, "step_base=40ms", None)
    assert figure(found, "session_last_answer_p50").verdict == "worse"
    assert figure(found, "session_s").verdict == "worse"
    assert all(one.name != "task_success_rate" for one in found.contrasts[0].metrics)
