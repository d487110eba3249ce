"""Recorded agent sessions through the whole program: with a server that writes down what it is told, and in virtual time."""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import only, run
from peers import Script, Seen, chunked, scripted, tokens, whole
from recorded_sessions import CALL, TOOLS, agent, written
from shipped_schemas import shipped

from inferometer.journal import steps
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table

MODELS = whole(200, b'{"data":[{"id":"m"}]}')


def echo(seen: Seen) -> Script:
    """Answers that say which question they answer, so that nobody can take one for another's."""
    if seen.method == "GET":
        return Script(MODELS)
    body = json.loads(seen.body)
    if not body["stream"]:
        return Script(whole(200, b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'))
    words = [
        f" to-{zlib.crc32(json.dumps(body['messages'][-1]).encode())}",
        *[" w"] * (body["max_tokens"] - 1),
    ]
    return Script(chunked(*tokens(*words)))


def asked(seen: list[Seen]) -> list[dict[str, Any]]:
    """The bodies of the load, in the order in which they came."""
    bodies = [json.loads(one.body) for one in seen if one.method == "POST"]
    return [body for body in bodies if body["stream"]]


def recorded(out: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the record and of steps.arrow."""
    folder = RunFolder.open(only(out))
    return read_table(folder.record, RECORD).to_pylist(), steps.read(folder.steps).to_pylist()


@pytest.mark.parametrize(
    "load",
    [
        ("--rate", "40"),
        ("--concurrency", "3", "--workers", "2"),
        ("--users", "4", "--user-rate", "20"),
        ("--rate", "40", "--http", "1.1", "--replies", "server"),
    ],
    ids=["open", "closed", "users", "servers-replies"],
)
def test_a_server_is_told_what_each_step_goes_on_with_when_it_is_due(
    load: tuple[str, ...], tmp_path: Path
) -> None:
    """Law: by its own account of the bodies, by the record's of the instants."""
    file = written(tmp_path / "s.jsonl", [agent(str(at)) for at in range(8)])
    with scripted(echo, limit=400) as peer:
        args = ("--url", f"http://127.0.0.1:{peer.port}", "--sessions", str(file), "--warmup", "4", *load)
        code, stdout, err = run(
            "run", *args, "--session-header", "X-Session-ID", "--json", out=tmp_path / "runs"
        )
    assert code in (0, 3, 4), err  # docs/exit-codes.md: of few requests nothing is valid
    summary = json.loads(stdout)
    jsonschema.validate(summary, shipped("summary"))
    rows, graph = recorded(tmp_path / "runs")
    bodies = asked(peer.seen)
    assert len(bodies) == len(rows)
    assert {
        zlib.crc32(one.body) for one in peer.seen if one.method == "POST" and b'"stream":true' in one.body
    } == {row["body_crc"] for row in rows}
    _hold_bodies(bodies, server="--replies" in load)
    _hold_instants(rows, graph)
    _hold_headers([one for one in peer.seen if one.method == "POST" and json.loads(one.body)["stream"]])
    told = summary["workload"]["sessions"]
    assert (told["sessions"], told["steps"], told["with_tools"]) == (8, 32, 8)
    measured = [row for row in rows if row["phase"] == 1]
    assert len(measured) == 32


def _hold_bodies(bodies: list[dict[str, Any]], *, server: bool) -> None:
    """Each repeats the step that it goes on with, and the answer to that, and has the tools of its session."""
    said = {json.dumps(body["messages"]) for body in bodies}
    assert len(said) == len(bodies)
    for body in bodies:
        chat = body["messages"]
        assert body["tools"] == TOOLS
        roles = [one["role"] for one in chat]
        assert roles in (
            ["system", "user"],
            ["system", "user", "assistant", "tool"],
            ["system", "user", "assistant", "tool", "assistant", "user"],
            ["user"],
        )
        for at, role in enumerate(roles):
            if role == "assistant":
                assert json.dumps(chat[:at]) in said, "what is repeated was sent as it is"
                answer = f" to-{zlib.crc32(json.dumps(chat[at - 1]).encode())}"
                texts = {2: None, 4: "I have read it."}
                if server:
                    assert chat[at]["content"].startswith(answer)
                else:
                    assert chat[at]["content"] == texts[at]
                assert chat[at].get("tool_calls") == ([CALL] if at == 2 else None)


def _hold_instants(rows: list[dict[str, Any]], graph: list[dict[str, Any]]) -> None:
    """A step is due just when the last it waits for has ended and its delay has passed, and is not sent before."""
    delays = [0, 20_000_000, 5_000_000, 0]
    ended = {(row["index"], row["cycle"]): row["t_end"] for row in rows}
    waits = {row["index"]: row["after"] for row in graph}
    for row in rows:
        if before := waits[row["index"]]:
            last = max(ended[one, row["cycle"]] for one in before)
            assert row["t_intended"] == last + delays[row["turn"]]
        assert row["t_submit"] >= row["t_intended"]


def _hold_headers(seen: list[Seen]) -> None:
    """One value for each session, and no two have one."""
    whose: defaultdict[str, list[str]] = defaultdict(list)
    for one in seen:
        whose[one.headers["x-session-id"]].append(json.dumps(json.loads(one.body)["messages"]))
    for texts in whose.values():
        names = {text.rpartition("Question of ")[2][:1] for text in texts if "Question of " in text}
        assert len(names) == 1
        assert len(texts) <= 4


def test_a_step_that_fails_leaves_out_what_waits_for_it_and_no_other_branch(tmp_path: Path) -> None:
    def failing(seen: Seen) -> Script:
        body = json.loads(seen.body) if seen.method == "POST" else {}
        if body.get("stream") and body["messages"][-1]["role"] == "tool":
            return Script(whole(500, b'{"error":{"message":"no"}}'))
        return echo(seen)

    file = written(tmp_path / "s.jsonl", [agent(str(at)) for at in range(5)])
    with scripted(failing, limit=200) as peer:
        args = (
            "--url",
            f"http://127.0.0.1:{peer.port}",
            "--sessions",
            str(file),
            "--warmup",
            "0",
            "--rate",
            "50",
        )
        _, stdout, _ = run("run", *args, "--json", out=tmp_path / "runs")
    summary = json.loads(stdout)
    assert (summary["requests"]["sent"], summary["requests"]["failed"]) == (15, 5)
    rows, _ = recorded(tmp_path / "runs")
    assert Counter(row["turn"] for row in rows) == {0: 5, 1: 5, 2: 5}
    assert {row["turn"] for row in rows if row["outcome"] != "ok"} == {1}


def test_virtual_time_has_the_same_steps(tmp_path: Path) -> None:
    """Law: and twice the same instants."""
    file = written(tmp_path / "s.jsonl", [agent(str(at)) for at in range(6)])
    found = []
    for name in ("one", "two"):
        args = (
            "--sessions",
            str(file),
            "--concurrency",
            "2",
            "--replies",
            "server",
            "--set",
            "prefix_caching=on",
        )
        code, stdout, err = run("simulate", *args, "--warmup", "0", "--json", out=tmp_path / name)
        assert code in (0, 3, 4), err  # docs/exit-codes.md: of few requests nothing is valid
        jsonschema.validate(json.loads(stdout), shipped("summary"))
        rows, graph = recorded(tmp_path / name)
        _hold_instants(rows, graph)
        assert sorted(row["index"] for row in rows if row["phase"] == 1) == [
            row["index"] for row in graph if row["index"] >= 8
        ]
        assert any(row["usage_cached"] for row in rows if row["turn"] == 3), "a step's past is in the cache"
        found.append([(row["index"], row["cycle"], row["t_intended"], row["t_end"]) for row in rows])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[:-30], "s.jsonl:2: is no JSON"),
        (
            lambda text: text.replace('"role": "tool"', '"role": "tol"'),
            "s.jsonl:1: steps[1].messages[0].role: must be",
        ),
        (lambda _: "", "s.jsonl: is empty"),
        (lambda _: "\0\0\0", "s.jsonl: begins like no format that is known"),
    ],
    ids=["cut", "role", "empty", "binary"],
)
def test_a_damaged_file_ends_before_anything_is_sent(damage: Any, words: str, tmp_path: Path) -> None:
    file = written(tmp_path / "s.jsonl", [agent(str(at)) for at in range(2)])
    file.write_text(damage(file.read_text()))
    code, _, err = run("run", "--sessions", str(file), out=tmp_path / "runs")
    assert (code, words in err) == (2, True), err
    assert "Question" not in err


def test_a_file_of_sessions_is_no_workload_to_make(tmp_path: Path) -> None:
    from commands import finish

    file = written(tmp_path / "s.jsonl", [agent("a")])
    code, _, err = finish("workload", "make", "--sessions", str(file), "--out", str(tmp_path / "made"))
    assert code == 2
    assert "there is nothing to generate" in err
