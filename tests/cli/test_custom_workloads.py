"""Workloads of one's own through the whole program: over sockets with two workers, and in virtual time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import only, run
from peers import Script, Seen, chunked, scripted, tokens, whole
from shipped_schemas import shipped

from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import RECORD, Phase
from inferometer.journal.seal import read_table
from inferometer.run.facts import read_facts

MIXTURE = """
load: {rate: 150, requests: 120, warmup: 10}
instrument: {workers: 2}
workload:
  classes:
    - name: chat
      weight: 3
      input_tokens: uniform(20,40)
      output_tokens: 5
      content: english
      shared_prefix: {tokens: 64, share: 0.5, groups: 2}
      priority: 1
      sampling: {temperature: 0.5, top_p: 0.9}
      headers: {X-Class: chat, user-agent: somebody}
    - name: batch
      input_tokens: 30
      output_tokens: 3
      extra_body: {tier: low}
      headers: {X-Class: batch}
"""
WORDS = "unmistakable words of a prompt"
MODELS = whole(200, b'{"data":[{"id":"m","max_model_len":60}]}')


def answer(seen: Seen) -> Script:
    """Streams of as many tokens as asked for; whole answers to the probe."""
    if seen.method == "GET":
        return Script(MODELS)
    body = json.loads(seen.body)
    if body["stream"]:
        return Script(chunked(*tokens(*[" word"] * body["max_tokens"])))
    return Script(whole(200, b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'))


def planned(tmp_path: Path, text: str) -> str:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    return str(path)


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """Two classes against the embedded server, with two workers: summary and run folder."""
    tmp_path = tmp_path_factory.mktemp("mixture")
    _, stdout, _ = run("run", planned(tmp_path, MIXTURE), "--json", out=tmp_path / "runs")
    return json.loads(stdout), only(tmp_path / "runs")


def test_two_classes_reach_the_server_the_record_and_every_report(
    mixture: tuple[dict[str, Any], Path],
) -> None:
    """Each request keeps its class from the schedule to the tables; lengths asked, sent and counted agree class by class."""
    summary, path = mixture
    jsonschema.validate(summary, shipped("summary"))
    folder = RunFolder.open(path)
    scheduled = Schedule(folder.schedule).table
    record = read_table(folder.record, RECORD)
    assert read_facts(folder).classes == ("chat", "batch")
    for row in record.select(["index", "request_class", "output_tokens_asked", "usage_output"]).to_pylist():
        number = scheduled["request_class"][row["index"]].as_py()
        assert row["request_class"] == number
        assert row["output_tokens_asked"] == row["usage_output"] == (5, 3)[number]
    chat, batch = summary["by_class"]
    assert (chat["name"], batch["name"]) == ("chat", "batch")
    assert chat["requests"]["sent"] + batch["requests"]["sent"] == summary["requests"]["sent"] == 120
    assert batch["prompt"] == {"asked_mean": 30, "sent_mean": 30, "server_mean": 37}
    assert chat["prompt"]["asked_mean"] == chat["prompt"]["sent_mean"] > 40
    assert batch["output"] == {"asked_mean": 3, "local_mean": 3, "server_mean": 3}
    assert summary["workload"]["missing"] == []
    checks = {check["code"]: check["status"] for check in summary["verdict"]["checks"]}
    assert (checks["prompt_length"], checks["output_length"], checks["cache_hits"]) == (
        "pass",
        "pass",
        "pass",
    )
    for name in ("report.md", "report.html"):
        text = (path / name).read_text()
        assert "By class" in text
        assert "batch" in text


def test_each_class_has_its_own_body_and_header_lines(tmp_path: Path) -> None:
    """As a server reads them: fields and headers of the class, in place of the program's own where they meet."""
    plan = planned(tmp_path, MIXTURE)
    with scripted(answer, limit=400) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        run("run", plan, "--url", url, "--header", "X-All: yes", "--json", out=tmp_path / "runs")
    streamed = [seen for seen in peer.seen if seen.method == "POST" and json.loads(seen.body)["stream"]]
    assert len(streamed) == 130
    for seen in streamed:
        body = json.loads(seen.body)
        fields = {name: body.get(name) for name in ("temperature", "top_p", "priority", "tier", "max_tokens")}
        chat = seen.headers["x-class"] == "chat"
        assert fields == (
            {"temperature": 0.5, "top_p": 0.9, "priority": 1, "tier": None, "max_tokens": 5}
            if chat
            else {"temperature": 0, "top_p": None, "priority": None, "tier": "low", "max_tokens": 3}
        )
        assert seen.headers["user-agent"] == ("somebody" if chat else "inferometer")
        assert seen.headers["x-all"] == "yes"
    heads = Counter(
        json.loads(seen.body)["messages"][0]["content"][:40]
        for seen in streamed
        if seen.headers["x-class"] == "chat"
    )
    assert max(heads.values()) > 10  # a shared prefix begins like all of its group, nonce included


def test_a_mixture_is_simulated_alike_and_its_prefixes_are_found_in_the_cache(tmp_path: Path) -> None:
    """Two simulations have the same record; the cache gives back whole blocks of the prefix, to the class that shares one."""
    plan = planned(tmp_path, MIXTURE.replace("share: 0.5, groups: 2", "share: 1, groups: 1"))
    records = []
    for name in ("one", "two"):
        flags = ["--set", "prefix_caching=true", "--set", "block_tokens=16", "--json"]
        _, stdout, _ = run("simulate", plan, *flags, out=tmp_path / name)
        records.append(read_table(RunFolder.open(only(tmp_path / name)).record, RECORD))
    assert records[0].equals(records[1])
    assert [one["requests"]["failed"] for one in json.loads(stdout)["by_class"]] == [0, 0]
    seen: dict[int, list[int]] = {0: [], 1: []}
    for row in records[0].select(["phase", "request_class", "usage_cached"]).to_pylist():
        if row["phase"] == 1:
            seen[row["request_class"]].append(row["usage_cached"] or 0)
    assert set(seen[1]) == {0}
    assert (
        Counter(seen[0]).most_common(1)[0][0] == 64
    )  # 3 of the template, 64 of the prefix: four blocks of 16
    assert sum(cached == 0 for cached in seen[0]) < 5


def own_file(tmp_path: Path, rows: int = 7) -> Path:
    path = tmp_path / "own.jsonl"
    lines = [
        {"prompt": f"{WORDS} {at}", "output_tokens": 2 + at % 3, "class": ("gold", "free")[at % 2]}
        for at in range(rows)
    ]
    lines[3] |= {"system": f"A system's {WORDS}"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_own_prompts_are_sent_counted_and_named_but_not_shown(tmp_path: Path) -> None:
    """The report has the file's name, digest and how often it was gone through, and no word of a prompt."""
    path = own_file(tmp_path)
    flags = [
        "--prompts",
        str(path),
        "--requests",
        "30",
        "--warmup",
        "5",
        "--concurrency",
        "4",
        "--workers",
        "2",
    ]
    _, stdout, _ = run("run", *flags, "--json", out=tmp_path / "runs")
    summary, folder = json.loads(stdout), only(tmp_path / "runs")
    jsonschema.validate(summary, shipped("summary"))
    assert summary["requests"]["completed"] == 30
    file = summary["workload"]["prompts"]
    assert (file["file"], file["rows"], file["with_system_prompt"]) == ("own.jsonl", 7, 1)
    assert summary["plan"]["workload"]["prompts_sha256"] == file["sha256"]
    assert {one["name"] for one in summary["by_class"]} == {"gold", "free"}
    markdown = (folder / "report.md").read_text()
    assert "prompts were used again, 4.29 times on average" in markdown
    assert "D\\-4.3.1\\-domain" in markdown or "D-4.3.1-domain" in markdown
    shown = stdout + "".join((folder / name).read_text() for name in ("report.md", "report.html", "run.json"))
    assert WORDS not in shown
    checks = {check["code"]: check["status"] for check in summary["verdict"]["checks"]}
    assert (checks["prompt_length"], checks["output_length"]) == ("pass", "pass")
    rows = Schedule(folder / "requests.arrow").table.to_pylist()
    bodies = [json.loads(row["body"]) for row in rows if row["phase"] == Phase.MEASURE]
    contents = [body["messages"][-1]["content"].split("\n")[1] for body in bodies]
    assert contents == [f"{WORDS} {at % 7}" for at in range(30)]


def test_a_saved_plan_wants_the_same_file_again(tmp_path: Path) -> None:
    """plan.json pins the digest: the same file runs again, another one of its name is refused."""
    path = own_file(tmp_path)
    flags = ["--requests", "8", "--warmup", "0", "--quiet", "--json"]
    run("simulate", "--prompts", str(path), *flags, out=tmp_path / "one")
    plan = str(only(tmp_path / "one") / "plan.json")
    code, _, _ = run("simulate", plan, "--quiet", "--json", out=tmp_path / "two")
    assert code == 4
    path.write_text(path.read_text().replace("words", "wards"))
    code, _, stderr = run("simulate", plan, out=tmp_path / "three")
    assert code == 2
    assert "own.jsonl" in stderr
    assert "another file than the plan's" in stderr
    assert not (tmp_path / "three").exists()


def test_what_is_wrong_with_a_file_is_told_before_a_request_is_sent(tmp_path: Path) -> None:
    """A line that is none; and a prompt beyond what /v1/models says the model takes: exit 2, nothing asked, no folder left."""
    path = own_file(tmp_path)
    path.write_text(path.read_text() + '{"prompt": "", "output_tokens": 3}\n')
    with scripted(answer) as peer:
        url = [
            "--url",
            f"http://127.0.0.1:{peer.port}",
            "--tokenizer",
            "cl100k_base",
            "--token-count",
            "native",
        ]
        code, _, stderr = run("run", *url, "--prompts", str(path), out=tmp_path / "runs")
        assert (code, peer.seen) == (2, [])
        assert "own.jsonl:8: prompt: is empty" in stderr
        path.write_text(json.dumps({"prompt": "hello " * 60, "output_tokens": 3}))
        code, _, stderr = run("run", *url, "--prompts", str(path), out=tmp_path / "runs")
    assert code == 2
    assert "own.jsonl:1: prompt: is 61 tokens long by cl100k_base, and 3 are asked for" in stderr
    assert not [seen for seen in peer.seen if b'"stream":true' in seen.body]
    assert list((tmp_path / "runs").iterdir()) == []
