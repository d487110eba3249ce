"""One short answer in the words of every dialect, to be put together and spoilt by tests."""

from __future__ import annotations

import json
from typing import Any

from inferometer.drive.answer_limits import UNLESS_SET, AnswerLimits
from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import Http1Channel
from inferometer.engines.dialect import load
from inferometer.engines.interface import INTERFACES, Framing

Event = dict[str, Any] | bytes
TYPED = {"responses", "anthropic"}
OWN_FORM = [name for name, one in INTERFACES.items() if not one.mapped]
"""Interfaces whose messages no plan has to describe."""
OF_JSON = [name for name in OWN_FORM if not INTERFACES[name].grpc]
"""Those of them whose events and answers are JSON."""
OVER_HTTP = [name for name in OF_JSON if not INTERFACES[name].over_websocket]
"""Those whose answers are bodies of HTTP."""


def text(api: str, words: str) -> dict[str, Any]:
    """An event of answer content."""
    shapes: dict[str, dict[str, Any]] = {
        "chat": {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": words}}]},
        "completions": {"choices": [{"index": 0, "text": words}]},
        "responses": {"type": "response.output_text.delta", "delta": words},
        "anthropic": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": words}},
        "ollama-generate": {"response": words, "done": False},
        "ollama-chat": {"message": {"role": "assistant", "content": words}, "done": False},
        "websocket": {"type": "token", "text": words},
        "realtime": {"type": "response.output_text.delta", "delta": words},
    }
    return shapes[api]


def ending(api: str, prompt: Any = 9, output: Any = 3, reason: str | None = None) -> list[Event]:
    """The events that end an answer with these counts; `reason` in the dialect's terms, None for an ordinary end."""
    if api in ("chat", "completions"):
        choice = {"index": 0, "delta": {}, "finish_reason": reason or "stop"}
        counts = {"prompt_tokens": prompt, "completion_tokens": output}
        return [{"choices": [choice]}, {"choices": [], "usage": counts}, b"[DONE]"]
    if api == "websocket":
        counts = {"prompt_tokens": prompt, "completion_tokens": output}
        return [{"type": "end", "finish_reason": reason or "stop", "usage": counts}]
    counts = {"input_tokens": prompt, "output_tokens": output}
    if api == "realtime":
        response = {"status": reason or "completed", "usage": counts}
        return [{"type": "response.done", "response": response}]
    if api == "responses":
        response = {"object": "response", "status": reason or "completed", "usage": counts}
        return [{"type": "response.completed", "response": response}]
    if api == "anthropic":
        finish = {"type": "message_delta", "delta": {"stop_reason": reason or "end_turn"}, "usage": counts}
        return [finish, {"type": "message_stop"}]
    counts = {"prompt_eval_count": prompt, "eval_count": output, "total_duration": 100, "eval_duration": 50}
    return [text(api, "") | {"done": True, "done_reason": reason or "stop", **counts}]


def whole(
    api: str, words: str, prompt: Any = 9, output: Any = 3, reason: str | None = None
) -> dict[str, Any]:
    """The body of an answer that is not streamed."""
    if api in ("chat", "completions"):
        content = {"message": {"content": words}} if api == "chat" else {"text": words}
        counts = {"prompt_tokens": prompt, "completion_tokens": output}
        return {"choices": [{**content, "finish_reason": reason or "stop"}], "usage": counts}
    if api == "websocket":
        (end,) = ending(api, prompt, output, reason)
        assert isinstance(end, dict)
        return {**end, "type": "answer", "text": words}
    counts = {"input_tokens": prompt, "output_tokens": output}
    if api == "realtime":
        item = {"type": "message", "content": [{"type": "output_text", "text": words}]}
        return {
            "type": "response.done",
            "response": {"status": reason or "completed", "output": [item], "usage": counts},
        }
    if api == "responses":
        output_items = [{"type": "message", "content": [{"type": "output_text", "text": words}]}]
        return {
            "object": "response",
            "status": reason or "completed",
            "output": output_items,
            "usage": counts,
        }
    if api == "anthropic":
        block = {"type": "text", "text": words}
        return {
            "type": "message",
            "content": [block],
            "stop_reason": reason or "end_turn",
            "usage": counts,
        }
    (end,) = ending(api, prompt, output, reason)
    assert isinstance(end, dict)
    return end | text(api, words) | {"done": True}


def body(api: str, *events: Event) -> bytes:
    """Events as the dialect's stream frames them."""
    payloads = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in events]
    if INTERFACES[api].framing is not Framing.SSE:
        return b"".join(one + b"\n" for one in payloads)
    return b"".join(b"data: " + one + b"\n\n" for one in payloads)


def media_type(api: str) -> str:
    """Of the dialect's streams."""
    return "text/event-stream" if INTERFACES[api].framing is Framing.SSE else "application/x-ndjson"


def reply(api: str, content: bytes, kind: str | None = None, *, length: bool = True) -> bytes:
    """An HTTP response with this body, of the type of the dialect's streams or another, ended by its length or by closing."""
    field = f"Content-Length: {len(content)}\r\n" if length else ""
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind or media_type(api)}\r\n{field}\r\n".encode() + content


def fed(
    api: str, pieces: list[bytes], *, close: bool = False, limits: AnswerLimits = UNLESS_SET
) -> tuple[Exchange, Http1Channel]:
    """Feed these bytes to a channel, as the reactor does; with `close` the peer then closes."""
    channel, exchange = Http1Channel(), Exchange(0, 0, 0, b"", b"", 0, load(api), limits=limits)
    channel.opened()
    channel.submit(exchange)
    exchange.t_submit = 1
    for at, piece in enumerate(pieces, 2):
        if not channel.ended:
            channel.feed(piece, at, 0)
    if close:
        channel.peer_closed(len(pieces) + 2)
    return exchange, channel
