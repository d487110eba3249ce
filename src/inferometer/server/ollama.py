"""Ollama's own interface, on the server's side: `/api/generate`, `/api/chat` and the lists. Pure.

**A stream** is JSON, one object a line (`application/x-ndjson`), and is what is sent unless the request says `"stream": false`:

| line         | holds                                                                                                  |
| ------------ | ------------------------------------------------------------------------------------------------------ |
| every line   | `model` as the request named it, `created_at` (of a token: when the model put it out), `done`           |
| text         | `response`, or `message` with role and `content`                                                       |
| reasoning    | the same, empty, beside `thinking`                                                                     |
| a tool call  | `message.tool_calls`, once it is complete, as Ollama sends it: arguments are an object there            |
| the last one | empty text, `done_reason` (`length`; `stop` after a call or a refusal), the counts and the durations    |

**Durations** are ns, from the model's own instants:

| `total_duration`       | from the request's last byte to the last token                                       |
| `load_duration`        | the wait for the model; 0 if it was there                                            |
| `prompt_eval_duration` | from the first iteration of the prompt to the end of its last; not the queue's wait  |
| `eval_duration`        | from the first token to the last                                                     |

**A request without a prompt** (or messages) loads the model, or with `"keep_alive": 0` unloads it, and is answered with one
object. `keep_alive` is seconds, or text such as `5m`; negative is for ever, and the default is five minutes.

A prompt is laid out as a chat of its `system` and itself unless `raw` is true. Answers have `options.num_predict` tokens, 128
if that is missing or negative. `context` counts as so many more prompt tokens and is not given back. Images and `suffix` are
refused; whatever else Ollama knows is accepted and has no effect. `options.priority`, which Ollama does not know, is vLLM's.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from inferometer.server.answer_parts import Kind
from inferometer.server.event_writer import Voice
from inferometer.server.http_reply import JsonObject
from inferometer.server.model_loading import FOREVER, Residence
from inferometer.server.openai import (
    DEFAULT_CHAT_TOKENS,
    ApiError,
    Ask,
    Message,
    Reader,
    Whole,
    decode,
    head_of,
)
from inferometer.units import NS_PER_S

GENERATE, CHAT = "ollama-generate", "ollama-chat"
"""What these interfaces are called in an Ask and in the truth log."""
VERSION = "0.12.0"
"""The version of Ollama whose interface this is after."""

_KEEP_NS = 300 * NS_PER_S
_LATEST = "9999-12-31T23:59:59Z"
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART.pattern})+)")
_LONGEST_DURATION = 100
"""Characters. What a request holds is not tried against a pattern at any length: meanwhile nobody else is served."""
_encode = msgspec.json.encode


class _Options(msgspec.Struct):
    num_predict: Whole | None = None
    priority: Whole | None = 0


class _Message(msgspec.Struct):
    role: str
    content: str | None = None
    images: list[Any] | None = None


class _Body(msgspec.Struct, kw_only=True):
    model: str = ""
    stream: bool | None = True
    options: _Options | None = None
    keep_alive: int | float | str | None = None
    think: bool | str | None = None


class _Generate(_Body):
    prompt: str | None = None
    system: str | None = None
    raw: bool | None = False
    suffix: str | None = None
    context: list[Whole] | None = None
    images: list[Any] | None = None


class _Chat(_Body):
    messages: list[_Message] | None = None
    tools: list[JsonObject] | None = None


_GENERATIONS = msgspec.json.Decoder(_Generate)
_CHATS = msgspec.json.Decoder(_Chat)


class OllamaReader(Reader):
    """Reads bodies of `/api/generate` and `/api/chat`."""

    def generate(self, body: bytes) -> Ask:
        """What a body of `/api/generate` asks for. Raises ApiError."""
        asked: _Generate = decode(_GENERATIONS, body)
        if asked.suffix:
            raise ApiError(400, "this model does not support insert: suffix must be empty", "suffix")
        prompt, system = asked.prompt or "", asked.system or ""
        if asked.raw:
            ids = self._tokenizer.encode(prompt)
        else:
            messages = [Message("system", system)] if system else []
            ids = self._render([*messages, Message("user", prompt)])
        ids = [*(asked.context or []), *ids]
        return self._generation(asked, GENERATE, prompt or None, ids, bool(asked.images), None)

    def converse(self, body: bytes) -> Ask:
        """What a body of `/api/chat` asks for. Raises ApiError."""
        asked: _Chat = decode(_CHATS, body)
        given = asked.messages or []
        ids = self._render([Message(one.role, one.content) for one in given])
        prompt = given[-1].content or "" if given else None
        images = any(one.images for one in given)
        return self._generation(asked, CHAT, prompt, ids, images, asked.tools)

    def _generation(
        self, body: _Body, api: str, prompt: str | None, ids: list[int], images: bool, tools: Any
    ) -> Ask:
        """`prompt` is None where there is nothing to answer."""
        if not body.model:
            raise ApiError(400, "model is required", "model")
        if body.model not in (self.model, f"{self.model}:latest"):
            raise ApiError(404, f"model '{body.model}' not found", "model")
        if images:
            raise ApiError(400, "this model takes no images", "images")
        keep = keep_ns(body.keep_alive)
        if prompt is None:
            return Ask(api, False, False, 0, 0, keep_ns=keep, name=body.model)
        options = body.options or _Options()
        limit = options.num_predict
        limit = DEFAULT_CHAT_TOKENS if limit is None or limit < 0 else limit
        if not limit:
            raise ApiError(400, "num_predict must not be 0: this server answers with at least one token")
        self._check_fit(len(ids), limit, "prompt")
        parts = self._divide(limit, body.think is not False, tools, None if api == CHAT else "none")
        stream = body.stream is not False
        head, hashes = head_of(prompt), self._hashes(ids)
        priority = options.priority or 0
        return Ask(api, stream, False, len(ids), limit, head, parts, keep, body.model, hashes, priority)


def keep_ns(given: float | str | None) -> int:
    """`keep_alive` in ns, or FOREVER. Raises ApiError."""
    if given is None:
        return _KEEP_NS
    if isinstance(given, str):
        if len(given) > _LONGEST_DURATION or _DURATION.fullmatch(given) is None:
            begins = given[:_LONGEST_DURATION]
            raise ApiError(400, f"keep_alive: {begins!r} is no duration such as 5m or 30s", "keep_alive")
        ns = sum(float(part[1]) * _UNITS[part[2]] for part in _PART.finditer(given))
        if given.startswith("-"):
            return FOREVER
    else:
        ns = given * NS_PER_S
    return FOREVER if ns < 0 or ns > 1 << 62 else int(ns)


def error_body(error: ApiError) -> bytes:
    """The error as Ollama's JSON."""
    return _encode({"error": str(error)})


def rfc3339(wall_ns: int) -> str:
    """An instant since 1970 as Ollama writes it."""
    seconds, rest = divmod(wall_ns, NS_PER_S)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z"


def _empty(api: str) -> JsonObject:
    if api == GENERATE:
        return {"response": ""}
    return {"message": {"role": "assistant", "content": ""}}


def loaded_body(ask: Ask, wall_ns: int) -> bytes:
    """The answer to a request without a prompt."""
    reason = "load" if ask.keep_ns else "unload"
    head = {"model": ask.name, "created_at": rfc3339(wall_ns)}
    return _encode({**head, **_empty(ask.api), "done": True, "done_reason": reason})


class Lines(Voice):
    """One answer: its lines, or its body."""

    content_type = b"application/x-ndjson"

    def token(self, index: int, at: int) -> bytes:
        """One line; of a tool call, one for all of it."""
        telling, passage = self._telling, self._telling.passage
        kind, text = passage.piece(index)
        if kind is Kind.TOOL and index < passage.count - 1:
            return b""
        words = self._message_fields(**{_FIELDS[kind]: passage.content(kind) if kind is Kind.TOOL else text})
        head = {"model": telling.ask.name, "created_at": rfc3339(at + telling.wall_offset_ns)}
        return _encode({**head, **words, "done": False, **telling.stamps(at)}) + b"\n"

    def closing(self, instants: Sequence[int], load_ns: int) -> bytes:
        """The last line."""
        return _encode(self._final(self._message_fields(), instants, load_ns)) + b"\n"

    def body(self, instants: Sequence[int], load_ns: int) -> bytes:
        """The body."""
        passage = self._telling.passage
        words = self._message_fields(**{_FIELDS[kind]: passage.content(kind) for kind in passage.kinds()})
        return _encode(self._final(words, instants, load_ns))

    def _message_fields(self, content: str = "", thinking: str = "", call: str = "") -> JsonObject:
        """Text, thoughts and a complete call (its arguments as JSON) in the words of this interface."""
        more: JsonObject = {"thinking": thinking} if thinking else {}
        if self._telling.ask.api == GENERATE:
            return {"response": content, **more}
        if call:
            function = {"name": self._telling.passage.parts.name, "arguments": msgspec.Raw(call.encode())}
            more["tool_calls"] = [{"function": function}]
        return {"message": {"role": "assistant", "content": content, **more}}

    def _final(self, words: JsonObject, instants: Sequence[int], load_ns: int) -> JsonObject:
        telling = self._telling
        first, last = instants[0], instants[-1]
        return {
            "model": telling.ask.name,
            "created_at": rfc3339(last + telling.wall_offset_ns),
            **words,
            "done": True,
            "done_reason": "stop" if telling.passage.parts.tool or self._refused else "length",
            "total_duration": last - telling.received_ns,
            "load_duration": load_ns,
            "prompt_eval_count": telling.ask.prompt_tokens,
            # Without iterations everything up to the first token is the prompt's.
            "prompt_eval_duration": first - telling.received_ns - load_ns
            if self.prefill_ns is None
            else self.prefill_ns,
            "eval_count": len(instants),
            "eval_duration": last - first,
        }


_FIELDS = {Kind.REASONING: "thinking", Kind.TEXT: "content", Kind.TOOL: "call"}


class Lists:
    """`/api/tags`, `/api/ps` and `/api/version`. `wall_of` turns an instant on the monotonic clock into one since 1970."""

    def __init__(
        self, model: str, max_model_len: int, born: int, residence: Residence, wall_of: Callable[[int], int]
    ) -> None:
        name = model if ":" in model else f"{model}:latest"
        self._model = {
            "name": name,
            "model": name,
            "size": 0,
            "digest": "0" * 64,
            "details": {
                "parent_model": "",
                "format": "reference",
                "family": "reference",
                "families": ["reference"],
                "parameter_size": "0",
                "quantization_level": "none",
            },
        }
        self.max_model_len = max_model_len
        self._born = born
        self._residence = residence
        self._wall_of = wall_of

    def tags(self) -> bytes:
        """The one model there is."""
        return _encode({"models": [{**self._model, "modified_at": rfc3339(self._born * NS_PER_S)}]})

    def running(self) -> bytes:
        """The same while it is in memory."""
        if not self._residence.loaded:
            return _encode({"models": []})
        expires = self._residence.expires
        until = _LATEST if expires is None else rfc3339(self._wall_of(expires))
        more = {"expires_at": until, "size_vram": 0, "context_length": self.max_model_len}
        return _encode({"models": [{**self._model, **more}]})

    def version(self) -> bytes:
        """What it is after."""
        return _encode({"version": VERSION})
