"""`inferometer test --system`: campaigns of a reference system, in virtual time and as a process, done again and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import finish, only


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    """A file of two tasks."""
    return written(tmp_path, 60)


def written(folder: Path, tokens: int) -> str:
    path = folder / f"tasks-{tokens}.jsonl"
    rows: list[dict[str, object]] = [
        {"task": "law", "input": "Explain Little's law.", "criterion": {"regex": "littles-law"}},
        {"task": "median", "input": "Explain the median."},
    ]
    path.write_text("".join(json.dumps(row | {"output_tokens": tokens}) + "\n" for row in rows))
    return str(path)


def campaign_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((only(folder) / "campaign.json").read_text())
    return found


def test_a_campaign_of_a_simulated_system_is_done_again(tasks: str, tmp_path: Path) -> None:
    """Law: the report names the system, its boundary and its guardrails; `rerun` takes the same system from the folder, and
    `report` finds the file as the runs have it."""
    words = ("ttft", "--simulate", "--system", "rag", "--set", "output_guardrail=off", "--tasks", tasks)
    out, again = tmp_path / "runs", tmp_path / "again"
    code, _, stderr = finish("test", *words, "--rate", "4", "--quick", "--quiet", "--out", str(out))
    assert code in (0, 4), stderr
    first = campaign_in(out)
    plan = first["reproduction"]["plan_file"]
    assert plan["engine"]["system"] == "rag"
    assert plan["plan"]["sut"]["boundary"] == first["sut"]["boundary"] == "compound"
    assert plan["plan"]["sut"]["guardrails"]["output_filter"] is False
    report = (only(out) / "report.md").read_text()
    assert "Tasks by run" in report
    assert "no statement about the quality" in report
    folder = str(only(out))
    assert finish("report", folder)[0] in (0, 4)
    assert finish("rerun", folder, "--trust", "--quiet", "--out", str(again))[0] == code
    assert campaign_in(again)["tests"][0]["values"] == first["tests"][0]["values"]


def test_a_system_is_started_and_tested_where_no_server_is_named(tasks: str, tmp_path: Path) -> None:
    """Law: as the reference engine is; each of its cold starts is a process of its own."""
    words = ("cold-start", "--system", "agent", "--tasks", tasks, "--rate", "4")
    out = tmp_path / "runs"
    code, _, stderr = finish("test", *words, "--param", "cold-start.starts=1", "--quiet", "--out", str(out))
    assert code in (3, 4), stderr  # one start has no interval, and another machine's work may spoil it
    found = campaign_in(out)
    assert found["sut"]["boundary"] == "compound"
    assert "reference system agent" in found["sut"]["software"]
    (table,) = [one for one in found["tests"][0]["tables"] if one["name"] == "tasks"]
    assert [row[5:8] for row in table["rows"]] == [[1, 1, 1], [1, 1, 1]]


def test_what_a_system_cannot_be_tested_with_is_refused(tasks: str, tmp_path: Path) -> None:
    """Law: in words, before anything is made or sent."""
    out, base = tmp_path / "out", ("--tasks", tasks, "--rate", "2", "--quick")
    for words, said in (
        (("ttft", "--simulate", "--system", "human", *base), "there is no 'human'; there are: agent, rag"),
        (("ttft", "--system", "rag", "--url", "http://127.0.0.1:1", *base), "--url names another server"),
        (("ttft", "--system", "rag", "--boundary", "engine", *base), "whose boundary is compound"),
        (("ttft", "--set", "search=5ms", *base), "there is no 'search'"),
        (
            ("itl", "--simulate", "--tasks", written(tmp_path, 49), "--rate", "2"),
            "the longest that is asked for has 49",
        ),
        (("itl", "--simulate", "--output-tokens", "uniform(8,40)"), "the longest that is asked for has 40"),
    ):
        code, _, stderr = finish("test", *words, "--out", str(out))
        assert code == 2, words
        assert said in " ".join(stderr.split())
    assert not out.exists()
