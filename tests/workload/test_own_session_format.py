"""Our own format of recorded sessions: what a line says, what it leaves to be understood, and what is refused."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.workload.agent_sessions import own_format
from inferometer.workload.agent_sessions.own_format import OwnFormat
from inferometer.workload.agent_sessions.readers import READERS, reader_of
from inferometer.workload.agent_sessions.session import NONE, AgentSession, Delay

SECRET_WORDS = "tell nobody"
USER = {"role": "user", "content": SECRET_WORDS}
CALLS = {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": SECRET_WORDS}
SCHEMA = Path(__file__).parents[2] / "docs" / "agent-session.schema.json"


def line(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"session": "s", "steps": [{"messages": [USER]} | step for step in steps]} | more


def read(folder: Path, *lines: dict[str, Any] | str) -> list[AgentSession]:
    path = folder / "sessions.jsonl"
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    return list(reader_of(path).sessions(path))


def test_steps_follow_each_other_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    """Law: a plain list of steps is a conversation, whose last answer a user sees."""
    [session] = read(
        tmp_path, line({"reply": CALLS, "tool_ms": 2}, {"messages": [RESULT], "tool_ms": 1.5}, {})
    )
    assert [(step.after, step.extends) for step in session.steps] == [((), NONE), ((0,), 0), ((1,), 1)]
    assert [step.visible for step in session.steps] == [False, False, True]
    assert session.steps[1].delay == Delay(tool_ns=1_500_000)
    assert session.steps[0].reply == {"role": "assistant", **CALLS}


def test_branches_are_named_and_join(tmp_path: Path) -> None:
    fan = line(
        {"name": "plan"},
        {"name": "a", "after": ["plan"], "extends": None, "agent": "sub"},
        {"name": "b", "after": [0], "think_ms": 5},
        {"after": ["a", "b"], "extends": "b"},
    )
    [session] = read(tmp_path, fan)
    assert [(step.after, step.extends) for step in session.steps] == [
        ((), NONE), ((0,), NONE), ((0,), 0), ((1, 2), 2),
    ]  # fmt: skip
    assert [step.visible for step in session.steps] == [False, False, False, True]


def test_tools_are_a_field_of_each_body(tmp_path: Path) -> None:
    """Law: the session's, unless a step has its own."""
    tools, own = [{"type": "function"}], [{"type": "other"}]
    [session] = read(tmp_path, line({}, {"fields": {"tools": own, "tool_choice": "auto"}}, tools=tools))
    assert session.steps[0].fields == {"tools": tools}
    assert session.steps[1].fields == {"tools": own, "tool_choice": "auto"}


@given(st.recursive(st.text(max_size=8), lambda inner: st.lists(inner, max_size=3), max_leaves=4))
@settings(max_examples=40, deadline=None)
def test_whatever_a_line_holds_it_is_read_or_refused_in_words(value: object) -> None:
    """Law: PlanError or a session, nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        for key in ("messages", "after", "extends", "reply", "fields", "name"):
            with suppress(PlanError):
                read(Path(folder), line({key: value}))


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        (line({"messages": []}), "sessions.jsonl:2: steps[0].messages: must be a list of length at least 1"),
        (line({"messages": [{"role": "human", "content": "x"}]}), "steps[0].messages[0].role: must be system or"),
        (line({"messages": [{"role": "user"}]}), "steps[0].messages[0]: has no content"),
        (line({"messages": [{"role": "tool", "content": "x"}]}), "has no tool_call_id"),
        (line({"messages": [USER | {"tool_calls": CALLS["tool_calls"]}]}), "only messages of role assistant"),
        (line({"messages": [{"role": "user", "content": [{"type": "text"}]}]}), "has no text"),
        (line({"messages": [{"role": "user", "content": [{"type": "video"}]}]}), "content[0].type: must be text or"),
        (line({"reply": {}}), "steps[0].reply: has neither content nor tool_calls"),
        (line({"output_tokens": 0}), "steps[0].output_tokens: must be a whole number at least 1"),
        (line({"tool_ms": -1}), "steps[0].tool_ms: must be a number at least 0"),
        (line({"after": [0]}), "steps[0].after[0]: names no step before this one"),
        (line({}, {"extends": "later"}, {"name": "later"}), "steps[1].extends: names no step before this one"),
        (line({}, {"after": []}, {"after": [0, 1]}), "steps[2].extends: is missing"),
        (line({}, {"after": [], "extends": 0}), "goes on with a step that it does not wait for"),
        (line({"name": "a"}, {"name": "a"}), "steps[1].name: another step of the session has it as well"),
        (line({"fields": {"model": "other"}}), "steps[0].fields: cannot set what the plan decides: model"),
        (line({"fields": {"api_key": "sk-12345678"}}), "looks like a secret"),
        (line({"wait": 1}), "steps[0].wait: there is no such field"),
        ({"session": "s"}, "sessions.jsonl:2: steps: is missing but required"),
        ("[1]", "sessions.jsonl:2: must be an object, not a list"),
        ('{"session": ', "sessions.jsonl:2: is no JSON"),
        ("[" * 100_000, "sessions.jsonl:2"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_file_line_and_field_and_no_words(
    bad: dict[str, Any] | str, where: str, tmp_path: Path
) -> None:
    with pytest.raises(PlanError) as refused:
        read(tmp_path, line({}), bad)
    assert where in str(refused.value)
    assert SECRET_WORDS not in str(refused.value)
    assert str(tmp_path) not in str(refused.value)


@pytest.mark.parametrize("cut", [1, 20, 60, -3])
def test_a_line_that_was_cut_is_refused(cut: int, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"sessions.jsonl:1"):
        path = tmp_path / "sessions.jsonl"
        path.write_text(json.dumps(line({}))[:cut])
        list(READERS["inferometer"].sessions(path))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "sessions.jsonl"
    path.write_bytes(json.dumps(line({})).encode().replace(b"tell", b"t\xffll"))
    with pytest.raises(PlanError, match=r"sessions.jsonl:1: is not UTF-8 text"):
        list(reader_of(path).sessions(path))


def test_a_file_without_a_known_beginning_is_asked_for_its_format(tmp_path: Path) -> None:
    path = tmp_path / "other.txt"
    path.write_text("words\n")
    with pytest.raises(
        PlanError, match=r"other.txt: begins like no format that is known: .*--sessions-format"
    ):
        reader_of(path)
    path.write_text("\n \n")
    with pytest.raises(PlanError, match=r"other.txt: is empty"):
        reader_of(path)
    with pytest.raises(PlanError, match=r"none.jsonl: cannot be read"):
        reader_of(tmp_path / "none.jsonl")


def test_the_first_line_shows_the_format() -> None:
    assert OwnFormat().detect(json.dumps(line({})).encode())
    assert not OwnFormat().detect(b'{"steps": []}')


def test_the_schema_that_ships_is_the_one_that_is_read_by() -> None:
    """Law: regenerate it with this expression."""
    assert json.loads(SCHEMA.read_text()) == msgspec.json.schema(own_format.Line)
