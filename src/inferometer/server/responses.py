"""OpenAI's Responses API, on the server's side: `POST /v1/responses`, streamed as typed events or whole.

**A stream.** Every event has its type in the `event` field and in its JSON, and a `sequence_number` from 0 up:

| when                      | events, `response.` left out                                                             |
| ------------------------- | ---------------------------------------------------------------------------------------- |
| the request is accepted   | `created`, `in_progress`                                                                 |
| a part begins             | `output_item.added`; and, unless it is a tool call, `content_part.added`                 |
| a token of reasoning      | `reasoning_text.delta`                                                                   |
| a token of text           | `output_text.delta`                                                                      |
| a token of a tool call    | `function_call_arguments.delta`                                                          |
| a part ends               | the `done` of its `delta`; unless it is a tool call, `content_part.done`; `output_item.done` |
| the end                   | `completed`, with the whole response and its usage; there is no `[DONE]`                 |

A part is one item of `output`: `reasoning`, `message` or `function_call`. Its closing events come with the next part's first
token, or after the last token. The status is `completed`, though `max_output_tokens` is what ends every answer: OpenAI says
`incomplete` there, which clients take for a failure. Where a guardrail refused the request it is `incomplete`, for the reason
`content_filter`.

**A request.** `input` is text or a list of messages (parts `input_text`, `output_text`, `text`), calls and their outputs;
`instructions` is a system message before it. Tokens are counted as for a chat. Nothing is stored: `previous_response_id` and
`background` are refused. `priority` is vLLM's, as in a chat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from inferometer.server.answer_parts import Kind
from inferometer.server.event_writer import Telling, Voice
from inferometer.server.http_reply import JsonObject
from inferometer.server.openai import (
    DEFAULT_CHAT_TOKENS,
    ApiError,
    Ask,
    Count,
    Message,
    Part,
    Reader,
    Whole,
    decode,
    head_of,
    usage,
)

_encode = msgspec.json.encode
_TEXTS = frozenset({"input_text", "output_text", "text"})
_ITEMS = {
    Kind.REASONING: ("rs_", "reasoning"),
    Kind.TEXT: ("msg_", "message"),
    Kind.TOOL: ("fc_", "function_call"),
}
_DELTAS = {
    Kind.REASONING: "response.reasoning_text",
    Kind.TEXT: "response.output_text",
    Kind.TOOL: "response.function_call_arguments",
}


class _Item(msgspec.Struct, kw_only=True):
    type: str = "message"
    role: str = "assistant"
    content: str | list[Part] | None = None
    arguments: str = ""
    output: str | list[Part] = ""


class _Reasoning(msgspec.Struct):
    effort: str | None = None


class _Responses(msgspec.Struct, kw_only=True):
    input: str | Annotated[list[_Item], msgspec.Meta(min_length=1)]
    model: str | None = None
    instructions: str | None = None
    stream: bool | None = False
    max_output_tokens: Count | None = None
    reasoning: _Reasoning | None = None
    tools: list[JsonObject] | None = None
    tool_choice: str | JsonObject | None = None
    background: bool | None = False
    previous_response_id: str | None = None
    priority: Whole | None = 0


_BODIES = msgspec.json.Decoder(_Responses)


class ResponsesReader(Reader):
    """Reads bodies of `/v1/responses`."""

    def responses(self, body: bytes) -> Ask:
        """The generation asked for. Raises ApiError."""
        asked: _Responses = decode(_BODIES, body)
        self._check_model(asked.model)
        for name in ("background", "previous_response_id"):
            if getattr(asked, name):
                raise ApiError(400, f"this server stores no responses: {name} is not supported", name)
        messages = [] if asked.instructions is None else [Message("system", asked.instructions)]
        if isinstance(asked.input, str):
            messages.append(Message("user", asked.input))
        else:
            messages += [_message(item) for item in asked.input]
        ids = self._render(messages)
        limit = asked.max_output_tokens or DEFAULT_CHAT_TOKENS
        self._check_fit(len(ids), limit, "input")
        thinks = asked.reasoning is None or asked.reasoning.effort != "none"
        parts = self._divide(limit, thinks, asked.tools, asked.tool_choice)
        return Ask(
            "responses",
            bool(asked.stream),
            True,
            len(ids),
            limit,
            head_of(messages[-1].content or ""),
            parts,
            hashes=self._hashes(ids),
            priority=asked.priority or 0,
        )


def _message(item: _Item) -> Message:
    """An item of the input as a chat's message."""
    if item.type == "function_call":
        return Message("assistant", item.arguments)
    if item.type == "function_call_output":
        return Message("tool", _plain(item.output))
    if item.type == "reasoning":
        return Message("assistant", None)
    if item.type != "message":
        raise ApiError(400, f"input items of type {item.type!r} are not supported", "input")
    return Message(item.role, _plain(item.content))


def _plain(content: str | list[Part] | None) -> str | list[Part] | None:
    """A content with its text parts under the name that a chat has for them."""
    if not isinstance(content, list):
        return content
    return [Part("text" if part.type in _TEXTS else part.type, part.text) for part in content]


class Response(Voice):
    """One response: its events in order, or its body."""

    def __init__(self, telling: Telling) -> None:
        super().__init__(telling)
        self._sequence = 0
        self._kinds = telling.passage.kinds()

    def refuse(self, count: int) -> None:
        """Text alone then."""
        super().refuse(count)
        self._kinds = self._telling.passage.kinds()

    def opening(self) -> bytes:
        """It exists, and is being worked on."""
        begun = self._response("in_progress", [], None)
        return self._event("response.created", response=begun) + self._event(
            "response.in_progress", response=begun
        )

    def token(self, index: int, at: int) -> bytes:
        """The delta, between what opens its part and, in the next token's bytes, what closes it."""
        telling, passage = self._telling, self._telling.passage
        kind, text = passage.piece(index)
        before = b""
        if passage.opens(index):
            before = b"" if not index else self._close(passage.piece(index - 1)[0])
            before += self._open(kind)
        fields = {**self._place(kind), "delta": text, **telling.stamps(at)}
        if kind is Kind.TEXT:
            fields["logprobs"] = []
        return before + self._event(f"{_DELTAS[kind]}.delta", **fields)

    def closing(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - OpenAI tells no durations
        """The last part's end, and the response's."""
        return self._close(self._kinds[-1]) + self._event(
            f"response.{self._status}", response=self._complete()
        )

    def body(self, instants: Sequence[int], load_ns: int) -> bytes:  # noqa: ARG002 - as above
        """The body."""
        return _encode(self._complete())

    def _open(self, kind: Kind) -> bytes:
        item = self._item(kind, "in_progress", None)
        added = self._event("response.output_item.added", output_index=self._kinds.index(kind), item=item)
        if kind is not Kind.TOOL:
            added += self._event("response.content_part.added", **self._place(kind), part=_part(kind, ""))
        return added

    def _close(self, kind: Kind) -> bytes:
        text, place = self._telling.passage.content(kind), self._place(kind)
        if kind is Kind.TOOL:
            name = self._telling.passage.parts.name
            done = self._event(f"{_DELTAS[kind]}.done", **place, name=name, arguments=text)
        else:
            more: JsonObject = {"logprobs": []} if kind is Kind.TEXT else {}
            done = self._event(f"{_DELTAS[kind]}.done", **place, text=text, **more)
            done += self._event("response.content_part.done", **place, part=_part(kind, text))
        item = self._item(kind, "completed", text)
        return done + self._event("response.output_item.done", output_index=place["output_index"], item=item)

    def _event(self, kind: str, **fields: object) -> bytes:
        event = {"type": kind, **fields, "sequence_number": self._sequence}
        self._sequence += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), _encode(event))

    def _place(self, kind: Kind) -> JsonObject:
        """Where a delta belongs."""
        place: JsonObject = {"item_id": self._ident(kind), "output_index": self._kinds.index(kind)}
        return place if kind is Kind.TOOL else {**place, "content_index": 0}

    def _ident(self, kind: Kind) -> str:
        return _ITEMS[kind][0] + self._telling.number

    def _item(self, kind: Kind, status: str, text: str | None) -> JsonObject:
        """An item of the output; `text` is None while it is empty."""
        item: JsonObject = {"id": self._ident(kind), "type": _ITEMS[kind][1], "status": status}
        if kind is Kind.TOOL:
            call = f"call_{self._telling.number[:24]}"
            return {
                **item,
                "call_id": call,
                "name": self._telling.passage.parts.name,
                "arguments": text or "",
            }
        content = [] if text is None else [_part(kind, text)]
        if kind is Kind.REASONING:
            return {**item, "summary": [], "content": content}
        return {**item, "role": "assistant", "content": content}

    @property
    def _status(self) -> str:
        return "incomplete" if self._refused else "completed"

    def _complete(self) -> JsonObject:
        passage = self._telling.passage
        output = [self._item(kind, "completed", passage.content(kind)) for kind in self._kinds]
        return self._response(self._status, output, _usage(self._telling.ask, passage.count, self.cached))

    def _response(self, status: str, output: list[JsonObject], counts: object) -> JsonObject:
        telling = self._telling
        return {
            "id": f"resp_{telling.number}",
            "object": "response",
            "created_at": telling.created,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "content_filter"} if status == "incomplete" else None,
            "instructions": None,
            "max_output_tokens": telling.ask.max_tokens,
            "metadata": {},
            "model": telling.model,
            "output": output,
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "store": False,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": counts,
        }


def _part(kind: Kind, content: str) -> JsonObject:
    if kind is Kind.REASONING:
        return {"type": "reasoning_text", "text": content}
    return {"type": "output_text", "text": content, "annotations": [], "logprobs": []}


def _usage(ask: Ask, tokens: int, cached: int) -> JsonObject:
    """The same counts as elsewhere, under this interface's names."""
    counts = usage(ask, tokens, cached)
    return {
        "input_tokens": counts["prompt_tokens"],
        "input_tokens_details": counts["prompt_tokens_details"],
        "output_tokens": counts["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": ask.parts.reasoning},
        "total_tokens": counts["total_tokens"],
    }
