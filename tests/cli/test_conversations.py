"""Conversations and users through the whole program: with a server that writes down what it is told, and in virtual time."""

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
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table

MODELS = whole(200, b'{"data":[{"id":"m"}]}')
TURNS = ("--turns", "uniform(1,4)", "--input-tokens", "uniform(20,40)", "--output-tokens", "uniform(3,6)")


def echo(seen: Seen) -> Script:
    """Answers that say which question they answer, so that nobody can take one for another's."""
    if seen.method == "GET":
        return Script(MODELS)
    body = json.loads(seen.body)
    if not body["stream"]:
        return Script(whole(200, b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}'))
    words = [f" to-{abs(hash(body['messages'][-1]['content']))}", *[" word"] * (body["max_tokens"] - 1)]
    return Script(chunked(*tokens(*words)))


def statuses(summary: dict[str, Any]) -> dict[str, str]:
    return {check["code"]: check["status"] for check in summary["verdict"]["checks"]}


@pytest.mark.parametrize(
    "load",
    [
        ("--concurrency", "6", "--think-ms", "uniform(1,20)"),
        ("--rate", "60"),
        ("--users", "7", "--user-rate", "20", "--workers", "2"),
    ],
    ids=["closed", "open", "users"],
)
def test_a_server_is_told_all_that_was_said_before_as_it_was_said(
    load: tuple[str, ...], tmp_path: Path
) -> None:
    """Every request's messages are another's, the server's own answer to that, and one more; the record knows it all."""
    with scripted(echo, limit=400) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        _, stdout, _ = run(
            "run",
            "--url",
            url,
            *TURNS,
            *load,
            "--requests",
            "100",
            "--warmup",
            "8",
            "--json",
            out=tmp_path / "runs",
        )
    summary = json.loads(stdout)
    jsonschema.validate(summary, shipped("summary"))
    bodies = [json.loads(seen.body) for seen in peer.seen if seen.method == "POST"]
    chats = [body["messages"] for body in bodies if body["stream"]]
    counts = summary["requests"]
    assert len(chats) == 108 + counts["lead_in"] + counts["lead_out"]
    assert (counts["lead_in"] > 0) == ("--concurrency" in load)
    said = {json.dumps(chat) for chat in chats}
    assert len(said) == len(chats)
    for chat in chats:
        assert [message["role"] for message in chat] == (["user", "assistant"] * len(chat))[: len(chat)]
        if len(chat) > 1:
            assert json.dumps(chat[:-2]) in said
            assert chat[-2]["content"].startswith(f" to-{abs(hash(chat[-3]['content']))}")
    record = read_table(RunFolder.open(only(tmp_path / "runs")).record, RECORD).to_pylist()
    turns = Counter(row["turn"] for row in record)
    assert turns == Counter(len(chat) // 2 for chat in chats)
    told = summary["conversations"]
    assert (told["broken"], told["finished"] + told["cut"]) == (0, told["begun"])
    assert [one["sent"] for one in told["by_turn"]] == [
        sum(row["phase"] == 1 and row["turn"] == turn for row in record)
        for turn in range(len(told["by_turn"]))
    ]
    for name in ("report.md", "report.html"):
        assert "y turn" in (only(tmp_path / "runs") / name).read_text()


def test_a_turn_that_fails_ends_its_conversation_and_no_other(tmp_path: Path) -> None:
    """What is left out of it was never asked: neither an error nor a dropped arrival."""

    def failing(seen: Seen) -> Script:
        body = json.loads(seen.body) if seen.method == "POST" else {}
        if body.get("stream") and len(body["messages"]) == 3:
            return Script(whole(500, b'{"error":{"message":"no"}}'))
        return echo(seen)

    with scripted(failing, limit=200) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        args = ("--turns", "3", "--rate", "50", "--requests", "60", "--warmup", "0", "--json")
        _, stdout, _ = run("run", "--url", url, *args, out=tmp_path / "runs")
    summary = json.loads(stdout)
    told = summary["conversations"]
    assert (told["begun"], told["broken"], told["left_out"]) == (20, 20, 20)
    assert (summary["requests"]["sent"], summary["requests"]["failed"]) == (40, 20)
    assert statuses(summary)["arrival_rate"] == "na"  # fewer than 100 conversations


def test_the_embedded_server_counts_what_the_program_says_it_repeated(tmp_path: Path) -> None:
    """Its prompt tokens, less a template that grows by the message, are what was asked for, with its own replies in it."""
    args = (
        "--turns",
        "uniform(1,5)",
        "--input-tokens",
        "30",
        "--output-tokens",
        "uniform(4,9)",
        "--concurrency",
        "5",
    )
    _, stdout, _ = run(
        "run",
        *args,
        "--token-count",
        "native",
        "--requests",
        "150",
        "--warmup",
        "5",
        "--json",
        out=tmp_path / "runs",
    )
    summary = json.loads(stdout)
    assert statuses(summary)["prompt_length"] == "pass"
    rows = read_table(RunFolder.open(only(tmp_path / "runs")).record, RECORD).to_pylist()
    for turn in range(5):
        beyond = {row["usage_input"] - row["input_tokens_asked"] for row in rows if row["turn"] == turn}
        assert (
            max(beyond) - min(beyond) <= 2 * turn
        )  # a seam between a text and its template may save a token
        assert min(beyond) >= 0


@pytest.mark.parametrize("replies", ["server", "recorded"])
def test_a_simulated_cache_finds_what_turns_repeat(replies: str, tmp_path: Path) -> None:
    """Never more than the best possible share; and with the cache, nearly all prompts but their newest words. The simulated
    cache is cold, so nothing beyond what turns repeat is accepted, whoever replies."""
    args = ("--turns", "6", "--input-tokens", "64", "--output-tokens", "16", "--replies", replies)
    _, stdout, _ = run(
        "simulate", *args, "--requests", "600", "--concurrency", "4", "--set", "prefix_caching=true", "--json",
        out=tmp_path / "runs",
    )  # fmt: skip
    summary = json.loads(stdout)
    best = summary["workload"]["drawn"]["prefix_hits"]["exact"]
    assert 0.5 < summary["throughput"]["cached_input_share"] <= best + 0.02
    assert statuses(summary)["cache_hits"] == "pass"
    first, *later = summary["conversations"]["by_turn"]
    assert first["cached_share"] < 0.1 < min(one["cached_share"] for one in later)
    again = json.loads(
        run(
            "simulate", *args, "--requests", "600", "--concurrency", "4", "--set", "prefix_caching=true", "--json",
            out=tmp_path / "again",
        )[1]
    )  # fmt: skip
    assert again["metrics"] == summary["metrics"]


def test_slow_answers_hold_users_and_the_report_says_so(tmp_path: Path) -> None:
    """Users who ask more often than they are answered are one request each, and a note."""
    args = (
        "--users",
        "4",
        "--user-rate",
        "50",
        "--output-tokens",
        "40",
        "--input-tokens",
        "20",
        "--requests",
        "80",
    )
    _, stdout, _ = run("simulate", *args, "--warmup", "4", "--json", out=tmp_path / "runs")
    summary = json.loads(stdout)
    jsonschema.validate(summary, shipped("summary"))
    assert statuses(summary)["users_held"] == "note"
    assert summary["load"]["held"]["of"] == 80
    assert summary["load"]["achieved"]["concurrency_max"] <= 4
    assert summary["load"]["offered"] == {
        "rate": 200.0, "rate_of": "requests", "concurrency": None, "users": 4, "user_rate": 50.0,
        "arrival": "constant", "burstiness": None,
    }  # fmt: skip
