"""A trace replayed, as people do it: the command, the embedded server, and what is left on disk."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
from commands import finish, only, run, start, wait_for_answers
from peers import Script, Seen, chunked, scripted, tokens, whole
from shipped_schemas import shipped

from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table
from inferometer.units import NS_PER_MS

VECTORS = Path(__file__).parent.parent / "vectors" / "traces"
MOONCAKE_MS = [0, 0, 150, 150, 400, 420, 600, 999]
MODELS = whole(200, b'{"data":[{"id":"m"}]}')
HELLO = whole(
    200, b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9}}'
)


def serve(seen: Seen) -> Script:
    if seen.method == "GET":
        return Script(MODELS)
    body = json.loads(seen.body)
    return Script(chunked(*tokens(*[" word"] * body["max_tokens"])) if body["stream"] else HELLO)


def replayed(
    *flags: str, out: Path, trace: str = "mooncake.jsonl", command: str = "run"
) -> tuple[int, dict[str, Any], Path]:
    """Exit code, summary and folder of a replay."""
    code, stdout, stderr = run(command, "--trace", str(VECTORS / trace), *flags, "--json", "--quiet", out=out)
    assert stdout, stderr
    summary = json.loads(stdout)
    jsonschema.validate(summary, shipped("summary"))
    return code, summary, only(out)


def due_ms(folder: Path, phase: int = 1) -> list[float]:
    """When the requests of a phase were due, from its first instant due."""
    record = read_table(RunFolder(folder).record, RECORD)
    table = record.select(["phase", "t_intended"]).to_pydict()
    due = [at for at, its in zip(table["t_intended"], table["phase"], strict=True) if its == phase]
    return [(at - due[0]) / NS_PER_MS for at in due]


def check(summary: dict[str, Any], code: str) -> dict[str, Any]:
    return next(one for one in summary["verdict"]["checks"] if one["code"] == code)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_every_arrival_of_the_trace_is_due_at_its_own_instant(workers: str, tmp_path: Path) -> None:
    """To the nanosecond, with the traced lengths, for any number of workers; the warm-up is the trace's beginning."""
    _, summary, folder = replayed("--warmup", "3", "--workers", workers, out=tmp_path)
    assert due_ms(folder) == MOONCAKE_MS
    assert due_ms(folder, phase=0) == MOONCAKE_MS[:3]
    assert (summary["requests"]["sent"], summary["requests"]["completed"]) == (8, 8)
    assert summary["tokens"]["prompt"]["misses"] == summary["tokens"]["output"]["misses"] == 0
    schedule = Schedule(folder / "requests.arrow").table.to_pydict()
    assert schedule["input_tokens_sent"][3:] == [1300, 1100, 530, 1536, 700, 40, 1300, 90]
    assert schedule["output_tokens_asked"][3:] == [6, 4, 5, 3, 2, 7, 6, 3]
    rate = check(summary, "arrival_rate")
    assert (rate["status"], rate["value"], rate["limit"]) == ("pass", 8, 8)
    assert check(summary, "stationary")["status"] == "na"
    hits = check(summary, "cache_hits")  # what is shared by the trace's wish is no fault
    best = summary["workload"]["prefix_hits"]["exact"]
    assert 0 < best < 1
    assert (hits["status"], hits["facts"]["best_share"], hits["limit"]) == ("pass", best, best + 0.05)


def test_window_speed_and_number_are_the_plans(tmp_path: Path) -> None:
    """Half a second of it at twice the speed, three requests at most; the summary and the reports say so."""
    flags = [
        "--trace-start",
        "0.1",
        "--trace-end",
        "0.7",
        "--trace-speed",
        "2",
        "--requests",
        "3",
        "--warmup",
        "0",
    ]
    _, summary, folder = replayed(*flags, out=tmp_path)
    assert due_ms(folder) == [0, 0, 125]
    trace = summary["load"]["trace"]
    assert (trace["rows"], trace["speed"], trace["start_s"], trace["end_s"], trace["span_s"]) == (
        3,
        2,
        0.1,
        0.7,
        0.15,
    )
    assert (trace["file"], trace["format"], trace["input_tokens"]["sum"]) == (
        "mooncake.jsonl",
        "mooncake",
        2766,
    )
    assert summary["load"]["offered"] == {
        "rate": 20,
        "rate_of": "requests",
        "users": None,
        "user_rate": None,
        "concurrency": None,
        "arrival": "trace",
        "burstiness": None,
    }
    report = (folder / "report.md").read_text()
    assert f"mooncake.jsonl, format mooncake, SHA-256 {trace['sha256']}" in report
    assert "3 arrivals from 0.1 s to 0.7 s of trace time, 2 times as fast as recorded" in report
    assert re.search(r"^\| Workload +\| lengths of the trace +\|$", report, re.MULTILINE)
    assert re.search(r"Input lengths +\| empirical: mean 922\.0", report)
    assert summary["workload"]["missing"] == ["D-4.3.1-prefix"]


def test_prompts_share_what_the_trace_says_and_texts_go_out_as_they_are(tmp_path: Path) -> None:
    """As the server received them."""
    prompts: dict[str, list[str]] = {}
    for name in ("mooncake.jsonl", "plain.jsonl"):
        with scripted(serve, limit=40) as peer:
            flags = ["--url", f"http://127.0.0.1:{peer.port}", "--warmup", "0"]
            replayed(*flags, out=tmp_path / name, trace=name)
        posts = [json.loads(seen.body) for seen in peer.seen if b'"stream":true' in seen.body]
        prompts[name] = [post["messages"][0]["content"] for post in posts]
    longest = sorted(prompts["mooncake.jsonl"], key=len)
    same = [prompt for prompt in longest if longest.count(prompt) == 2]
    assert len(same) == 2  # ids 0, 1, 2 and as many tokens, twice
    assert len({prompt[:9] for prompt in longest}) == 4  # first ids 0, 5 and 8, and one without
    assert {"Name three rivers of Europe.", "Say hello."} < set(prompts["plain.jsonl"])


def test_a_saved_plan_finds_its_trace_again_and_no_other(tmp_path: Path) -> None:
    """plan.json has path, format and hash: the same requests again; another file under that name is refused."""
    trace = tmp_path / "t.csv"
    trace.write_bytes((VECTORS / "azure-2023.csv").read_bytes())
    first, again = tmp_path / "first", tmp_path / "again"
    _, stdout, _ = run("run", "--trace", str(trace), "--warmup", "0", "--json", "--quiet", out=first)
    saved = only(first) / "plan.json"
    assert json.loads(saved.read_text())["trace"]["format"] == "azure"
    _, repeated, _ = run("run", str(saved), "--json", "--quiet", out=again)
    assert json.loads(stdout)["run"]["plan_hash"] == json.loads(repeated)["run"]["plan_hash"]
    facts = [json.loads((only(place) / "run.json").read_text()) for place in (first, again)]
    assert facts[0]["fingerprint"] == facts[1]["fingerprint"] is not None
    assert due_ms(only(again)) == [0, 52, 98.189, 98.189, 415.04]
    trace.write_bytes((VECTORS / "azure-2024.csv").read_bytes())
    code, _, stderr = run("run", str(saved), "--quiet", out=tmp_path / "third")
    assert code == 2
    assert "t.csv: is not the file this plan was made for" in stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"timestamp": 5, "input_tokens": 4, "output_tokens": 2}\n{"timestamp": 4, "input_tokens": 4, "output_tokens": 2}',
         "bad.jsonl:2: timestamp: is earlier than in the row before it"),
        ('{"timestamp": -5, "input_tokens": 4, "output_tokens": 2}', "bad.jsonl:1: timestamp: must be a number"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,4", "bad.jsonl:2: has 2 fields"),
    ],
)  # fmt: skip
def test_a_bad_trace_is_told_before_anything_is_sent(content: str, said: str, tmp_path: Path) -> None:
    """Not even the probe; no folder is left, and the exit code is that of a plan's mistake."""
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    out = tmp_path / "runs"
    with scripted(serve, limit=5) as peer:
        code, stdout, stderr = run(
            "run", "--url", f"http://127.0.0.1:{peer.port}", "--trace", str(path), "--quiet", out=out
        )
    assert (code, stdout, peer.seen) == (2, "", [])
    assert said in stderr
    assert list(out.iterdir()) == []


def test_a_simulation_replays_a_trace_and_its_cache_finds_what_the_trace_shares(tmp_path: Path) -> None:
    """The same arrivals in virtual time; an engine with a prefix cache takes from it what the hash ids let it, no less."""
    flags = ["--set", "prefix_caching=true", "--set", "block_tokens=16", "--warmup", "0"]
    _, summary, folder = replayed(*flags, out=tmp_path / "a", command="simulate")
    assert due_ms(folder) == MOONCAKE_MS
    rows = read_table(RunFolder(folder).record, RECORD).sort_by("index").to_pydict()
    cached = [value or 0 for value in rows["usage_cached"]]
    # Whole blocks of 16: of the first row nothing, of the second its two shared ids, of the seventh nearly all.
    assert cached[0] == cached[3] == cached[5] == cached[7] == 0
    assert cached[1] // 16 in (1024 // 16, 1024 // 16 - 1)
    assert cached[2] // 16 in (512 // 16, 512 // 16 - 1)
    assert cached[4] // 16 in (512 // 16, 512 // 16 - 1)
    assert cached[6] >= 1280
    assert summary["run"]["simulated"]
    _, again, other = replayed(*flags, out=tmp_path / "b", command="simulate")
    tables = [read_table(RunFolder(each).record, RECORD) for each in (folder, other)]
    assert tables[0].equals(tables[1])
    assert again["metrics"] == summary["metrics"]


def test_a_killed_replay_is_recovered(tmp_path: Path) -> None:
    """kill -9 of every process: what was sent is reported, and joined with what the appended schedule holds of it."""
    trace = tmp_path / "long.jsonl"
    rows = [{"timestamp": at / 20, "input_tokens": 20 + at % 7, "output_tokens": 3} for at in range(4000)]
    trace.write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "runs"
    process = start("run", "--trace", str(trace), "--warmup", "2", "--quiet", out=out)
    folder = wait_for_answers(process, out, 30)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)  # the second that may be lost
    for pid in [*(child.pid for child in psutil.Process(process.pid).children()), process.pid]:
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=30)
    code, stdout, _ = finish("recover", str(folder), "--json")
    summary = json.loads(stdout)
    assert code == 130
    assert summary["load"]["trace"]["rows"] == 4000
    assert summary["requests"]["completed"] >= 20
    record = read_table(RunFolder(folder).record, RECORD).sort_by("index").to_pydict()
    asked = [
        length for length, phase in zip(record["input_tokens_asked"], record["phase"], strict=True) if phase
    ]
    assert asked == [
        20 + (at - 2) % 7 for at, phase in zip(record["index"], record["phase"], strict=True) if phase
    ]
