"""Every interface measured from end to end: against the reference server, and against peers that keep what they are sent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import SMALL, only, run
from peers import Script, Seen, chunked, scripted, whole
from shipped_schemas import shipped

from inferometer.engines.interface import INTERFACES
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table

SPOKEN = [name for name, one in INTERFACES.items() if one.embedded and not one.mapped]
"""What the reference server speaks, and a simulation."""
TEMPLATE = 7
"""Tokens that the reference server counts around the text of one user message."""
ANSWER = " said"


@pytest.mark.parametrize(
    ("api", "how"),
    [
        *((api, ()) for api in sorted(set(SPOKEN) - {"chat", "completions"})),
        *((api, ("--no-stream",)) for api in ("anthropic", "ollama-chat", "responses", "vllm-grpc")),
    ],
    ids=str,
)
def test_a_run_of_each_interface_ends_with_the_servers_own_counts(
    api: str, how: tuple[str, ...], tmp_path: Path
) -> None:
    """Every request succeeds, with the tokens that were asked for by the server's usage, and of Ollama with its durations."""
    arguments = ("--api", api, *how, "--requests", "8", "--concurrency", "2", "--warmup", "2", *SMALL)
    _, stdout, _ = run("run", *arguments, "--no-server-metrics", "--json", out=tmp_path)
    summary = json.loads(stdout)
    jsonschema.validate(summary, shipped("summary"))
    assert (summary["requests"]["completed"], summary["requests"]["failed"]) == (8, 0)
    assert summary["sut"]["api"] == api
    framing = INTERFACES[api].framing
    spoken = "HTTP/1.1, uncompressed" if how else f"HTTP/1.1 with {framing}, uncompressed"
    if INTERFACES[api].grpc:
        spoken = "gRPC over HTTP/2, uncompressed, at most 100 requests at once on a connection"
    elif INTERFACES[api].over_websocket:
        spoken = "WebSocket (RFC 6455), uncompressed"
    assert summary["sut"]["protocol"] == spoken
    around = TEMPLATE if INTERFACES[api].applies_template else 0
    for row in read_table(RunFolder.open(only(tmp_path)).record, RECORD).to_pylist():
        assert (row["outcome"], row["usage_output"]) == ("ok", row["output_tokens_asked"])
        assert row["usage_input"] == row["input_tokens_sent"] + around
        durations = [row[f"server_{part}_ns"] for part in ("load", "prefill", "decode")]
        if "ollama" in api:
            assert 0 < sum(durations) <= row["server_total_ns"]  # the rest is the wait in the queue
            assert row["server_total_ns"] <= row["t_end"] - row["t_send"]
        else:
            assert durations == [None] * 3


def test_a_simulation_speaks_every_interface_with_the_same_latencies(tmp_path: Path) -> None:
    """The model of the engine does not know the interface: outcomes, tokens and times to first token are a chat's."""
    found: dict[str, Any] = {}
    for api in SPOKEN:
        arguments = ("--api", api, "--requests", "40", "--concurrency", "4", "--warmup", "4", *SMALL)
        _, stdout, _ = run("simulate", *arguments, "--json", out=tmp_path / api)
        summary = json.loads(stdout)
        assert (summary["requests"]["completed"], summary["requests"]["failed"]) == (40, 0)
        assert summary["tokens"]["prompt"]["misses"] == 0
        found[api] = {
            name: summary["metrics"][name]["p50"] for name in ("ttft_ms", "e2e_ms", "output_tokens")
        }
    assert all(one == found["chat"] for api, one in found.items() if INTERFACES[api].applies_template)


def typed(*events: dict[str, Any]) -> list[bytes]:
    return chunked(*(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events))


def lines(*objects: dict[str, Any]) -> list[bytes]:
    pieces = chunked(*(json.dumps(one).encode() + b"\n" for one in objects))
    pieces[0] = pieces[0].replace(b"text/event-stream", b"application/x-ndjson")
    return pieces


def anthropic(stream: bool) -> list[bytes]:
    usage = {"input_tokens": 9, "output_tokens": 2}
    if not stream:
        block = {"type": "text", "text": ANSWER}
        message = {"type": "message", "content": [block], "stop_reason": "end_turn", "usage": usage}
        return whole(200, json.dumps(message).encode())
    return typed(
        {"type": "message_start", "message": {"usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    )


def responses(stream: bool) -> list[bytes]:
    message = {"type": "message", "content": [{"type": "output_text", "text": ANSWER}]}
    usage = {"input_tokens": 9, "output_tokens": 2}
    response = {"object": "response", "status": "completed", "output": [message], "usage": usage}
    if not stream:
        return whole(200, json.dumps(response).encode())
    return typed(
        {"type": "response.created", "response": {"status": "in_progress"}},
        {"type": "response.output_text.delta", "delta": ANSWER},
        {"type": "response.completed", "response": response},
    )


def ollama(stream: bool) -> list[bytes]:
    end = {"done": True, "done_reason": "stop", "prompt_eval_count": 9, "eval_count": 2}
    if not stream:
        return whole(200, json.dumps({"message": {"content": ANSWER}, **end}).encode())
    return lines({"message": {"content": ANSWER}, "done": False}, {"message": {"content": ""}, **end})


TALKERS: dict[str, Callable[[bool], list[bytes]]] = {
    "anthropic": anthropic,
    "responses": responses,
    "ollama-chat": ollama,
}


@pytest.mark.parametrize("api", TALKERS)
def test_a_conversation_is_repeated_in_each_interfaces_words(api: str, tmp_path: Path) -> None:
    """A turn carries all messages and answers before it; the system prompt stands where the interface has it, on every turn."""
    chat = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "recorded"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "recorded"},
        {"role": "user", "content": "three"},
    ]
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text(json.dumps({"messages": chat, "output_tokens": 5}) + "\n")

    def answer(request: Seen) -> Script:
        if request.method == "GET":
            return Script(whole(200, b'{"data":[{"id":"m"}],"models":[{"name":"m"}]}'))
        return Script(TALKERS[api](json.loads(request.body)["stream"]))

    with scripted(answer) as peer:
        run(
            "run", "--url", f"http://127.0.0.1:{peer.port}", "--api", api, "--prompts", str(prompts), "--turns", "3",
            "--repeatable-prompts", "--requests", "3", "--concurrency", "1", "--warmup", "0", "--no-server-metrics",
            out=tmp_path / "runs",
        )  # fmt: skip
        bodies = [json.loads(one.body) for one in peer.seen if one.method == "POST"]
        paths = {one.target for one in peer.seen if one.method == "POST"}
    assert paths == {INTERFACES[api].path}
    turns = [body for body in bodies if body["stream"]]
    assert len(turns) == 3
    for number, body in enumerate(turns):
        messages = body["input" if api == "responses" else "messages"]
        if api == "anthropic":
            assert body["system"] == "be brief"
        else:
            assert messages.pop(0) == {"role": "system", "content": "be brief"}
        said = [message["content"] for message in messages]
        asked = ["one", "two", "three"][: number + 1]
        assert said == [text for question in asked for text in (question, ANSWER)][:-1]
        assert [message["role"] for message in messages] == (["user", "assistant"] * 3)[: len(said)]


def test_messages_go_with_their_version_and_the_key_in_both_headers(tmp_path: Path) -> None:
    """On every request, the models listing included, to a server that reads a bearer token only; a plan's own version wins."""

    def answer(request: Seen) -> Script:
        if request.headers.get("authorization") != "Bearer sk-secret-1234":
            return Script(whole(401, b'{"error":"Unauthorized"}'))
        if request.method == "GET":
            return Script(whole(200, b'{"data":[{"id":"m"}]}'))
        return Script(anthropic(json.loads(request.body)["stream"]))

    for given, version in (((), "2023-06-01"), (("--header", "Anthropic-Version: 2030-01-01"), "2030-01-01")):
        with scripted(answer) as peer:
            url = f"http://127.0.0.1:{peer.port}"
            run(
                "run", "--url", url, "--api", "anthropic", "--requests", "2", "--concurrency", "1", "--warmup", "0",
                "--no-server-metrics", "--api-key-env", "KEY", *given, *SMALL,
                out=tmp_path / version, KEY="sk-secret-1234",
            )  # fmt: skip
            assert {one.method for one in peer.seen} == {"GET", "POST"}
            for request in peer.seen:
                headers = {name.lower(): value for name, value in request.headers.items()}
                assert headers["anthropic-version"] == version
                assert headers["x-api-key"] == "sk-secret-1234"
                assert headers["authorization"] == "Bearer sk-secret-1234"


def test_a_server_of_another_vendor_is_named_as_such(tmp_path: Path) -> None:
    """A reply that is none of the dialect's ends the run before it begins, in the vendor's name."""

    def answer(request: Seen) -> Script:
        if request.method == "GET":
            return Script(whole(200, b'{"data":[{"id":"m"}]}'))
        return Script(whole(200, b'{"choices":[{"message":{"content":"hi"}}]}'))

    with scripted(answer) as peer:
        url = f"http://127.0.0.1:{peer.port}"
        code, _, stderr = run(
            "run", "--url", url, "--api", "anthropic", "--model", "m", *SMALL, out=tmp_path / "runs"
        )
    assert code == 5
    assert "not an Anthropic reply" in stderr
