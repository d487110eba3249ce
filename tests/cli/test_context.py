"""Requests too long for the model that is served: found out before any of them is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import only, run
from peers import Script, Seen, chunked, scripted, tokens, whole
from serving import serving

from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule

CL100K = ["--tokenizer", "cl100k_base", "--token-count", "native"]
CLASSES = """
workload:
  classes:
    - {name: short, weight: 9, input_tokens: 10, output_tokens: 5}
    - {name: deep, input_tokens: "uniform(10,400)", output_tokens: 5, content: english}
"""
ROWS: list[dict[str, Any]] = [
    {"timestamp": 0, "input_tokens": 20, "output_tokens": 3},
    {"timestamp": 0.1, "input_tokens": 90, "output_tokens": 30},
]


def answer(seen: Seen) -> Script:
    """A model of 100 tokens, whose server tells its vocabulary and adds 4 tokens to a prompt."""
    if seen.method == "GET":
        return Script(whole(200, b'{"data":[{"id":"m","max_model_len":100,"meta":{"n_vocab":32000}}]}'))
    body = json.loads(seen.body)
    if body["stream"]:
        return Script(chunked(*tokens(*[" word"] * body["max_tokens"])))
    return Script(
        whole(200, b'{"choices":[{"text":"hi","message":{"content":"hi"}}],"usage":{"prompt_tokens":5}}')
    )


def written(folder: Path, rows: list[dict[str, Any]]) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def flags(kind: str, folder: Path) -> list[str]:
    """A plan of each kind in which some request, and not the first, is too long for 100 tokens."""
    if kind == "classes":
        (folder / "plan.yaml").write_text(CLASSES)
        return [str(folder / "plan.yaml")]
    if kind == "file":
        path = written(folder, [{"prompt": "Name three rivers."}])
        return ["--prompts", path, "--output-tokens", "uniform(60,120)"]
    if kind == "trace":
        return ["--trace", written(folder, ROWS)]
    return {
        "random": ["--input-tokens", "lognormal(3,1)", "--output-tokens", "5"],
        "natural": ["--workload", "conversation"],
    }[kind]


@pytest.mark.parametrize("kind", ["random", "natural", "classes", "file", "trace"])
def test_a_request_without_room_is_refused_before_any_is_sent(kind: str, tmp_path: Path) -> None:
    """Exit 2; the request, its lengths, the context and what to do are named. The server saw the probe alone."""
    load = [] if kind == "trace" else ["--requests", "200", "--concurrency", "2"]
    with scripted(answer, limit=400) as peer:
        url = ["--url", f"http://127.0.0.1:{peer.port}", *CL100K, "--count-template", "no"]
        given = [*flags(kind, tmp_path), *url, *load, "--warmup", "2"]
        code, _, stderr = run("run", *given, out=tmp_path / "runs")
    assert code == 2, stderr
    assert "and 4 of the chat template" in stderr
    assert "the model takes 100 in all" in stderr
    assert "longer context" in stderr
    assert not [seen for seen in peer.seen if b'"stream":true' in seen.body]
    assert list((tmp_path / "runs").iterdir()) == []


def test_what_could_be_too_long_and_is_not_is_sent_as_ever(tmp_path: Path) -> None:
    """Lengths without an upper bound that happen to fit: the same requests, warm-up first, as where no context is told."""
    load = [
        "--requests",
        "30",
        "--concurrency",
        "2",
        "--warmup",
        "5",
        "--repeatable-prompts",
        "--json",
        "--quiet",
    ]
    lengths = ["--input-tokens", "lognormal(3,0.3)", "--output-tokens", "5", *CL100K]
    bodies = []
    for context in (200, 10_000_100):
        out = tmp_path / str(context)
        with serving(max_model_len=context) as port:
            code, stdout, stderr = run("run", "--url", f"http://127.0.0.1:{port}", *lengths, *load, out=out)
        assert code in (0, 3, 4), stderr
        summary = json.loads(stdout)
        assert (summary["requests"]["completed"], summary["requests"]["warmup"]["completed"]) == (30, 5)
        schedule = Schedule(RunFolder(only(out)).schedule)
        bodies.append([schedule.body(row) for row in range(35)])
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize(("prompt", "fits"), [(57, True), (58, False)])
def test_the_servers_own_limit_is_met_to_the_token(prompt: int, fits: bool, tmp_path: Path) -> None:
    """A prompt, 7 tokens of the reference server's template and 20 of the answer in 84: what it takes is sent, no more."""
    given = [
        "--input-tokens",
        str(prompt),
        "--output-tokens",
        "20",
        *CL100K,
        "--count-template",
        "no",
    ]
    load = ["--requests", "4", "--concurrency", "1", "--warmup", "1", "--json", "--quiet"]
    with serving(max_model_len=84) as port:
        code, stdout, stderr = run(
            "run", "--url", f"http://127.0.0.1:{port}", *given, *load, out=tmp_path / "runs"
        )
    if fits:
        assert json.loads(stdout)["requests"]["completed"] == 4
    else:
        assert code == 2
        assert f"warm-up request 1 is {prompt} tokens long" in stderr


TURNS = ["--turns", "3", "--requests", "9", "--concurrency", "1", "--warmup", "0", "--quiet", "--json"]


@pytest.mark.parametrize(("context", "fits"), [(3 * 20 + 2 * 5 + 5 + 4 + 2 * 7, True), (92, False)])
def test_what_the_template_puts_around_the_messages_of_a_conversation_counts(
    context: int, fits: bool, tmp_path: Path
) -> None:
    """A third turn has its own 20 tokens, the 2 x (20 + 5) before it, 4 around one message and 7 around each exchange, which
    one more short request showed: with an answer of 5 that is 93, and a context of 92 is refused before any load."""

    def chat(seen: Seen) -> Script:
        if seen.method == "GET":
            listed = b'{"data":[{"id":"m","max_model_len":%d}]}' % context
            return Script(whole(200, listed))
        body = json.loads(seen.body)
        if body["stream"]:
            return Script(chunked(*tokens(*[" word"] * body["max_tokens"])))
        told = len(body["messages"])
        usage = {"prompt_tokens": 4 + told + 7 * (told // 2)}
        answered = {"choices": [{"message": {"content": "hi"}}], "usage": usage}
        return Script(whole(200, json.dumps(answered).encode()))

    lengths = ["--input-tokens", "20", "--output-tokens", "5", *CL100K, "--count-template", "no"]
    with scripted(chat) as peer:
        url = ["--url", f"http://127.0.0.1:{peer.port}"]
        code, _, stderr = run("run", *url, *lengths, *TURNS, out=tmp_path)
    sent = [seen for seen in peer.seen if b'"stream":true' in seen.body]
    assert (code == 2, bool(sent)) == (not fits, fits)
    if not fits:
        assert "and 18 of the chat template" in stderr
        assert "the model takes 92 in all" in stderr


def test_a_yardstick_refuses_only_what_no_tokenizer_could_make_fit(tmp_path: Path) -> None:
    """By cl100k_base twice as long may still fit another tokenizer: such a run goes on, and one beyond that does not."""
    load = [
        "--requests",
        "4",
        "--concurrency",
        "1",
        "--warmup",
        "1",
        "--json",
        "--quiet",
        "--output-tokens",
        "20",
    ]
    codes = []
    for prompt in ("160", "161"):
        with scripted(answer) as peer:
            url = ["--url", f"http://127.0.0.1:{peer.port}", "--tokenizer", "cl100k_base"]
            code, _, stderr = run("run", *url, "--input-tokens", prompt, *load, out=tmp_path / prompt)
            codes.append((code == 2, any(b'"stream":true' in seen.body for seen in peer.seen)))
    assert codes == [(False, True), (True, False)]
    assert "which is 81 of the model's own at the least" in stderr


def test_ids_beyond_the_models_vocabulary_are_not_sent(tmp_path: Path) -> None:
    """Where the server says how many ids it knows, a tokenizer with more sends text, and is refused if it must send ids."""
    load = ["--requests", "4", "--concurrency", "1", "--warmup", "1", "--quiet", "--json"]
    lengths = ["--input-tokens", "20", "--output-tokens", "5", "--api", "completions", *CL100K]
    with scripted(answer) as peer:
        url = ["--url", f"http://127.0.0.1:{peer.port}"]
        run("run", *url, *lengths, *load, out=tmp_path / "text")
        code, _, stderr = run("run", *url, *lengths, *load, "--prompt-format", "ids", out=tmp_path / "ids")
    prompts = [json.loads(seen.body)["prompt"] for seen in peer.seen if seen.method == "POST"]
    assert prompts
    assert all(isinstance(prompt, str) for prompt in prompts)
    assert code == 2
    assert "does not accept token ids" in stderr
