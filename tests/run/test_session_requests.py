"""The requests of recorded sessions on disk: what each row says, when sessions begin, what differs between runs."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from recorded_sessions import TOOLS, Line, agent, written

from inferometer.journal import steps
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import Phase
from inferometer.plan import parse
from inferometer.plan.schema import Plan
from inferometer.run.request_writer import RequestWriter, Served
from inferometer.run.requests import requests_of
from inferometer.run.session_requests import begins
from inferometer.workload import tokenizers
from inferometer.workload.sources import sourced


def made(
    folder: Path, lines: Sequence[Line], salt: int = 5, **flags: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], RequestWriter]:
    """The rows of the schedule with their bodies as JSON, those of steps.arrow, and what wrote them."""
    path = written(folder / "sessions.jsonl", lines)
    given = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
    plan, source = sourced(parse.build(None, {"--sessions": str(path), "--warmup": "0", **given}))
    run = RunFolder.create(folder / "runs", "x", time.time_ns())
    served = Served("m", ["m"], None, "text", "max_tokens")
    writer = requests_of(plan, source, served, tokenizers.load(plan.tokenizer), run, salt, lambda: 0)
    if plan.load.warmup:
        writer.warm_up()
    writer.measurement()
    rows: list[dict[str, Any]] = Schedule(run.schedule).table.to_pylist()
    for row in rows:
        row["json"] = json.loads(row["body"])
    return rows, steps.read(run.steps).to_pylist(), writer


def test_each_row_says_what_its_step_says(tmp_path: Path) -> None:
    """Law: own messages, model, tools and length; delays; and in steps.arrow who waits for whom."""
    line = agent("a")
    line["steps"][2]["model"] = "adapter"
    rows, graph, _ = made(tmp_path, [agent("z"), line], rate="5")
    mine, hang = rows[4:], graph[4:]
    for row, step in zip(mine, line["steps"], strict=True):
        assert row["json"]["max_tokens"] == step["output_tokens"]
        assert row["json"]["tools"] == TOOLS
        assert row["json"]["model"] == step.get("model", "m")
        own = json.loads(b"[%b]" % row["body"][row["own_at"] : row["own_at"] + row["own_len"]])
        assert own == row["json"]["messages"]
        assert [one["role"] for one in own] == [one["role"] for one in step["messages"]]
    assert [(row["session"], row["turn"], row["turns"]) for row in mine] == [(1, at, 4) for at in range(4)]
    assert [row["think_ns"] for row in mine] == [0, 20_000_000, 5_000_000, 0]
    assert [row["due_ns"] is None for row in mine] == [False, True, True, True]
    assert [row["index"] for row in graph] == list(range(8))
    assert [row["after"] for row in hang] == [[], [4], [4], [5, 6]]
    assert [row["extends"] for row in hang] == [None, 4, None, 5]
    assert [row["tool_ns"] for row in hang] == [0, 20_000_000, 0, 0]
    assert [row["visible"] for row in hang] == [False, False, False, True]
    assert [row["agent"] for row in hang] == [None, None, "helper", None]
    assert json.loads(mine[0]["reply"])["tool_calls"] == line["steps"][0]["reply"]["tool_calls"]


def test_a_run_has_a_nonce_of_its_own_and_a_session_that_comes_again_another(tmp_path: Path) -> None:
    """Law: at the head of the first text of a conversation; what sessions of one run have in common stays so."""

    def heads(salt: int, **flags: Any) -> list[str]:
        rows, _, _ = made(tmp_path, [agent("a"), agent("b")], salt, rate="5", **flags)
        return [_first(row["json"]) for row in rows if row["nonce_at"] >= 0]

    one = heads(5, requests="16")
    nonces = [text[:9] for text in one]
    assert [text[9:] for text in one[:2]] == ["\nYou are an agent.", "\nLook up a"]
    assert nonces[:4] == [nonces[0]] * 4
    assert nonces[4:] == [nonces[4]] * 4
    assert nonces[4] != nonces[0] not in {text[:9] for text in heads(6)}
    assert heads(5, repeatable_prompts=True) == []


def _first(body: dict[str, Any]) -> str:
    content = body["messages"][0]["content"]
    return str(content if isinstance(content, str) else content[0]["text"])


def test_the_fingerprint_is_the_requests_without_their_nonces(tmp_path: Path) -> None:
    prints = [
        made(tmp_path, [agent(name)], salt, rate="5")[2].facts().fingerprint
        for name, salt in (("a", 1), ("a", 2), ("b", 1))
    ]
    assert prints[0] == prints[1] != prints[2]


def test_delays_may_be_drawn_in_place_of_recorded_ones(tmp_path: Path) -> None:
    """Law: a tool's time stands before results of tools, thinking before all else that waits."""
    rows, graph, _ = made(tmp_path, [agent("a")], rate="5", tool_ms="7", think_ms="3")
    assert [row["think_ns"] for row in rows] == [0, 7_000_000, 3_000_000, 3_000_000]
    assert [row["tool_ns"] for row in graph] == [0, 7_000_000, 0, 0]


def test_warm_up_and_lead_in_are_sessions_behind_the_measured_ones(tmp_path: Path) -> None:
    """Law: whole schedule in one file, phases one behind the other, each row where its number says; with other nonces."""
    lines = [agent(str(at)) for at in range(12)]
    rows, graph, writer = made(tmp_path, lines, concurrency="2", requests="10", warmup="5")
    phases = [row["phase"] for row in rows]
    assert phases == [Phase.WARMUP] * 5 + [Phase.LEAD] * 8 + [Phase.MEASURE] * 10
    assert [row["index"] for row in rows] == [row["index"] for row in graph] == list(range(23))
    assert (writer.warm_rows.requests, writer.measured, writer.rows) == (5, 10, 23)
    whose = [row["json"]["messages"][1]["content"] for row in rows if row["turn"] == 0]
    assert whose == [f"Question of {at}" for at in (3, 4, 5, 6, 0, 1, 2)]
    nonces = {row["phase"]: _first(row["json"])[:9] for row in rows if row["turn"] == 0}
    assert len(set(nonces.values())) == 3


@pytest.mark.parametrize("warm", [True, False])
def test_sessions_begin_as_requests_arrive(warm: bool) -> None:
    """Law: at arrivals, at a user's instants, or with a slot; steps are counted, and the last session is cut."""

    def plan(**flags: str) -> Plan:
        return parse.build(None, {f"--{name.replace('_', '-')}": value for name, value in flags.items()})

    opened = list(begins(plan(rate="100", requests="10").load, 1, repeat(4), 10, warm=warm))
    assert [one.steps for one in opened] == [4, 4, 2]
    assert all(one.due_ns is not None and one.user is None for one in opened)
    closed = list(begins(plan(concurrency="2").load, 1, repeat(3), 7, warm=warm))
    assert [(one.due_ns, one.steps) for one in closed] == [(None, 3), (None, 3), (None, 1)]
    users = list(begins(plan(users="2", user_rate="10").load, 1, repeat(2), 8, warm=warm))
    assert [one.user for one in users] == [0, 1, 0, 1]
    assert [one.due_ns for one in users] == sorted(one.due_ns or 0 for one in users)
    timed = list(begins(plan(rate="100", duration="1").load, 1, repeat(4), None, warm=False))
    assert timed
    assert all((one.due_ns or 0) < 10**9 and one.steps == 4 for one in timed)
