"""A server that means harm before anything is measured: the command ends soon, in words, and says whose fault it was."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import only, run
from hostile import HEAD, SEQUENCES, bomb, flooding, listing
from peers import Script, Seen, scripted, whole
from wording import whole as answer_of

from inferometer.printable import UNPRINTABLE

DEEP = b"[" * 100_000
ONE = (
    "--requests",
    "1",
    "--tokenizer",
    "none",
    "--input-tokens",
    "5",
    "--probe-timeout",
    "1",
    "--warmup",
    "0",
)
"""A second for each request before the load."""


def probed(answer: Callable[[Seen], Script], out: Path, *more: str) -> tuple[int, str]:
    """Exit code and stderr of a run there."""
    with scripted(answer) as peer:
        code, _, stderr = run("run", "--url", f"http://127.0.0.1:{peer.port}", *ONE, *more, out=out)
    assert len(stderr) < 4_000
    assert not [sign for sign in stderr if sign != "\n" and unicodedata.category(sign) in UNPRINTABLE]
    return code, stderr


def to(method: str, script: Script) -> Callable[[Seen], Script]:
    """What is wrong is the answer to GET, the listing, or to POST, the first request; the other is good."""

    def answer(seen: Seen) -> Script:
        if seen.method == method:
            return script
        return Script(
            whole(200, listing("m") if seen.method == "GET" else json.dumps(answer_of("chat", "hi")).encode())
        )

    return answer


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            Script(whole(302, b"", b"Location: /elsewhere")),
            "is 302, a redirect to '/elsewhere', which is not followed",
        ),
        (Script([bomb(64 << 20)]), "is compressed (gzip), which was not requested"),
        (Script(whole(404, b"{}")), "the server lists none (what /v1/models answers is 404)"),
        (Script(whole(200, DEEP)), "is no listing and begins '[[["),
        (Script(whole(200, b"<html>")), "is no listing and begins '<html>'"),
        (Script(whole(200, b'{"data":[{"id":"m\\ud800x"}]}')), "half of a surrogate pair"),
        (Script(whole(200, listing("m" * 1_000_000))), "has 1,000,000 characters"),
        (Script(whole(200, listing(SEQUENCES, "b"))), "choose a model: "),
        (
            Script(whole(200, json.dumps({"data": [{"id": [[]] * 9}, {"id": "b"}]}).encode())),
            "choose a model: ",
        ),
    ],
)
def test_a_listing_of_which_no_model_can_be_chosen_says_why(
    script: Script, words: str, tmp_path: Path
) -> None:
    """It is the user's to name one, who reads what the server answered in its place."""
    code, stderr = probed(to("GET", script), tmp_path)
    assert (code, words in stderr) == (2, True), stderr


def test_of_200_000_models_the_first_are_offered(tmp_path: Path) -> None:
    """And how many more there are; of a name of a megabyte, its beginning."""
    names = ["x" * 100_000, *(f"model-{number}" for number in range(200_000))]
    code, stderr = probed(to("GET", Script(whole(200, listing(*names)))), tmp_path)
    assert code == 2
    assert "and 199,981 more" in stderr
    assert "model-5" in stderr


def test_of_200_000_models_a_run_keeps_a_thousand(tmp_path: Path) -> None:
    """A report is no place for the others."""
    names = [f"model-{number}" for number in range(200_000)]
    with scripted(to("GET", Script(whole(200, listing(*names))))) as peer:
        run("run", "--url", f"http://127.0.0.1:{peer.port}", "--model", "model-7", *ONE, out=tmp_path)
    folder = only(tmp_path)
    assert json.loads((folder / "run.json").read_text())["models"] == names[:1_000]
    assert (folder / "report.html").stat().st_size < 4 << 20


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            Script(whole(302, b"", b"Location: /elsewhere")),
            "is 302, a redirect to '/elsewhere', which is not followed",
        ),
        (Script([bomb(64 << 20)]), "is compressed (gzip), which was not requested"),
        (Script(whole(200, DEEP)), "is not an OpenAI reply"),
        (Script(whole(200, b'{"error":' + DEEP + b"]" * 100_000 + b"}")), "is not an OpenAI reply"),
        (Script(whole(200, b'{"error":' + b"[" * 985 + b"]" * 985 + b"}")), "127.0.0.1"),
        (Script(whole(500, b'{"error":{"message":"\\ud800 no"}}')), "the server answered 500: ? no"),
        (Script(whole(500, json.dumps({"error": SEQUENCES + "no"}).encode())), "the server answered 500: "),
        (Script(whole(500, b"\xff\xfe" * 1_000_000)), "the server answered 500: "),
        (Script([b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"]), "more than 16777216 bytes"),
    ],
)
def test_a_first_answer_that_is_none_says_why(script: Script, words: str, tmp_path: Path) -> None:
    """It is the server's, and nothing was measured."""
    code, stderr = probed(to("POST", script), tmp_path)
    assert (code, words in stderr) == (5, True), stderr


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_that_never_answers_is_waited_for_as_long_as_a_probe_may_take(
    method: str, tmp_path: Path
) -> None:
    """Not for the 10 minutes that a measured request may take."""
    code, stderr = probed(to(method, Script([], "hang")), tmp_path)
    assert code == 5
    assert "no answer in time (1 s). --probe-timeout" in stderr


@pytest.mark.parametrize(
    ("piece", "drip", "words"),
    [(b" " * 65_536, False, "more than 16777216 bytes"), (b" ", True, "no answer in time (1 s)")],
)
def test_a_listing_without_an_end_is_left(piece: bytes, drip: bool, words: str, tmp_path: Path) -> None:
    """At the limit of bytes or of time."""
    with flooding(piece, drip=drip, first=HEAD) as port:
        code, _, stderr = run("run", "--url", f"http://127.0.0.1:{port}", *ONE, out=tmp_path)
    assert (code, words in stderr) == (5, True), stderr
