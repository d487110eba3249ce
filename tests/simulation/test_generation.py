"""What the simulation writes down of an answer is what a client reads of the server's bytes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import Http1Channel
from inferometer.engines.dialect import load
from inferometer.server.connection import Connection, Outbox
from inferometer.server.dialects import APIS, Dialects
from inferometer.server.engine.emission import GOES_ON, LENGTH, REFUSED
from inferometer.server.openai import Ask
from inferometer.server.truth_log import Entry
from inferometer.simulation.generation import opener

SENT = 1_000


class Wire:
    """A socket that keeps what is sent."""

    arrived_ns: int | None = None

    def __init__(self) -> None:
        self.data = bytearray()

    def fileno(self) -> int:
        """There is no descriptor."""
        return -1

    def recv(self, size: int, /) -> bytes:
        """Nothing comes."""
        raise BlockingIOError(size)

    def send(self, data: bytes | memoryview, /) -> int:
        """All is taken at once."""
        self.data += data
        return len(data)

    def shutdown(self, how: int, /) -> None:
        """Nothing to shut."""

    def close(self) -> None:
        """Nothing to close."""


Puts = list[tuple[int, int, int]]
"""Tokens, how the request stands then, instant."""


def over_the_wire(ask: Ask, puts: Puts, start: int, cached: int) -> Exchange:
    """The server's writer and the client's decoders, with each piece of bytes stamped by the token it came with."""
    outbox, wire = Outbox(), Wire()
    entry = Entry("id", None, ask.api, ask.stream, ask.prompt_tokens, ask.max_tokens, SENT)
    answer = Dialects("m", stamped=False).answer(
        Connection(wire, 1, outbox),
        ask,
        entry,
        number="a" * 32,
        wall_offset_ns=1_700_000_000 * 10**9,
        start=start,
        keep_alive=True,
    )
    exchange, channel = Exchange(0, 0, SENT, b"", b"", 10**12, load(ask.api)), Http1Channel()
    channel.opened()
    channel.submit(exchange)
    exchange.t_taken = exchange.t_send = exchange.t_submit = SENT

    def read(at: int) -> None:
        data = bytes(wire.data)
        wire.data.clear()
        if data:
            channel.feed(data, at, 0)

    answer.open()
    read(SENT)
    entry.cached_tokens = cached
    for count, end, at in puts:
        answer.put(count, end, at)
        outbox.send()
        read(at)
    return exchange


def in_virtual_time(ask: Ask, puts: Puts, start: int, cached: int) -> Exchange:
    """The same answer as the simulation writes it down."""
    exchange = Exchange(0, 0, SENT, b"", b"", 10**12, load(ask.api))
    exchange.t_taken = exchange.t_send = exchange.t_submit = SENT
    generation = opener("m", ask.api)(exchange, ask, start)
    generation.cached = cached
    for put in puts:
        generation.put(*put)
    generation.finish(puts[-1][2])
    exchange.conclude()
    return exchange


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("usage", [True, False])
@pytest.mark.parametrize(("tokens", "start"), [(1, 0), (2, 23), (300, 61)])
def test_the_record_is_what_the_bytes_would_have_left(
    api: str, stream: bool, usage: bool, tokens: int, start: int
) -> None:
    """Every field that reaches the record is the same: events, classes, text, counts, reasons, instants, outcome."""
    ask = Ask(api, stream, usage, 17, tokens)
    puts = [(1, LENGTH if i == tokens else GOES_ON, SENT + 10 * i) for i in range(1, tokens + 1)]
    same_record(ask, puts, start, 0)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "counts",
    [[(3, LENGTH)], [(1, GOES_ON), (4, LENGTH)], [(2, GOES_ON), (1, GOES_ON), (3, LENGTH)], [(5, REFUSED)]],
)
def test_tokens_of_one_instant_cached_prompts_and_refusals_are_recorded_alike(
    api: str, stream: bool, counts: list[tuple[int, int]]
) -> None:
    """Several tokens in an event, cached tokens in the counts, and the reason of a guardrail."""
    ask = Ask(api, stream, True, 40, 9)
    same_record(ask, [(count, end, SENT + 10 * i) for i, (count, end) in enumerate(counts, 1)], 23, 16)


def same_record(ask: Ask, puts: Puts, start: int, cached: int) -> None:
    seen, simulated = over_the_wire(ask, puts, start, cached), in_virtual_time(ask, puts, start, cached)
    for name in ("status", "outcome", "detail", "t_first_byte", "t_end", "attempts"):
        assert getattr(simulated, name) == getattr(seen, name), name
    for name in type(seen.answer).__slots__:
        if name not in (
            "texts",
            "emitted_ns",
            "model",
            "source",
        ):  # in virtual time nothing has a name of the server's
            assert getattr(simulated.answer, name) == getattr(seen.answer, name), name
    assert np.array_equal(np.diff(simulated.answer.stamps), np.diff(seen.answer.stamps))  # of another clock
    assert "".join(simulated.answer.texts) == "".join(seen.answer.texts)


def test_an_answer_cut_off_keeps_what_had_come() -> None:
    """No counts, no reason, no end; a whole answer leaves nothing."""
    # A chat's role; what opens a response, its item and its part, and its message, block and ping; the start of a WebSocket's.
    before = {"chat": 1, "responses": 4, "anthropic": 3, "websocket": 1, "realtime": 3}
    for api, stream in product(APIS, (True, False)):
        events = 3 + before.get(api, 0) if stream else 0
        exchange = Exchange(0, 0, SENT, b"", b"", 10**12, load(api))
        exchange.t_submit = SENT
        generation = opener("m", api)(exchange, Ask(api, stream, True, 17, 9), 0)
        for at in (1, 2, 3):
            generation.put(1, GOES_ON, SENT + at)
        generation.finish(SENT + 50)
        assert len(exchange.answer.event_ns) == len(exchange.answer.event_class) == events, api
        assert (exchange.answer.finish_reason, exchange.answer.done) == (None, False)
        assert exchange.t_end == SENT + 50
