"""How OpenAI's API spells things, on the server's side: request bodies in, JSON and event bytes out. Pure.

Read strictly where a wrong value would change what is measured (lengths, streaming, model), and not at all otherwise: sampling
parameters are accepted and have no effect, since nothing is sampled. In particular no stop token is ever drawn, so every answer
has exactly `max_tokens` tokens and the finish reason `length`, with `ignore_eos` or without; or, where a guardrail refuses the
request, a short one and `content_filter`.

**Prompt tokens.** A list of ids counts itself. Text is counted with cl100k. A chat is laid out as OpenAI lays out chats for
cl100k models, `<|im_start|>role<|im_sep|>content<|im_end|>` for each message and `<|im_start|>assistant<|im_sep|>` at the end,
which comes to content + role + 3 for each message and 3 for the request: 7 tokens more than its text for one user message.
The content of a message is its text, IMAGE_TOKENS for each image, whatever its size, and the name and arguments of each of its
tool calls. An image is not looked at: one URL, or one piece of data, has the same ids each time, and a prefix cache finds it.

**Events.** A token's bytes are put together from three pieces prepared in advance, so that one costs one concatenation:
chunk size and text before the response's id | id, time and model | the token's text and the rest.
"""

from __future__ import annotations

import itertools
import zlib
from typing import Annotated, Any, Protocol

import msgspec

from inferometer.server.answer_parts import PLAIN, Parts, divide
from inferometer.server.engine.blocks import chain
from inferometer.server.filler_text import PIECES
from inferometer.server.http_reply import JsonObject, chunk

SCRIPTED = ("chat", "completions")
"""The interfaces whose plain answers are bytes prepared in advance (Script)."""
DEFAULT_CHAT_TOKENS = 128
DEFAULT_COMPLETION_TOKENS = 16
_HEAD_CHARACTERS, _HEAD_IDS = 96, 8
IMAGE_TOKENS = 85
"""Of an image: what OpenAI counts for one in low detail."""
_IM_START, _IM_END, _IM_SEP = 100264, 100265, 100266
_IMAGE = 100_300
"""The ids of images: from here on, which no text has."""


class Tokenizer(Protocol):
    """What is needed of a tokenizer: text to ids, without special tokens."""

    def encode(self, text: str) -> list[int]:
        """The ids of `text`."""


class ApiError(Exception):
    """A request that is answered with an error object."""

    def __init__(
        self,
        status: int,
        message: str,
        param: str | None = None,
        code: str | None = None,
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.headers = headers


def queue_full(status: int) -> ApiError:
    """What a request meets that finds the engine's queue full."""
    return ApiError(
        status,
        "the queue is full: try again later",
        code="rate_limit_exceeded" if status == 429 else "overloaded",
        headers=((b"Retry-After", b"1"),),
    )


def error_body(error: ApiError) -> bytes:
    """The error as OpenAI's JSON."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    inner = {"message": str(error), "type": kind, "param": error.param, "code": error.code}
    return msgspec.json.encode({"error": inner})


_LARGEST = (1 << 63) - 1
Whole = Annotated[int, msgspec.Meta(ge=-_LARGEST, le=_LARGEST)]
"""A whole number of a request: JSON has no largest one, and what calculates with it has."""
Count = Annotated[int, msgspec.Meta(ge=1, le=_LARGEST)]


class _Image(msgspec.Struct):
    url: str


class Part(msgspec.Struct):
    """A part of a message's content."""

    type: str
    text: str = ""
    image_url: str | _Image | None = None

    @property
    def image(self) -> str | None:
        """The URL or the data of an image; None: it is none."""
        if self.type != "image_url":
            return None
        return self.image_url.url if isinstance(self.image_url, _Image) else self.image_url


class _Function(msgspec.Struct):
    name: str = ""
    arguments: str = ""


class _Call(msgspec.Struct):
    function: _Function | None = None


class Message(msgspec.Struct):
    """One message of a chat."""

    role: str
    content: str | list[Part] | None = None
    tool_calls: list[_Call] | None = None


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = False


class _Body(msgspec.Struct, kw_only=True):
    model: str | None = None
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    max_tokens: Count | None = None
    ignore_eos: bool | None = False
    priority: Whole | None = 0
    n: Whole | None = 1


class _Chat(_Body):
    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    max_completion_tokens: Count | None = None
    reasoning_effort: str | None = None
    tools: list[JsonObject] | None = None
    tool_choice: str | JsonObject | None = None


class _Completion(_Body):
    prompt: str | list[Any]


class _Tokenize(msgspec.Struct, kw_only=True):
    model: str | None = None
    prompt: str | None = None
    messages: list[Message] | None = None


class Ask(msgspec.Struct, frozen=True):
    """A generation asked for, in the engine's terms. `usage`: an event with the counts is wanted in the stream.

    `api` is one of dialects.APIS. `head`: how the prompt begins (truth.py). `keep_ns`: how long the model is to stay in memory
    afterwards (model_loading.py). `max_tokens` is 0 where only the model is to be loaded or, if `keep_ns` is 0 too, unloaded.
    `name`: what the request called the model. `hashes`: of the prompt's full blocks (engine/blocks.py). `priority`: lower is
    sooner.
    """

    api: str
    stream: bool
    usage: bool
    prompt_tokens: int
    max_tokens: int
    head: str = ""
    parts: Parts = PLAIN
    keep_ns: int | None = None
    name: str = ""
    hashes: tuple[int, ...] = ()
    priority: int = 0


class Reader:
    """Reads request bodies for one served model, whose chats are divided as `parts` says. Raises ApiError.

    `block_tokens`: prompts are hashed in blocks of so many tokens; 0 hashes none.
    """

    def __init__(
        self,
        model: str,
        max_model_len: int,
        tokenizer: Tokenizer,
        parts: Parts = PLAIN,
        block_tokens: int = 0,
    ) -> None:
        self.model = model
        self._parts = parts
        self.max_model_len = max_model_len
        self._tokenizer = tokenizer
        self._block_tokens = block_tokens
        self._chat = msgspec.json.Decoder(_Chat)
        self._completion = msgspec.json.Decoder(_Completion)
        self._tokenize = msgspec.json.Decoder(_Tokenize)

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return self._tokenizer.encode(text)

    def chat(self, body: bytes) -> Ask:
        """A body of `/v1/chat/completions`."""
        asked: _Chat = decode(self._chat, body)
        self._check(asked)
        ids = self._render(asked.messages)
        limit = asked.max_completion_tokens or asked.max_tokens or DEFAULT_CHAT_TOKENS
        thinks = asked.reasoning_effort != "none"
        parts = self._divide(limit, thinks, asked.tools, asked.tool_choice)
        return self._ask(asked, "chat", ids, limit, head_of(asked.messages[-1].content or ""), parts)

    def completion(self, body: bytes) -> Ask:
        """A body of `/v1/completions`."""
        asked: _Completion = decode(self._completion, body)
        self._check(asked)
        ids = self._prompt(asked.prompt)
        if not ids:
            raise ApiError(400, "the prompt has no token", "prompt")
        limit = asked.max_tokens or DEFAULT_COMPLETION_TOKENS
        return self._ask(asked, "completions", ids, limit, head_of(asked.prompt))

    def tokenize(self, body: bytes) -> JsonObject:
        """A body of `/tokenize`, and the answer to it."""
        asked: _Tokenize = decode(self._tokenize, body)
        self._check_model(asked.model)
        if (asked.prompt is None) == (asked.messages is None):
            raise ApiError(400, "give either prompt or messages", "prompt")
        ids = (
            self._render(asked.messages or [])
            if asked.prompt is None
            else self._tokenizer.encode(asked.prompt)
        )
        return {"count": len(ids), "max_model_len": self.max_model_len, "tokens": ids, "token_strs": None}

    def _check_model(self, model: str | None) -> None:
        if model is not None and model != self.model:
            raise ApiError(
                404, f"the model {model!r} does not exist; {self.model!r} does", "model", "model_not_found"
            )

    def _check(self, body: _Body) -> None:
        self._check_model(body.model)
        if body.n not in (None, 1):
            raise ApiError(400, "this server generates one choice a request: n must be 1", "n")

    def _ask(
        self, body: _Body, api: str, ids: list[int], max_tokens: int, head: str, parts: Parts = PLAIN
    ) -> Ask:
        self._check_fit(len(ids), max_tokens, "messages" if api == "chat" else "prompt")
        options = body.stream_options
        return Ask(
            api,
            bool(body.stream),
            bool(options and options.include_usage),
            len(ids),
            max_tokens,
            head,
            parts,
            hashes=self._hashes(ids),
            priority=body.priority or 0,
        )

    def _hashes(self, ids: list[int]) -> tuple[int, ...]:
        """Of a prompt's full blocks."""
        return chain(ids, self._block_tokens) if self._block_tokens else ()

    def _check_fit(self, prompt_tokens: int, max_tokens: int, param: str) -> None:
        if prompt_tokens + max_tokens > self.max_model_len:
            raise ApiError(
                400,
                f"{prompt_tokens} prompt tokens and {max_tokens} to generate exceed the model's context "
                f"of {self.max_model_len}",
                param,
                "context_length_exceeded",
            )

    def _divide(self, count: int, thinks: bool, tools: Any, choice: Any) -> Parts:
        try:
            return divide(self._parts, count, thinks=thinks, tools=tools, choice=choice)
        except ValueError as error:
            raise ApiError(400, str(error), "tool_choice") from error

    def _prompt(self, prompt: str | list[Any]) -> list[int]:
        """The ids of a completion prompt: text, ids, or a list of one of these."""
        if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], (str, list)):
            prompt = prompt[0]
        if isinstance(prompt, str):
            return self._tokenizer.encode(prompt)
        if all(type(token) is int and 0 <= token <= _LARGEST for token in prompt):
            return prompt
        if all(isinstance(one, (str, list)) for one in prompt):
            raise ApiError(400, "this server takes one prompt a request", "prompt")
        raise ApiError(400, "prompt must be text, a list of token ids, or a list of one of these", "prompt")

    def _render(self, messages: list[Message]) -> list[int]:
        """A chat laid out as ids; see the head of this file."""
        encode = self._tokenizer.encode
        ids: list[int] = []
        for message in messages:
            ids += [_IM_START, *encode(message.role), _IM_SEP, *self._content(message), _IM_END]
        return [*ids, _IM_START, *encode("assistant"), _IM_SEP]

    def _content(self, message: Message) -> list[int]:
        """What a message says; see the head of this file. Raises ApiError."""
        encode, content = self._tokenizer.encode, message.content
        ids: list[int] = []
        if isinstance(content, list):
            for image, parts in itertools.groupby(content, lambda part: part.image):
                if image is not None:
                    ids += _image_ids(image) * len(list(parts))
                    continue
                found = list(parts)
                if any(part.type != "text" for part in found):
                    raise ApiError(400, "parts are text, or image_url with a URL or data", "messages")
                ids += encode("".join(part.text for part in found))
        else:
            ids += encode(content or "")
        for call in message.tool_calls or ():
            if call.function is not None:
                ids += [*encode(call.function.name), *encode(call.function.arguments)]
        return ids


def _image_ids(image: str) -> list[int]:
    """IMAGE_TOKENS ids, which say which image it is."""
    return [_IMAGE + zlib.crc32(image.encode("utf-8", "surrogatepass"))] * IMAGE_TOKENS


def head_of(prompt: str | list[Any]) -> str:
    """How a prompt begins: enough of it to know it again by its nonce."""
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], (str, list)):
        prompt = prompt[0]
    elif isinstance(prompt, list) and prompt and isinstance(prompt[0], Part):
        prompt = prompt[0].text
    if isinstance(prompt, str):
        return prompt[:_HEAD_CHARACTERS]
    return ",".join(map(str, prompt[:_HEAD_IDS]))


def decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """A body as the decoder's type. Raises ApiError."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise ApiError(400, f"the request body is not as it should be: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, f"the request body is not JSON: {error}") from error


class Script:
    """The bytes of one API's answers. `fresh` and `last` hold, for each piece of the passage, what stands before and
    after a response's `stem` in a token's event: `fresh` for every token but the last.
    """

    def __init__(self, model: str, api: str) -> None:
        self.chat = chat = api == "chat"
        self._model = model
        self._model_json = msgspec.json.encode(model)
        self._prefix = "chatcmpl-" if chat else "cmpl-"
        stem = len(self.stem("0" * 32, 1_000_000_000))
        self.fresh = [self._around(piece, b"null", stem) for piece in PIECES]
        self.last = [self._around(piece, b'"length"', stem) for piece in PIECES]

    def ident(self, number: str) -> str:
        """A response's `id` from 32 hexadecimal digits."""
        return self._prefix + number

    def stem(self, number: str, created: int) -> bytes:
        """What every event of one response has in common; of one length for all responses of a script."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return b'%b%b","object":"%b","created":%010d,"model":%b,"choices":[' % (
            self._prefix.encode(),
            number.encode(),
            kind.encode(),
            created,
            self._model_json,
        )

    def _around(self, piece: str, finish: bytes, stem: int) -> tuple[bytes, bytes]:
        key = b'"delta":{"content":%b}' if self.chat else b'"text":%b'
        before = b'data: {"id":"'
        after = b'{"index":0,%b,"logprobs":null,"finish_reason":%b}]}\n\n' % (
            key % msgspec.json.encode(piece),
            finish,
        )
        return b"%x\r\n%b" % (len(before) + stem + len(after), before), after + b"\r\n"

    def event(self, stem: bytes, words: str, finish: str | None) -> bytes:
        """One event with any text."""
        before, after = self._around(words, msgspec.json.encode(finish), len(stem))
        return before + stem + after

    def role(self, stem: bytes) -> bytes:
        """A chat's first event: the role and empty content."""
        return chunk(
            b'data: {"id":"%b{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,'
            b'"finish_reason":null}]}\n\n' % stem
        )

    def closing(self, stem: bytes, counts: JsonObject | None) -> bytes:
        """Everything after the last token: the usage event if there are `counts`, the terminator, the end of the body."""
        told = b""
        if counts is not None:
            told = chunk(b'data: {"id":"%b],"usage":%b}\n\n' % (stem, msgspec.json.encode(counts)))
        return told + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"

    def body(self, number: str, created: int, words: str, finish: str, counts: JsonObject) -> bytes:
        """The body of an answer that is not streamed."""
        said: JsonObject = (
            {"message": {"role": "assistant", "content": words}} if self.chat else {"text": words}
        )
        return msgspec.json.encode(
            {
                "id": self.ident(number),
                "object": "chat.completion" if self.chat else "text_completion",
                "created": created,
                "model": self._model,
                "choices": [{"index": 0, **said, "logprobs": None, "finish_reason": finish}],
                "usage": counts,
            }
        )


def usage(ask: Ask, tokens: int, cached: int) -> JsonObject:
    """The `usage` object of an answer of so many tokens. Reasoning tokens are told where there are any."""
    thought = min(ask.parts.reasoning, tokens)
    details = {"completion_tokens_details": {"reasoning_tokens": thought}} if thought else {}
    return {
        "prompt_tokens": ask.prompt_tokens,
        "completion_tokens": tokens,
        "total_tokens": ask.prompt_tokens + tokens,
        "prompt_tokens_details": {"cached_tokens": cached},
        **details,
    }
