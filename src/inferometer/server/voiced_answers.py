"""Answers worded by a voice, streamed or whole; and the one that says only that the model is there."""

from __future__ import annotations

from array import array

from inferometer.server.answers import Answer
from inferometer.server.connection import Connection
from inferometer.server.engine.emission import REFUSED
from inferometer.server.event_writer import Voice
from inferometer.server.http_reply import Reply, chunk, last_chunk, stream_head
from inferometer.server.openai import Ask
from inferometer.server.truth_log import Entry


class Voiced(Answer):
    """An answer that has a voice."""

    __slots__ = ("_voice",)

    def __init__(
        self, connection: Connection, voice: Voice, ask: Ask, entry: Entry, *, keep_alive: bool
    ) -> None:
        super().__init__(connection, ask, entry, keep_alive=keep_alive)
        self._voice = voice


class Spoken(Voiced):
    """One event a token, put together as it comes. A token that the dialect holds back leaves with a later one."""

    __slots__ = ()

    def open(self) -> None:
        """The head, and what the dialect says before anything is generated."""
        self.connection.send(stream_head(self.keep_alive, self._voice.content_type))
        if opening := self._voice.opening():
            self.connection.send(chunk(opening), self.entry.opened)

    def put(self, count: int, end: int, at: int) -> None:
        """What the voice makes of each; after the last, the end."""
        entry, voice = self.entry, self._voice
        if end == REFUSED:
            voice.refuse(count)
        if not entry.model_ns and (lead := voice.lead()):
            self.connection.post(chunk(lead), entry.opened)
        for _ in range(count):
            index = len(entry.model_ns)
            entry.model_ns.append(at)
            if event := voice.token(index, at):
                self.connection.post(chunk(event), entry.sent_ns)
        if end:
            voice.cached, voice.prefill_ns = entry.cached_tokens, entry.prefill_ns
            closing = voice.closing(entry.model_ns, self.load_ns)
            self.connection.post(chunk(closing) + last_chunk(voice.trailers), entry.ended)
            self.done = True

    def settle(self) -> None:
        """Tokens that were held back left with the last event."""
        entry = self.entry
        held = len(entry.model_ns) - len(entry.sent_ns)
        if held:
            entry.sent_ns.extend([entry.sent_ns[-1] if entry.sent_ns else entry.ended[0]] * held)


class SpokenUnstreamed(Voiced):
    """One JSON body after the last token."""

    __slots__ = ()

    def put(self, count: int, end: int, at: int) -> None:
        """Nothing leaves before the last."""
        self.entry.model_ns.extend([at] * count)
        if end:
            voice = self._voice
            if end == REFUSED:
                voice.refuse(count)
            voice.cached, voice.prefill_ns = self.entry.cached_tokens, self.entry.prefill_ns
            body = voice.body(self.entry.model_ns, self.load_ns)
            reply = Reply(200, body, voice.body_type, trailers=voice.trailers)
            self.connection.post(reply.encode(self.keep_alive), self.entry.ended)
            self.done = True

    def settle(self) -> None:
        """All tokens left together."""
        self.entry.sent_ns = array("q", self.entry.ended) * len(self.entry.model_ns)


class Loading(Answer):
    """A model asked for without a prompt: one body once it is there. Generates nothing, and is in no log."""

    __slots__ = ("_body",)

    def __init__(
        self, connection: Connection, body: bytes, ask: Ask, entry: Entry, *, keep_alive: bool
    ) -> None:
        super().__init__(connection, ask, entry, keep_alive=keep_alive)
        self._body = body

    def loaded(self) -> None:
        """The model is there."""
        self.connection.send(Reply(200, self._body).encode(self.keep_alive), self.entry.ended)
        self.done = True
