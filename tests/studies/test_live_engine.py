"""What a live engine does wrong before and after its measurement: named by what it did, never by a traceback."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
from peers import Answer, Script, Seen, scripted, whole
from serving import serving

from inferometer.documents.bench import Remark
from inferometer.engines.adapters.registry import ADAPTERS
from inferometer.report.bench.remarks import SENTENCES
from inferometer.studies.bench_choice import Wanted, engines_of
from inferometer.studies.bench_engine import EngineFailed, LiveEngine

REPLY = {
    "id": "1",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "length"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


def always(status: int, content: bytes) -> Answer:
    return lambda _: Script(whole(status, content))


def refusal(answer: Answer, model: str | None = None) -> Remark:
    """Why what answers like this is not measured."""
    with scripted(answer) as peer:
        engine = LiveEngine("e", "e", f"http://127.0.0.1:{peer.port}", model, options={"--timeout": "2"})
        with pytest.raises(EngineFailed) as why:
            engine.prepare()
    return why.value.remark


@pytest.mark.parametrize(
    ("answer", "model", "code"),
    [
        (always(404, b"<html>nginx</html>"), None, "models_unlisted"),
        (always(200, b"<html>It works</html>"), None, "models_unlisted"),
        (always(404, b"<html>nginx</html>"), "m", "warm_up_failed"),
        (always(200, b"<html>It works</html>"), "m", "warm_up_failed"),
        (lambda _: Script((b"SSH-2.0-OpenSSH_9.6\r\n",), "close"), None, "unreachable"),
        (lambda _: Script((), "close"), None, "unreachable"),
        (lambda _: Script((), "reset"), None, "unreachable"),
    ],
)
def test_a_port_taken_by_something_else_is_named(answer: Answer, model: str | None, code: str) -> None:
    """A web server, one that is no web server, and one that hangs up; with words for a person."""
    found = refusal(answer, model)
    assert found.code == code
    assert found.code in SENTENCES


def test_a_model_that_is_listed_twice_is_one() -> None:
    """There is nothing to choose."""

    def answer(request: Seen) -> Script:
        listing = {"object": "list", "data": [{"id": "m"}, {"id": "m"}]}
        return Script(whole(200, json.dumps(REPLY if request.method == "POST" else listing).encode()))

    with scripted(answer) as peer:
        found = LiveEngine("e", "e", f"http://127.0.0.1:{peer.port}", options={"--timeout": "2"}).prepare()
    assert found.model == "m"


@pytest.mark.parametrize("status", [403, 404, 500])
def test_an_unload_that_is_refused_is_a_remark_with_the_engines_words(status: int) -> None:
    """The turn has been measured by then, and stands."""

    def answer(request: Seen) -> Script:
        if request.method == "POST":
            return Script(whole(status, b'{"error":"model is busy"}'))
        return Script(whole(200, json.dumps({"version": "0.12.0", "models": []}).encode()))

    with scripted(answer) as peer:
        engine = LiveEngine("o", "ollama", f"http://127.0.0.1:{peer.port}", adapter=ADAPTERS["ollama"])
        found = engine.unload("m")
    assert found is not None
    assert found.code == "unload_refused"
    assert found.facts["model"] == "m"
    assert str(status) in str(found.facts["why"])
    assert "busy" in str(found.facts["why"])


def test_an_engine_that_is_gone_before_its_unload_is_a_remark() -> None:
    """It ended after its last answer."""
    with scripted(always(200, b"{}")) as peer:
        engine = LiveEngine("o", "ollama", f"http://127.0.0.1:{peer.port}", adapter=ADAPTERS["ollama"])
    found = engine.unload("m")
    assert found is not None
    assert found.code == "unload_refused"
    assert engine.facts("m") is None


def test_two_engines_behind_one_address_are_named() -> None:
    """Neither is taken for the engine, and the result says which answered."""
    lists = {"data": [{"id": "m", "owned_by": "vllm"}, {"id": "n", "owned_by": "sglang"}]}

    def answer(request: Seen) -> Script:
        if request.target == "/v1/models":
            return Script(whole(200, json.dumps(lists).encode()))
        if request.method == "POST":
            return Script(whole(200, json.dumps(REPLY).encode()))
        return Script(whole(404, b"{}"))

    with scripted(answer) as peer, ExitStack() as stack:
        wanted = Wanted(urls=(("x", f"http://127.0.0.1:{peer.port}"),), usual="m")
        (engine,) = engines_of(wanted, stack)
        assert (engine.adapter, engine.found) == (None, None)
        prepared = engine.prepare()
    (remark,) = prepared.remarks
    assert remark.code == "several_engines"
    assert set(str(remark.facts["found"]).split(", ")) == {"vllm", "sglang"}


def test_one_engine_at_an_address_is_not_several() -> None:
    """The reference server, which answers the routes of others too."""
    with serving() as port, ExitStack() as stack:
        (engine,) = engines_of(Wanted(urls=(("x", f"http://127.0.0.1:{port}"),)), stack)
        assert engine.prepare().remarks == ()
    assert engine.several == ()
