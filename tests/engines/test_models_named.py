"""The model that an answer names, by dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inferometer.engines import anthropic, ollama, openai, responses
from inferometer.engines.answer import Answer
from inferometer.engines.dialect import Dialect


def chunk(text: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}}], **more}


STREAMS: dict[str, tuple[Dialect, list[dict[str, Any]]]] = {
    "chat": (openai.CHAT, [chunk("", model="m"), chunk("a", model="m"), chunk("b", model="m")]),
    "chat, late": (openai.CHAT, [{"choices": [], "model": ""}, chunk("a", model="m")]),
    "completions": (openai.COMPLETIONS, [{"choices": [{"text": "a"}], "model": "m"}]),
    "ollama": (ollama.CHAT, [{"model": "m", "message": {"content": "a"}}, {"model": "m", "done": True}]),
    "anthropic": (anthropic.ANTHROPIC, [{"type": "message_start", "message": {"model": "m"}}]),
    "responses": (
        responses.RESPONSES,
        [{"type": "response.completed", "response": {"status": "completed", "model": "m"}}],
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_names_its_model(name: str) -> None:
    """Law: wherever a dialect has it; a later name changes nothing, and what is no name is none."""
    dialect, events = STREAMS[name]
    answer = Answer()
    for event in events:
        dialect.read_event(answer, json.dumps(event).encode(), 1)
    assert answer.model == "m"
    odd = Answer()
    for event in events:
        dialect.read_event(odd, json.dumps(event).replace('"m"', "7").encode(), 1)
    assert odd.model is None
    assert odd.error is None
    assert odd.malformed is None


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        (openai.CHAT, {"choices": [{"message": {"content": "a"}}]}),
        (openai.COMPLETIONS, {"choices": [{"text": "a"}]}),
        (ollama.GENERATE, {"response": "a", "done": True}),
        (anthropic.ANTHROPIC, {"type": "message", "content": [{"type": "text", "text": "a"}]}),
        (responses.RESPONSES, {"object": "response", "status": "completed", "output": []}),
    ],
)
def test_a_whole_answer_names_its_model(dialect: Dialect, body: dict[str, Any]) -> None:
    """Law: as a stream does."""
    answer = Answer()
    dialect.read_whole(answer, json.dumps({**body, "model": "m"}).encode(), 1)
    assert answer.model == "m"
