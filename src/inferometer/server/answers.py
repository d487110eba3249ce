"""Generations under way: what each token does to its connection, streamed or whole."""

from __future__ import annotations

from array import array

from inferometer.server.connection import Connection
from inferometer.server.engine.emission import LENGTH
from inferometer.server.filler_text import PIECES, text
from inferometer.server.http_reply import JsonObject, Reply, stream_head
from inferometer.server.openai import Ask, Script, usage
from inferometer.server.truth_log import Entry

_SIZE = len(PIECES)
REASONS = (None, "length", "content_filter")  # by how a request stands (engine/emission.py)


class Each:
    """Stamps for several tokens that leave together."""

    __slots__ = ("_stamps", "count")

    def __init__(self, stamps: array[int], count: int) -> None:
        self._stamps = stamps
        self.count = count

    def append(self, at: int, /) -> None:
        """They have gone at `at`."""
        self._stamps.extend([at] * self.count)


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

    def put(self, count: int, end: int, at: int) -> None:
        """The model put out `count` more tokens at `at` (ns); how it stands then (engine/emission.py)."""
        raise NotImplementedError

    def counts(self) -> JsonObject:
        """Its `usage`."""
        return usage(self.ask, len(self.entry.model_ns), self.entry.cached_tokens)

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
    """One event for what comes out together, each sent by itself."""

    __slots__ = ("_place", "_stem")

    def open(self) -> None:
        """Send the head at once, as servers do: the first byte is not the first token."""
        self._stem = self.script.stem(self.number, self.created)
        self._place = self.start
        self.connection.send(stream_head(self.keep_alive))

    def put(self, count: int, end: int, at: int) -> None:
        """One event; before the first of a chat, the role; after the last, the end."""
        entry = self.entry
        stem = self._stem
        place = self._place
        if not entry.model_ns and self.script.chat:
            self.connection.post(self.script.role(stem), entry.opened)
        if count == 1 and end <= LENGTH:
            entry.model_ns.append(at)
            before, after = (self.script.last if end else self.script.fresh)[place]
            self.connection.post(before + stem + after, entry.sent_ns)
            self._place = place + 1 if place + 1 < _SIZE else 0
        else:
            entry.model_ns.extend([at] * count)
            event = self.script.event(stem, text(place, count), REASONS[end])
            self.connection.post(event, Each(entry.sent_ns, count))
            self._place = (place + count) % _SIZE
        if end:
            counts = self.counts() if self.ask.usage else None
            self.connection.post(self.script.closing(stem, counts), entry.ended)
            self.done = True


class Unstreamed(Scripted):
    """One JSON body after the last token."""

    __slots__ = ()

    def put(self, count: int, end: int, at: int) -> None:
        """Nothing leaves before the last."""
        self.entry.model_ns.extend([at] * count)
        if end:
            words = text(self.start, len(self.entry.model_ns))
            body = self.script.body(self.number, self.created, words, REASONS[end] or "", self.counts())
            self.connection.post(Reply(200, body).encode(self.keep_alive), self.entry.ended)
            self.done = True

    def settle(self) -> None:
        """All tokens left together."""
        self.entry.sent_ns = array("q", self.entry.ended) * len(self.entry.model_ns)
