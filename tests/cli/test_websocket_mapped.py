"""A server of others over WebSockets: written with `websockets`, with messages of its own, measured by the plan in the docs."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest
import yaml
from commands import finish, only, run
from shipped_schemas import shipped
from websockets.sync.server import ServerConnection, serve

from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "transports.md"
LOAD = [
    "--requests",
    "12",
    "--concurrency",
    "3",
    "--warmup",
    "0",
    "--input-tokens",
    "20",
    "--output-tokens",
    "5",
]
LATER_S = 0.01
"""So long after the handshake or an end comes what belongs to no answer: not in one read with it, and long before the probe
stops listening."""
Answer = Callable[[ServerConnection, dict[str, object]], None]


def example() -> dict[str, object]:
    """The plan of the page, without its load."""
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    plan: dict[str, object] = yaml.safe_load(block)
    return {"target": plan["target"]}


@contextlib.contextmanager
def foreign_server(answer: Answer, greeting: dict[str, object] | None = None) -> Iterator[str]:
    """The server's URL. It takes what the page describes, at the path given there, and nothing else."""

    def handle(connection: ServerConnection) -> None:
        assert connection.request is not None
        assert connection.request.path == "/stream"
        if greeting is not None:
            time.sleep(LATER_S)
            connection.send(json.dumps(greeting))
        for message in connection:
            asked = json.loads(message)
            assert asked["action"] == "generate"
            assert set(asked) == {"action", "input", "options"}
            answer(connection, {**asked["options"], **asked["input"]})

    with serve(handle, "127.0.0.1", 0, compression=None) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join(10)


def whole(connection: ServerConnection, asked: dict[str, object]) -> None:
    """As many tokens as were asked for."""
    count = asked["max_new_tokens"]
    assert isinstance(count, int)
    assert (asked["model"], asked["temperature"]) == ("llama", 0.0)
    connection.send(json.dumps({"event": "started", "data": None}))
    for number in range(count):
        connection.send(json.dumps({"event": "piece", "data": {"content": " word", "index": number}}))
        connection.send(json.dumps({"event": "load", "data": {"content": "not of the answer"}}))
    end = {"event": "finished", "data": {"why": "length"}, "usage": {"in": 21, "out": count}}
    connection.send(json.dumps(end))


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """The example as a file."""
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(example()))
    return path


def test_the_plan_of_the_docs_measures_a_server_that_is_not_ours(plan: Path, tmp_path: Path) -> None:
    """Law: tokens, counts and finish reasons are what the server sent and said; the report names the transport, and that the
    plan describes the messages; a rerun does the same again."""
    out = tmp_path / "runs"
    with foreign_server(whole) as url:
        code, stdout, stderr = run("run", str(plan), "--url", url, *LOAD, "--json", out=out)
        assert code in (0, 3, 4), stderr
        folder = only(out)
        rerun = finish("rerun", str(folder), "--trust", "--json", "--out", str(tmp_path / "again"))
    for document in (stdout, rerun[1]):
        summary = json.loads(document)
        jsonschema.validate(summary, shipped("summary"))
        assert (summary["requests"]["completed"], summary["requests"]["failed"]) == (12, 0), rerun[2]
        assert summary["sut"]["api"] == "websocket-mapped"
        assert (
            summary["sut"]["protocol"]
            == "WebSocket (RFC 6455), messages by the plan's target.websocket, uncompressed"
        )
        assert summary["metrics"]["output_tokens"]["mean"] == 5
    for row in read_table(RunFolder.open(folder).record, RECORD).to_pylist():
        assert (row["outcome"], row["finish_reason"]) == ("ok", "length")
        assert (row["usage_input"], row["usage_output"]) == (21, row["output_tokens_asked"])


def test_its_errors_are_errors_in_its_own_words(plan: Path, tmp_path: Path) -> None:
    """Law: a mapped error ends the request with its words; the probe, which fails likewise, repeats them."""

    def failing(connection: ServerConnection, asked: dict[str, object]) -> None:
        if asked["max_new_tokens"] == 1:  # the probe's
            whole(connection, asked)
        else:
            connection.send(json.dumps({"event": "failure", "reason": "no room for it"}))

    out = tmp_path / "runs"
    with foreign_server(failing) as url:
        _, stdout, stderr = run("run", str(plan), "--url", url, *LOAD, "--json", out=out)
    assert json.loads(stdout)["requests"]["by_error"] == {"error_event": 12}, stderr
    rows = read_table(RunFolder.open(only(out)).record, RECORD).to_pylist()
    assert {row["detail"] for row in rows} == {"no room for it"}


@pytest.mark.parametrize("greets", [False, True])
@pytest.mark.parametrize(
    ("behind", "of_an_answer"),
    [
        ({"event": "piece", "data": {"content": " word"}}, True),
        ({"event": "statistics", "usage": {"in": 21, "out": 5}}, True),
        ({"event": "finished"}, True),
        ({"event": "failure", "reason": "no"}, True),
        ({"event": "heartbeat"}, False),
    ],
)
def test_what_a_next_answer_would_begin_with_is_refused_before_the_load(
    behind: dict[str, object], of_an_answer: bool, greets: bool, plan: Path, tmp_path: Path
) -> None:
    """Law: a server that goes on behind the end that the plan describes is not measured on shared connections, where the first
    token of one answer would be the last of another; what `greets` allows is."""

    def trailing(connection: ServerConnection, asked: dict[str, object]) -> None:
        whole(connection, asked)
        time.sleep(LATER_S)
        connection.send(json.dumps(behind))

    described = json.loads(plan.read_text())
    described["target"]["websocket"]["greets"] = greets
    plan.write_text(json.dumps(described))
    with foreign_server(trailing) as url:
        code, _, stderr = run("run", str(plan), "--url", url, *LOAD, "--json", out=tmp_path / "runs")
    said = " ".join(stderr.split())
    if of_an_answer or not greets:
        assert (code, "would be taken for the next answer" in said) == (5, True), said
        assert str(behind["event"]) in said
    else:
        assert code in (0, 3, 4), said


@pytest.mark.parametrize("flags", [[], ["--connection", "new"]])
@pytest.mark.parametrize(
    ("greets", "greeting", "refused"),
    [
        (False, {"event": "hello"}, True),
        (True, {"event": "hello"}, False),
        (True, {"event": "piece", "data": {"content": "Hi! "}}, True),
    ],
)
def test_what_comes_before_any_request_is_refused_before_the_load(
    flags: list[str],
    greets: bool,
    greeting: dict[str, object],
    refused: bool,
    plan: Path,
    tmp_path: Path,
) -> None:
    """Law: also where each request has a connection of its own, whose first token the greeting would be."""
    described = json.loads(plan.read_text())
    described["target"]["websocket"]["greets"] = greets
    plan.write_text(json.dumps(described))
    with foreign_server(whole, greeting) as url:
        code, _, stderr = run("run", str(plan), "--url", url, *flags, *LOAD, "--json", out=tmp_path / "runs")
    said = " ".join(stderr.split())
    assert ("before any request the server sends" in said) == refused, said
    assert (code == 5) == refused, said


def test_what_is_behind_an_end_harms_no_connection_of_its_own(plan: Path, tmp_path: Path) -> None:
    """`--connection new`: each request has a connection, and ends with the end that is described."""

    def trailing(connection: ServerConnection, asked: dict[str, object]) -> None:
        whole(connection, asked)
        connection.send(json.dumps({"event": "piece", "data": {"content": " word"}}))

    with foreign_server(trailing) as url:
        flags = ["--url", url, "--connection", "new", *LOAD, "--json"]
        _, stdout, stderr = run("run", str(plan), *flags, out=tmp_path / "runs")
    assert json.loads(stdout)["requests"]["completed"] == 12, stderr


def test_an_end_that_never_comes_is_named(plan: Path, tmp_path: Path) -> None:
    """Messages came, so that the server did answer: what the plan describes as the end was not among them."""

    def endless(connection: ServerConnection, asked: dict[str, object]) -> None:
        connection.send(json.dumps({"event": "piece", "data": {"content": " word"}}))

    with foreign_server(endless) as url:
        flags = ["--url", url, "--probe-timeout", "1s", *LOAD]
        code, _, stderr = run("run", str(plan), *flags, out=tmp_path / "runs")
    assert code == 5
    assert (
        "1 message came in time, but none that ends the answer (the end that target.websocket describes)"
        in " ".join(stderr.split())
    )


def test_a_simulation_of_it_is_refused(plan: Path, tmp_path: Path) -> None:
    """Law: what no model of a server can answer is no simulation."""
    code, _, stderr = run("simulate", str(plan), *LOAD, out=tmp_path / "runs")
    assert code == 2
    assert "no simulated engine speaks websocket-mapped" in " ".join(stderr.split())
