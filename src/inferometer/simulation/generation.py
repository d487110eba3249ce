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

Counts and whole answers go through the server's writer and the client's reader, so both say what they say over a wire. A
stream's tokens do not, for they are a million: a test holds them to the bytes.
"""

from __future__ import annotations

from array import array

import msgspec

from inferometer.drive.exchange import Exchange
from inferometer.journal.schema import EventClass
from inferometer.server.answers import REASONS
from inferometer.server.engine.emission import GOES_ON, REFUSED
from inferometer.server.filler_text import text
from inferometer.server.openai import Ask, Script, usage

_CONTENT = int(EventClass.CONTENT)
_ROLE = int(EventClass.ROLE)
_NUMBER = "0" * 32  # of a response's id, which no record keeps


class Generation:
    """One request inside the engine, which knows it by this object.

    `times`: the instant (ns) of each event, as they come; `first`: tokens of the first; `tokens`: of all. `cached`: prompt
    tokens from the prefix cache. `end`: how it stands (server/engine/emission.py). `start`: where in the passage its text
    begins.
    """

    __slots__ = ("ask", "cached", "end", "ended", "exchange", "first", "start", "times", "tokens")

    def __init__(self, exchange: Exchange, ask: Ask, start: int) -> None:
        self.exchange = exchange
        self.ask = ask
        self.start = start
        self.times = array("q")
        self.first = self.tokens = self.cached = 0
        self.end = GOES_ON
        self.ended = False

    def put(self, count: int, end: int, at: int) -> None:
        """The model put out `count` more tokens at `at`, which leave in one event."""
        if not self.tokens:
            self.first = count
        self.tokens += count
        self.end = end
        self.times.append(at)

    def finish(self, script: Script, at: int) -> int:
        """Write into the exchange what had been said by `at`, its end; gives the number of events with text."""
        self.ended = True
        exchange, ask, times = self.exchange, self.ask, self.times
        exchange.t_end = at
        dialect, whole = exchange.dialect, self.end != GOES_ON
        if not ask.stream:
            if whole:
                exchange.status, exchange.t_first_byte = 200, at
                words, counts = text(self.start, self.tokens), usage(ask, self.tokens, self.cached)
                body = script.whole(_NUMBER, 0, words, REASONS[self.end] or "", counts)
                dialect.read_whole(exchange.answer, body, at)
            return int(whole)
        exchange.status, exchange.t_first_byte = 200, exchange.t_submit
        if times:
            self._tokens(script.chat)
        if whole:
            answer = exchange.answer
            answer.finish_reason = REASONS[self.end]
            answer.refused = self.end == REFUSED
            if ask.usage:
                counts = usage(ask, self.tokens, self.cached)
                dialect.read_event(answer, msgspec.json.encode({"choices": [], "usage": counts}), at)
            dialect.read_event(answer, b"[DONE]", at)
        return len(times)

    def _tokens(self, chat: bool) -> None:
        answer, times = self.exchange.answer, self.times
        if chat:
            answer.mark(_ROLE, times[0])
        # Every piece of the passage can be seen, so the first token is the first of every kind.
        answer.text(_CONTENT, text(self.start, self.first), times[0])
        answer.event_ns.extend(times[1:])
        answer.event_class.extend(bytes((_CONTENT,)) * (len(times) - 1))
        answer.texts.append(text(self.start + self.first, self.tokens - self.first))
