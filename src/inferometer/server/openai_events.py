"""OpenAI's chats and completions where text alone does not do: reasoning, tool calls, time stamps.

| part      | in a stream                                                            | in a whole answer           |
| --------- | ---------------------------------------------------------------------- | --------------------------- |
| reasoning | `delta.reasoning_content` (vLLM, SGLang, DeepSeek)                     | `message.reasoning_content` |
| text      | `delta.content`                                                        | `message.content`, or null  |
| tool call | `delta.tool_calls`: index and arguments; id, type and name in the first | `message.tool_calls`        |

The finish reason is `content_filter` where a guardrail refused, `tool_calls` where there is a call, else `length`, and rides on
the last token's event. Reasoning tokens are counted in `usage.completion_tokens_details.reasoning_tokens`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from inferometer.server.answer_parts import Kind
from inferometer.server.event_writer import Telling, Voice
from inferometer.server.http_reply import JsonObject
from inferometer.server.openai import usage

_encode = msgspec.json.encode


def sse(event: object) -> bytes:
    """One event of a stream."""
    return b"data: %b\n\n" % _encode(event)


class _Stream(Voice):
    """What chats and completions share."""

    prefix, kind, body_kind = "", "", ""

    def __init__(self, telling: Telling) -> None:
        super().__init__(telling)
        self._head = {
            "id": self.prefix + telling.number,
            "object": self.kind,
            "created": telling.created,
            "model": telling.model,
        }

    @property
    def _reason(self) -> str:
        if self._refused:
            return "content_filter"
        return "tool_calls" if self._telling.passage.parts.tool else "length"

    def _usage(self, tokens: int) -> JsonObject:
        return usage(self._telling.ask, tokens, self.cached)

    def _event(self, fields: JsonObject, finish: str | None, at: int) -> bytes:
        choice = {"index": 0, **fields, "logprobs": None, "finish_reason": finish}
        return sse({**self._head, "choices": [choice], **self._telling.stamps(at)})

    def _finish(self, index: int) -> str | None:
        return self._reason if index == self._telling.passage.count - 1 else None

    def closing(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - OpenAI tells no durations
        """The usage event if it was asked for, and the terminator."""
        ask = self._telling.ask
        counts = sse({**self._head, "choices": [], "usage": self._usage(len(instants))}) if ask.usage else b""
        return counts + b"data: [DONE]\n\n"

    def _completed(self, fields: JsonObject) -> bytes:
        choice = {"index": 0, **fields, "logprobs": None, "finish_reason": self._reason}
        head = {**self._head, "object": self.body_kind}
        return _encode({**head, "choices": [choice], "usage": self._usage(self._telling.passage.count)})


class Completion(_Stream):
    """Text, with time stamps."""

    prefix, kind, body_kind = "cmpl-", "text_completion", "text_completion"

    def token(self, index: int, at: int) -> bytes:
        """One event."""
        return self._event({"text": self._telling.passage.piece(index)[1]}, self._finish(index), at)

    def body(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - as above
        """The body."""
        return self._completed({"text": self._telling.passage.content(Kind.TEXT)})


class Chat(_Stream):
    """A chat of all parts."""

    prefix, kind, body_kind = "chatcmpl-", "chat.completion.chunk", "chat.completion"

    def lead(self) -> bytes:
        """The role and empty content."""
        choice = {"index": 0, "delta": {"role": "assistant", "content": ""}}
        return sse({**self._head, "choices": [{**choice, "logprobs": None, "finish_reason": None}]})

    def token(self, index: int, at: int) -> bytes:
        """One event."""
        passage = self._telling.passage
        kind, text = passage.piece(index)
        delta: JsonObject
        if kind is Kind.REASONING:
            delta = {"reasoning_content": text}
        elif kind is Kind.TEXT:
            delta = {"content": text}
        else:
            call = self._call(text) if passage.opens(index) else {"function": {"arguments": text}}
            delta = {"tool_calls": [{"index": 0, **call}]}
        return self._event({"delta": delta}, self._finish(index), at)

    def body(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - as above
        """The body."""
        passage = self._telling.passage
        message: JsonObject = {"role": "assistant", "content": passage.content(Kind.TEXT) or None}
        if passage.parts.reasoning:
            message["reasoning_content"] = passage.content(Kind.REASONING)
        if passage.parts.tool:
            message["tool_calls"] = [self._call(passage.content(Kind.TOOL))]
        return self._completed({"message": message})

    def _call(self, arguments: str) -> JsonObject:
        function = {"name": self._telling.passage.parts.name, "arguments": arguments}
        return {"id": f"call_{self._telling.number[:24]}", "type": "function", "function": function}
