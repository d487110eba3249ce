"""Recorded sessions in others' formats: files made from their documentation, laws, and damaged lines."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.units import NS_PER_MS, NS_PER_S
from inferometer.workload.agent_sessions.histories import Histories
from inferometer.workload.agent_sessions.readers import READERS, reader_of
from inferometer.workload.agent_sessions.session import NONE, AgentSession, Step
from inferometer.workload.agent_sessions.timeline import Busy, Recorded, waits

VECTORS = Path(__file__).parent.parent / "vectors" / "agent_sessions"
FILES = sorted(path for path in VECTORS.iterdir() if path.suffix in (".json", ".jsonl"))
FOREIGN = ("mlperf", "aiperf", "weka", "otel")


def read(path: Path) -> list[AgentSession]:
    return list(reader_of(path).sessions(path))


def vector(name: str) -> list[AgentSession]:
    return read(VECTORS / name)


def conversation(steps: Sequence[Step], number: int) -> list[object]:
    """All messages of a step's request, as the recorded replies make it."""
    step = steps[number]
    before = [] if step.extends == NONE else [*conversation(steps, step.extends), steps[step.extends].reply]
    return [*before, *step.messages]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_recognised_and_its_sessions_hang_together(path: Path) -> None:
    """By the first bytes alone, as the format that its name begins with."""
    assert reader_of(path).name == path.name.partition("-")[0].partition(".")[0]
    sessions = read(path)
    assert sessions
    assert [session.fault() for session in sessions] == [None] * len(sessions)


def test_a_conversation_of_mlperf_keeps_tools_results_and_delays() -> None:
    """The system prompt and the tools hold for all of it; a delay before a tool's results is the tool's."""
    first, second = vector("mlperf.jsonl")
    ask, answer = first.steps
    assert [one["role"] for one in ask.messages] == ["system", "user"]
    assert ask.reply is not None
    assert isinstance(calls := ask.reply["tool_calls"], list)
    assert [call["function"]["arguments"] for call in calls] == ['{"place":"Paris"}', '{"place":"Lyon"}']
    assert [one["tool_call_id"] for one in answer.messages] == ["a", "b"]
    assert (ask.delay.think_ns, answer.delay.tool_ns) == (400_000_000, 1_200_000_000)
    assert ask.fields == answer.fields != {}
    assert (second.steps[0].model, second.steps[0].output_tokens, second.line) == ("small", 32, 6)


def test_a_reply_that_mlperf_did_not_record_is_not_repeated(tmp_path: Path) -> None:
    """A user may follow a tool's result at once: the request then says all of it itself."""
    rows: list[dict[str, object]] = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "tool_calls": [{"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_results": [{"tool_call_id": "x", "content": "r"}]},
        {"role": "user", "content": "b"},
    ]  # fmt: skip
    path = lines(tmp_path, [{"conversation_id": "c", "turn": at + 1, **row} for at, row in enumerate(rows)])
    (session,) = read(path)
    assert [step.extends for step in session.steps] == [NONE, 0, NONE]
    assert [one["role"] for one in session.steps[2].messages] == ["user", "assistant", "tool", "user"]
    assert session.steps[2].after == (1,)


def test_forks_go_on_with_the_turn_that_they_leave() -> None:
    """Both branches repeat the root's conversation, and neither waits for the other."""
    (session,) = vector("aiperf-forks.jsonl")
    assert [(step.after, step.extends) for step in session.steps] == [
        ((), NONE),
        ((0,), 0),
        ((1,), 1),
        ((0,), 0),
    ]
    assert session.steps[2].delay.total_ns == 250 * NS_PER_MS
    assert session.steps[3].fields == {"temperature": 0.7}
    assert [step.visible for step in session.steps] == [False, False, True, True]


def test_spawns_begin_their_own_and_are_joined_where_the_file_says() -> None:
    """By default at the next turn; all of a child's turns come before."""
    (session,) = vector("aiperf-spawns.jsonl")
    by_agent = {step.agent: number for number, step in enumerate(session.steps)}  # the last of each
    root = [number for number, step in enumerate(session.steps) if step.agent == "root"]
    assert set(session.steps[root[1]].after) == {root[0], by_agent["critic"]}
    assert set(session.steps[root[2]].after) == {root[1], by_agent["slow"]}
    assert session.steps[by_agent["critic"]].extends == NONE
    assert session.steps[by_agent["early"]].after == ()
    assert session.steps[root[2]].delay.tool_ns == 30 * NS_PER_MS


def test_rounds_wait_for_all_of_the_round_before_and_think() -> None:
    """The orchestrator itself sends nothing."""
    (session,) = vector("aiperf-rounds.jsonl")
    assert [step.after for step in session.steps] == [(), (0,), (), (1, 2)]
    assert session.steps[3].delay.total_ns == 31_005 * NS_PER_MS
    assert session.steps[1].extends == NONE


def test_a_request_with_its_whole_history_goes_on_with_the_one_that_it_repeats() -> None:
    """Its reply is found in what follows; sessions may be interleaved."""
    other, session = vector("aiperf-history.jsonl")
    assert (other.name, session.name) == ("s2", "s1")
    assert session.steps[1].extends == 0
    assert session.steps[0].reply == {"role": "assistant", "content": "Hi!"}
    assert (session.start_ns, session.steps[1].delay.total_ns) == (NS_PER_S, 700 * NS_PER_MS)


def test_wekas_parallel_requests_fan_out_and_join() -> None:
    """As the example in AIPerf's documentation has them; equal hash ids at the beginning are equal words."""
    (session,) = vector("weka-flat.json")
    assert [step.after for step in session.steps] == [(), (0,), (0,), (0, 1, 2)]
    assert session.steps[3].extends == 0
    texts = [str(step.messages[0]["content"]).split() for step in session.steps]
    assert texts[0][:128] == texts[1][:128] == texts[2][:128]
    assert texts[1][128:] != texts[2][128:]
    assert [len(text) for text in texts] == [192, 256, 256, 320 - 192 - 20]
    assert session.steps[3].delay.tool_ns == 4 * NS_PER_S


def test_wekas_subagents_are_waited_for() -> None:
    """Times within one may count from its own start."""
    (session,) = vector("weka-subagent.json")
    assert [step.agent for step in session.steps] == ["main", "agent_001", "agent_001", "main"]
    assert session.steps[3].after == (0, 2)
    assert [step.delay.total_ns for step in session.steps] == [0, 500 * NS_PER_MS, NS_PER_S, 500 * NS_PER_MS]


def test_spans_become_a_conversation_with_its_tools_time() -> None:
    """The part of the wait in which a tool ran is the tool's; both parts are the recorded gap."""
    (session,) = vector("otel-weather.json")
    ask, answer = session.steps
    assert answer.extends == 0
    assert [one["role"] for one in answer.messages] == ["tool"]
    assert (answer.delay.tool_ns, answer.delay.think_ns) == (130 * NS_PER_MS, 70 * NS_PER_MS)
    assert answer.reply == {"role": "assistant", "content": "Rainy."}
    assert (ask.output_tokens, ask.input_tokens, ask.agent) == (17, 47, "Guide")
    assert ask.fields["tools"] == [
        {"type": "function", "function": {"name": "get_weather", "description": "Weather", "parameters": {"type": "object"}}}
    ]  # fmt: skip


def test_spans_of_subagents_fan_out_and_join() -> None:
    """Spans of a trace may stand on several lines; a trace without requests is no session."""
    (session,) = vector("otel-fan-out.jsonl")
    assert [(step.agent, step.after) for step in session.steps] == [
        ("main", ()), ("finder", (0,)), ("reader", (0,)), ("reader", (2,)), ("main", (1, 3)),
    ]  # fmt: skip
    assert session.steps[3].delay.tool_ns == 30 * NS_PER_MS
    assert [step.visible for step in session.steps] == [False, False, False, False, True]


RECORDED = st.lists(
    st.builds(lambda at, lasts, agent: Recorded(at, at + lasts, agent), st.integers(0, 60), st.integers(0, 30),
              st.integers(0, 3)),
    min_size=1, max_size=25,
).map(lambda found: sorted(found, key=lambda one: one.start_ns))  # fmt: skip


@given(RECORDED)
def test_a_replay_that_takes_the_recorded_times_has_the_recorded_instants(requests: list[Recorded]) -> None:
    """A request waits for requests that had ended, and of two that ran at once neither waits for the other."""
    for number, after in enumerate(waits(requests, [-1, 0, 0, 1])):
        for before in after:
            assert before < number
            assert requests[before].end_ns <= requests[number].start_ns


@given(RECORDED)
def test_an_agent_waits_for_all_that_it_had_sent(requests: list[Recorded]) -> None:
    """Directly, or through what it waits for."""
    found = waits(requests, [-1] * 4)
    ancestors: list[set[int]] = []
    for number, after in enumerate(found):
        ancestors.append(set(after).union(*(ancestors[before] for before in after)))
        own = {at for at in range(number) if requests[at].agent == requests[number].agent}
        assert ancestors[number] == {at for at in own if requests[at].end_ns <= requests[number].start_ns}


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda one: (one[0], one[0] + one[1])),
        max_size=8,
    )
)
def test_the_time_in_which_tools_ran_is_counted_once(intervals: list[tuple[int, int]]) -> None:
    """However they overlap."""
    busy = Busy(intervals)
    for start, end in ((0, 40), (5, 17), (12, 12)):
        wanted = sum(any(begin <= at < stop for begin, stop in intervals) for at in range(start, end))
        assert busy.within(start, end) == wanted


MESSAGE = st.tuples(st.sampled_from(["user", "assistant"]), st.sampled_from("ab")).map(
    lambda one: {"role": one[0], "content": one[1]}
)


@given(st.lists(st.lists(MESSAGE, min_size=1, max_size=6), min_size=1, max_size=12))
def test_what_goes_on_with_another_request_says_exactly_what_was_recorded(
    requests: list[list[dict[str, str]]],
) -> None:
    """Put together again from what each repeats and adds, every request is the recorded one."""
    histories, replies, again = Histories(), dict[int, dict[str, str]](), list[list[dict[str, str]]]()
    placed = [histories.add(messages, lambda _: True) for messages in requests]
    for (extends, known), messages in zip(placed, requests, strict=True):
        if extends != NONE:
            assert replies.setdefault(extends, messages[known - 1]) == messages[known - 1]
    for (extends, known), messages in zip(placed, requests, strict=True):
        before = [] if extends == NONE else [*again[extends], replies[extends]]
        again.append([*before, *messages[known:]])
        assert messages[known:]
    assert again == requests


def lines(folder: Path, values: Sequence[object]) -> Path:
    path = folder / "sessions.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def turn(**more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "secret words"}], **more}


def chat(**more: Any) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "chat", **more}
    listed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    span = {
        "traceId": "t",
        "spanId": "s",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": 2,
        "attributes": listed,
    }
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


ROW = {"conversation_id": "c", "turn": 1, "role": "user", "content": "secret words"}
WEKA: dict[str, Any] = {
    "id": "w",
    "block_size": 64,
    "requests": [{"t": 0, "type": "n", "in": 64, "out": 1, "hash_ids": [1]}],
}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([ROW | {"turn": 2}], "sessions.jsonl:1: turn: must be 1"),
        ([ROW, ROW | {"turn": 2}], "sessions.jsonl:2: role: must be assistant behind one of role user"),
        ([ROW, ROW | {"conversation_id": "d"}, ROW], "sessions.jsonl:3: conversation_id: stands apart"),
        ([ROW | {"delay_seconds": -1}], "sessions.jsonl:1: delay_seconds: must be a number at least 0"),
        ([ROW | {"content": ""}], "sessions.jsonl:1: content: is missing or empty"),
        ([{"session_id": "a", "turns": [turn(forks=["b"])]}], "sessions.jsonl:1: forks: names a conversation that the file"),
        ([{"session_id": "a", "turns": [turn(max_token=1)]}], "turns[0].max_token: there is no such field"),
        ([{"session_id": "a", "turns": [turn(spawns=["a"])]}], "there is none to begin with"),
        ([{"session_id": "a", "turns": [turn()]}] * 2, "sessions.jsonl:2: session_id: another line has it"),
        ([{"session_id": "a", "turns": [turn(extra={"messages": []})]}], "sessions.jsonl:1: turns[0].extra: "),
        ([{"session_id": "a", "turns": [turn(forks=["b"]), turn()]}, {"session_id": "b", "turns": [turn()]}], "background"),
        ([{"session_id": "a", "input_length": 9, "output_length": 3, "hash_ids": [1]}], "--trace reads traces of lengths"),
        ([WEKA | {"requests": []}], "sessions.jsonl:1: requests: must be a list of length at least 1"),
        ([WEKA | {"requests": [{"t": 0, "type": "n", "out": 1}]}], "sessions.jsonl:1: requests[0].in: is missing"),
        ([chat()], "sessions.jsonl:1: gen_ai.input.messages: is missing"),
        ([chat(**{"gen_ai.input.messages": "[{"})], "sessions.jsonl:1: gen_ai.input.messages: is no JSON"),
        (
            [chat(**{"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "file", "file_id": "f"}]}])})],
            "gen_ai.input.messages[0].parts[0]: must be text",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_again_is_refused_with_line_and_field(
    tmp_path: Path, values: list[object], said: str
) -> None:
    """And never with the words of prompts."""
    with pytest.raises(PlanError) as caught:
        read(lines(tmp_path, values))
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_conversation_that_starts_itself_through_others_ends_in_words(tmp_path: Path) -> None:
    """However often the circle would go round."""
    a = {"session_id": "a", "turns": [turn(spawns=["b"])]}
    b = {"session_id": "b", "turns": [turn(spawns=["c"])]}
    c = {"session_id": "c", "turns": [turn(spawns=["b"])]}
    with pytest.raises(
        PlanError, match=r"sessions.jsonl:1: starts more than 32,767 steps; is it started by itself\?"
    ):
        read(lines(tmp_path, [a, b, c]))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_damage_ends_in_sessions_or_in_words(tmp_path: Path, data: st.DataObject) -> None:
    """With the line that is at fault, where it is a line's."""
    path = data.draw(st.sampled_from(FILES))
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        how = data.draw(st.sampled_from(["cut", "change", "drop"]))
        if how == "cut":
            del whole[at + 1 :]
        elif how == "drop":
            del whole[at : at + data.draw(st.integers(1, 40))]
            whole = whole or bytearray(b"x")
        else:
            whole[at] = data.draw(st.integers(0, 255))
    damaged = tmp_path / "damaged"
    damaged.write_bytes(whole)
    for name in FOREIGN:
        places: list[str] = []
        try:
            for session in READERS[name].sessions(damaged):
                assert session.fault() is None
        except PlanError as error:
            places = [problem.where for problem in error.problems]
        assert all(re.match(r"damaged(:\d+|$)", place) for place in places)
