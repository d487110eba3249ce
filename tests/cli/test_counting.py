"""Who counts, from the command to the report: the server's own tokenizer, none, and lengths with the chat template in them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from commands import finish, only, run
from peers import Script, Seen, chunked, scripted, tokens, whole

from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.workload.encodings import Shipped

FEW = ["--requests", "12", "--concurrency", "4", "--warmup", "4", "--output-tokens", "5", "--json"]
LENGTHS = ["--input-tokens", "uniform(30,90)"]
CL100K = ["--tokenizer", "cl100k_base", "--token-count", "native"]


def measured(tmp_path: Path, *arguments: str) -> tuple[dict[str, Any], Path]:
    """The summary and the folder of one run that sent all it should."""
    _, stdout, stderr = run("run", *FEW, *arguments, out=tmp_path)
    summary = json.loads(stdout or "null")
    assert summary is not None, stderr
    assert summary["requests"]["completed"] == 12
    return summary, only(tmp_path)


def test_the_servers_own_tokenizer_makes_prompts_and_counts_answers(tmp_path: Path) -> None:
    """Asked is what the server counts, its template included; recovered without it, nobody here counts, and it is said."""
    summary, folder = measured(tmp_path, "--tokenizer", "server", *LENGTHS)
    known, prompt = summary["tokens"]["tokenizer"], summary["tokens"]["prompt"]
    assert (known["kind"], known["method"], known["vocab_size"]) == ("server", "native", None)
    assert prompt["template"] > 0
    assert prompt["misses"] == 0
    assert prompt["asked_mean"] == prompt["server_mean"] == prompt["sent_mean"] + prompt["template"]
    assert summary["tokens"]["output"]["local_mean"] == 5
    RunFolder.open(folder).record.unlink()
    code, stdout, _ = finish("recover", str(folder), "--json")
    again = json.loads(stdout)
    assert code in (3, 4)  # few requests, and perhaps a busy machine
    assert again["tokens"]["output"]["local_mean"] is None
    assert again["tokens"]["output"]["server_mean"] == 5
    assert again["tokens"]["count_source"] == "server usage"
    assert "client counted nothing (the server was gone)" in (folder / "report.md").read_text()


def test_without_a_tokenizer_the_servers_usage_is_the_only_count(tmp_path: Path) -> None:
    """Local counts are said not to apply; the lengths asked for are the yardstick's."""
    summary, folder = measured(tmp_path, "--tokenizer", "none", *LENGTHS)
    assert summary["tokens"]["tokenizer"]["kind"] == "none"
    assert summary["tokens"]["output"]["local_mean"] is None
    assert summary["tokens"]["count_source"] == "server usage"
    report = (folder / "report.md").read_text()
    assert "client counted nothing (not applicable: no tokenizer)" in report
    assert "local counts are not applicable" in report


def test_lengths_of_the_models_own_tokens_include_the_template(tmp_path: Path) -> None:
    """And without it, when that is asked for: the same prompts, longer by just so much in the server's count."""
    with_it, folder = measured(tmp_path / "with", *CL100K, *LENGTHS)
    without, other = measured(tmp_path / "without", *CL100K, "--count-template", "no", *LENGTHS)
    template = with_it["tokens"]["prompt"]["template"]
    assert without["tokens"]["prompt"]["template"] is None
    means = [summary["tokens"]["prompt"]["server_mean"] for summary in (with_it, without)]
    assert means[1] - means[0] == pytest.approx(template)
    assert template > 0
    assert [summary["tokens"]["prompt"]["misses"] for summary in (with_it, without)] == [0, 0]
    tables = [Schedule(RunFolder.open(each).schedule).table for each in (folder, other)]
    asked, again = (table.column("input_tokens_asked").to_pylist() for table in tables)
    sent, longer = (table.column("input_tokens_sent").to_pylist() for table in tables)
    assert asked == again == longer
    assert sent == [tokens - template for tokens in asked]
    assert f"include the chat template, {template} tokens" in (folder / "report.md").read_text()


def counting(prompt_tokens: int) -> Any:
    """A server that says the probe's greeting has so many tokens, and has no /tokenize."""

    def serve(seen: Seen) -> Script:
        if seen.method == "GET":
            return Script(whole(200, b'{"data":[{"id":"m"}]}'))
        if "tokenize" in seen.target:
            return Script(whole(404, b'{"detail":"Not Found"}'))
        body = json.loads(seen.body)
        if not body["stream"]:
            usage = {"prompt_tokens": prompt_tokens}
            message = {"message": {"content": "hi"}, "finish_reason": "stop"}
            return Script(whole(200, json.dumps({"choices": [message], "usage": usage}).encode()))
        return Script(chunked(*tokens(*[" word"] * body["max_tokens"])))

    return serve


def test_prompts_that_leave_no_room_for_the_template_are_refused(tmp_path: Path) -> None:
    """Before anything is sent but the probe, with the number and two ways out."""
    with scripted(counting(61)) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        words = ["--url", url, *CL100K]
        code, _, stderr = run("run", *FEW, *words, *LENGTHS, out=tmp_path)
    assert code == 2
    assert "60 tokens to every prompt" in stderr
    assert "--count-template no" in stderr
    assert not list(tmp_path.iterdir())


def test_a_server_without_tokenize_is_refused_with_ways_out(tmp_path: Path) -> None:
    """Exit code 2, and nothing is left behind."""
    with scripted(counting(9)) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        code, _, stderr = run("run", *FEW, "--url", url, "--tokenizer", "server", out=tmp_path)
    assert code == 2
    assert "does not answer /tokenize" in stderr
    assert not list(tmp_path.iterdir())


def stopping(questions: int) -> Any:
    """A server whose tokenizer is cl100k_base, with a template of 5 tokens; its /tokenize answers so many questions."""
    ink, asked = Shipped("cl100k_base"), itertools.count()

    def serve(seen: Seen) -> Script:
        if seen.method == "GET":
            return Script(whole(200, b'{"data":[{"id":"m"}]}'))
        body = json.loads(seen.body)
        if seen.target == "/tokenize":
            if next(asked) >= questions:
                return Script(whole(503, b'{"detail":"busy"}'))
            return Script(whole(200, json.dumps({"tokens": ink.encode(body["prompt"])}).encode()))
        if seen.target == "/detokenize":
            return Script(whole(200, json.dumps({"prompt": ink.decode(body["tokens"])}).encode()))
        counted = len(ink.encode(body["messages"][0]["content"])) + 5
        usage = {"prompt_tokens": counted, "completion_tokens": body["max_tokens"]}
        if not body["stream"]:
            message = {"message": {"content": "hi"}, "finish_reason": "stop"}
            return Script(whole(200, json.dumps({"choices": [message], "usage": usage}).encode()))
        words = tokens(*[" word"] * body["max_tokens"])[:-2]
        last = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
        return Script(chunked(*words, last, b"data: [DONE]\n\n"))

    return serve


def test_a_tokenize_that_stops_while_prompts_are_made_is_taken_for_none(tmp_path: Path) -> None:
    """Nobody asked for it: the run goes on with a learned ratio, says so, and all its prompts are of one making."""
    with scripted(stopping(30), tokenize=True) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        _, stdout, stderr = run("run", *FEW, *LENGTHS, "--url", url, out=tmp_path)
    summary = json.loads(stdout)
    assert "now gives no tokens for a text: learning from a few short requests" in " ".join(stderr.split())
    assert summary["tokens"]["tokenizer"]["kind"] == "learned"
    assert summary["requests"]["completed"] == 12
    prompt = summary["tokens"]["prompt"]
    assert prompt["server_mean"] == pytest.approx(prompt["asked_mean"], rel=0.05)
    assert Schedule(RunFolder.open(only(tmp_path)).schedule).table.num_rows == 4 + 2 * 4 + 12


def test_a_tokenize_that_was_named_and_stops_ends_the_run(tmp_path: Path) -> None:
    """Exit code 5 with a way out, and nothing is left behind."""
    with scripted(stopping(30), tokenize=True) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        code, _, stderr = run("run", *FEW, *LENGTHS, "--url", url, "--tokenizer", "server", out=tmp_path)
    assert code == 5
    assert "gives no tokens for a text. Without --tokenizer" in " ".join(stderr.split())
    assert not list(tmp_path.iterdir())
