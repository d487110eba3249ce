"""Runs of tasks through the whole program: against a server that writes spans of its own, and against the reference server."""

from __future__ import annotations

import http.client
import json
import re
import socket
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import finish, only, run
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from peers import Script, Seen, chunked, scripted, tokens, whole
from serving import serving
from shipped_schemas import shipped

from inferometer.journal import tasks
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table
from inferometer.server.systems.settings import SystemSettings

MODELS = whole(200, b'{"data":[{"id":"m"}]}')
TASKS: list[dict[str, Any]] = [
    {"task": "right", "input": "capital of France?", "criterion": {"exact": "The answer is 42"}},
    {"task": "number", "input": "how much?", "criterion": {"number": 42.5, "tolerance": 0.5}},
    {"task": "wrong", "input": "say never", "criterion": {"regex": "never"}, "class": "hard"},
    {
        "task": "slow",
        "input": "take long",
        "criterion": {"regex": "42"},
        "timeout_s": 0.000001,
        "class": "hard",
    },
    {"task": "whole", "messages": [{"role": "user", "content": "anything"}]},
    {
        "task": "endless",
        "input": "loop",
        "criterion": {"regex": "^(a+)+$", "timeout_s": 0.3},
        "class": "hostile",
    },
]


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("\n".join(json.dumps({"output_tokens": 5} | row) for row in rows) + "\n")
    return str(path)


def before_the_load(seen: Seen) -> Script | None:
    """What a system says to what the run asks before its tasks; None: to a task."""
    if seen.method == "GET":
        return Script(MODELS)
    if not json.loads(seen.body)["stream"]:
        return Script(whole(200, b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'))
    return None


class System:
    """A compound system: it takes over the caller's trace and writes a model call and a tool for each request."""

    def __init__(self, spans: Path, usage: int = 4, steps: bytes = b"") -> None:
        self._spans, self._usage, self._steps = spans, usage, steps
        self.parents: list[str] = []

    def __call__(self, seen: Seen) -> Script:
        """See Answer of peers.py."""
        if (said_before := before_the_load(seen)) is not None:
            return said_before
        body = json.loads(seen.body)
        parent = seen.headers.get("traceparent", "")
        self.parents.append(parent)
        with self._spans.open("a") as file:
            file.write(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": _spans(parent)}]}]}) + "\n")
        question = body["messages"][-1]["content"]
        answer = ["a" * 40 + "!"] if question == "loop" else ["The", " answer", " is", " 42"]
        said = b'"completion_tokens": %d%b' % (self._usage, self._steps)
        events = [re.sub(rb'"completion_tokens": \d+', said, one) for one in tokens(*answer)]
        return Script(chunked(*events))


def _spans(parent: str) -> list[dict[str, Any]]:
    _, trace, span, _ = parent.split("-")
    return [
        {
            "traceId": trace, "spanId": f"{at:016x}", "parentSpanId": span, "name": kind,
            "startTimeUnixNano": str(at * 1000), "endTimeUnixNano": str(at * 1000 + 500),
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": kind}},
                {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "7"}},
                {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "4"}},
            ],
        }
        for at, kind in enumerate(("chat", "execute_tool", "chat"), 1)
    ]  # fmt: skip


def measured(
    folder: Path, *more: str, requests: int = 12, usage: int = 4, steps: bytes = b"", spans: bool = True
) -> tuple[dict[str, Any], System, str]:
    """A run of TASKS against a system; its summary, the system, and what was said on stderr."""
    system = System(folder / "spans.jsonl", usage, steps)
    joined = ("--spans", str(folder / "spans.jsonl")) if spans else ()
    with scripted(system, limit=100) as peer:
        _, stdout, stderr = run(
            "run", "--url", f"http://127.0.0.1:{peer.port}", "--boundary", "compound", "--tasks",
            written(folder / "tasks.jsonl", TASKS), *joined, "--rate", "40",
            "--requests", str(requests), "--warmup", "0", "--json", *more, out=folder / "runs",
        )  # fmt: skip
    return json.loads(stdout), system, stderr


def test_tasks_are_judged_and_joined_with_the_systems_spans(tmp_path: Path) -> None:
    """Law: every planted outcome is found, in all reports; each request has a trace of its own, by which spans are found."""
    summary, system, stderr = measured(tmp_path)
    jsonschema.validate(summary, shipped("summary"))
    account = summary["tasks"]
    whole_account = {
        name: account["all"][name] for name in ("ended", "different", "completed", "succeeded", "unjudged")
    }
    assert whole_account == {"ended": 12, "different": 6, "completed": 12, "succeeded": 6, "unjudged": 2}
    assert account["all"]["timed_out"] == 2
    assert account["all"]["success"] == pytest.approx(0.6)
    assert {one["name"]: one["succeeded"] for one in account["by_class"]} == {"hard": 0, "hostile": 0}
    assert "2 of 12 answers are not judged; the first: not decided within 0.3 s" in stderr
    assert len(set(system.parents)) == 12
    assert all(re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", one) for one in system.parents)
    kinds = {one["kind"]: one["steps"]["mean"] for one in account["traced"]["kinds"]}
    assert (account["traced"]["tasks"], kinds["model"], kinds["tool"]) == (12, 2, 1)
    assert account["traced"]["model_input_tokens"]["mean"] == 14
    assert not {"D-4.1.3-task", "D-4.1.3-included", "D-3-out-of-scope"} & set(
        summary["compliance"]["deviations"]
    )
    folder = only(tmp_path / "runs")
    for name in ("report.md", "report.html"):
        text = (folder / name).read_text()
        assert "no statement about the quality or accuracy" in text
        assert "Model call" in text


STEPS = b', "steps": [{"kind": "llm", "prompt_tokens": 30, "completion_tokens": 6}, {"kind": "retrieval"}]'


@pytest.mark.parametrize("spans", [True, False])
def test_steps_are_those_of_spans_and_where_there_are_none_those_that_usage_lists(
    spans: bool, tmp_path: Path
) -> None:
    """Law: usage tells how many steps and tokens, and of no time; spans tell more, and take its place."""
    summary, _, _ = measured(tmp_path, steps=STEPS, spans=spans)
    traced = summary["tasks"]["traced"]
    kinds = {one["kind"]: one["steps"]["mean"] for one in traced["kinds"]}
    seen = (traced["tasks"], traced["by_usage"], kinds["model"], kinds["tool"], kinds["retrieval"])
    assert seen == ((12, 0, 2, 1, 0) if spans else (12, 12, 1, 0, 1))
    assert traced["model_input_tokens"]["mean"] == (14 if spans else 30)
    timed = [one["ms"] is not None for one in traced["kinds"]]
    assert all(timed) if spans else not any(timed)
    assert "D-4.1.3-included" not in summary["compliance"]["deviations"]
    report = (only(tmp_path / "runs") / "report.md").read_text()
    assert (
        "The steps that the system's usage lists, without their times, of 12 of 12 tasks" in report
    ) is not spans


def test_usage_of_steps_that_nobody_sees_is_the_systems_own_word(tmp_path: Path) -> None:
    """Law: figures per token are of the text that was streamed; a tenfold usage is reported as what the system says."""
    summary, _, _ = measured(tmp_path, requests=12, usage=40)
    lengths, system = summary["metrics"]["output_tokens"], summary["tokens"]["system"]
    assert (lengths["min"], lengths["max"]) == (5, 6)  # "The answer is 42", and forty a with "!"
    assert (system["output_tokens"]["mean"], system["reported"]) == (40, 12)
    assert summary["tokens"]["tokenizer"]["name"] == "cl100k_base"
    checks = {one["code"]: one["status"] for one in summary["verdict"]["checks"]}
    assert {checks[code] for code in ("prompt_length", "output_length", "token_counts", "cache_hits")} == {
        "na"
    }
    report = (only(tmp_path / "runs") / "report.md").read_text()
    assert "By the system's own usage, all its steps included" in report


def test_reports_are_made_again_without_task_file_spans_or_server(tmp_path: Path) -> None:
    summary, _, _ = measured(tmp_path, requests=6)
    folder = only(tmp_path / "runs")
    (tmp_path / "tasks.jsonl").unlink()
    (tmp_path / "spans.jsonl").unlink()
    (folder / "summary.json").unlink()
    code, _, _ = finish("report", str(folder))
    assert code in (0, 3, 4)
    assert json.loads((folder / "summary.json").read_text())["tasks"] == summary["tasks"]


def test_damaged_spans_and_tasks_cost_no_measurement(tmp_path: Path) -> None:
    """Law: what goes wrong behind the load is a note."""
    (tmp_path / "spans.jsonl").write_text('{"resourceMetrics": []}\n')
    summary, _, stderr = measured(tmp_path, requests=6)
    assert "spans.jsonl:1: has no resourceSpans" in stderr.replace("\n", " ")
    assert summary["tasks"]["traced"] is None
    assert summary["tasks"]["all"]["succeeded"] == 3
    path = only(tmp_path / "runs") / "tasks.arrow"
    assert len(tasks.read(path)) == 6
    path.write_bytes(path.read_bytes()[:100])
    code, _, stderr = finish("report", str(path.parent))
    assert code == 2
    assert "tasks.arrow" in stderr


def test_the_reference_server_is_given_tasks(tmp_path: Path) -> None:
    """Law: texts go out as they are, and answers end where they end."""
    rows = [
        {"task": "some", "input": "say something", "criterion": {"regex": "[a-z]"}},
        {"task": "json", "input": "say JSON", "criterion": {"json_schema": {"type": "object"}}},
    ]
    file = written(tmp_path / "t.jsonl", rows)
    _, stdout, _ = run(
        "run",
        "--tasks",
        file,
        "--concurrency",
        "2",
        "--requests",
        "8",
        "--warmup",
        "2",
        "--json",
        out=tmp_path / "runs",
    )
    account = json.loads(stdout)["tasks"]
    assert (account["all"]["ended"], account["all"]["succeeded"], account["judged"]) == (8, 4, True)
    assert account["traced"] is None


def test_a_simulation_judges_nothing_and_says_so(tmp_path: Path) -> None:
    file = written(tmp_path / "t.jsonl", TASKS[:2])
    _, stdout, _ = run(
        "simulate", "--tasks", file, "--rate", "20", "--requests", "10", "--json", out=tmp_path / "runs"
    )
    account = json.loads(stdout)["tasks"]
    assert (account["judged"], account["all"]["success"], account["all"]["completed"]) == (False, None, 10)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--keep-text", "none"], "judged after the load"),
        (["--session-header", "X-Session"], "session"),
        (["--header", "Traceparent: x"], "traceparent"),
        (["--users", "2", "--user-rate", "1"], "each by itself"),
        (["--turns", "2"], "--tasks"),
    ],
)
def test_what_tasks_do_not_go_with_is_refused(flags: list[str], words: str, tmp_path: Path) -> None:
    file = written(tmp_path / "t.jsonl", TASKS[:1])
    code, _, stderr = finish("run", "--url", "http://127.0.0.1:1", "--tasks", file, "--requests", "5", *flags)
    assert code == 2
    assert words in " ".join(stderr.split())


def thinking(*parts: tuple[str, str]) -> list[bytes]:
    """Chat events of a stream whose parts have these fields: `reasoning_content`, `content`, or `arguments` of a tool call."""
    events = tokens(*(text for _, text in parts))
    for at, (kind, text) in enumerate(parts):
        call = {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}
        delta = call if kind == "arguments" else {kind: text}
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        events[1 + at] = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
    return events


@pytest.mark.parametrize("aside", ["reasoning_content", "arguments"])
def test_what_a_user_does_not_see_decides_no_task(tmp_path: Path, aside: str) -> None:
    """Law: a criterion is held to the answer's content. Thinking of the right word, or passing it to a tool, is none; and an
    answer whose content is right succeeds whatever stands beside it."""
    rows = [
        {"task": "thought", "input": "guess", "criterion": {"regex": "Paris"}},
        {"task": "said", "input": "say", "criterion": {"exact": "Paris"}},
    ]

    def answer(seen: Seen) -> Script:
        if (said_before := before_the_load(seen)) is not None:
            return said_before
        body = json.loads(seen.body)
        said = "Paris" if body["messages"][-1]["content"] == "say" else "Rome"
        return Script(chunked(*thinking((aside, "is it "), (aside, "Paris"), ("content", said))))

    with scripted(answer, limit=100) as peer:
        _, stdout, _ = run(
            "run", "--url", f"http://127.0.0.1:{peer.port}", "--boundary", "compound", "--tasks",
            written(tmp_path / "tasks.jsonl", rows), "--rate", "40", "--requests", "10", "--warmup", "0", "--json",
            "--no-server-metrics", "--timeout", "20",
            out=tmp_path / "runs",
        )  # fmt: skip
    judged = tasks.read(only(tmp_path / "runs") / "tasks.arrow").to_pylist()
    assert {(one["task"], one["state"]) for one in judged} == {("thought", "failed"), ("said", "passed")}
    assert json.loads(stdout)["tasks"]["all"]["success"] == 0.5


def test_a_task_is_ended_at_its_own_time_limit(tmp_path: Path) -> None:
    """Law: the outcome is `timeout`, not before the limit, though the run's own is far away; others go on to their end."""
    rows = [
        {"task": "slow", "input": "Explain the median.", "timeout_s": 0.05},
        {"task": "quick", "input": "What is 1+1?", "timeout_s": 30},
    ]
    settings = SystemSettings(search_ns=60e9, calculator_ns=1e5)
    with serving(system="agent", system_settings=settings) as port:
        run(
            "run", "--url", f"http://127.0.0.1:{port}", "--boundary", "compound", "--tasks",
            written(tmp_path / "tasks.jsonl", rows), "--rate", "20", "--requests", "6", "--warmup", "0",
            out=tmp_path / "runs",
        )  # fmt: skip
    folder = RunFolder.open(only(tmp_path / "runs"))
    found = read_table(folder.record, RECORD).to_pylist()
    assert [row["outcome"] for row in sorted(found, key=lambda row: row["index"])] == ["timeout", "ok"] * 3
    assert all(row["t_end"] - row["t_submit"] >= 50e6 for row in found if row["outcome"] == "timeout")
    account = json.loads((folder.path / "summary.json").read_text())["tasks"]
    assert (account["all"]["timed_out"], account["all"]["succeeded"]) == (3, 3)


@pytest.mark.parametrize("kind", ["application/json", "application/x-protobuf"])
def test_spans_are_taken_while_the_load_runs(kind: str, tmp_path: Path) -> None:
    """Law: what a system sends to the receiver is joined to its requests as spans of a file are, stays in the run's folder, and
    `recover` joins it once more."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    sender = Sender(port, kind)
    with scripted(sender, limit=100) as peer:
        _, stdout, stderr = run(
            "run", "--url", f"http://127.0.0.1:{peer.port}", "--boundary", "compound", "--tasks",
            written(tmp_path / "tasks.jsonl", TASKS[:3]), "--spans", f"listen:127.0.0.1:{port}", "--rate", "40",
            "--requests", "6", "--warmup", "0", "--json", out=tmp_path / "runs",
        )  # fmt: skip
    account = json.loads(stdout)["tasks"]
    assert sender.statuses == [200] * 6
    assert f"http://127.0.0.1:{port}/v1/traces" in stderr
    kinds = {one["kind"]: one["steps"]["mean"] for one in account["traced"]["kinds"]}
    assert (account["traced"]["tasks"], kinds["model"], kinds["tool"]) == (6, 2, 1)
    folder = only(tmp_path / "runs")
    (folder / "tasks.arrow").unlink()
    _, stdout, _ = finish("recover", str(folder), "--tasks", str(tmp_path / "tasks.jsonl"), "--json")
    assert json.loads(stdout)["tasks"]["traced"] == account["traced"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()


class Sender:
    """A compound system that sends its spans to a receiver as each answer is given."""

    def __init__(self, port: int, kind: str) -> None:
        self._port, self._kind = port, kind
        self.statuses: list[int] = []

    def __call__(self, seen: Seen) -> Script:
        """See Answer of peers.py."""
        if (said_before := before_the_load(seen)) is not None:
            return said_before
        spans = _spans(seen.headers.get("traceparent", ""))
        data = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
        if self._kind != "application/json":
            data = _in_protobuf(spans)
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        connection.request("POST", "/v1/traces", data, {"Content-Type": self._kind})
        self.statuses.append(connection.getresponse().status)
        connection.close()
        return Script(chunked(*tokens("The", " answer", " is", " 42")))


def _in_protobuf(spans: list[dict[str, Any]]) -> bytes:
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for one in spans:
        made = scope.spans.add(
            trace_id=bytes.fromhex(one["traceId"]), span_id=bytes.fromhex(one["spanId"]),
            parent_span_id=bytes.fromhex(one["parentSpanId"]), start_time_unix_nano=int(one["startTimeUnixNano"]),
            end_time_unix_nano=int(one["endTimeUnixNano"]),
        )  # fmt: skip
        for tag in one["attributes"]:
            value = made.attributes.add(key=tag["key"]).value
            if "intValue" in tag["value"]:
                value.int_value = int(tag["value"]["intValue"])
            else:
                value.string_value = tag["value"]["stringValue"]
    return bytes(request.SerializeToString())


@pytest.mark.parametrize(
    ("place", "words"),
    [("listen:", "listen:HOST:PORT"), ("listen:h:99999", "listen:HOST:PORT"), ("listen:127.0.0.1:{taken}", "cannot listen")],
)  # fmt: skip
def test_where_spans_cannot_be_taken_is_said_before_anything_is_sent(
    place: str, words: str, tmp_path: Path
) -> None:
    """Law: exit code 2, and no folder stays."""
    with socket.create_server(("127.0.0.1", 0)) as held, serving(system="rag") as port:
        code, _, stderr = run(
            "run", "--url", f"http://127.0.0.1:{port}", "--tasks", written(tmp_path / "t.jsonl", TASKS[:1]),
            "--spans", place.format(taken=held.getsockname()[1]), out=tmp_path / "runs",
        )  # fmt: skip
    assert code == 2
    assert words in " ".join(stderr.split())
    assert not (tmp_path / "runs").exists() or not any(one.is_dir() for one in (tmp_path / "runs").iterdir())
