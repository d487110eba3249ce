"""The server's own instants of its tokens (draft 4.6.3, option C), as each dialect reads them."""

from __future__ import annotations

import re

import pytest
from wording import OF_JSON

from inferometer.drive.exchange import DECODERS, Exchange
from inferometer.engines.dialect import load
from inferometer.engines.interface import INTERFACES, Framing
from inferometer.engines.ollama import instant_ns
from inferometer.server.answer_parts import Parts
from inferometer.server.dialects import Dialects
from inferometer.server.openai import Ask

TOKENS = 12
EMITTED = [7_000_000 + 1_003 * index * index for index in range(TOKENS)]
"""By the server's clock, uneven to the nanosecond."""
ARRIVED = 50_000_000
"""When a proxy delivers all of it."""


def read(
    api: str, *, stamped: bool = True, without: int | None = None, parts: Parts | None = None
) -> Exchange:
    """An answer of the reference server that arrives at once; `without`: the token whose event loses its stamps."""
    ask = Ask(api, True, True, 17, TOKENS) if parts is None else Ask(api, True, True, 17, TOKENS, parts=parts)
    voice = Dialects("m", stamped=stamped).voice(ask, "0" * 32, 0, 1_700_000_000 * 10**9, 3)
    exchange = Exchange(0, 0, 0, b"", b"", 10**12, load(api))
    exchange.head(200, {b"content-type": DECODERS[INTERFACES[api].framing].CONTENT_TYPES[0].encode()})
    exchange.data(voice.opening() + voice.lead(), ARRIVED)
    for index, at in enumerate(EMITTED):
        event = voice.token(index, at)
        if index == without:
            event = re.sub(rb'"(emitted_(monotonic|wall)_ns|created_at)":("[^"]*"|\d+),?', b"", event)
            event = event.replace(b",}", b"}")
        exchange.data(event, ARRIVED)
    exchange.data(voice.closing(EMITTED, 0), ARRIVED)
    exchange.conclude()
    return exchange


@pytest.mark.parametrize("api", OF_JSON)
def test_stamps_of_a_server_are_read_to_the_nanosecond_whenever_they_arrive(api: str) -> None:
    """Law: an instant for each text event, in order, and the same events, text and outcome as without stamps."""
    stamped, plain = read(api), read(api, stamped=False)
    assert list(stamped.answer.stamps) == EMITTED
    assert stamped.outcome == plain.outcome == "ok"
    assert stamped.answer.event_class == plain.answer.event_class
    assert stamped.answer.texts == plain.answer.texts
    if INTERFACES[api].framing is not Framing.NDJSON:
        assert not plain.answer.stamps


@pytest.mark.parametrize("api", OF_JSON)
@pytest.mark.parametrize("without", [0, 5, TOKENS - 1])
def test_an_answer_of_which_one_token_has_no_stamp_has_none(api: str, without: int) -> None:
    """Law: gaps across a missing stamp are no gaps between tokens, so all of the answer's are left out; its text is not."""
    found = read(api, without=without)
    assert not found.answer.stamps
    assert found.answer.texts == read(api).answer.texts


def test_stamps_of_thinking_aloud_are_those_of_its_tokens() -> None:
    """Law: text of every class has its instant."""
    assert list(read("chat", parts=Parts(reasoning=5)).answer.stamps) == EMITTED


@pytest.mark.parametrize("api", ["ollama-chat", "ollama-generate"])
def test_a_line_of_ollama_is_stamped_by_its_creation(api: str) -> None:
    """Law: without the reference server's fields, `created_at` has the instant."""
    found = list(read(api, stamped=False).answer.stamps)
    assert [at - found[0] for at in found] == [at - EMITTED[0] for at in EMITTED]


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1_500_000_000),
        ("2023-08-04T08:52:19.385406455-07:00", 1_691_164_339_385_406_455),
        ("2023-08-04T08:52:19", None),
        ("2023-02-30T08:52:19Z", None),
        ("1969-12-31T23:59:59Z", None),
        ("yesterday", None),
        (5, None),
        (None, None),
    ],
)
def test_an_instant_is_read_exactly_or_not_at_all(text: object, instant: int | None) -> None:
    """Law: RFC 3339 with an offset, to nine digits of a second."""
    assert instant_ns(text) == instant
