"""Every interface through real sockets, read by httpx (whose HTTP is h11's) and by json, line by line."""

from __future__ import annotations

import functools
import json
import ssl
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from typing import Any

import httpx
import pytest
import trustme
from server.interfaces import (
    PATHS,
    PATIENCE_S,
    PROMPT,
    USER,
    accumulated,
    body,
    get,
    message_said,
    objects,
    ollama_said,
    openai_said,
    post,
    response_said,
    streamed,
    truth,
    whole,
)

from inferometer.drive.exchange import DECODERS
from inferometer.engines.answer import Answer
from inferometer.engines.dialect import load
from inferometer.journal.schema import EventClass
from inferometer.server import tls
from inferometer.server.answer_parts import Parts
from inferometer.server.dialects import APIS

Serve = Callable[..., int]

ALL = [*PATHS]

DIVIDED = ["chat", "responses", "anthropic", "ollama-chat", "websocket"]

PARTS = Parts(reasoning=3, tool=4)


def test_every_interface_is_tried_here() -> None:
    """A new one must come with its reader; those of gRPC and Realtime are in test_vllm_grpc.py and test_websocket.py."""
    assert set(APIS) == {*ALL, "vllm-grpc", "realtime"}


@pytest.mark.parametrize("api", ALL)
@pytest.mark.parametrize("parts", [Parts(), PARTS, Parts(reasoning=20), Parts(tool=20), Parts(tool=1)])
def test_streamed_and_whole_say_the_same(serve: Serve, api: str, parts: Parts) -> None:
    """Two servers with one seed: the same reasoning, text, arguments and counts, and as many as were asked for."""
    ports = [serve(seed=3, parts=parts) for _ in range(2)]
    one, other = streamed(ports[0], api, 12), whole(ports[1], api, 12)
    assert one == other
    assert one[4] == 12
    divided = api in DIVIDED
    thinks = divided or api == "ollama-generate"
    assert bool(one[0]) == (thinks and parts.reasoning > 0)
    assert bool(one[2]) == (divided and parts.tool > 0)
    assert one[5] == (min(parts.reasoning, 12) if thinks else 0)


@pytest.mark.parametrize("api", ALL)
@pytest.mark.parametrize("stamped", [False, True])
def test_the_log_knows_every_interface(serve: Serve, api: str, stamped: bool) -> None:
    """A row of as many tokens as asked for, each with its two instants, whole or not; with stamps, its events say the first."""
    port = serve(parts=PARTS, token_timestamps=stamped)
    found = objects(post(port, PATHS[api], body(api, 9, True), headers={"X-Request-Id": "r"}))
    post(port, PATHS[api], body(api, 9, False))
    row, other = truth(port)
    assert (row["api"], row["stream"], other["stream"]) == (api, True, False)
    assert (row["request_id"], row["prompt_head"], row["outcome"]) == ("r", PROMPT, "finished")
    assert len(row["model_ns"]) == len(row["sent_ns"]) == len(other["model_ns"]) == len(other["sent_ns"]) == 9
    assert row["sent_ns"] == sorted(row["sent_ns"])
    stamps = [one["emitted_monotonic_ns"] for one in found if "emitted_monotonic_ns" in one]
    walls = [one["emitted_wall_ns"] for one in found if "emitted_wall_ns" in one]
    told = row["model_ns"][:5] + row["model_ns"][8:] if api == "ollama-chat" else row["model_ns"]
    assert stamps == (told if stamped else [])
    assert len({wall - stamp for wall, stamp in zip(walls, stamps, strict=True)}) <= 1


def test_a_response_is_told_in_typed_events(serve: Serve) -> None:
    """The whole grammar, once, for an answer of two tokens a part."""
    port = serve(parts=Parts(reasoning=2, tool=2))
    tools = [{"type": "function", "name": "look_up", "parameters": {}}]
    found = objects(post(port, "/v1/responses", body("responses", 6, True, tools=tools)))
    added, done = "output_item.added", "output_item.done"
    part_added, part_done = "content_part.added", "content_part.done"
    expected = ["created", "in_progress"]
    for delta, part in (("reasoning_text", True), ("output_text", True), ("function_call_arguments", False)):
        expected += [added, *([part_added] if part else []), f"{delta}.delta", f"{delta}.delta"]
        expected += [f"{delta}.done", *([part_done] if part else []), done]
    assert [one["type"] for one in found] == [f"response.{name}" for name in [*expected, "completed"]]
    assert [one["sequence_number"] for one in found] == list(range(len(found)))
    items = [one["item"] for one in found if one["type"] == "response.output_item.done"]
    final = found[-1]["response"]
    assert [item["type"] for item in items] == ["reasoning", "message", "function_call"]
    assert final["output"] == items
    assert final["status"] == "completed"
    assert items[2]["name"] == "look_up"
    assert found[0]["response"]["id"] == final["id"] == truth(port)[0]["id"]
    for one in found:
        if "item_id" in one:
            assert one["item_id"] == items[one["output_index"]]["id"]


def test_a_message_is_told_in_anthropics_events(serve: Serve) -> None:
    """The whole grammar, once, for an answer of two tokens a part: a ping after the first block has begun, a signature at the
    end of the thinking, all counts at the end."""
    port = serve(parts=Parts(reasoning=2, tool=2))
    tools = [{"name": "look_up", "input_schema": {"type": "object"}}]
    found = objects(post(port, "/v1/messages", body("anthropic", 6, True, tools=tools)))
    start, delta, stop = "content_block_start", "content_block_delta", "content_block_stop"
    expected = ["message_start", start, "ping", delta, delta, delta, stop]
    expected += [start, delta, delta, stop] * 2 + ["message_delta", "message_stop"]
    assert [one["type"] for one in found] == expected
    deltas = [one["delta"]["type"] for one in found if one["type"] == delta]
    thinking, text, call = ["thinking_delta"] * 2, ["text_delta"] * 2, ["input_json_delta"] * 2
    assert deltas == [*thinking, "signature_delta", *text, *call]
    message = accumulated(found)
    assert (message["type"], message["role"], message["stop_reason"]) == ("message", "assistant", "tool_use")
    assert [block["type"] for block in message["content"]] == ["thinking", "text", "tool_use"]
    assert message["content"][2]["name"] == "look_up"
    assert message["id"] == truth(port)[0]["id"]
    assert message["usage"]["output_tokens"] == 6


def test_a_chat_thinks_answers_and_calls_a_tool(serve: Serve) -> None:
    """One event a token, in this order; id, type and name in the call's first; the reason on the last."""
    port = serve(parts=PARTS)
    role, *tokens, usage = objects(post(port, PATHS["chat"], body("chat", 12, True)))
    deltas = [one["choices"][0]["delta"] for one in tokens]
    assert [next(iter(delta)) for delta in deltas] == [
        *["reasoning_content"] * 3,
        *["content"] * 5,
        *["tool_calls"] * 4,
    ]
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    first, *others = [delta["tool_calls"][0] for delta in deltas[8:]]
    assert (first["type"], first["function"]["name"]) == ("function", "reference_tool")
    assert all("id" not in call and call["index"] == 0 for call in others)
    assert [one["choices"][0]["finish_reason"] for one in tokens] == [None] * 11 + ["tool_calls"]
    assert usage["usage"]["completion_tokens_details"] == {"reasoning_tokens": 3}


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_call_that_is_required_is_made(serve: Serve, api: str) -> None:
    """By name or not, without any such option of the server; and without tools it is refused."""
    port = serve()
    function = {"name": "look_up", "parameters": {}}
    tool = {"type": "function", "function": function} if api == "chat" else {"type": "function", **function}
    for choice in ("required", tool):
        found = post(port, PATHS[api], body(api, 7, False, tools=[tool], tool_choice=choice)).json()
        if api == "chat":
            (given,) = found["choices"]
            assert (given["finish_reason"], given["message"]["content"]) == ("tool_calls", None)
            assert given["message"]["tool_calls"][0]["function"]["name"] == "look_up"
        else:
            assert [item["name"] for item in found["output"]] == ["look_up"]
    assert post(port, PATHS[api], body(api, 7, False, tool_choice="required")).status_code == 400
    plain = post(port, PATHS[api], body(api, 7, False, tools=[tool])).json()
    assert "look_up" not in json.dumps(plain)


READ = {
    "chat": ["ROLE", *["REASONING"] * 3, *["CONTENT"] * 5, *["TOOL_CALL"] * 4, "USAGE", "DONE"],
    "completions": [*["CONTENT"] * 12, "USAGE", "DONE"],
    "responses": [
        *["ROLE"] * 4, *["REASONING"] * 3, *["ROLE"] * 5, *["CONTENT"] * 5, *["ROLE"] * 3,
        *["TOOL_CALL"] * 5, *["ROLE"] * 2, "DONE",
    ],
    "anthropic": [
        *["ROLE"] * 2, "COMMENT", *["REASONING"] * 3, *["ROLE"] * 3, *["CONTENT"] * 5, "ROLE",
        *["TOOL_CALL"] * 5, "ROLE", "FINISH", "DONE",
    ],
    "websocket": ["ROLE", *["REASONING"] * 3, *["CONTENT"] * 5, *["TOOL_CALL"] * 4, "DONE"],
    "ollama-generate": [*["REASONING"] * 3, *["CONTENT"] * 9, "DONE"],
    "ollama-chat": [*["REASONING"] * 3, *["CONTENT"] * 5, "TOOL_CALL", "DONE"],
}  # fmt: skip
"""Classes of an answer of 12 tokens. Typed dialects name the tool before its arguments; Ollama sends a call whole."""


@pytest.mark.parametrize("api", ALL)
@pytest.mark.parametrize("stream", [True, False])
def test_our_own_client_reads_what_is_thought_and_called(serve: Serve, api: str, stream: bool) -> None:
    """Classes by event, the counts and the reason, and of Ollama the durations; streamed and whole say the same."""
    port = serve(parts=PARTS, token_timestamps=True)
    dialect, answer = load(api), Answer()
    content = post(port, PATHS[api], body(api, 12, stream)).content
    if stream:
        decoder = DECODERS[dialect.interface.framing]()
        for payload in decoder.feed(content):
            assert payload is not None
            dialect.read_event(answer, payload, 1)
        assert [EventClass(kind).name for kind in answer.event_class] == READ[api]
    else:
        dialect.read_whole(answer, content, 1)
    assert (answer.done, answer.output_tokens) == (True, 12)
    assert answer.input_tokens == (3 if api == "completions" else 10)
    ends = {"responses": "stop", "completions": "length", "ollama-generate": "length", "ollama-chat": "stop"}
    assert answer.finish_reason == ends.get(api, "tool_calls")
    assert answer.reasoning_tokens == (3 if api in ("chat", "responses", "websocket") else None)
    assert (answer.server_total_ns is not None) == api.startswith("ollama")
    if not stream:  # one event, of which the next turn repeats the content alone
        assert bytes(answer.event_class).strip(bytes((EventClass.DONE,))) == bytes((EventClass.CONTENT,))
        assert (answer.reply() == "".join(answer.texts)) == (api == "completions")


@pytest.mark.parametrize(
    ("api", "more"),
    [
        ("chat", {"reasoning_effort": "none", "tool_choice": "none"}),
        ("responses", {"reasoning": {"effort": "none"}, "tool_choice": "none"}),
        ("anthropic", {"thinking": {"type": "disabled"}, "tool_choice": {"type": "none"}}),
        ("ollama-generate", {"think": False}),
    ],
)
def test_a_request_may_forbid_thinking_and_calls(serve: Serve, api: str, more: dict[str, Any]) -> None:
    """Then all its tokens are text."""
    port = serve(parts=PARTS)
    found = post(port, PATHS[api], body(api, 7, False, **more)).json()
    said = (
        response_said(found)
        if api == "responses"
        else message_said(found)
        if api == "anthropic"
        else ollama_said([found])
        if "done" in found
        else openai_said([found["choices"][0]["message"]], found["usage"])
    )
    assert (said[0], said[2], said[5]) == ("", "", 0)


@pytest.mark.parametrize("api", ["ollama-generate", "ollama-chat"])
def test_ollamas_durations_are_the_models(serve: Serve, api: str) -> None:
    """From the truth log's instants, to the nanosecond; and each line was created when its token was."""
    port = serve()
    found = objects(post(port, PATHS[api], body(api, 5, True)))
    (row,) = truth(port)
    model, received = row["model_ns"], row["arrived_ns"] or row["received_ns"]
    *lines, last = found
    assert [line["done"] for line in found] == [False] * 5 + [True]
    assert (last["total_duration"], last["load_duration"]) == (model[-1] - received, 0)
    assert last["prompt_eval_duration"] == row["prefilled_ns"] - row["scheduled_ns"]
    assert received <= row["scheduled_ns"] < row["prefilled_ns"] == model[0]
    assert last["eval_duration"] == model[-1] - model[0]
    assert (last["eval_count"], last["prompt_eval_count"], last["done_reason"]) == (5, 10, "length")
    created = [line["created_at"] for line in lines]
    assert created == sorted(created)
    nanoseconds = [int(instant[-10:-1]) for instant in created]
    gaps = [(b - a) % 10**9 for a, b in pairwise(nanoseconds)]
    assert gaps == [b - a for a, b in pairwise(model)]
    datetime.fromisoformat(created[0])


def test_the_model_is_loaded_by_whoever_asks_and_unloaded_on_request(serve: Serve) -> None:
    """Cold at first; a load takes its time once, of the model's instants too; keep_alive 0 ends it; then it is cold again."""
    load = 20_000_000
    port = serve(cold=True, load_ns=load)

    def there() -> list[str]:
        return [model["name"] for model in get(port, "/api/ps").json()["models"]]

    assert there() == []
    first = post(port, "/api/generate", {"model": "reference", "prompt": "x", "stream": False}).json()
    assert first["load_duration"] == load
    assert truth(port)[-1]["model_ns"][0] - truth(port)[-1]["received_ns"] >= load
    assert there() == ["reference:latest"]
    again = post(port, "/api/generate", {"model": "reference", "prompt": "x", "stream": False}).json()
    assert again["load_duration"] == 0
    gone = post(port, "/api/generate", {"model": "reference", "keep_alive": 0}).json()
    assert (gone["done"], gone["done_reason"], gone["response"]) == (True, "unload", "")
    assert there() == []
    loaded = post(port, "/api/chat", {"model": "reference:latest", "messages": []}).json()
    assert (loaded["done_reason"], loaded["message"]["content"]) == ("load", "")
    assert there() == ["reference:latest"]
    after = post(port, "/api/generate", {**body("ollama-generate", 2, False), "keep_alive": "0s"}).json()
    assert after["load_duration"] == 0
    assert there() == []
    assert post(port, PATHS["chat"], body("chat", 2, False)).status_code == 200
    assert there() == ["reference:latest"]
    assert get(port, "/api/ps").json()["models"][0]["expires_at"].startswith("9999")
    assert len(truth(port)) == 4  # a load alone is no generation


def test_who_waits_for_the_model_is_served_in_order_and_may_leave(serve: Serve) -> None:
    """Several come during one load: all begin when it is done; one that left is forgotten."""
    port = serve(cold=True, load_ns=300_000_000)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"http://127.0.0.1:{port}{PATHS['chat']}",
            json=body("chat", 2, False),
            timeout=httpx.Timeout(PATIENCE_S, read=0.01),
            trust_env=False,
        )
    assert post(port, PATHS["chat"], body("chat", 2, False)).status_code == 200
    gone, served = sorted(truth(port), key=lambda row: row["received_ns"])
    assert (gone["outcome"], gone["model_ns"], served["outcome"]) == ("cancelled", [], "finished")


def test_ollamas_lists_have_what_its_clients_look_for(serve: Serve) -> None:
    """Names, sizes, details; a version."""
    port = serve(model="tiny")
    (tag,) = get(port, "/api/tags").json()["models"]
    (running,) = get(port, "/api/ps").json()["models"]
    assert tag["name"] == tag["model"] == running["name"] == "tiny:latest"
    assert {"modified_at", "size", "digest", "details"} <= tag.keys()
    assert {"expires_at", "size_vram", "size", "digest", "details"} <= running.keys()
    assert get(port, "/api/version").json()["version"].count(".") == 2


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("/api/generate", b"{", 400),
        ("/api/generate", {"prompt": "x"}, 400),
        ("/api/generate", {"model": "other", "prompt": "x"}, 404),
        ("/api/generate", {"model": "reference", "prompt": "x", "suffix": "y"}, 400),
        ("/api/generate", {"model": "reference", "prompt": "x", "options": {"num_predict": 0}}, 400),
        ("/api/generate", {"model": "reference", "prompt": "x", "keep_alive": "soon"}, 400),
        ("/api/chat", {"model": "reference", "messages": [{"role": "user", "images": ["x"]}]}, 400),
        ("/api/chat", {"model": "reference", "messages": USER, "options": {"num_predict": 10**6}}, 400),
        ("/api/nowhere", {}, 404),
    ],
)
def test_errors_under_api_are_ollamas_json(serve: Serve, path: str, content: Any, status: int) -> None:
    """One text under `error`, whatever went wrong."""
    answer = post(serve(), path, content)
    assert answer.status_code == status
    assert set(answer.json()) == {"error"}
    assert isinstance(answer.json()["error"], str)


@pytest.mark.parametrize(
    "more",
    [
        {"input": []},
        {"input": [{"type": "web_search_call"}]},
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        {"background": True},
        {"previous_response_id": "resp_1"},
        {"max_output_tokens": 0},
        {"max_output_tokens": 10**6},
    ],
)
def test_what_a_response_cannot_be_made_of_is_refused(serve: Serve, more: dict[str, Any]) -> None:
    """OpenAI's error object."""
    answer = post(serve(), "/v1/responses", {**body("responses", 3, False), **more})
    assert answer.status_code == 400
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("more", "status", "kind"),
    [
        ({"max_tokens": 0}, 400, "invalid_request_error"),
        ({"max_tokens": None}, 400, "invalid_request_error"),
        ({"max_tokens": 10**6}, 400, "invalid_request_error"),
        ({"messages": []}, 400, "invalid_request_error"),
        ({"messages": [{"role": "system", "content": "x"}]}, 400, "invalid_request_error"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, 400, "invalid_request_error"),
        ({"model": "other"}, 404, "not_found_error"),
    ],
)
def test_what_a_message_cannot_be_made_of_is_refused(
    serve: Serve, more: dict[str, Any], status: int, kind: str
) -> None:
    """Anthropic's error object."""
    answer = post(serve(), "/v1/messages", {**body("anthropic", 3, False), **more})
    assert answer.status_code == status
    assert (answer.json()["type"], answer.json()["error"]["type"]) == ("error", kind)


def test_a_message_takes_a_conversation_and_a_system_prompt(serve: Serve) -> None:
    """Text, blocks, a call and its result: counted as the chat they are."""
    port = serve()
    turns = [
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]},
    ]
    given = {
        **body("anthropic", 3, False),
        "messages": turns,
        "system": [{"type": "text", "text": "be brief"}],
    }
    chat = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "done"},
    ]
    counted = post(port, "/tokenize", {"messages": chat}).json()["count"]
    assert post(port, "/v1/messages", given).json()["usage"]["input_tokens"] == counted


def test_a_key_may_come_in_anthropics_header(serve: Serve) -> None:
    """As a bearer token, or as `x-api-key`; a wrong one is an authentication error."""
    port = serve(key="secret")
    request = body("anthropic", 2, False)
    assert post(port, "/v1/messages", request, headers={"x-api-key": "secret"}).status_code == 200
    refused = post(port, "/v1/messages", request, headers={"x-api-key": "wrong"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")


def test_a_response_takes_a_conversation(serve: Serve) -> None:
    """Instructions, messages, a call and its output: counted as the chat they are."""
    port = serve()
    turns = [
        {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "done"},
    ]
    given = {**body("responses", 3, False), "input": turns, "instructions": "be brief"}
    chat = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "{}"},
        {"role": "tool", "content": "done"},
    ]
    counted = post(port, "/tokenize", {"messages": chat}).json()["count"]
    assert post(port, "/v1/responses", given).json()["usage"]["input_tokens"] == counted


def test_a_key_is_asked_for_on_every_path_that_generates_or_changes(serve: Serve) -> None:
    """The new ones as the old."""
    port = serve(key="secret")
    bearer = {"Authorization": "Bearer secret"}
    for api, path in PATHS.items():
        assert post(port, path, body(api, 2, True)).status_code == 401
        assert post(port, path, body(api, 2, True), headers=bearer).status_code == 200
    for path in ("/api/ps", "/api/tags", "/inferometer/state"):
        assert get(port, path).status_code == 401
        assert get(port, path, headers=bearer).status_code == 200


def test_every_stream_comes_through_tls(serve: Serve, tmp_path: Any) -> None:
    """The same bytes."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    made = tls.context(str(tmp_path / "cert.pem"), str(tmp_path / "key.pem"))
    port = serve(wrap=functools.partial(tls.TlsSocket, made=made), parts=PARTS)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with httpx.Client(verify=trusting, trust_env=False, timeout=PATIENCE_S) as client:
        for api, path in PATHS.items():
            url = f"https://localhost:{port}{path}"
            assert len(objects(client.post(url, json=body(api, 30, True)))) >= 30 - PARTS.tool + 1


def test_connections_are_kept_and_loads_answered_in_line(serve: Serve) -> None:
    """Streams of all interfaces one after another on one connection, with loads and unloads between."""
    port = serve(load_ns=1_000_000)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=PATIENCE_S) as client:
        for api, path in PATHS.items():
            assert objects(client.post(path, json=body(api, 3, True)))
            assert client.post("/api/chat", json={"model": "reference", "keep_alive": 0}).status_code == 200
            assert client.post("/api/generate", json={"model": "reference"}).json()["done_reason"] == "load"
    assert [row["api"] for row in truth(port)] == ALL
