"""What servers send, event by event: each quirk once, with the class it must get."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inferometer.engines import openai
from inferometer.engines.answer import Answer
from inferometer.engines.dialect import Dialect, GenerationRequest
from inferometer.engines.openai import CHAT, COMPLETIONS
from inferometer.journal.schema import EventClass


def read(*events: str | bytes | dict[str, Any]) -> Answer:
    answer = Answer()
    for at, event in enumerate(events):
        payload = json.dumps(event).encode() if isinstance(event, dict) else event
        openai.read_event(answer, payload.encode() if isinstance(payload, str) else payload, at)
    return answer


def delta(reason: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": reason}]}


def classes(answer: Answer) -> list[str]:
    return [EventClass(kind).name.lower() for kind in answer.event_class]


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (delta(role="assistant", content=""), "role"),
        (delta(role="assistant", content=None), "role"),
        (delta(role="assistant", content=" can"), "content"),
        (delta(content="x"), "content"),
        (delta(content=""), "empty"),
        (delta(), "empty"),
        (delta("stop"), "finish"),
        (delta("length", content=""), "finish"),
        (delta("length", content="x"), "content"),
        (delta(reasoning_content="hm"), "reasoning"),
        (delta(reasoning="hm", content=None), "reasoning"),
        (delta(tool_calls=[{"index": 0, "function": {"name": "f", "arguments": ""}}]), "tool_call"),
        (delta(tool_calls=[{"index": 0, "function": {"arguments": '{"a"'}}]), "tool_call"),
        (delta(tool_calls=[{"index": 0, "id": "1"}]), "empty"),
        ({"choices": [{"text": "x", "finish_reason": None}]}, "content"),
        ({"choices": [{"text": "", "finish_reason": "stop"}]}, "finish"),
        ({"choices": [{"text": "", "finish_reason": None}]}, "empty"),
        ({"choices": [], "usage": {"prompt_tokens": 1}}, "usage"),
        ({"usage": {"prompt_tokens": 1}}, "usage"),
        ({"choices": []}, "empty"),
        ({"error": {"message": "no"}}, "error"),
        ({"error": "no"}, "error"),
        ({"object": "error", "message": "no"}, "error"),
        (b"[DONE]", "done"),
        (b"{", "error"),
        (b'{"choices": 3}', "error"),
        (b'{"choices":[{"delta":{"content":"\xff"}}]}', "error"),
    ],
)
def test_each_event_has_one_class(event: Any, kind: str) -> None:
    """The table of classes in docs/definitions.md, one row a case."""
    assert classes(read(event)) == [kind]


def test_the_three_first_tokens_part_when_a_model_thinks_aloud() -> None:
    """ttft_any takes any text, ttft the first visible of any class, ttfo the first visible answer."""
    answer = read(
        delta(role="assistant"),
        delta(content="\n"),
        delta(reasoning="hm"),
        delta(content=" "),
        delta(content="a"),
    )
    assert (answer.first_text, answer.first_visible, answer.first_answer) == (1, 2, 4)


def test_usage_is_taken_whole_and_the_last_one_stands() -> None:
    """Counts, cached and reasoning tokens come from usage wherever it stands; later events replace earlier ones."""
    early = {"prompt_tokens": 9, "completion_tokens": 1}
    late = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    answer = read(
        delta(content="a") | {"usage": early}, delta("stop") | {"usage": late}, {"choices": [], "usage": None}
    )
    found = (answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.reasoning_tokens)
    assert found == (9, 5, 4, 2)
    assert read({"choices": [], "usage": {"prompt_tokens_details": None}}).cached_tokens is None


def test_the_steps_of_a_compound_system_are_read_from_usage_and_its_words_are_not_kept() -> None:
    """By kind and tokens; what is no step tells nothing, and no name of a kind goes on record that is none of ours."""
    steps = [
        {"kind": "llm", "name": "planner", "prompt_tokens": 30, "completion_tokens": 7},
        {"kind": "Tool", "name": "search", "prompt_tokens": -1, "completion_tokens": 2.5},
        {"kind": "sk-secret"}, "no step", {"kind": ["llm"]}, {"kind": "rerank", "prompt_tokens": True},
    ]  # fmt: skip
    listed = read({"choices": [], "usage": {"prompt_tokens": 9, "steps": steps}}).steps
    assert json.loads(listed or "") == [
        ["model", 30, 7], ["tool", None, None], *[[None, None, None]] * 3, ["rerank", None, None],
    ]  # fmt: skip
    nothing: tuple[object, ...] = (None, [], {}, "llm", [{"kind": "llm"}] * 1001)
    for none in nothing:
        assert read({"choices": [], "usage": {"steps": none}}).steps is None


@pytest.mark.parametrize(
    ("indices", "several"),
    [([0, 0, 0], False), ([1, 1, 1], False), ([0, 1, 2], False), ([0, 1, 0], True), ([0, 1, 0, 1], True)],
)
def test_texts_of_several_choices_are_no_answer(indices: list[int], several: bool) -> None:
    """Law: one choice is asked for; a server that counts its events up sends one."""
    pieces = [delta(content=f"w{at} ") for at in range(len(indices))]
    for piece, index in zip(pieces, indices, strict=True):
        piece["choices"][0]["index"] = index
    found = read(*pieces)
    assert (found.malformed is not None) is several


def test_an_end_that_names_the_first_choice_again_ends_what_was_counted_up() -> None:
    """Law: an event without text is of no choice; and the last text may bring its own end."""
    pieces = [delta(content=f"w{at} ") for at in range(3)]
    for at, piece in enumerate(pieces):
        piece["choices"][0]["index"] = at
    last = delta("stop", content="w3")
    last["choices"][0]["index"] = 3
    for end in (delta("stop"), last):
        found = read(*pieces, end)
        assert (found.malformed, found.finish_reason) == (None, "stop")


def test_a_choice_behind_one_that_ended_or_beside_it_is_no_answer() -> None:
    """The first with its finish reason, then the second; or both in one event."""
    first, second = delta("stop", content="right"), delta(content="wrong")
    second["choices"][0]["index"] = 1
    assert read(first, second).malformed is not None
    both = {"choices": [*delta(content="right")["choices"], *delta(content="wrong")["choices"]]}
    assert read(both).malformed is not None


def test_refusals_come_from_structure_and_never_from_words() -> None:
    """A refusal field or a content_filter finish is a refusal; an answer that says no is an answer."""
    assert read(delta(refusal="I cannot")).refused
    assert read(delta("content_filter")).refused
    assert not read(delta(content="I cannot do that"), delta("stop")).refused


def test_whole_answers_of_both_interfaces_are_read() -> None:
    """Text, reasoning, finish reason and usage of a reply that was not streamed."""
    for reply in (
        {
            "choices": [
                {
                    "message": {"role": "assistant", "content": "hi", "reasoning": "hm"},
                    "finish_reason": "stop",
                }
            ]
        },
        {"choices": [{"text": "hi", "finish_reason": "stop"}]},
    ):
        answer = Answer()
        openai.read_whole(answer, json.dumps(reply).encode(), 7)
        assert answer.reply() == "hi"
        assert (answer.finish_reason, answer.done) == ("stop", True)
        assert answer.first_answer == len(answer.event_class) - 1


def sent(dialect: Dialect, *request: Any, **more: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(dialect.body(GenerationRequest(*request, **more)))
    return body


def test_a_request_body_asks_for_what_the_plan_says() -> None:
    """Stream with usage, length, temperature and ignore_eos; token ids only as a completions prompt; extras win."""
    chat = sent(CHAT, "m", "héllo", 5)
    assert chat["messages"] == [{"role": "user", "content": "héllo"}]
    assert (chat["max_tokens"], chat["stream"], chat["stream_options"]) == (5, True, {"include_usage": True})
    assert (chat["temperature"], chat["ignore_eos"]) == (0.0, True)
    ids = sent(COMPLETIONS, "m", [1, 2], 5, stream=False, ignore_eos=False, extra={"top_p": 0.5})
    assert (ids["prompt"], ids["stream"], ids["top_p"]) == ([1, 2], False, 0.5)
    assert "ignore_eos" not in ids
    floored = sent(CHAT, "m", "hi", 7, ignore_eos=False, min_tokens=True)
    assert (floored["min_tokens"], floored["max_tokens"], "min_tokens" in chat) == (7, 7, False)
    assert "stream_options" not in ids
    assert "temperature" not in sent(CHAT, "m", "x", 5, extra={"temperature": None})


@pytest.mark.parametrize("value", ["1", True, None, [], -1, -0.5, 1e300, 1e303, 10**400, {"ms": 1}])
def test_timings_that_are_no_durations_cost_no_good_answer(value: Any) -> None:
    """Whatever stands there, text and counts are read, and the other duration."""
    end = delta("stop") | {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    timings = {"prompt_ms": value, "predicted_ms": 2.5, "cache_n": value}
    for given in (timings, value):
        answer = read(delta(content="a"), end | {"timings": given}, b"[DONE]")
        assert (answer.finish_reason, answer.output_tokens, answer.cached_tokens) == ("stop", 2, None)
        assert answer.server_prefill_ns is None
        assert answer.server_decode_ns == (2_500_000 if given is timings else None)


def test_timings_say_what_was_cached_where_usage_does_not() -> None:
    """Usage goes before them, and without usage they are no counts."""
    timings = {"cache_n": 7, "prompt_n": 2, "predicted_n": 2}
    usage: dict[str, Any] = {"prompt_tokens": 9, "completion_tokens": 2}
    silent = read({"choices": [], "usage": usage, "timings": timings})
    assert silent.cached_tokens == 7
    usage = usage | {"prompt_tokens_details": {"cached_tokens": 8}}
    assert read({"choices": [], "usage": usage, "timings": timings}).cached_tokens == 8
    bare = read(delta("stop") | {"timings": timings})
    assert (bare.input_tokens, bare.output_tokens, bare.cached_tokens) == (None, None, None)


@pytest.mark.parametrize("reason", ["", "null", "None"])
def test_what_is_no_finish_reason_ends_no_answer(reason: str) -> None:
    """Law: an answer whose events name a reason that is none goes on, and one that is cut off there has not ended."""
    parts = [delta(reason, content="a"), delta(reason, content="b"), delta(reason)]
    cut = read(*parts)
    assert (cut.finish_reason, cut.done, cut.texts) == (None, False, ["a", "b"])
    assert cut.event_class[-1] == EventClass.EMPTY
    assert read(*parts, delta("length"), delta(reason)).finish_reason == "length"
