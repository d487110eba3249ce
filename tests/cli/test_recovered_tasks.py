"""Runs of tasks and of recorded sessions: recovered when killed, judged by the files that the user names, and done again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import finish, killed, only, start, wait_for_answers
from serving import serving
from simulating import simulated

from inferometer.documents.part import to_data
from inferometer.journal import tasks
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD, Outcome, Phase
from inferometer.journal.seal import read_table
from inferometer.server.systems.settings import SystemSettings

linux = pytest.mark.skipif(sys.platform != "linux", reason="finds the processes of a run in /proc")
QUICK = SystemSettings(
    calculator_ns=1e5, search_ns=1e5, clock_ns=1e5, guardrail_ns=1e5, retrieval_ns=1e5, rerank_ns=1e5
)
ROWS: list[dict[str, Any]] = [
    {"task": "law", "input": "What is Little's law?", "criterion": {"regex": "littles-law"}},
    {"task": "never", "input": "Explain the median.", "criterion": {"exact": "never"}},
]


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps({"output_tokens": 20} | row) + "\n" for row in rows))
    return str(path)


def killed_run(out: Path, *words: str) -> Path:
    """The folder of a run whose processes were all killed in the middle of its load."""
    process = start("run", *words, "--warmup", "0", "--duration", "60s", out=out)
    folder = wait_for_answers(process, out, 12)
    killed(process, folder)
    return folder


def told(stderr: str) -> str:
    return " ".join(stderr.split())


@linux
def test_a_killed_run_of_tasks_is_judged_by_the_file_that_the_user_names(tmp_path: Path) -> None:
    """Law: nothing that the folder names is opened; what is not judged is said, with the command that judges; judged by the
    run's own file, each answer is judged as its text tells, and its spans are joined; `report` keeps that."""
    spans, file = tmp_path / "spans.jsonl", written(tmp_path / "tasks.jsonl", ROWS)
    with serving(system="rag", system_settings=QUICK, spans=spans) as port:
        folder = killed_run(
            tmp_path / "runs", "--url", f"http://127.0.0.1:{port}", "--boundary", "compound", "--tasks", file,
            "--spans", str(spans), "--rate", "40",
        )  # fmt: skip
    code, stdout, stderr = finish("recover", str(folder), "--json")
    assert code == 130
    assert f"`inferometer recover {folder} --tasks FILE --spans FILE` judges them" in told(stderr)
    assert not json.loads(stdout)["tasks"]["judged"]
    assert not (folder / "tasks.arrow").exists()
    other = written(tmp_path / "other.jsonl", ROWS[:1])
    code, _, stderr = finish("recover", str(folder), "--tasks", other)
    assert code == 2
    assert "is not the run's file of tasks" in told(stderr)
    moved = Path(file).rename(tmp_path / "moved.jsonl")
    code, stdout, stderr = finish(
        "recover", str(folder), "--tasks", str(moved), "--spans", str(spans), "--json"
    )
    assert code == 130, stderr
    account = json.loads(stdout)["tasks"]
    rows = read_table(RunFolder.open(folder).record, RECORD).to_pylist()
    ended = [row for row in rows if row["phase"] == Phase.MEASURE]
    passed = sum(row["outcome"] == Outcome.OK and "littles-law" in row["text"] for row in ended)
    assert (account["judged"], account["all"]["ended"]) == (True, len(ended))
    assert account["all"]["succeeded"] == passed > 0
    assert account["traced"]["tasks"] > 0
    (folder / "summary.json").unlink()
    spans.unlink()
    assert finish("report", str(folder))[0] == 130
    assert json.loads((folder / "summary.json").read_text())["tasks"] == account
    code, stdout, stderr = finish("recover", str(folder), "--tasks", str(moved), "--json")
    assert (code, json.loads(stdout)["tasks"]) == (130, account), stderr  # what was joined stays


def test_commands_of_a_file_run_only_where_they_are_allowed_once_more(tmp_path: Path) -> None:
    """Law: neither the plan nor the folder allows them: the flag does, at each judging."""
    mark = tmp_path / "mark"
    command = ["/bin/sh", "-c", f"echo >> {mark}"]
    file = written(tmp_path / "tasks.jsonl", [ROWS[0] | {"criterion": {"command": command}}])
    flags: dict[str, object] = {
        "--tasks": file, "--task-commands": True, "--rate": "20", "--requests": "6", "--warmup": "0",
    }  # fmt: skip
    folder = simulated(tmp_path / "runs", flags, system="rag").folder
    assert len(mark.read_text().splitlines()) == 6
    (folder / "tasks.arrow").unlink()
    code, _, stderr = finish("recover", str(folder), "--tasks", file)
    assert code == 2
    assert "runs a command: give --task-commands" in told(stderr)
    assert f"`inferometer recover {folder} --tasks FILE --task-commands`" in told(
        finish("recover", str(folder))[2]
    )
    assert len(mark.read_text().splitlines()) == 6
    code, stdout, _ = finish("recover", str(folder), "--tasks", file, "--task-commands", "--json")
    account = json.loads(stdout)["tasks"]
    assert len(mark.read_text().splitlines()) == 12
    assert (account["all"]["succeeded"], account["traced"]["tasks"]) == (
        6,
        6,
    )  # spans.jsonl lies in the folder


def test_judging_anew_leaves_no_answer_out(tmp_path: Path) -> None:
    """Law: of a run whose judging was interrupted, the answers behind that are judged too."""
    file = written(tmp_path / "tasks.jsonl", ROWS)
    flags: dict[str, object] = {"--tasks": file, "--rate": "20", "--requests": "6", "--warmup": "0"}
    folder = RunFolder(simulated(tmp_path / "runs", flags, system="rag").folder)
    before = tasks.read(folder.tasks)
    cut = [
        tasks.TaskRow(row["index"], row["cycle"], row["task"], row["criterion"], tasks.UNJUDGED, "judging was interrupted")
        for row in before.to_pylist()
    ]  # fmt: skip
    tasks.write(folder.tasks, cut, folder.path.name)
    finish("recover", str(folder.path), "--tasks", file)
    assert tasks.read(folder.tasks).equals(before)


def test_results_of_another_run_and_two_of_one_request_are_refused(tmp_path: Path) -> None:
    """Law: results count for the run whose id they have, whatever the folder is called; each request has one."""
    file = written(tmp_path / "tasks.jsonl", ROWS)
    flags: dict[str, object] = {"--tasks": file, "--rate": "20", "--requests": "6", "--warmup": "0"}
    one, other = (RunFolder(simulated(tmp_path / at, flags, system="rag").folder) for at in ("a", "b"))
    rows = [tasks.TaskRow(n, 0, "law", "regex", tasks.PASSED) for n in range(6)]
    moved = RunFolder(one.path.rename(tmp_path / "moved"))
    summary = json.loads((moved.path / "summary.json").read_text())
    finish("recover", str(moved.path), "--tasks", file)
    assert json.loads((moved.path / "summary.json").read_text())["tasks"] == summary["tasks"]
    tasks.write(other.tasks, rows, "20260101T000000Z-other")
    code, _, stderr = finish("report", str(other.path))
    assert (code, "tasks.arrow: of another run than" in told(stderr)) == (2, True)
    tasks.write(other.tasks, [*rows, rows[0]], other.path.name)
    code, _, stderr = finish("report", str(other.path))
    assert (code, "it has two results of one request" in told(stderr)) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--spans", "x"), "--spans: is about tasks"),
        (("--task-commands",), "--task-commands: is about tasks"),
        (("--tasks", "x"), "--tasks: this run has no tasks"),
    ],
)
def test_flags_about_tasks_are_refused_where_there_are_none(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    """Law: in words, and the folder stays as it is."""
    flags: dict[str, object] = {"--rate": "20", "--requests": "3", "--warmup": "0"}
    folder = simulated(tmp_path, flags).folder
    code, _, stderr = finish("recover", str(folder), *words)
    assert code == 2
    assert said in told(stderr)


def test_filler_is_not_judged(tmp_path: Path) -> None:
    """Law: an engine alone says what no criterion is about, recovered or not."""
    file = written(tmp_path / "tasks.jsonl", ROWS)
    folder = simulated(tmp_path / "runs", {"--tasks": file, "--rate": "20", "--requests": "4"}).folder
    code, _, stderr = finish("recover", str(folder), "--tasks", file)
    assert code == 2
    assert "are filler" in told(stderr)
    assert "judges them" not in finish("recover", str(folder))[2]


def test_tasks_are_done_again_only_if_trusted(tmp_path: Path) -> None:
    """Law: `rerun` lists the file and its commands, and without --trust neither is read nor run."""
    mark = tmp_path / "mark"
    command = ["/bin/sh", "-c", f"echo >> {mark}"]
    file = written(tmp_path / "tasks.jsonl", [ROWS[0] | {"criterion": {"command": command}}])
    with serving(system="rag", system_settings=QUICK) as port:
        words = (
            "--url", f"http://127.0.0.1:{port}", "--boundary", "compound", "--tasks", file, "--task-commands",
            "--rate", "40", "--requests", "4", "--warmup", "0",
        )  # fmt: skip
        finish("run", *words, "--out", str(tmp_path / "runs"))
        folder = only(tmp_path / "runs")
        assert len(mark.read_text().splitlines()) == 4
        code, _, stderr = finish("rerun", str(folder), "--out", str(tmp_path / "again"))
        assert code == 2
        assert "the commands that" in told(stderr)
        assert len(mark.read_text().splitlines()) == 4
        finish("rerun", str(folder), "--trust", "--out", str(tmp_path / "again"))
    assert len(mark.read_text().splitlines()) == 8
    assert tasks.read(RunFolder(only(tmp_path / "again")).tasks).column("state").to_pylist() == ["passed"] * 4


SESSION = {
    "steps": [
        {"name": "plan", "messages": [{"role": "user", "content": "plan"}], "output_tokens": 5},
        {"name": "look", "messages": [{"role": "user", "content": "look"}], "output_tokens": 5, "think_ms": 5},
        {"name": "read", "after": ["plan"], "extends": "plan", "output_tokens": 5,
         "messages": [{"role": "user", "content": "read"}]},
        {"name": "end", "after": ["look", "read"], "extends": "look", "output_tokens": 5,
         "messages": [{"role": "user", "content": "end"}]},
    ]
}  # fmt: skip


@linux
def test_a_killed_run_of_sessions_keeps_its_steps(tmp_path: Path) -> None:
    """Law: what had ended is measured by session and step, gaps and contexts are held to the recording, and the run is done
    again from its folder."""
    file = tmp_path / "s.jsonl"
    file.write_text("".join(json.dumps({"session": f"s{at}", **SESSION}) + "\n" for at in range(40)))
    with serving() as port:
        url = f"http://127.0.0.1:{port}"
        folder = killed_run(tmp_path / "runs", "--url", url, "--sessions", str(file), "--concurrency", "2")
        code, stdout, stderr = finish("recover", str(folder), "--json")
        assert code == 130, stderr
        summary = json.loads(stdout)
        measured = summary["agent_sessions"]
        assert measured["finished"] > 1
        assert measured["steps"]["succeeded"] == summary["requests"]["completed"]
        states = {one["code"]: one["status"] for one in summary["verdict"]["checks"]}
        assert (states["session_gaps"], states["session_context"]) == ("pass", "pass")
        assert summary["verdict"]["status"] != "VALID"
        assert (folder / "steps.arrow").is_file()


def test_sessions_are_done_again_only_if_trusted(tmp_path: Path) -> None:
    """Law: the file is listed, and without --trust not read; with it, in virtual time, all comes out as before."""
    file = tmp_path / "s.jsonl"
    file.write_text("".join(json.dumps({"session": f"s{at}", **SESSION}) + "\n" for at in range(12)))
    first = simulated(tmp_path / "runs", {"--sessions": str(file), "--concurrency": "3", "--warmup": "4"})
    out = tmp_path / "again"
    code, _, stderr = finish("rerun", str(first.folder), "--out", str(out))
    assert code == 2
    assert "its steps be sent" in told(stderr)
    assert not out.exists()
    assert finish("rerun", str(first.folder), "--trust", "--out", str(out))[0] == first.exit_code
    again = json.loads((only(out) / "summary.json").read_text())
    assert again["agent_sessions"] == to_data(first.summary.agent_sessions)
    (first.folder / "summary.json").unlink()
    assert finish("report", str(first.folder))[0] == first.exit_code
    assert (
        json.loads((first.folder / "summary.json").read_text())["agent_sessions"] == again["agent_sessions"]
    )
