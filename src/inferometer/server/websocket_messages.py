"""The reference server's own messages over a WebSocket (`/v1/ws`): one JSON object a message, in text.

A client's message is the body of a chat completion; with `"stream": true` it is answered by

    {"type": "begin", "id": "ws-...", "model": "reference"}       as soon as it is accepted
    {"type": "token", "text": " one"}                             for each token; `reasoning`, `tool_call` of the other parts
    {"type": "end", "finish_reason": "length", "usage": {...}}    as a chat completion has them

and otherwise by one message, `{"type": "answer", "id", "model", "text", "reasoning", "tool_call", "finish_reason", "usage"}`. A
request that is refused is answered by

    {"type": "error", "status": 429, "message": "...", "param": null, "code": "rate_limit_exceeded"}

and the connection goes on. Requests are answered one after the other, in their order. The same body by POST has the same
messages for an answer, a line each.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from inferometer.server.answer_parts import Kind
from inferometer.server.event_writer import Voice
from inferometer.server.http_reply import JsonObject
from inferometer.server.openai import ApiError, Ask, Reader, usage

API, PATH = "websocket", "/v1/ws"
_TYPES = {Kind.REASONING: "reasoning", Kind.TEXT: "token", Kind.TOOL: "tool_call"}
_WHOLE = {Kind.REASONING: "reasoning", Kind.TEXT: "text", Kind.TOOL: "tool_call"}


class WebSocketReader(Reader):
    """Reads the messages of `/v1/ws`."""

    def message(self, body: bytes) -> Ask:
        """The generation asked for. Raises ApiError."""
        return msgspec.structs.replace(self.chat(body), api=API, usage=True)


def error_body(error: ApiError) -> bytes:
    """The error as a message."""
    fields = {"type": "error", "status": error.status, "message": str(error)}
    return _encode({**fields, "param": error.param, "code": error.code})


class Messages(Voice):
    """One answer: its messages, a line each, or the one."""

    content_type = b"application/x-ndjson"

    def opening(self) -> bytes:
        """It is accepted."""
        return _line({"type": "begin", **self._head()})

    def token(self, index: int, at: int) -> bytes:
        """One message."""
        kind, text = self._telling.passage.piece(index)
        return _line({"type": _TYPES[kind], "text": text, **self._telling.stamps(at)})

    def closing(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - no durations
        """The last message."""
        return _line({"type": "end", **self._end(len(instants))})

    def body(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - as above
        """The one message."""
        passage = self._telling.passage
        words = {_WHOLE[kind]: passage.content(kind) for kind in passage.kinds()}
        return _encode({"type": "answer", **self._head(), **words, **self._end(len(instants))})

    def _head(self) -> JsonObject:
        return {"id": f"ws-{self._telling.number}", "model": self._telling.model}

    def _end(self, tokens: int) -> JsonObject:
        called = "tool_calls" if self._telling.passage.parts.tool else "length"
        reason = "content_filter" if self._refused else called
        return {"finish_reason": reason, "usage": usage(self._telling.ask, tokens, self.cached)}


def _line(message: JsonObject) -> bytes:
    return _encode(message) + b"\n"


_encode = msgspec.json.encode
