"""A guardrail's refusal in every dialect: a short answer of text alone, counted, with a reason where the dialect has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from inferometer.server.answer_parts import Parts
from inferometer.server.engine.settings import Settings

Serve = Callable[..., int]
CHAT = {"model": "reference", "messages": [{"role": "user", "content": "x"}]}
REFUSING = Settings(refusal_share=1, refusal_tokens=3)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("path", "body", "signs"),
    [
        ("/v1/chat/completions", CHAT | {"max_tokens": 20}, ["content_filter"]),
        ("/v1/responses", {"input": "x", "max_output_tokens": 20}, ["content_filter", '"output_tokens":3']),
        ("/api/chat", CHAT | {"options": {"num_predict": 20}}, ['"done_reason":"stop"', '"eval_count":3']),
    ],
)
def test_a_refusal_is_short_and_text_alone(
    serve: Serve, path: str, body: dict[str, Any], signs: list[str], stream: bool
) -> None:
    """Though the server would think first and call a tool."""
    port = serve(engine=REFUSING, parts=Parts(reasoning=5, tool=4))
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
        said = client.post(path, json=body | {"stream": stream}).text
        assert all(sign in said for sign in signs)
        assert "thinking" not in said
        assert "reasoning_content" not in said
        (row,) = client.get("/inferometer/truth").text.splitlines()
        assert '"outcome":"finished"' in row


def test_a_model_that_is_not_preloaded_is_waited_for_once(serve: Serve) -> None:
    """By the residence; the engine does not load it again."""
    port = serve(engine=Settings(preloaded=False, load_ns=200_000_000))
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
        done = client.post("/api/chat", json=CHAT | {"stream": False, "options": {"num_predict": 1}}).json()
    assert done["load_duration"] == 200_000_000
    assert done["prompt_eval_duration"] < 150_000_000
