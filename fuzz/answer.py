"""Answers in every dialect of HTTP/1.1, from the bytes of a body to an outcome.

The first byte of the input chooses the dialect, and whether the body is a stream or a whole answer; the rest is the body. No
body raises, and every one ends as one outcome, with texts that can be written down.
"""

from __future__ import annotations

from fuzz.pieces import same_however_cut
from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import Http1Channel
from inferometer.engines.dialect import load
from inferometer.engines.interface import INTERFACES, Framing
from inferometer.journal.schema import EventClass, Outcome

NAMES = tuple(name for name, one in INTERFACES.items() if one.framing in (Framing.SSE, Framing.NDJSON))
DIALECTS = {name: load(name) for name in NAMES}
TEXTS = {int(EventClass.CONTENT), int(EventClass.REASONING), int(EventClass.TOOL_CALL)}
STATUSES = (200, 200, 200, 400)


def check(data: bytes) -> None:
    """Read a body as the answer to a request."""
    if not data:
        return
    choice, body = data[0], data[1:]
    choice, which = divmod(choice, len(NAMES))
    choice, whole = divmod(choice, 2)
    name, status = NAMES[which], STATUSES[choice % len(STATUSES)]
    stream = "application/x-ndjson" if INTERFACES[name].framing is Framing.NDJSON else "text/event-stream"
    kind = "application/json" if whole else stream
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    same_however_cut(body, lambda pieces: read(name, [head, *pieces]))


def read(name: str, pieces: list[bytes]) -> tuple[object, ...]:
    """All of an exchange but its times."""
    channel, exchange = Http1Channel(), Exchange(0, 0, 0, b"", b"", 0, DIALECTS[name])
    channel.opened()
    channel.submit(exchange)
    exchange.t_submit = 1
    for at, piece in enumerate(pieces, 2):
        if not channel.ended:
            channel.feed(piece, at, 0)
    channel.close()
    answer = exchange.answer
    assert channel.ended == [exchange]
    assert Outcome(exchange.outcome)
    texts = sum(kind in TEXTS for kind in answer.event_class)
    assert len(answer.texts) == texts
    assert len(answer.event_ns) == len(answer.event_class)
    assert answer.first_text <= answer.first_visible <= answer.first_answer or answer.first_answer < 0
    counts = (answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.reasoning_tokens)
    assert all(count is None or 0 <= count < 1 << 31 for count in counts)
    words = ("".join(answer.texts), answer.reply(), exchange.detail, answer.finish_reason)
    for word in words:
        (word or "").encode()  # a record is UTF-8
    return exchange.outcome, *words, bytes(answer.event_class), counts
