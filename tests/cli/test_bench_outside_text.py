"""What engines and command lines say is text from outside: no key, and nothing that a file cannot hold, comes through."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import finish, run
from peers import Script, Seen, chunked, scripted, tokens, whole

from inferometer.documents.bench import Remark
from inferometer.documents.part import to_json

KEY = "secret-Key_5150/x"
BENCH = ("--prompts", "tool-call", "--runs", "2", "--quiet")


def _echo(request: Seen) -> Script:
    """An engine that repeats the key it was sent wherever it says something."""
    key = request.headers.get("authorization", "")
    if request.target == "/v1/models":
        listing = {"data": [{"id": "m", "owned_by": "vllm"}]}
        return Script(whole(200, json.dumps(listing).encode(), b"Server: " + key.encode()))
    if request.target == "/api/v0/models":
        row = {"id": "m", "state": "not-loaded", "quantization": key, "compatibility_type": key}
        return Script(whole(200, json.dumps({"data": [row]}).encode()))
    if request.target == "/version":
        return Script(whole(200, json.dumps({"version": key}).encode()))
    if request.method == "POST" and "chat" not in request.target:
        return Script(whole(401, json.dumps({"error": f"Incorrect API key provided: {key}"}).encode()))
    if request.method == "POST":
        return Script(
            chunked(*tokens(*["word "] * 8)) if b'"stream":true' in request.body else whole(200, b"{}")
        )
    return Script(whole(404, b'{"detail": "Not Found"}'))


def _written(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_key_that_an_engine_repeats_is_in_no_file_and_on_no_screen(tmp_path: Path) -> None:
    """Neither in a version, nor in a model's facts, nor in why a load was refused: cards and reports are made to be shared."""
    with scripted(_echo) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        shown = [
            run("bench", "--url", f"lmstudio={url}", "--api-key-env", "K", *BENCH, out=tmp_path, K=KEY),
            run("cross-validate", "--url", url, "--engine", "lmstudio", "--runs", "2", "--api-key-env", "K",
                out=tmp_path, K=KEY),
            finish("detect", "--url", url, "--api-key-env", "K", "--json", K=KEY),
        ]  # fmt: skip
    assert any("[redacted]" in out for _, out, _ in shown)
    assert not [text for _, *texts in shown for text in texts if KEY in text]
    assert not [name for name, content in _written(tmp_path).items() if KEY.encode() in content]


def test_half_a_surrogate_pair_in_a_models_name_ends_nothing(tmp_path: Path) -> None:
    """JSON can spell it, UTF-8 cannot: it is a question mark, and the model of that name is asked for."""

    def answer(request: Seen) -> Script:
        if request.target == "/v1/models":
            return Script(whole(200, b'{"data": [{"id": "m\\ud800"}]}'))
        return Script(whole(400, b'{"error": {"message": "none \\udfff"}}'))

    with scripted(answer) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        code, out, _ = run("bench", "--url", f"a={url}", *BENCH, "--json", out=tmp_path)
        assert run("cross-validate", "--url", url, out=tmp_path)[0] == 5
    assert code == 5
    assert json.loads(out)["engines"][0]["remarks"][-1]["facts"]["model"] == "m?"


@pytest.mark.parametrize("name", ["a\udcff", "a\x1b[31m", "a\u202eb", "a\nb"])
def test_an_engines_name_is_printable(name: str, tmp_path: Path) -> None:
    """Others would look like another engine's in a table, or could not be written to a file at all."""
    code, _, err = run("bench", "--url", f"{name}=http://127.0.0.1:9", *BENCH, out=tmp_path)
    assert code == 2
    assert "printable" in err or "UTF-8" in err


def test_a_document_holds_what_a_file_can() -> None:
    """Whatever its strings are, members' names included."""
    assert json.loads(to_json(Remark("c", {"w\ud800": "\udcff"})).encode())["facts"] == {"w?": "?"}
