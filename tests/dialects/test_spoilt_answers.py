"""What may be wrong with an answer, in every dialect alike: streamed, whole, and whole without a length, ended by closing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from feeding import cuts
from hypothesis import given
from hypothesis import strategies as st
from wording import OF_JSON, Event, body, ending, fed, reply, text, whole

from inferometer.drive.exchange import Exchange
from inferometer.engines.answer import Answer
from inferometer.journal.schema import EventClass

JSON_TYPE = "application/json"
OTHERS = [api for api in OF_JSON if api not in ("responses", "realtime")]
"""Dialects with finish reasons; Responses and Realtime have a status."""
ERRORS: list[bytes] = [
    b'{"error":{"message":"boom","type":"server_error","code":500}}',
    b'{"error":"boom"}',
    b'{"type":"error","error":{"type":"overloaded_error","message":"boom"}}',
    b'{"type":"error","error":{"message":"boom"},"request_id":"\xff"}',
    b'{"type":"error","code":"server_error","message":"boom","param":null}',
    b'{"type":"response.failed","response":{"status":"failed","error":{"code":"x","message":"boom"}}}',
    b'{"object":"error","message":"boom","code":500}',
    b'{"object":"error","detail":"boom"}',
    b'{"detail":"boom"}',
    b'{"message":"boom","status":500}',
    b'{"error":null,"message":"boom"}',
]
"""Each shape of the table in engines/answer.py."""
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        "type",
        "choices",
        "delta",
        "content",
        "text",
        "usage",
        "message",
        "response",
        "error",
        "done",
        "object",
        "content_block",
        "status",
        "output",
        "item",
        "part",
        "detail",
        "finish_reason",
        "stop_reason",
        "thinking",
    ]
)


def outcomes(api: str, stream: bytes, entire: bytes) -> set[tuple[str, str | None]]:
    """Outcome and detail of a stream and of a whole answer, however cut, with a length and ended by closing."""
    found = set()
    for content, kind in ((stream, None), (entire, JSON_TYPE)):
        for length in (True, False):
            for pieces in cuts(reply(api, content, kind, length=length)):
                exchange, _ = fed(api, pieces, close=True)
                found.add((exchange.outcome, exchange.detail))
    return found


def counts(exchange: Exchange) -> tuple[int | None, ...]:
    answer = exchange.answer
    return answer.input_tokens, answer.output_tokens, answer.cached_tokens, answer.server_total_ns


def streamed(api: str, *events: Event) -> Exchange:
    return fed(api, [reply(api, body(api, *events))])[0]


@pytest.mark.parametrize("api", OF_JSON)
def test_the_wording_of_each_dialect_is_a_success(api: str) -> None:
    """What the other tests spoil: a stream and a whole answer of two words."""
    stream = body(api, text(api, "a"), text(api, " b"), *ending(api))
    assert outcomes(api, stream, json.dumps(whole(api, "a b")).encode()) == {("ok", None)}


@pytest.mark.parametrize("api", OF_JSON)
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_in_any_shape_is_an_error_in_every_dialect(api: str, error: bytes) -> None:
    """Alone, streamed or whole, with or without a length: an error event, with the server's words."""
    assert outcomes(api, body(api, error), error) == {("error_event", "boom")}


@pytest.mark.parametrize("api", OF_JSON)
@pytest.mark.parametrize("error", ERRORS)
def test_an_error_between_good_events_is_an_error(api: str, error: bytes) -> None:
    """After text, and before an end that reads as a success."""
    exchange = streamed(api, text(api, "a"), text(api, "b"), error, *ending(api))
    assert (exchange.outcome, exchange.detail) == ("error_event", "boom")


@pytest.mark.parametrize("api", OF_JSON)
@pytest.mark.parametrize("error", ["boom", {"message": "boom"}])
@pytest.mark.parametrize("before", [0, 1, 5])
def test_an_error_beside_text_is_an_error(api: str, error: Any, before: int) -> None:
    """In an event with text, early or late in a stream, and in a whole answer."""
    spoilt = text(api, "b") | {"error": error}
    exchange = streamed(api, *[text(api, "a")] * before, spoilt, *ending(api))
    assert (exchange.outcome, exchange.detail) == ("error_event", "boom")
    entire = json.dumps(whole(api, "a") | {"error": error}).encode()
    assert outcomes(api, body(api, spoilt), entire) == {("error_event", "boom")}


@pytest.mark.parametrize("api", OF_JSON)
def test_a_field_for_errors_that_names_none_is_no_error(api: str) -> None:
    """Null, false and an empty object, which some servers send with every event."""
    nothing: Any
    for nothing in (None, False, {}):
        exchange = streamed(api, *[text(api, "a") | {"error": nothing}] * 3, *ending(api))
        assert (exchange.outcome, "".join(exchange.answer.texts)) == ("ok", "aaa")


@pytest.mark.parametrize(
    ("api", "reason"),
    [(api, reason) for api in OTHERS for reason in ("error", "abort", "cancelled", "failed")]
    + [("responses", "cancelled"), ("responses", "failed")],
)
def test_a_finish_reason_that_names_a_failure_is_an_error(api: str, reason: str) -> None:
    """Streamed and whole; of Responses its status."""
    entire = json.dumps(whole(api, "a", reason=reason)).encode()
    found = outcomes(api, body(api, text(api, "a"), *ending(api, reason=reason)), entire)
    assert {outcome for outcome, _ in found} == {"error_event"}


@pytest.mark.parametrize(
    ("api", "reason"),
    [(api, reason) for api in OTHERS for reason in ("stop", "length", "max_tokens", "end_turn")]
    + [("responses", "completed")],
)
def test_an_answer_without_visible_text_is_empty_whatever_its_finish_reason(api: str, reason: str) -> None:
    """No text or white space alone is no success."""
    for words in ("", " \n"):
        entire = json.dumps(whole(api, words, reason=reason)).encode()
        found = outcomes(api, body(api, text(api, words), *ending(api, reason=reason)), entire)
        assert {outcome for outcome, _ in found} == {"empty"}


@pytest.mark.parametrize("api", OF_JSON)
@pytest.mark.parametrize(
    "more",
    [
        lambda api: ending(api, 0, 0),
        lambda api: ending(api, 77, 88, None),
        lambda api: [text(api, "X"), text(api, "Y")],
        lambda api: [b"[DONE]"],
        lambda api: [b'{"error":{"message":"late"}}'],
        lambda api: [b"{"],
        lambda api: [{"done": True}, {"type": "response.completed", "response": {}}],
        lambda api: [
            {"done": True, "error": "late"},
            {"type": "message_delta", "usage": {"output_tokens": 1}},
        ],
    ],
)
def test_nothing_behind_the_end_counts(api: str, more: Callable[[str], list[Event]]) -> None:
    """A second terminator, text, counts, an error or half an event: the answer is what it was, and these are `done` events."""
    events = [text(api, "a"), text(api, "b"), *ending(api)]
    alone, spoilt = streamed(api, *events), streamed(api, *events, *more(api))
    assert spoilt.outcome == alone.outcome == "ok"
    assert spoilt.answer.texts == alone.answer.texts
    assert counts(spoilt) == counts(alone)
    assert spoilt.answer.finish_reason == alone.answer.finish_reason
    classes, begun = spoilt.answer.event_class, len(alone.answer.event_class)
    assert classes[:begun] == alone.answer.event_class
    assert set(classes[begun:]) == {int(EventClass.DONE)}


@pytest.mark.parametrize("api", OF_JSON)
@pytest.mark.parametrize(
    ("reported", "count"),
    [
        (7.0, 7),
        (7, 7),
        ("7", None),
        (7.5, None),
        (-7, None),
        (True, None),
        ([], None),
        ({}, None),
        (10**30, None),
        (1 << 31, None),
        (float("1e300"), None),
    ],
)
def test_a_count_that_is_none_costs_no_good_answer(api: str, reported: Any, count: int | None) -> None:
    """An integral float is a count; a wrong type, a negative or an absurd number is none. The end is read all the same."""
    for exchange in (
        streamed(api, text(api, "a"), *ending(api, reported, reported)),
        fed(api, [reply(api, json.dumps(whole(api, "a", reported, reported)).encode(), JSON_TYPE)])[0],
    ):
        assert exchange.outcome == "ok"
        assert exchange.answer.finish_reason == "stop"
        assert counts(exchange)[:2] == (count, count)


@pytest.mark.parametrize(
    "usage", [[], "x", 0, True, {"prompt_tokens_details": []}, {"input_tokens_details": 3}]
)
@pytest.mark.parametrize("api", ["chat", "completions", "responses", "anthropic"])
def test_usage_of_a_wrong_type_costs_no_good_answer(api: str, usage: Any) -> None:
    """Whatever stands where the counts should be."""
    last: dict[str, Any] = {"type": "response.completed", "response": {"status": "completed", "usage": usage}}
    if api != "responses":
        last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "choices": [], "usage": usage}
    exchange = streamed(api, text(api, "a"), last, *ending(api))
    assert exchange.outcome == "ok"


@pytest.mark.parametrize("value", [1.0e8, 10**8, "1.5s", -5, 1 << 63, 1.5, None])
@pytest.mark.parametrize("name", ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"])
def test_a_duration_that_is_none_costs_no_good_answer(name: str, value: Any) -> None:
    """Ollama's durations: an integral float is one, everything else is none."""
    (end,) = ending("ollama-chat")
    assert isinstance(end, dict)
    answer = streamed("ollama-chat", text("ollama-chat", "a"), end | {name: value}).answer
    fields = ("server_total_ns", "server_load_ns", "server_prefill_ns", "server_decode_ns")
    names = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")
    found = dict(zip(names, (getattr(answer, one) for one in fields), strict=True))
    assert (answer.done, answer.finish_reason, answer.output_tokens) == (True, "stop", 3)
    assert found[name] == (10**8 if value == 10**8 else None)


@given(
    st.lists(st.tuples(st.integers(-1, 9) | st.none(), st.integers(-1, 9) | st.none(), st.integers(-1, 9)))
)
def test_the_last_count_stands_zero_replaces_none(
    reports: list[tuple[int | None, int | None, int]],
) -> None:
    """For any sequence of reports."""
    answer = Answer()
    for prompt, output, cached in reports:
        answer.count(prompt, output, cached=cached)
    for found, position in ((answer.input_tokens, 0), (answer.output_tokens, 1), (answer.cached_tokens, 2)):
        given_ = [one for report in reports if (one := report[position]) is not None and one >= 0]
        positive = [one for one in given_ if one]
        assert found == (positive[-1] if positive else 0 if given_ else None)


@pytest.mark.parametrize(
    ("start", "later", "expected"),
    [
        ({"input_tokens": 10, "cache_read_input_tokens": 90}, {"input_tokens": 10}, (100, 90)),
        ({"input_tokens": 10, "cache_read_input_tokens": 90}, {"input_tokens": 0}, (100, 90)),
        ({"input_tokens": 10, "cache_read_input_tokens": 90}, {}, (100, 90)),
        ({"input_tokens": 10}, {"cache_read_input_tokens": 50}, (60, 50)),
        (
            {"input_tokens": 10, "cache_creation_input_tokens": 5},
            {"cache_creation_input_tokens": 7},
            (17, None),
        ),
        ({"input_tokens": 0, "cache_read_input_tokens": 0}, {"input_tokens": 100}, (100, 0)),
        ({"input_tokens": 10, "cache_read_input_tokens": -50}, {}, (10, None)),
    ],
)
def test_the_parts_of_an_anthropic_prompt_are_kept_apart(
    start: dict[str, int], later: dict[str, int], expected: tuple[int, int | None]
) -> None:
    """The prompt is the sum of the last count of each part, in whichever event it came."""
    exchange = streamed(
        "anthropic",
        {"type": "message_start", "message": {"usage": start}},
        text("anthropic", "a"),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 3, **later},
        },
        {"type": "message_stop"},
    )
    assert (exchange.outcome, exchange.answer.output_tokens) == ("ok", 3)
    assert (exchange.answer.input_tokens, exchange.answer.cached_tokens) == expected


def test_the_count_of_a_message_that_has_only_begun_is_none() -> None:
    """Anthropic's `message_start` counts the tokens of an answer before there is one."""
    begun = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
    last = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    exchange = streamed("anthropic", begun, text("anthropic", "a"), last, {"type": "message_stop"})
    assert (exchange.outcome, counts(exchange)[:2]) == ("ok", (9, None))


REASONS = [None, "max_output_tokens", "content_filter", "other"]
STATUSES = [None, "completed", "incomplete", "failed", "cancelled", "in_progress", "queued", "new"]


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("kind", ["completed", "incomplete", "failed", "cancelled", "whole"])
def test_only_a_status_that_means_the_end_of_an_answer_is_a_success(
    kind: str, status: str | None, reason: str | None
) -> None:
    """Responses: `completed`, or `incomplete` for its length; a content filter refuses; anything else is no success."""
    response: dict[str, Any] = {"object": "response", "status": status}
    response["incomplete_details"] = None if reason is None else {"reason": reason}
    if kind == "whole":
        entire = whole("responses", "a") | response
        exchange, _ = fed("responses", [reply("responses", json.dumps(entire).encode(), JSON_TYPE)])
    else:
        exchange = streamed(
            "responses", text("responses", "a"), {"type": f"response.{kind}", "response": response}
        )
    stated = status or kind
    if stated == "completed" or (stated == "incomplete" and reason in REASONS[1:3]):
        assert exchange.outcome == ("refused" if reason == "content_filter" else "ok")
    else:
        assert exchange.outcome == (
            "error_event"
            if stated in ("failed", "cancelled") or (stated == "incomplete" and reason)
            else "truncated"
        )


@pytest.mark.parametrize(
    ("api", "signal"),
    [
        ("chat", {"choices": [{"delta": {"content": " b", "refusal": "no"}}]}),
        ("chat", {"choices": [{"delta": {"refusal": "no"}}]}),
        ("responses", {"type": "response.refusal.done", "refusal": "no"}),
        ("responses", {"type": "response.refusal.delta", "delta": "no"}),
        ("responses", {"type": "response.content_part.added", "part": {"type": "refusal", "refusal": ""}}),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_refusal_is_one_wherever_it_stands(api: str, signal: dict[str, Any], before: int) -> None:
    """Beside content or in an event without text, first or late."""
    exchange = streamed(api, *[text(api, "a")] * before, signal, *ending(api))
    assert exchange.outcome == "refused"


def test_a_refusal_known_only_from_the_completed_response_is_one() -> None:
    """Responses: a refusal part in the output of the last event."""
    (end,) = ending("responses")
    assert isinstance(end, dict)
    end["response"]["output"] = [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]
    assert streamed("responses", text("responses", "a"), end).outcome == "refused"


def test_a_tool_call_beside_content_is_read_late_in_a_stream_too() -> None:
    """Chat: its text is part of the answer."""
    call = [{"function": {"name": "f", "arguments": "{}"}}]
    both = {"choices": [{"delta": {"content": " b", "tool_calls": call}}]}
    first, late = (streamed("chat", *[text("chat", "a")] * n, both, *ending("chat")) for n in (0, 3))
    assert "".join(late.answer.texts) == "aaa" + "".join(first.answer.texts)
    assert "f{}" in "".join(first.answer.texts)


BOTH: dict[str, dict[str, Any]] = {
    "chat": {"choices": [{"delta": {"reasoning": "hm", "content": "b"}}]},
    "ollama-chat": {"message": {"thinking": "hm", "content": "b"}, "done": False},
    "ollama-generate": {"thinking": "hm", "response": "b", "done": False},
}


@pytest.mark.parametrize("api", BOTH)
def test_two_texts_of_one_event_are_one_event(api: str) -> None:
    """Thinking and content in one event leave no gap between them; all of the text counts, and only the content is repeated."""
    answer = streamed(api, BOTH[api], text(api, "c"), BOTH[api], *ending(api)).answer
    content = int(EventClass.CONTENT)
    assert list(answer.event_class[:3]) == [content] * 3
    assert (answer.texts, answer.reply()) == (["hmb", "c", "hmb"], "bcb")
    assert (answer.first_text, answer.first_visible, answer.first_answer) == (0, 0, 0)


def test_the_parts_of_a_whole_answer_are_one_event() -> None:
    """They arrived together, where a stream was requested and none came too."""
    parts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    entire = whole("anthropic", "") | {"content": parts}
    answer = fed("anthropic", [reply("anthropic", json.dumps(entire).encode(), JSON_TYPE)])[0].answer
    assert (answer.texts, answer.reply(), len(answer.event_class)) == (["hmab"], "ab", 1)


def test_what_a_content_block_begins_with_is_read() -> None:
    """Anthropic: thinking in `content_block_start`; a tool's call without arguments is its name."""
    start = {"type": "content_block_start", "content_block": {"type": "thinking", "thinking": "hm"}}
    assert streamed("anthropic", start, text("anthropic", "a"), *ending("anthropic")).answer.texts == [
        "hm",
        "a",
    ]
    entire = whole("anthropic", "") | {"content": [{"type": "tool_use", "name": "f"}]}
    called = fed("anthropic", [reply("anthropic", json.dumps(entire).encode(), JSON_TYPE)])[0]
    assert (called.outcome, called.answer.texts) == ("ok", ["f"])


@pytest.mark.parametrize(
    "kind",
    [
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "Application/JSONL; charset=utf-8",
        "application/json-lines",
        "text/plain",
        "application/octet-stream",
    ],
)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_lines_of_json_are_a_stream_whatever_they_are_called(kind: str, mark: bytes, end: bytes) -> None:
    """By any of its media types, or its first bytes; with a byte order mark; the last line with or without its end."""
    api = "ollama-chat"
    content = mark + body(api, text(api, "a"), text(api, "b"), *ending(api)).rstrip() + end
    for pieces in cuts(reply(api, content, kind)):
        exchange, _ = fed(api, pieces)
        assert (exchange.outcome, exchange.answer.texts) == ("ok", ["a", "b"])


@pytest.mark.parametrize(
    "start", [b"data: ", b"event: x\ndata: ", b"id: 1\ndata: ", b"retry: 5\ndata: ", b": hi\n\ndata: "]
)
def test_an_event_stream_of_another_type_is_recognised_however_it_is_cut(start: bytes) -> None:
    """By its first bytes, of which a read may hold one."""
    content = start + body("chat", text("chat", "a"), *ending("chat")).removeprefix(b"data: ")
    for pieces in cuts(reply("chat", content, "text/plain")):
        assert fed("chat", pieces)[0].outcome == "ok"


@pytest.mark.parametrize("api", OF_JSON)
@given(data=st.data())
def test_no_reader_raises_whatever_the_bytes(api: str, data: st.DataObject) -> None:
    """Random JSON in the dialect's own fields, and random bytes: each response has an outcome, streamed, whole and at close."""
    objects = st.dictionaries(NAMES, JSON_VALUES, max_size=5).map(lambda one: json.dumps(one).encode())
    payloads = data.draw(st.lists(objects | st.binary(max_size=30).map(lambda one: one.replace(b"\n", b""))))
    for content, kind in ((body(api, *payloads), None), (b"".join(payloads), JSON_TYPE)):
        for length in (True, False):
            exchange, channel = fed(api, [reply(api, content, kind, length=length)], close=True)
            assert exchange.outcome
            assert channel.ended == [exchange]
            (exchange.detail or "").encode()
