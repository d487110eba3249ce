"""Every interface that generates, and who words its answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from inferometer.server import anthropic, realtime, vllm_grpc, websocket_messages
from inferometer.server.answer_parts import Passage
from inferometer.server.answers import Answer, Streamed, Unstreamed
from inferometer.server.connection import Connection
from inferometer.server.event_writer import Telling, Voice
from inferometer.server.ollama import CHAT, GENERATE, Lines, OllamaReader, loaded_body
from inferometer.server.openai import SCRIPTED, Ask, Reader, Script, Tokenizer
from inferometer.server.openai_events import Chat, Completion
from inferometer.server.responses import Response, ResponsesReader
from inferometer.server.systems.chat import TaskAsk, TaskChat, task_answer
from inferometer.server.truth_log import Entry
from inferometer.server.voiced_answers import Loading, Spoken, SpokenUnstreamed

_VOICES: dict[str, type[Voice]] = {
    "chat": Chat,
    "completions": Completion,
    "responses": Response,
    anthropic.API: anthropic.Messages,
    GENERATE: Lines,
    CHAT: Lines,
    vllm_grpc.API: vllm_grpc.Messages,
    websocket_messages.API: websocket_messages.Messages,
    realtime.API: realtime.Events,
}


def _arrival(entry: Entry) -> int:
    """When the request was there, for the engine as for an answer's durations: read late, it may have tokens before that."""
    return entry.received_ns if entry.arrived_ns is None else min(entry.arrived_ns, entry.received_ns)


_PREFIXES = {
    "chat": "chatcmpl-",
    "completions": "cmpl-",
    "responses": "resp_",
    anthropic.API: "msg_",
    websocket_messages.API: "ws-",
    realtime.API: "resp_",
}

APIS = tuple(_VOICES)
"""The interfaces, as an Ask and the truth log name them."""


_READS: dict[str, Callable[[Any, bytes], Ask]] = {
    "chat": Reader.chat,
    "completions": Reader.completion,
    "responses": ResponsesReader.responses,
    anthropic.API: anthropic.AnthropicReader.messages,
    GENERATE: OllamaReader.generate,
    CHAT: OllamaReader.converse,
    vllm_grpc.API: vllm_grpc.VllmReader.generate,
    websocket_messages.API: websocket_messages.WebSocketReader.message,
    realtime.API: realtime.RealtimeReader.created,
}
_READERS: dict[str, type[Reader]] = {
    "responses": ResponsesReader,
    anthropic.API: anthropic.AnthropicReader,
    GENERATE: OllamaReader,
    CHAT: OllamaReader,
    vllm_grpc.API: vllm_grpc.VllmReader,
    websocket_messages.API: websocket_messages.WebSocketReader,
    realtime.API: realtime.RealtimeReader,
}


def reader(
    api: str, model: str, max_model_len: int, tokenizer: Tokenizer, block_tokens: int = 0
) -> Callable[[bytes], Ask]:
    """Reads the bodies of one interface for one served model; see Reader."""
    made = _READERS.get(api, Reader)(model, max_model_len, tokenizer, block_tokens=block_tokens)
    return partial(_READS[api], made)


class Dialects:
    """Makes the answers of one server. `stamped`: each token's event says when it was put out (event_writer.py)."""

    def __init__(self, model: str, *, stamped: bool) -> None:
        self._model = model
        self._stamped = stamped
        self._scripts = {api: Script(model, api) for api in SCRIPTED}

    def ident(self, api: str, number: str) -> str:
        """An answer's id from 32 hexadecimal digits. (Ollama's and gRPC's carry none: there it is the log's alone.)"""
        return _PREFIXES.get(api, "") + number

    def voice(self, ask: Ask, number: str, received_ns: int, wall_offset_ns: int, start: int) -> Voice:
        """What words the answer to `ask`; see `answer`."""
        telling = self._telling(ask, number, received_ns, wall_offset_ns, start)
        return TaskChat(telling, ask.task) if isinstance(ask, TaskAsk) else _VOICES[ask.api](telling)

    def _telling(self, ask: Ask, number: str, received_ns: int, wall_offset_ns: int, start: int) -> Telling:
        passage = Passage(ask.parts, start, ask.max_tokens)
        return Telling(self._model, ask, passage, number, received_ns, wall_offset_ns, self._stamped)

    def answer(
        self,
        connection: Connection,
        ask: Ask,
        entry: Entry,
        *,
        number: str,
        wall_offset_ns: int,
        start: int,
        keep_alive: bool,
    ) -> Answer:
        """The answer to `ask`. `wall_offset_ns`: what the wall clock is ahead; `start`: where in the passage it begins."""
        if not ask.max_tokens:
            body = loaded_body(ask, entry.received_ns + wall_offset_ns)
            return Loading(connection, body, ask, entry, keep_alive=keep_alive)
        telling = self._telling(ask, number, _arrival(entry), wall_offset_ns, start)
        if isinstance(ask, TaskAsk):
            return task_answer(connection, telling, ask, entry, keep_alive=keep_alive)
        script = self._scripts.get(ask.api)
        if script is None or ask.parts or (self._stamped and ask.stream):
            made = Spoken if ask.stream else SpokenUnstreamed
            return made(connection, _VOICES[ask.api](telling), ask, entry, keep_alive=keep_alive)
        return (Streamed if ask.stream else Unstreamed)(
            connection,
            script,
            ask,
            entry,
            number=number,
            created=telling.created,
            start=start,
            keep_alive=keep_alive,
        )
