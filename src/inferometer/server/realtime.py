"""OpenAI's Realtime API for text, on the server's side: a WebSocket at `/v1/realtime`.

| the client                 | the server |
| -------------------------- | ------------------------------------------------------------------------------- |
| connects                   | `session.created` |
| `session.update`           | `session.updated`; nothing of it has an effect |
| `response.create`          | `response.created`, the items, parts and deltas of `/v1/responses`, and `response.done` |
| anything else              | `error` |

A `response.create` brings its own `input` (`"conversation": "none"`): there is no conversation. A response that its
length ends is `incomplete` for `max_output_tokens`, as OpenAI has it. The same event by POST has the same events, a line each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from inferometer.server.http_reply import JsonObject, Reply
from inferometer.server.openai import ApiError, Ask, decode
from inferometer.server.responses import Response, ResponsesReader

API, PATH = "realtime", "/v1/realtime"
_encode = msgspec.json.encode


class _Created(msgspec.Struct):
    type: str
    response: msgspec.Raw = msgspec.Raw(b"{}")
    session: Any = None


_EVENTS = msgspec.json.Decoder(_Created)


class RealtimeReader(ResponsesReader):
    """Reads the events of `/v1/realtime`."""

    def event(self, body: bytes) -> Ask | Reply:
        """The generation asked for, or the answer to another event. Raises ApiError."""
        asked: _Created = decode(_EVENTS, body)
        if asked.type == "session.update":
            return Reply(200, _encode({"type": "session.updated", "session": asked.session}))
        if asked.type != "response.create":
            raise ApiError(400, f"events of type {asked.type!r} are not supported", "type")
        return self.create(asked.response)

    def create(self, body: bytes | msgspec.Raw) -> Ask:
        """The generation that the response of an event asks for. Raises ApiError."""
        ask = self.responses(bytes(body))
        return msgspec.structs.replace(ask, api=API, stream=True)

    def created(self, body: bytes) -> Ask:
        """As `event`, of what can only be a `response.create`. Raises ApiError."""
        asked: _Created = decode(_EVENTS, body)
        return self.create(asked.response)


def greeting(model: str) -> bytes:
    """What a client is told when it has connected."""
    session = {
        "object": "realtime.session",
        "type": "realtime",
        "model": model,
        "output_modalities": ["text"],
    }
    return _encode({"type": "session.created", "session": session})


def error_body(error: ApiError) -> bytes:
    """The error as an event."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    inner = {"type": kind, "code": error.code, "message": str(error), "param": error.param}
    return _encode({"type": "error", "error": inner})


class Events(Response):
    """One response: its events, a line each."""

    content_type = b"application/x-ndjson"

    def opening(self) -> bytes:
        """It exists."""
        return self._event("response.created", response=self._response("in_progress", [], None))

    def closing(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - no durations
        """The last part's end, and the response's."""
        return self._close(self._kinds[-1]) + self._event("response.done", response=self._complete())

    def body(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - as above
        """The last event alone."""
        return self._event("response.done", response=self._complete())

    def _event(self, kind: str, **fields: object) -> bytes:
        fields.pop("logprobs", None)
        number = self._sequence
        self._sequence += 1
        return _encode({"type": kind, "event_id": f"event_{number}", **fields}) + b"\n"

    @property
    def _status(self) -> str:
        return "completed" if self._telling.passage.parts.tool and not self._refused else "incomplete"

    def _response(self, status: str, output: list[JsonObject], counts: object) -> JsonObject:
        reason = "content_filter" if self._refused else "max_output_tokens"
        details = {"type": "incomplete", "reason": reason} if status == "incomplete" else None
        return {
            "object": "realtime.response",
            "id": f"resp_{self._telling.number}",
            "status": status,
            "status_details": details,
            "output": output,
            "conversation_id": None,
            "output_modalities": ["text"],
            "max_output_tokens": self._telling.ask.max_tokens,
            "metadata": None,
            "usage": _usage(counts),
        }


def _usage(counts: object) -> JsonObject | None:
    """The same counts as of `/v1/responses`, under this interface's names."""
    if not isinstance(counts, dict):
        return None
    return {
        "total_tokens": counts["total_tokens"],
        "input_tokens": counts["input_tokens"],
        "output_tokens": counts["output_tokens"],
        "input_token_details": {"text_tokens": counts["input_tokens"], **counts["input_tokens_details"]},
        "output_token_details": {"text_tokens": counts["output_tokens"], "audio_tokens": 0},
    }
