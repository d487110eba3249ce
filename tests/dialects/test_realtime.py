"""Realtime events of two responses on one connection."""

from __future__ import annotations

import json

import pytest

from inferometer.engines.answer import Answer
from inferometer.engines.realtime import read_event

Event = dict[str, object]


def created(ident: str | None) -> Event:
    return {"type": "response.created", "response": {"id": ident}}


def delta(ident: str | None) -> Event:
    return {"type": "response.output_text.delta", "response_id": ident, "delta": " word"}


def done(ident: str | None) -> Event:
    return {"type": "response.done", "response": {"id": ident, "status": "completed"}}


def reading(*events: Event) -> Answer:
    answer = Answer()
    for at, event in enumerate(events):
        read_event(answer, json.dumps(event).encode(), at)
    return answer


@pytest.mark.parametrize(
    "events",
    [
        (created("a"), delta("a"), delta("b"), done("a")),
        (created("a"), delta("b"), done("b")),
        (created("a"), created("b"), delta("b"), done("b")),
        (delta("a"), delta("a"), done("b")),
    ],
)
def test_events_of_two_responses_are_no_answer(events: tuple[Event, ...]) -> None:
    """Law: whose text and whose end it is cannot be known, so it is malformed; and no text of the other is counted."""
    answer = reading(*events)
    assert answer.malformed == "an event of another response"
    assert len(answer.texts) <= 2


@pytest.mark.parametrize("name", ["a", None])
def test_events_of_one_response_or_of_none_are_an_answer(name: str | None) -> None:
    """Law: a server whose events carry no id is read as before; those of the session have none either."""
    session: Event = {"type": "rate_limits.updated", "rate_limits": []}
    answer = reading(session, created(name), delta(name), session, delta(name), delta(None), done(name))
    assert (answer.malformed, answer.error, answer.done, len(answer.texts)) == (None, None, True, 3)
