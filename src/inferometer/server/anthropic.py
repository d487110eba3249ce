"""Anthropic's Messages API, on the server's side: `POST /v1/messages`, streamed as typed events or whole.

**A stream.** Every event has its type in the `event` field and in its JSON:

| when                      | events                                                                                    |
| ------------------------- | ----------------------------------------------------------------------------------------- |
| the request is accepted   | `message_start`, with the prompt's tokens and no answer's                                 |
| a part begins             | `content_block_start`; after the first of all, a `ping`                                   |
| a token of reasoning      | `content_block_delta` with a `thinking_delta`                                             |
| a token of text           | ... a `text_delta`                                                                        |
| a token of a tool call    | ... an `input_json_delta`                                                                 |
| a part ends               | of reasoning, a `signature_delta`; then `content_block_stop`                              |
| the end                   | `message_delta` with the stop reason and all counts, `message_stop`                       |

A part is one block of `content`: `thinking`, `text` or `tool_use`. Its closing events come with the next part's first token, or
after the last token. The stop reason is `tool_use` where there is a call, `refusal` where a guardrail refused the request, else
`max_tokens`. `input_tokens` leaves out what came from the prefix cache, which `cache_read_input_tokens` counts; how much that
is, is known at the end.

**A request.** `system` is text or text blocks, and a system message before the `messages`, whose content is text, or blocks of
type `text` and `tool_result`. Tokens are counted as for a chat. `max_tokens` is required, as by Anthropic. `thinking` of type
`disabled` forbids reasoning. The key may be in `x-api-key`. `priority`, which Anthropic does not know, is vLLM's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from inferometer.server.answer_parts import Kind
from inferometer.server.event_writer import Telling, Voice
from inferometer.server.http_reply import JsonObject
from inferometer.server.openai import ApiError, Ask, Count, Message, Part, Reader, Whole, decode, head_of

API = "anthropic"
"""What this interface is called in an Ask and in the truth log."""
PATH = "/v1/messages"

_encode = msgspec.json.encode
_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
_BLOCKS = {
    Kind.REASONING: {"type": "thinking", "thinking": "", "signature": ""},
    Kind.TEXT: {"type": "text", "text": ""},
}
_DELTAS = {
    Kind.REASONING: ("thinking_delta", "thinking"),
    Kind.TEXT: ("text_delta", "text"),
    Kind.TOOL: ("input_json_delta", "partial_json"),
}


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    content: str | list[Part] = ""


class _Message(msgspec.Struct):
    role: str
    content: str | list[_Block]


class _Thinking(msgspec.Struct):
    type: str = "enabled"


class _ToolChoice(msgspec.Struct):
    type: str = "auto"
    name: str | None = None


class _Messages(msgspec.Struct, kw_only=True):
    model: str
    max_tokens: Count
    messages: Annotated[list[_Message], msgspec.Meta(min_length=1)]
    system: str | list[Part] | None = None
    stream: bool | None = False
    thinking: _Thinking | None = None
    tools: list[JsonObject] | None = None
    tool_choice: _ToolChoice | None = None
    priority: Whole | None = 0


_BODIES = msgspec.json.Decoder(_Messages)


class AnthropicReader(Reader):
    """Reads bodies of `/v1/messages`."""

    def messages(self, body: bytes) -> Ask:
        """The generation requested. Raises ApiError."""
        given: _Messages = decode(_BODIES, body)
        self._check_model(given.model)
        messages = [] if given.system is None else [Message("system", given.system)]
        messages += [_message(one) for one in given.messages]
        ids = self._render(messages)
        self._check_fit(len(ids), given.max_tokens, "messages")
        thinks = given.thinking is None or given.thinking.type != "disabled"
        parts = self._divide(given.max_tokens, thinks, given.tools, _choice(given.tool_choice))
        return Ask(
            API,
            bool(given.stream),
            True,
            len(ids),
            given.max_tokens,
            head_of(messages[-1].content or ""),
            parts,
            hashes=self._hashes(ids),
            priority=given.priority or 0,
        )


def _message(given: _Message) -> Message:
    """A message as a chat has it."""
    if given.role not in ("user", "assistant"):
        raise ApiError(400, f"messages: the role is user or assistant, not {given.role!r}", "messages")
    if isinstance(given.content, str):
        return Message(given.role, given.content)
    parts: list[Part] = []
    for block in given.content:
        if block.type == "tool_result":
            parts += [Part("text", block.content)] if isinstance(block.content, str) else block.content
        elif block.type not in ("thinking", "tool_use"):
            parts.append(Part(block.type, block.text))
    return Message(given.role, parts)


def _choice(given: _ToolChoice | None) -> str | JsonObject | None:
    """A tool choice in the words of a chat."""
    if given is None:
        return None
    words: dict[str, str | JsonObject] = {"any": "required", "none": "none", "tool": {"name": given.name}}
    return words.get(given.type)


def error_body(error: ApiError) -> bytes:
    """The error as Anthropic's JSON."""
    kind = _ERRORS.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    return _encode({"type": "error", "error": {"type": kind, "message": str(error)}})


class Messages(Voice):
    """One message: its events in order, or its body."""

    def __init__(self, telling: Telling) -> None:
        super().__init__(telling)
        self._kinds = telling.passage.kinds()

    def refuse(self, count: int) -> None:
        """Text alone then."""
        super().refuse(count)
        self._kinds = self._telling.passage.kinds()

    def opening(self) -> bytes:
        """It exists, and its prompt has been counted."""
        return _event("message_start", message=self._message([], None, self._usage(0)))

    def token(self, index: int, at: int) -> bytes:
        """The delta, after what closes the part before it and opens its own."""
        telling, passage = self._telling, self._telling.passage
        kind, text = passage.piece(index)
        before = b""
        if passage.opens(index):
            before = self._close(passage.piece(index - 1)[0]) if index else b""
            before += _event(
                "content_block_start", index=self._kinds.index(kind), content_block=self._empty(kind)
            )
            before += b"" if index else _event("ping")
        name, field = _DELTAS[kind]
        delta = {"type": name, field: text}
        return before + _event(
            "content_block_delta", index=self._kinds.index(kind), delta=delta, **telling.stamps(at)
        )

    def closing(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - Anthropic has no durations
        """The last part's end, the stop reason and all counts, and the message's end."""
        delta = {"stop_reason": self._reason, "stop_sequence": None}
        usage = self._usage(len(instants))
        return (
            self._close(self._kinds[-1])
            + _event("message_delta", delta=delta, usage=usage)
            + _event("message_stop")
        )

    def body(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - as above
        """The body."""
        content = [self._block(kind) for kind in self._kinds]
        return _encode(self._message(content, self._reason, self._usage(self._telling.passage.count)))

    def _close(self, kind: Kind) -> bytes:
        index = self._kinds.index(kind)
        signature = b""
        if kind is Kind.REASONING:
            delta = {"type": "signature_delta", "signature": self._telling.number}
            signature = _event("content_block_delta", index=index, delta=delta)
        return signature + _event("content_block_stop", index=index)

    def _empty(self, kind: Kind) -> JsonObject:
        """A block before its first delta."""
        return {**self._call, "input": {}} if kind is Kind.TOOL else dict(_BLOCKS[kind])

    def _block(self, kind: Kind) -> JsonObject:
        """A block of a whole message."""
        text = self._telling.passage.content(kind)
        if kind is Kind.TOOL:
            return {**self._call, "input": msgspec.Raw(text.encode())}
        if kind is Kind.REASONING:
            return {"type": "thinking", "thinking": text, "signature": self._telling.number}
        return {"type": "text", "text": text}

    @property
    def _call(self) -> JsonObject:
        return {
            "type": "tool_use",
            "id": f"toolu_{self._telling.number[:24]}",
            "name": self._telling.passage.parts.name,
        }

    @property
    def _reason(self) -> str:
        if self._refused:
            return "refusal"
        return "tool_use" if self._telling.passage.parts.tool else "max_tokens"

    def _message(self, content: list[JsonObject], reason: str | None, usage: dict[str, int]) -> JsonObject:
        return {
            "id": f"msg_{self._telling.number}",
            "type": "message",
            "role": "assistant",
            "model": self._telling.model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": usage,
        }

    def _usage(self, tokens: int) -> dict[str, int]:
        return {
            "input_tokens": self._telling.ask.prompt_tokens - self.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.cached,
            "output_tokens": tokens,
        }


def _event(kind: str, **fields: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode({"type": kind, **fields}))
