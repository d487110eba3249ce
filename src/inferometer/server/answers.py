"""Generations under way: what each token does to its connection, streamed or whole."""

from __future__ import annotations

from array import array

from inferometer.server.connection import Connection
from inferometer.server.openai import Ask, Script
from inferometer.server.truth import Entry
from inferometer.server.wire import Reply, stream_head
from inferometer.server.words import PIECES

_SIZE = len(PIECES)


class Answer:
    """One generation on its connection; the engine knows it by this object."""

    __slots__ = ("ask", "connection", "done", "emitted_ns", "entry", "keep_alive", "load_ns")

    def __init__(self, connection: Connection, ask: Ask, entry: Entry, *, keep_alive: bool) -> None:
        self.connection = connection
        self.ask = ask
        self.entry = entry
        self.keep_alive = keep_alive
        self.load_ns = 0
        """How long it waited for the model to be loaded."""
        self.emitted_ns = entry.received_ns
        """When the engine put out its latest token, as the metrics see it."""
        self.done = False
        """All its bytes are with the connection."""

    def open(self) -> None:
        """The request is accepted."""

    def token(self, last: bool, at: int) -> None:
        """The model put out one more token at `at` (ns)."""
        raise NotImplementedError

    def settle(self) -> None:
        """All its bytes are with the kernel: complete the entry."""


class Scripted(Answer):
    """A chat or a completion of text alone, in bytes prepared in advance.

    `number`: 32 hexadecimal digits of its id. `created`: its wall-clock second. `start`: where in the passage its text begins.
    """

    __slots__ = ("created", "number", "script", "start")

    def __init__(
        self,
        connection: Connection,
        script: Script,
        ask: Ask,
        entry: Entry,
        *,
        number: str,
        created: int,
        start: int,
        keep_alive: bool,
    ) -> None:
        super().__init__(connection, ask, entry, keep_alive=keep_alive)
        self.script = script
        self.number = number
        self.created = created
        self.start = start % _SIZE


class Streamed(Scripted):
    """One event a token, each sent by itself."""

    __slots__ = ("_place", "_stem")

    def open(self) -> None:
        """Send the head at once, as servers do: the first byte is not the first token."""
        self._stem = self.script.stem(self.number, self.created)
        self._place = self.start
        self.connection.send(stream_head(self.keep_alive))

    def token(self, last: bool, at: int) -> None:
        """One event; before the first of a chat, the role; after the last, the end."""
        entry = self.entry
        stem = self._stem
        place = self._place
        if not entry.model_ns and self.script.chat:
            self.connection.send(self.script.role(stem), entry.opened)
        entry.model_ns.append(at)
        before, after = (self.script.last if last else self.script.fresh)[place]
        self.connection.send(before + stem + after, entry.sent_ns)
        self._place = place + 1 if place + 1 < _SIZE else 0
        if last:
            self.connection.send(self.script.closing(stem, self.ask), entry.ended)
            self.done = True


class Whole(Scripted):
    """One JSON body after the last token."""

    __slots__ = ()

    def token(self, last: bool, at: int) -> None:
        """Nothing leaves before the last."""
        self.entry.model_ns.append(at)
        if last:
            body = self.script.whole(self.number, self.created, self.ask, self.start)
            self.connection.send(Reply(200, body).encode(self.keep_alive), self.entry.ended)
            self.done = True

    def settle(self) -> None:
        """All tokens left together."""
        self.entry.sent_ns = array("q", self.entry.ended) * len(self.entry.model_ns)
