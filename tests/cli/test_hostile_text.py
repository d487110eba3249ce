"""A whole run against a server each of whose words is made to harm: none of it reaches a terminal, a log or a report raw."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from commands import only, run
from hostile import HOSTILE, SEQUENCES
from peers import Script, Seen, chunked, scripted, whole

from inferometer.printable import UNPRINTABLE

WORDS = f"begin{SEQUENCES}{HOSTILE}end"
ON_A_LINE = "".join(sign for sign in WORDS if 0xFF >= ord(sign) >= 0x80 or " " <= sign <= "~")
"""What a header can hold of it."""
SHOWN = ["report.html", "report.md", "summary.json", "run.json", "log.txt"]


def answer(seen: Seen) -> Script:
    """Every field that an answer has is made to harm, and every third answer is an error in such words."""
    server = f"Server: {ON_A_LINE}".encode("latin-1")
    if seen.target.endswith("/models"):
        listed: dict[str, Any] = {"id": "m", "owned_by": WORDS, "max_model_len": 4096}
        return Script(whole(200, json.dumps({"data": [{"id": WORDS}, listed]}).encode(), server))
    if seen.target.endswith("/metrics"):
        label = SEQUENCES.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "")
        text = (
            f'# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{{model_name="{label}"}} 1\n'
        )
        return Script(whole(200, text.encode(), kind=b"text/plain"))
    request = json.loads(seen.body)
    if not request.get("stream"):
        message = {"role": "assistant", "content": WORDS}
        body = {"model": WORDS, "choices": [{"message": message, "finish_reason": WORDS}]}
        return Script(whole(200, json.dumps(body).encode(), server))
    turn = seen.place % 3
    if turn == 1:
        return Script(whole(500, json.dumps({"error": {"message": WORDS, "code": WORDS}}).encode()))
    if turn == 2:
        return Script(chunked(b"data: " + json.dumps({"error": WORDS}).encode() + b"\n\n"))
    delta = {"model": WORDS, "choices": [{"delta": {"content": WORDS}, "finish_reason": None}]}
    end = {
        "choices": [{"delta": {}, "finish_reason": WORDS}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    }
    return Script(
        chunked(
            *(b"data: " + json.dumps(one).encode() + b"\n\n" for one in (delta, end)), b"data: [DONE]\n\n"
        )
    )


def harmful(text: str) -> set[str]:
    return {sign for sign in text if unicodedata.category(sign) in UNPRINTABLE} - {"\n"}


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_that_a_server_says_can_steer_a_terminal(as_json: bool, tmp_path: Path) -> None:
    """stdout, as a table and as JSON; stderr; the log; and every file of the run that people read."""
    with scripted(answer) as peer:
        where = (
            "--url",
            f"http://127.0.0.1:{peer.port}",
            "--model",
            "m",
            "--tokenizer",
            "none",
            "--no-ignore-eos",
        )
        load = (
            "--requests",
            "12",
            "--concurrency",
            "2",
            "--input-tokens",
            "20",
            "--output-tokens",
            "5",
            "--warmup",
            "3",
        )
        _, stdout, stderr = run("run", *where, *load, *(["--json"] if as_json else []), out=tmp_path)
    folder = only(tmp_path)
    texts = {"stdout": stdout, "stderr": stderr, **{name: (folder / name).read_text() for name in SHOWN}}
    assert {name: signs for name, text in texts.items() if (signs := harmful(text))} == {}
    assert "begin" in texts["summary.json"], "the server's words are in the run"


def test_nor_can_the_words_that_end_a_run(tmp_path: Path) -> None:
    """An error before the load, and the models that are offered."""
    refusing = Script(whole(500, json.dumps({"error": WORDS}).encode()))
    with scripted(lambda seen: answer(seen) if seen.method == "GET" else refusing) as peer:
        url = ("--url", f"http://127.0.0.1:{peer.port}", "--requests", "1", "--input-tokens", "5")
        for more in ((), ("--model", "m")):
            code, stdout, stderr = run("run", *url, *more, out=tmp_path)
            assert code in (2, 5)
            assert "begin" in stderr
            assert not harmful(stdout + stderr)


KEY = "sk-canary-0123456789abcdef"
PARTED = "\u200b".join((KEY[:9], "\x01".join((KEY[9:14], KEY[14:]))))
"""What is shown of it is the key."""


def repeating(seen: Seen) -> Script:
    """The key that was sent comes back in every word, parted by what is not shown."""
    words = f"bad {PARTED}, {'x' * (seen.place % 40)}{PARTED}"
    if seen.target.endswith("/models"):
        return Script(whole(200, json.dumps({"data": [{"id": PARTED}, {"id": "m"}]}).encode()))
    if seen.target.endswith("/metrics"):
        return Script(whole(401, f"{'x' * 33} {words}".encode(), kind=b"text/plain"))
    if json.loads(seen.body).get("stream"):
        return Script(whole(500, json.dumps({"error": {"message": words, "code": PARTED}}).encode()))
    message = {"role": "assistant", "content": words}
    body = {"model": PARTED, "choices": [{"message": message, "finish_reason": PARTED}]}
    return Script(whole(200, json.dumps(body).encode()))


def test_a_key_that_comes_back_parted_is_shown_nowhere(tmp_path: Path) -> None:
    """Law: in the names of models, in the errors before the load and in those of the record, what is not shown between its
    characters does not save a key from being struck out."""
    (tmp_path / "key").write_text(KEY)
    load = (
        "--requests",
        "4",
        "--concurrency",
        "1",
        "--input-tokens",
        "5",
        "--tokenizer",
        "none",
        "--warmup",
        "0",
    )
    refusing = Script(whole(401, json.dumps({"error": f"bad {PARTED}"}).encode()))
    breaking = Script([f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {'x' * 60} {KEY}\r\n\r\n".encode()])
    said: list[str] = []
    with scripted(repeating) as peer:
        to = ("--url", f"http://127.0.0.1:{peer.port}", "--api-key-file", str(tmp_path / "key"), *load)
        said += run("run", *to, out=tmp_path / "none")[1:]  # which model?
        token = ("--server-metrics", f"http://127.0.0.1:{peer.port}/metrics")
        said += run("run", *to, "--model", "m", *token, out=tmp_path / "run")[1:]
    for script in (refusing, breaking):

        def bad(seen: Seen, script: Script = script) -> Script:
            return repeating(seen) if seen.method == "GET" else script

        with scripted(bad) as peer:
            to = ("--url", f"http://127.0.0.1:{peer.port}", "--api-key-file", str(tmp_path / "key"), *load)
            said += run("run", *to, "--model", "m", out=tmp_path / "none")[1:]
    texts = said + [(only(tmp_path / "run") / name).read_text() for name in SHOWN]
    for text in texts:
        assert "canary" not in "".join(sign for sign in text if unicodedata.category(sign) not in UNPRINTABLE)
        assert "012345" not in text
    assert sum("[redacted]" in text for text in texts) >= 5
