"""The workloads of natural text from the command line: on the reference server with a prefix cache, and in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import only, run
from shipped_schemas import shipped

from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import RECORD, Phase
from inferometer.journal.seal import read_table
from inferometer.server.embedded import Embedded

QUICK = ["--concurrency", "2", "--warmup", "4", "--output-tokens", "8", "--json"]


def simulated(out: Path, *arguments: str) -> dict[str, Any]:
    """The summary of a simulation."""
    _, stdout, stderr = run("simulate", *arguments, "--json", out=out)
    assert stdout, stderr
    return dict(json.loads(stdout))


def status(summary: dict[str, Any], code: str) -> str:
    return next(str(check["status"]) for check in summary["verdict"]["checks"] if check["code"] == code)


@pytest.fixture(scope="module")
def dialogues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file in ShareGPT's layout."""
    path = tmp_path_factory.mktemp("data") / "share.json"
    rows = [
        {
            "id": str(number),
            "conversations": [
                {"from": "human", "value": f"Question {number}: " + "how does it work? " * (number % 20 + 2)},
                {"from": "gpt", "value": "It works. " * (number % 4 + 1)},
            ],
        }
        for number in range(60)
    ]
    path.write_text(json.dumps(rows))
    return path


@pytest.mark.parametrize("workload", ["conversation", "code-completion"])
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_real_cache_finds_what_requests_share_and_no_more(workload: str, api: str, tmp_path: Path) -> None:
    """`serve --set prefix_caching=on`: cached tokens are near the best possible, never beyond it by more than the template; a
    second run of the plan finds no more than the first."""
    arguments = ["--workload", workload, "--api", api, "--requests", "60", *QUICK]
    shares = []
    with Embedded(tmp_path / "log", "--set", "prefix_caching=on") as server:
        for place in ("one", "two"):
            (tmp_path / place).mkdir()
            _, stdout, stderr = run("run", "--url", server.url(), *arguments, out=tmp_path / place)
            assert stdout, stderr
            summary = json.loads(stdout)
            jsonschema.validate(summary, shipped("summary"))
            assert summary["requests"]["completed"] == 60
            best = summary["workload"]["drawn"]["prefix_hits"]
            shares.append(summary["throughput"]["cached_input_share"])
            # Two in flight may miss each other's first; the template's 7 to 11 tokens may complete a block.
            assert 0.5 * best["blocks"] < shares[-1] < best["exact"] + 0.03
            assert status(summary, "cache_hits") == status(summary, "prompt_length") == "pass"
            assert "Best possible prefix hits" in (only(tmp_path / place) / "report.md").read_text()
    assert shares[1] < shares[0] + 0.05


def test_repeated_prompts_are_found_again_by_the_second_run(tmp_path: Path) -> None:
    """Without nonces the cache answers for all of the first run: the honest default is what prevents that."""
    arguments = ["--workload", "conversation", "--requests", "20", "--repeatable-prompts", *QUICK]
    shares = []
    with Embedded(tmp_path / "log", "--set", "prefix_caching=on") as server:
        for place in ("one", "two"):
            (tmp_path / place).mkdir()
            _, stdout, _ = run("run", "--url", server.url(), *arguments, out=tmp_path / place)
            shares.append(json.loads(stdout)["throughput"]["cached_input_share"])
    assert shares[1] > 0.85 > shares[0]


def test_a_duration_keeps_sharing_when_prompts_are_gone_through_again(tmp_path: Path) -> None:
    """Every request of a later cycle still begins with its shared prefix, 12 blocks and a 13th if the nonce's first digits are
    known, and the nonce is another's."""
    flags = [
        "--workload",
        "conversation",
        "--input-tokens",
        "20",
        "--output-tokens",
        "1",
        "--concurrency",
        "4",
    ]
    summary = simulated(tmp_path, *flags, "--duration", "40s", "--warmup", "0", "--set", "prefix_caching=on")
    record = read_table(RunFolder(only(tmp_path)).record, RECORD)
    assert max(record.column("cycle").to_pylist()) >= 1
    best = summary["workload"]["drawn"]["prefix_hits"]["exact"]
    assert abs(summary["throughput"]["cached_input_share"] - best) < 0.12
    rows = record.select(["usage_cached", "input_tokens_shared"]).to_pylist()[200:]
    beyond = [
        row for row in rows if row["usage_cached"] not in ((192, 208) if row["input_tokens_shared"] else (0,))
    ]
    # Two requests with one text, d rows apart, meet with one nonce d cycles apart.
    assert len(beyond) < 0.02 * len(rows)


@pytest.mark.parametrize("caching", ["on", "off"])
def test_a_simulated_cache_is_hit_as_the_bodies_say(caching: str, tmp_path: Path) -> None:
    """Virtual time: the share found is the best possible in blocks, or nothing; prompt tokens are counted system and all."""
    flags = [
        "--workload",
        "conversation",
        "--requests",
        "120",
        "--warmup",
        "0",
        "--concurrency",
        "1",
        "--output-tokens",
        "2",
    ]
    summary = simulated(tmp_path, *flags, "--set", f"prefix_caching={caching}", "--set", "kv_blocks=9000")
    drawn = summary["workload"]["drawn"]
    overhead = (
        3 + 4 + 4 * drawn["shared"]["fraction"]
    )  # request, user message, system message (server/openai.py)
    assert abs(summary["tokens"]["prompt"]["server_mean"] - drawn["input_tokens"]["mean"] - overhead) < 1e-6
    assert summary["sut"]["prefix_caching"] == ("enabled" if caching == "on" else "disabled")
    assert summary["sut"]["cache_state"] == "cold"
    share = summary["throughput"]["cached_input_share"]
    if caching == "off":
        assert share == 0
    else:
        assert abs(share - drawn["prefix_hits"]["blocks"]) < 0.02


def test_a_stand_in_is_custom_everywhere_and_a_dataset_makes_it_the_standard(
    dialogues: Path, tmp_path: Path
) -> None:
    """Name, deviation, corpus, dataset and hash stand in run.json, summary and report; no folder of this machine does."""
    flags = ["--workload", "conversation", "--requests", "30", "--warmup", "0", "--concurrency", "4"]
    (tmp_path / "bare").mkdir()
    (tmp_path / "whole").mkdir()
    bare = simulated(tmp_path / "bare", *flags)
    planned = bare["plan"]["workload"]
    assert (planned["name"], planned["based_on"]) == ("custom", "conversation")
    report = (only(tmp_path / "bare") / "report.md").read_text()
    assert "the draft takes both from ShareGPT" in report
    assert "language reference" in report
    given = ["--dataset", str(dialogues), "--dataset-version", "2023-04-12"]
    whole = simulated(tmp_path / "whole", *flags, *given)
    assert (whole["plan"]["workload"]["name"], whole["workload"]["deviations"]) == ("conversation", [])
    items = {item["id"]: item["value"] for item in whole["workload"]["items"]}
    assert items["D-4.3.1-input"].startswith("empirical, in tokens of cl100k_base")
    assert items["D-4.3.1-system-prompt"] == "200 tokens, a system message, of 0.5 of the requests"
    assert whole["workload"]["missing"] == []
    dataset = whole["workload"]["texts"]["dataset"]
    assert (dataset["name"], dataset["version"], dataset["rows"]) == ("share.json", "2023-04-12", 60)
    report = (only(tmp_path / "whole") / "report.md").read_text()
    assert dataset["sha256"] in report
    assert "2023-04-12" in report
    facts = json.loads((only(tmp_path / "whole") / "run.json").read_text())
    assert facts["texts"]["dataset"]["sha256"] == dataset["sha256"]
    assert str(dialogues.parent) not in json.dumps(facts)


def test_a_dataset_that_cannot_be_used_is_exit_2_before_anything_is_sent(tmp_path: Path) -> None:
    """No request reaches the server, no folder is left, and the message names file, line and field."""
    path = tmp_path / "bad.jsonl"
    path.write_text('{"conversations": []}\n{"talk": 1}\n')
    out = tmp_path / "out"
    for command in ("run", "simulate"):
        code, _, stderr = run(command, "--workload", "conversation", "--dataset", str(path), out=out)
        assert code == 2
        assert "--dataset: bad.jsonl, line 2: has no field 'conversations'" in " ".join(stderr.split())
        assert not out.exists() or list(out.iterdir()) == []


def test_a_long_context_run_sends_documents_of_their_length(tmp_path: Path) -> None:
    """Virtual time: what the server counts is what was asked, plus the chat's 7 tokens; the schedule is the draft's,
    and of the lead-in's requests the first of two slots has its answer cut to a half."""
    flags = [
        "--workload",
        "long-context",
        "--requests",
        "12",
        "--warmup",
        "0",
        "--concurrency",
        "2",
        "--set",
        "kv_blocks=9000",
    ]
    summary = simulated(tmp_path, *flags)
    assert summary["plan"]["workload"]["name"] == "long-context"
    assert summary["tokens"]["prompt"]["misses"] == 0
    assert summary["tokens"]["prompt"]["server_mean"] == summary["tokens"]["prompt"]["asked_mean"] + 7
    table = Schedule(only(tmp_path) / "requests.arrow").table
    assert all(8192 <= tokens <= 32768 for tokens in table.column("input_tokens_sent").to_pylist())
    asked: dict[int, list[int]] = {Phase.LEAD: [], Phase.MEASURE: []}
    for row in table.to_pylist():
        asked[row["phase"]].append(row["output_tokens_asked"])
    assert asked == {Phase.LEAD: [128, 256, 256, 256], Phase.MEASURE: [256] * 12}
