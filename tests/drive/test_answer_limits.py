"""Every answer has limits as a whole: the request that one is over ends with that limit's name, and no other is touched."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest
from driving import HEAD
from feeding import cuts
from hypothesis import given
from hypothesis import strategies as st
from peers import Script, Seen, chunked, scripted, tokens
from wording import OF_JSON, body, ending, fed, reply, text

from inferometer.drive.answer_limits import (
    LOOK_BYTES,
    MOST_VALUES,
    UNLESS_SET,
    AnswerLimits,
    OverLimit,
    check_values,
)
from inferometer.drive.exchange import Exchange
from inferometer.drive.http1_channel import HTTP1
from inferometer.drive.reactor import Reactor
from inferometer.drive.transport import Peer
from inferometer.engines.openai import CHAT
from inferometer.journal.schema import Outcome
from inferometer.units import NS_PER_S

JSON_TYPE = "application/json"
FOREIGN = "text/plain"


def outcomes(api: str, content: bytes, limits: AnswerLimits, kind: str | None = None) -> set[str]:
    """The outcome of this body however it is cut: with a length, and ended by closing."""
    found = set()
    for length in (True, False):
        for pieces in cuts(reply(api, content, kind, length=length)):
            exchange, channel = fed(api, pieces, close=True, limits=limits)
            assert channel.ended == [exchange]
            found.add(exchange.outcome)
    return found


@pytest.mark.parametrize("api", OF_JSON)
@pytest.mark.parametrize("kind", [None, FOREIGN])
def test_a_stream_may_have_as_many_bytes_as_its_limit_and_not_one_more(api: str, kind: str | None) -> None:
    """However it is cut, and also where its media type does not say that it is a stream."""
    content = body(api, *[text(api, "a")] * 3, *ending(api))
    limit = len(content)
    assert outcomes(api, content, AnswerLimits(bytes=limit), kind) == {"ok"}
    assert outcomes(api, content, AnswerLimits(bytes=limit - 1), kind) == {"too_large"}


@pytest.mark.parametrize("api", OF_JSON)
def test_a_stream_may_have_as_many_events_as_its_limit_and_not_one_more(api: str) -> None:
    """Of any class: the end and the usage are events, too."""
    content = body(api, *[text(api, "a")] * 3, *ending(api))
    exchange, _ = fed(api, [reply(api, content)])
    events = len(exchange.answer.event_ns)
    assert outcomes(api, content, AnswerLimits(events=events)) == {"ok"}
    assert outcomes(api, content, AnswerLimits(events=events - 1)) == {"too_many_events"}


@pytest.mark.parametrize("line", [b":\n", b"data: {}\n\n", b": keep-alive\n\n"])
def test_a_stream_that_never_ends_is_given_up_soon_after_its_limit(line: bytes) -> None:
    """What is held of it is bounded, whatever its events are: at most what comes between two looks more."""
    limits = AnswerLimits(events=1_000)
    head = reply("chat", b"", length=False)
    piece = line * 100
    exchange, channel = fed("chat", [head, *[piece] * 2_000], limits=limits)
    assert (exchange.outcome, channel.closing) == ("too_many_events", True)
    assert len(exchange.answer.event_ns) <= limits.events + (LOOK_BYTES + len(piece)) // len(line)


@pytest.mark.parametrize("kind", [None, JSON_TYPE, "text/html"])
def test_a_body_that_never_ends_is_given_up_at_its_limit(kind: str | None) -> None:
    """A stream of whole events, a document that never closes, and a page."""
    limits = AnswerLimits(bytes=100_000)
    head = reply("chat", b"", kind, length=False)
    piece = body("chat", text("chat", "a" * 1_000))
    if kind is not None:
        piece = b" " * len(piece)
    exchange, _ = fed("chat", [head, *[piece] * 200], limits=limits)
    assert exchange.outcome == "too_large"
    assert "--max-answer" in (exchange.detail or "")
    assert sum(map(len, exchange.answer.texts)) <= limits.bytes


def test_a_request_that_is_sent_again_begins_to_count_anew() -> None:
    """The first attempt's bytes are none of the second's."""
    content = body("chat", text("chat", "a"), *ending("chat"))
    exchange = Exchange(0, 0, 0, b"", b"", 0, CHAT, limits=AnswerLimits(bytes=len(content)))
    for _ in range(3):
        exchange.head(200, {b"content-type": b"text/event-stream"})
        exchange.data(content, 1)
        exchange.restart()


@given(
    asked=st.integers(0, 20),
    had=st.integers(0, 40),
    passed=st.lists(st.integers(0, 100), min_size=1, max_size=20),
    limit=st.integers(1, 300),
)
def test_a_stream_overruns_once_it_has_had_more_than_was_asked_for_too_long(
    asked: int, had: int, passed: list[int], limit: int
) -> None:
    """Law: from the first look that finds more events with text than tokens, the limit's time must pass; without a known number
    of tokens, or with no more than these, never."""
    exchange = Exchange(0, 0, 0, b"", b"", 0, CHAT, tokens=asked, limits=AnswerLimits(overrun_ns=limit))
    exchange.answer.texts = ["x"] * had
    now = began = 1
    for step in passed:
        assert exchange.overruns(now) == (0 < asked < had and now - began >= limit)
        now += step


def drive(
    port: int, requests: list[Exchange], until: Callable[[list[Exchange]], bool], ahead_ns: int = 0
) -> list[Exchange]:
    """Send all of these, and let the reactor's time run `ahead_ns` ahead of the clock where it looks at deadlines."""
    ended: list[Exchange] = []
    reactor = Reactor(Peer(socket.AF_INET, ("127.0.0.1", port)), HTTP1, ended.append)
    give_up = time.monotonic_ns() + 20 * NS_PER_S
    for one in requests:
        reactor.submit(one, time.monotonic_ns())
    try:
        while not until(ended):
            now = time.monotonic_ns()
            assert now < give_up, "the reactor lost a request"
            reactor.wait(now + 5_000_000, exact=False)
            for later in (0, ahead_ns):
                reactor.expire(now + later)
    finally:
        reactor.close()
    return ended


def test_a_server_that_ignores_max_tokens_costs_its_own_request() -> None:
    """It goes on behind the tokens requested until the limit, and its request is an overrun; the one beside it is answered."""
    endless = chunked(*tokens(*["a"] * 50, finish=None, done=False), end=False)

    def answer(seen: Seen) -> Script:
        return Script(endless, "hang") if seen.body == b"endless" else Script(chunked(*tokens("a", "b")))

    def asking(index: int, content: bytes) -> Exchange:
        now = time.monotonic_ns()
        return Exchange(index, 0, now, HTTP1.prepare(HEAD), content, now + 3600 * NS_PER_S, CHAT, tokens=8)

    with scripted(answer) as peer:
        requests = [asking(0, b"endless"), asking(1, b"good")]
        ended = drive(peer.port, requests, lambda found: len(found) == 2, UNLESS_SET.overrun_ns)
    by_index = {one.index: one for one in ended}
    assert (by_index[0].outcome, by_index[1].outcome) == ("overrun", "ok")
    assert "8 tokens" in (by_index[0].detail or "")


def test_one_that_is_slow_and_keeps_to_max_tokens_does_not_overrun() -> None:
    """However long it takes, short of its deadline."""
    exact = chunked(*tokens(*["a"] * 8, finish=None, done=False), end=False)
    with scripted(lambda _: Script(exact, "hang")) as peer:
        now = time.monotonic_ns()
        one = Exchange(0, 0, now, HTTP1.prepare(HEAD), b"{}", now + 3600 * NS_PER_S, CHAT, tokens=8)
        looks = iter(range(20))
        done = lambda _: len(one.answer.texts) == 8 and next(looks, None) is None  # noqa: E731 - said once
        assert drive(peer.port, [one], done, UNLESS_SET.overrun_ns) == []


@pytest.mark.parametrize("member", [b'"error":[%s[]]', b'"usage":[%s[]]', b'"choices":[%s[]]', b'"x":[%s[]]'])
def test_a_whole_answer_of_too_many_values_is_not_decoded(member: bytes) -> None:
    """Law: whatever member they are of, values beyond the limit end the request before any is made."""
    with pytest.raises(OverLimit, match="values") as raised:
        check_values(b"{" + member % (b"[]," * MOST_VALUES) + b"}")
    assert raised.value.outcome == Outcome.TOO_LARGE
    check_values(b"{" + member % (b"[]," * (MOST_VALUES // 2 - 2)) + b"}")
    check_values(b'{"choices":[{"message":{"content":"%s"}}]}' % (b"a long text " * MOST_VALUES))
