"""What a client would have read of one generation, had the server's bytes crossed a wire that takes no time.

| the server sends                    | when                         | the record has                             |
| ----------------------------------- | ---------------------------- | ------------------------------------------ |
| the head of a stream                | the request arrives          | `t_first_byte`                             |
| a chat's role                       | just before the first token  | an event `role`                            |
| each token, or those put out at     | the model puts them out      | an event `content`                         |
| one instant; the last with `length` |                              |                                            |
| the counts, if they were asked for  | just after the last token    | an event `usage`                           |
| `[DONE]`                            | just after that              | an event `done`                            |
| a whole answer                      | after the last token         | one event `content`, head and end with it  |

That is a chat or a completion (`Scripted`). Counts and whole answers go through the server's writer and the client's reader, so
both say what they say over a wire. A stream's tokens do not, for they are a million: a test holds them to the bytes.

In every other interface (`Voiced`) all of a stream goes through writer and reader, which takes longer.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial

import msgspec

from inferometer.drive.exchange import DECODERS, Exchange
from inferometer.journal.schema import EventClass
from inferometer.server.answers import REASONS
from inferometer.server.dialects import Dialects
from inferometer.server.engine.emission import GOES_ON, REFUSED
from inferometer.server.event_writer import Voice
from inferometer.server.filler_text import text
from inferometer.server.openai import SCRIPTED, Ask, Script, usage

_CONTENT = int(EventClass.CONTENT)
_TEXTS = frozenset({_CONTENT, int(EventClass.REASONING), int(EventClass.TOOL_CALL)})
_ROLE = int(EventClass.ROLE)
_NUMBER = "0" * 32  # of a response's id, which no record keeps


class Generation:
    """One request inside the engine, which knows it by this object.

    `times`: the instant (ns) of each event, as they come; `first`: tokens of the first; `tokens`: of all. `cached`: prompt
    tokens from the prefix cache. `prefill_ns`: the time that computing the prompt took. `end`: how it stands
    (server/engine/emission.py). `merged`: of each read that found tokens of several instants, the events with text before it
    and how long the first may have waited (ns).
    """

    __slots__ = (
        "ask",
        "cached",
        "end",
        "ended",
        "exchange",
        "first",
        "merged",
        "prefill_ns",
        "times",
        "tokens",
    )

    def __init__(self, exchange: Exchange, ask: Ask) -> None:
        self.exchange = exchange
        self.ask = ask
        self.times = array("q")
        self.first = self.tokens = self.cached = 0
        self.prefill_ns: int | None = None
        self.end = GOES_ON
        self.ended = False
        self.merged: list[tuple[int, int]] = []

    @property
    def text_events(self) -> int:
        """Events with text so far."""
        return len(self.times)

    def put(self, count: int, end: int, at: int) -> None:
        """The model put out `count` more tokens at `at`, which leave together."""
        if not self.tokens:
            self.first = count
        self.tokens += count
        self.end = end
        self.times.append(at)

    def finish(self, at: int) -> int:
        """Write into the exchange what had been sent by `at`, its end; gives the number of events with text."""
        self.ended = True
        exchange, whole = self.exchange, self.end != GOES_ON
        exchange.t_end = at
        if self.ask.stream:
            exchange.status, exchange.t_first_byte = 200, exchange.t_submit
            events = self._stream(at, ended=whole)
            if self.merged:
                self._write_merged()
            return events
        if whole:
            exchange.status, exchange.t_first_byte = 200, at
            exchange.dialect.read_whole(exchange.answer, self._body(), at)
        return int(whole)

    def _write_merged(self) -> None:
        """The reads that merged tokens, by their first event: all events of a read have its stamp."""
        answer = self.exchange.answer
        places = [at for at, kind in enumerate(answer.event_class) if kind in _TEXTS]
        for before, waited in self.merged:
            if before >= len(places):  # an interface may hold back a token's text to the end
                continue
            first = places[before]
            while first and answer.event_ns[first - 1] == answer.event_ns[first]:
                first -= 1
            self.exchange.merged += (first, waited)

    def _stream(self, at: int, *, ended: bool) -> int:
        """Read what a stream has brought by `at`."""
        raise NotImplementedError

    def _body(self) -> bytes:
        """The body of an answer that is not streamed."""
        raise NotImplementedError


Open = Callable[[Exchange, Ask, int], Generation]
"""Begins the generation that an exchange asks for; its text begins at this piece of the passage."""


def opener(model: str, api: str) -> Open:
    """Begins the generations of a served model over one interface."""
    if api in SCRIPTED:
        return partial(Scripted, Script(model, api))
    return partial(Voiced, Dialects(model, stamped=False))


class Scripted(Generation):
    """A chat or a completion of text alone."""

    __slots__ = ("_script", "_start")

    def __init__(self, script: Script, exchange: Exchange, ask: Ask, start: int) -> None:
        super().__init__(exchange, ask)
        self._script, self._start = script, start

    def _body(self) -> bytes:
        words, counts = text(self._start, self.tokens), usage(self.ask, self.tokens, self.cached)
        return self._script.body(_NUMBER, 0, words, REASONS[self.end] or "", counts)

    def _stream(self, at: int, *, ended: bool) -> int:
        answer, read_event = self.exchange.answer, self.exchange.dialect.read_event
        if self.times:
            self._tokens()
        if ended:
            answer.finish_reason = REASONS[self.end]
            answer.refused = self.end == REFUSED
            if self.ask.usage:
                counts = usage(self.ask, self.tokens, self.cached)
                read_event(answer, msgspec.json.encode({"choices": [], "usage": counts}), at)
            read_event(answer, b"[DONE]", at)
        return len(self.times)

    def _tokens(self) -> None:
        answer, times = self.exchange.answer, self.times
        if self._script.chat:
            answer.mark(_ROLE, times[0])
        # Every piece of the passage can be seen, so the first token is the first of every kind.
        answer.text(_CONTENT, text(self._start, self.first), times[0])
        answer.event_ns.extend(times[1:])
        answer.event_class.extend(bytes((_CONTENT,)) * (len(times) - 1))
        answer.texts.append(text(self._start + self.first, self.tokens - self.first))


class Voiced(Generation):
    """An answer in any other interface, in the words of the reference server. `counts`: tokens of each event."""

    __slots__ = ("_voice", "counts")

    def __init__(self, dialects: Dialects, exchange: Exchange, ask: Ask, start: int) -> None:
        super().__init__(exchange, ask)
        self._voice: Voice = dialects.voice(ask, _NUMBER, exchange.t_submit, 0, start)
        self.counts = array("q")

    @property
    def text_events(self) -> int:
        """See Generation: each token is an event."""
        return self.tokens

    def put(self, count: int, end: int, at: int) -> None:
        """See Generation."""
        super().put(count, end, at)
        self.counts.append(count)

    @property
    def _instants(self) -> list[int]:
        """When each token was put out."""
        pairs = zip(self.times, self.counts, strict=True)
        return [at for at, count in pairs for _ in range(count)]

    def _body(self) -> bytes:
        if self.end == REFUSED:
            self._voice.refuse(self.counts[-1])
        self._voice.cached, self._voice.prefill_ns = self.cached, self.prefill_ns
        return self._voice.body(self._instants, 0)

    def _stream(self, at: int, *, ended: bool) -> int:
        exchange, voice = self.exchange, self._voice
        decoder = DECODERS[exchange.dialect.interface.framing]()

        def read(data: bytes, at: int) -> None:
            for payload in decoder.feed(data):
                if payload is not None:
                    exchange.dialect.read_event(exchange.answer, payload, at)

        read(voice.opening(), exchange.t_submit)
        index, last = 0, len(self.times) - 1
        for number, (instant, count) in enumerate(zip(self.times, self.counts, strict=True)):
            if number == last and self.end == REFUSED:
                voice.refuse(count)
            if not index:
                read(voice.lead(), instant)
            for _ in range(count):
                read(voice.token(index, instant), instant)
                index += 1
        if ended:
            voice.cached, voice.prefill_ns = self.cached, self.prefill_ns
            read(voice.closing(self._instants, 0), at)
        return len(exchange.answer.texts)
