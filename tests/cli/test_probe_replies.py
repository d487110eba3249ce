"""A server whose reply to the short request before a run is no answer: nothing is sent then, and the user is told why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run
from peers import Script, Seen, scripted, whole
from wording import OVER_HTTP
from wording import whole as answer_of

ERRORS = [
    b'{"error":{"message":"GPU on fire"}}',
    b'{"type":"error","error":{"message":"GPU on fire"},"request_id":"\xff"}',
    b'{"object":"error","message":"GPU on fire"}',
    b'{"detail":"GPU on fire"}',
]


@pytest.mark.parametrize("api", OVER_HTTP)
@pytest.mark.parametrize("error", [*ERRORS, None])
def test_an_error_inside_a_200_is_no_reply(api: str, error: bytes | None, tmp_path: Path) -> None:
    """In any shape, or beside an answer: the server's words, and the exit code of a server that cannot be measured."""
    body = error or json.dumps(answer_of(api, "hi") | {"error": {"message": "GPU on fire"}}).encode()

    def answer(seen: Seen) -> Script:
        listing = b'{"data":[{"id":"m"}],"models":[{"name":"m"}]}'
        return Script(whole(200, listing if seen.method == "GET" else body))

    with scripted(answer) as peer:
        arguments = (
            "--url",
            f"http://127.0.0.1:{peer.port}",
            "--api",
            api,
            "--requests",
            "1",
            "--tokenizer",
            "none",
        )
        code, _, stderr = run("run", *arguments, "--input-tokens", "5", out=tmp_path)
    assert code == 5
    assert "GPU on fire" in stderr


def test_a_listed_model_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    """JSON may hold half of a surrogate pair, which no request can."""
    with scripted(lambda _: Script(whole(200, b'{"data":[{"id":"m\\ud800x"}]}'))) as peer:
        arguments = ("--url", f"http://127.0.0.1:{peer.port}", "--requests", "1", "--input-tokens", "5")
        code, _, stderr = run("run", *arguments, out=tmp_path)
    assert code == 2
    assert "--model: the server lists m\\ud800x, which holds half of a surrogate pair" in stderr


@pytest.mark.parametrize("api", OVER_HTTP)
@pytest.mark.parametrize("named", ["m", "m-0613\u001b[2J", None])
def test_a_server_that_answers_as_another_model_is_said_to(
    api: str, named: str | None, tmp_path: Path
) -> None:
    """Law: the name beside that asked for is noted while it runs, and in the summary and the report; the same name, or none, is
    nothing to say, and it changes no verdict."""
    body = answer_of(api, "hi") | {"model": named}
    if named is None:
        del body["model"]

    def answer(seen: Seen) -> Script:
        listing = b'{"data":[{"id":"m"}],"models":[{"name":"m"}]}'
        return Script(whole(200, listing if seen.method == "GET" else json.dumps(body).encode()))

    with scripted(answer) as peer:
        where = ("--url", f"http://127.0.0.1:{peer.port}", "--api", api, "--no-stream", "--tokenizer", "none")
        _, _, stderr = run(
            "run", *where, "--requests", "2", "--warmup", "0", "--input-tokens", "5", out=tmp_path
        )
    [folder] = [path.parent for path in tmp_path.rglob("summary.json")]
    seen = json.loads((folder / "summary.json").read_bytes())["sut"]["observed"]
    report = (folder / "report.md").read_text()
    other = named is not None and named != "m"
    assert seen["answered_as"] == (named if other else None)
    assert ("answered: an alias of it, or another model" in stderr) == other
    assert ("Seen: model of an answer" in report) == other
    assert "\u001b" not in report
