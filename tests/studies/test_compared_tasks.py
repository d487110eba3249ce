"""Comparisons of systems that were given tasks, and of recorded sessions: what only the answers, or whole sessions, show."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted_campaigns import a_campaign, a_test, compared, saved
from planted_campaigns import figure as campaign_figure
from recorded_sessions import agent, written
from simulating import simulated

from inferometer.documents.comparison import ComparisonDocument, Difference
from inferometer.documents.note import WordedNote
from inferometer.judge.comparison import rules
from inferometer.studies.comparison import Question, compare_folders
from inferometer.studies.history.entries import of_run

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


def tasks_in(path: Path, criterion: dict[str, object]) -> dict[str, object]:
    """Flags of a run of the tasks with this criterion."""
    path.write_text("".join(f"{json.dumps({**one, 'criterion': criterion})}\n" for one in TASKS))
    return {
        "--boundary": "compound",
        "--tasks": str(path),
        "--rate": "5",
        "--requests": "200",
        "--warmup": "0",
    }


def test_answers_held_to_other_criteria_are_not_compared(tmp_path: Path) -> None:
    """Law: files of the same inputs make the same requests; shares by different criteria are different figures."""
    for name, criterion, wrong in (("A", {"regex": "391|42"}, "0.1"), ("B", {"regex": "."}, "0.9")):
        flags = tasks_in(tmp_path / f"{name}.jsonl", dict(criterion))
        for seed in (1, 2, 3):
            settings = (f"wrong_answer={wrong}",)
            simulated(tmp_path / name, flags | {"--seed": str(seed)}, *settings, system="agent")
    found = compare_folders([str(tmp_path / "A"), str(tmp_path / "B")], Question()).document
    assert figure(found, "task_success_rate").verdict == "not_comparable"
    assert found.outcome == "no_claim"
    (same,) = (one for one in found.checklist if one.code == "success")
    assert (same.status, same.facts.keys) == ("violated", ("task_criteria",))


def test_where_the_file_lies_is_no_difference(tmp_path: Path) -> None:
    """Law: a file of tasks is known by its digest, and what is done with answers after the load changes no request."""
    for name in ("A", "B"):
        (tmp_path / name).mkdir()
        flags = tasks_in(tmp_path / name / "t.jsonl", {"regex": "391|42"}) | {"--task-commands": name == "A"}
        for seed in (1, 2, 3):
            simulated(tmp_path / name, flags | {"--seed": str(seed)}, system="agent")
    found = compare_folders([str(tmp_path / "A"), str(tmp_path / "B")], Question()).document
    assert {one.code: one.status for one in found.checklist}["specification"] == "satisfied"
    assert found.outcome == "no_regression"


def test_a_command_that_gives_up_on_wrong_answers_hides_no_regression(tmp_path: Path) -> None:
    """Law: where what could not be judged may be what is wrong, nothing is claimed."""
    check = (
        "import os, sys; right = {'product': '391', 'sum': '42'}[os.environ['INFEROMETER_TASK']]; "
        "sys.exit(0 if right in sys.stdin.read() else 2)"
    )
    flags = tasks_in(tmp_path / "t.jsonl", {"command": [sys.executable, "-c", check]})
    flags |= {"--task-commands": True, "--requests": "100"}
    found = sides(tmp_path, flags, "wrong_answer=0.2", "agent")
    assert figure(found, "task_success_rate").verdict == "no_claim"
    assert found.outcome == "no_claim"


@pytest.mark.parametrize(("code", "kept"), [(1, True), (2, False)])
def test_history_keeps_no_share_that_unjudged_answers_leave_open(
    code: int, kept: bool, tmp_path: Path
) -> None:
    """Law: a share is kept where it is known to within the least change that matters; a failure is known, giving up is not."""
    check = f"import os, sys; sys.exit(0 if os.environ['INFEROMETER_TASK'] == 'sum' else {code})"
    flags = tasks_in(tmp_path / "t.jsonl", {"command": [sys.executable, "-c", check]})
    flags |= {"--task-commands": True, "--requests": "20"}
    names = [one.name for one in of_run(simulated(tmp_path, flags, system="agent").summary, None).figures]
    assert ("task_success_rate" in names) is kept


SHARE = st.floats(-1, 1)


@given(SHARE, st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 0.5), st.booleans())
def test_a_verdict_that_what_is_unknown_could_overturn_does_not_stand(
    middle: float, half: float, down: float, up: float, more: bool
) -> None:
    """Law: better and worse mirror each other, what stands is what every place in the unknown would have said, and nothing
    unknown overturns nothing."""
    interval, unknown = (middle - half, middle + half), (-down, up)

    def at(shift: float) -> str:
        low, high = interval[0] + shift, interval[1] + shift
        if low <= 0 <= high:
            return "no_difference"
        return "better" if (low > 0) is more else "worse"

    verdict = at(0)
    ends = {at(-down), at(up)}
    stood = rules.stands(verdict, interval, unknown, 0.0, more=more)  # type: ignore[arg-type] # one of them
    assert stood is ("worse" not in ends if verdict == "no_difference" else ends == {verdict})
    assert rules.stands(verdict, interval, (0.0, 0.0), 0.0, more=more)  # type: ignore[arg-type]


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


# Campaigns.


def campaigns_of(folder: Path, shares: tuple[float, ...], notes: tuple[WordedNote, ...] = ()) -> str:
    """Campaigns of one TTFT whose tasks succeeded to these shares, in %."""
    found = [
        a_campaign(
            10 * (folder.name == "b") + at,
            at + 1,
            [a_test("ttft", {"ttft_p50": 40.0 + at, "task_success": share}, notes=notes)],
        )
        for at, share in enumerate(shares)
    ]
    return saved(folder, found)


def test_campaigns_that_are_as_fast_and_more_often_wrong_are_a_regression(tmp_path: Path) -> None:
    """Law: what stands for a test says nothing of the answers, so their success decides beside it, both ways."""
    a, b = (
        campaigns_of(tmp_path / name, shares)
        for name, shares in (("a", (95.0, 96.0, 95.5)), ("b", (50.0, 51.0, 50.5)))
    )
    for sides, verdict in (((a, b), "worse"), ((b, a), "better")):
        document = compared(*sides)
        found = campaign_figure(document, "ttft.task_success")
        assert (found.verdict, found.deciding, found.change) == (verdict, True, "points")
        assert document.outcome == ("regression" if verdict == "worse" else "no_regression")


def test_campaigns_whose_answers_were_not_all_judged_hide_no_regression(tmp_path: Path) -> None:
    """Law: with the unjudged answers as failures, the side is worse; so nothing is claimed."""
    judged = {"ended": 100, "succeeded": 60, "unjudged": 37}
    b = campaigns_of(tmp_path / "b", (95.2, 95.8, 95.6), (WordedNote("tasks_succeeded", judged, True, "x"),))
    a = campaigns_of(
        tmp_path / "a",
        (95.0, 96.0, 95.5),
        (WordedNote("tasks_succeeded", {"ended": 1000, "succeeded": 955, "unjudged": 0}, True, "x"),),
    )
    document = compared(a, b)
    assert campaign_figure(document, "ttft.task_success").verdict == "no_claim"
    assert document.outcome == "no_claim"
