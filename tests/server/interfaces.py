"""Requests to the reference server's interfaces, and what is said in their answers."""

from __future__ import annotations

import json
from typing import Any

import httpx

PATIENCE_S = 60

PROMPT = "hello hello hello"

USER = [{"role": "user", "content": PROMPT}]

PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "ollama-generate": "/api/generate",
    "ollama-chat": "/api/chat",
    "websocket": "/v1/ws",
}


def body(api: str, count: int, stream: bool, **more: Any) -> dict[str, Any]:
    """A request for `count` tokens."""
    fields: dict[str, Any] = {"model": "reference", "stream": stream, **more}
    if api == "responses":
        return {**fields, "input": PROMPT, "max_output_tokens": count}
    if api.startswith("ollama"):
        asked = {"messages": USER} if api == "ollama-chat" else {"prompt": PROMPT}
        return {**fields, **asked, "options": {"num_predict": count}}
    if api == "anthropic":
        return {**fields, "messages": USER, "max_tokens": count}
    asked = {"messages": USER} if api in ("chat", "websocket") else {"prompt": PROMPT}
    return {**fields, **asked, "max_tokens": count, "stream_options": {"include_usage": True}}


def post(port: int, path: str, content: Any, **more: Any) -> httpx.Response:
    url = f"http://127.0.0.1:{port}{path}"
    if isinstance(content, bytes):
        return httpx.post(url, content=content, timeout=PATIENCE_S, trust_env=False, **more)
    return httpx.post(url, json=content, timeout=PATIENCE_S, trust_env=False, **more)


def get(port: int, path: str, **more: Any) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S, trust_env=False, **more)


def truth(port: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in get(port, "/inferometer/truth").text.splitlines()]


def objects(response: httpx.Response) -> list[dict[str, Any]]:
    """The JSON of each event or line of a stream. A typed event's type is the same inside and outside."""
    assert response.status_code == 200
    assert response.headers["transfer-encoding"] == "chunked"
    if response.headers["content-type"] == "application/x-ndjson":
        assert response.text.endswith("\n")
        return [json.loads(line) for line in response.text.splitlines()]
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, rest = response.text.split("\n\n")
    assert rest == ""
    found = []
    for event in events:
        fields = dict(line.split(": ", 1) for line in event.split("\n"))
        if fields["data"] != "[DONE]":
            found.append(json.loads(fields["data"]))
            assert fields.get("event") == found[-1].get("type")
    return found


Said = tuple[str, str, str, int, int, int]
"""Reasoning, text, a call's arguments (as JSON with one spelling); prompt tokens, output tokens, reasoning tokens."""


def canonical(arguments: str) -> str:
    return json.dumps(json.loads(arguments), sort_keys=True) if arguments else ""


def openai_said(messages: list[dict[str, Any]], usage: dict[str, Any]) -> Said:
    """What deltas (or the one message) say."""
    calls = [call["function"] for one in messages for call in one.get("tool_calls", [])]
    details = usage.get("completion_tokens_details", {})
    return (
        "".join(one.get("reasoning_content") or "" for one in messages),
        "".join(one.get("content") or one.get("text") or "" for one in messages),
        canonical("".join(call["arguments"] for call in calls)),
        usage["prompt_tokens"],
        usage["completion_tokens"],
        details.get("reasoning_tokens", 0),
    )


def ollama_said(lines: list[dict[str, Any]]) -> Said:
    messages = [line.get("message", line) for line in lines]
    calls = [call["function"] for one in messages for call in one.get("tool_calls", [])]
    thinking = "".join(one.get("thinking", "") for one in messages)
    return (
        thinking,
        "".join(one.get("content", one.get("response")) for one in messages),
        canonical("".join(json.dumps(call["arguments"]) for call in calls)),
        lines[-1]["prompt_eval_count"],
        lines[-1]["eval_count"],
        len(thinking.split()) if thinking else 0,
    )


def response_said(found: dict[str, Any]) -> Said:
    items = {item["type"]: item for item in found["output"]}
    usage = found["usage"]
    return (
        items["reasoning"]["content"][0]["text"] if "reasoning" in items else "",
        items["message"]["content"][0]["text"] if "message" in items else "",
        canonical(items["function_call"]["arguments"]) if "function_call" in items else "",
        usage["input_tokens"],
        usage["output_tokens"],
        usage["output_tokens_details"]["reasoning_tokens"],
    )


def message_said(message: dict[str, Any]) -> Said:
    blocks = {block["type"]: block for block in message["content"]}
    thinking = blocks["thinking"]["thinking"] if "thinking" in blocks else ""
    return (
        thinking,
        blocks["text"]["text"] if "text" in blocks else "",
        canonical(json.dumps(blocks["tool_use"]["input"])) if "tool_use" in blocks else "",
        message["usage"]["input_tokens"],
        message["usage"]["output_tokens"],
        len(thinking.split()) if thinking else 0,
    )


def accumulated(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The message that a stream of Anthropic's events comes to, put together as its client library does."""
    message: dict[str, Any] = {}
    texts: dict[int, str] = {}
    fields = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
    for event in events:
        if event["type"] == "message_start":
            message = event["message"]
        elif event["type"] == "content_block_start":
            assert event["index"] == len(message["content"])
            message["content"].append(event["content_block"])
        elif event["type"] == "content_block_delta" and event["delta"]["type"] in fields:
            field = fields[event["delta"]["type"]]
            texts[event["index"]] = texts.get(event["index"], "") + event["delta"][field]
        elif event["type"] == "message_delta":
            message |= event["delta"]
            message["usage"] = event["usage"]
    for index, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            block["input"] = json.loads(texts[index])
        else:
            block[block["type"]] = texts[index]
    return message


def own_said(messages: list[dict[str, Any]]) -> Said:
    """What the reference server's own messages say, or its one message."""
    usage = messages[-1]["usage"]

    def said(kind: str, name: str) -> str:
        whole = messages[-1].get(name, "")
        return str(whole) + "".join(one["text"] for one in messages if one["type"] == kind)

    return (
        said("reasoning", "reasoning"),
        said("token", "text"),
        canonical(said("tool_call", "tool_call")),
        usage["prompt_tokens"],
        usage["completion_tokens"],
        usage.get("completion_tokens_details", {}).get("reasoning_tokens", 0),
    )


def whole(port: int, api: str, count: int) -> Said:
    found = post(port, PATHS[api], body(api, count, False)).json()
    if api == "responses":
        return response_said(found)
    if api == "anthropic":
        return message_said(found)
    if api == "websocket":
        return own_said([found])
    if api.startswith("ollama"):
        return ollama_said([found])
    (choice,) = found["choices"]
    return openai_said([choice.get("message", choice)], found["usage"])


def streamed(port: int, api: str, count: int) -> Said:
    found = objects(post(port, PATHS[api], body(api, count, True)))
    if api.startswith("ollama"):
        return ollama_said(found)
    if api == "anthropic":
        return message_said(accumulated(found))
    if api == "websocket":
        return own_said(found)
    if api != "responses":
        choices = [one["choices"][0] for one in found if one["choices"]]
        return openai_said([one.get("delta", one) for one in choices], found[-1]["usage"])
    deltas: dict[str, str] = {}
    for one in found:
        if one["type"].endswith(".delta"):
            deltas[one["type"]] = deltas.get(one["type"], "") + one["delta"]
    names = ("reasoning_text", "output_text", "function_call_arguments")
    thought, text, arguments = (deltas.get(f"response.{name}.delta", "") for name in names)
    final = response_said(found[-1]["response"])
    assert final[:3] == (thought, text, canonical(arguments))
    return final
