"""Files of tasks: what a line says, and that whatever is wrong with one is named by file, line and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferometer.errors import PlanError
from inferometer.workload.prompt_file import PromptFile, survey
from inferometer.workload.task_file import TaskRow, row_kind

SECRET_WORDS = "tell nobody"
GOOD: dict[str, Any] = {"task": "a", "input": SECRET_WORDS, "output_tokens": 5}


def read(path: Path, *lines: object, commands: bool = True, chat: bool = True) -> PromptFile:
    path.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    return survey(path, chat=chat, needs_output=True, kind=row_kind(commands=commands))


def refusal(path: Path, *lines: object, **more: bool) -> str:
    with pytest.raises(PlanError) as caught:
        read(path, *lines, **more)
    assert SECRET_WORDS not in str(caught.value)
    return str(caught.value)


def test_a_task_is_a_prompt_with_a_criterion(tmp_path: Path) -> None:
    """Law: what a row of prompts may have, a task may have, and its name, criterion and time are its own."""
    file = read(
        tmp_path / "t.jsonl",
        GOOD | {"criterion": {"number": 3, "tolerance": 0.5}, "timeout_s": 2, "class": "x"},
        {"task": "b", "messages": [{"role": "user", "content": "hi"}], "output_tokens": 1},
    )
    first, second = file.rows([0, 1])
    assert isinstance(first, TaskRow)
    assert isinstance(second, TaskRow)
    assert first.criterion is not None
    assert (first.task, first.criterion.kind, first.timeout_s, first.class_) == ("a", "number", 2.0, "x")
    assert (first.input, second.input, second.criterion) == (SECRET_WORDS, "hi", None)


def test_a_file_may_be_csv(tmp_path: Path) -> None:
    lines = ["task,input,output_tokens,criterion", 'a,say it,5,"{""exact"": ""yes""}"']
    [row] = read(tmp_path / "t.csv", *lines).rows([0])
    assert isinstance(row, TaskRow)
    assert row.criterion is not None
    assert row.criterion.exact == "yes"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"input": SECRET_WORDS, "output_tokens": 5}, "t.jsonl:1: task: is missing"),
        ({"task": "a", "output_tokens": 5}, "either input or messages"),
        (GOOD | {"prompt": "x"}, "no such field"),
        (GOOD | {"task": "a\nb"}, "does not show"),
        (GOOD | {"criterion": {}}, "needs one of exact, regex"),
        (GOOD | {"criterion": {"exact": "a", "regex": "b"}}, "and has exact, regex"),
        (GOOD | {"criterion": {"regex": "("}}, "is no regular expression"),
        (GOOD | {"criterion": {"regex": "a" * 3000}}, "criterion.regex"),
        (GOOD | {"criterion": {"json_schema": {"type": "none such"}}}, "is no JSON Schema"),
        (GOOD | {"criterion": {"number": "x"}}, "criterion.number"),
        (GOOD | {"criterion": {"number": True}}, "must be a number"),
        (GOOD | {"criterion": {"number": 1, "tolerance": -1}}, "criterion.tolerance"),
        (GOOD | {"criterion": {"exact": "a", "tolerance": 1}}, "is about a number"),
        (GOOD | {"criterion": {"command": []}}, "criterion.command"),
        (GOOD | {"criterion": {"judge": {"url": "file:///etc", "model": "m", "prompt": "{answer}", "pass": "x"}}},
         "criterion.judge.url"),
        (GOOD | {"criterion": {"judge": {"url": "http://h", "model": "m", "prompt": "no", "pass": "x"}}}, "{answer}"),
        (GOOD | {"criterion": {"json_schema": {"$schema": ["x"]}}}, "is no JSON Schema"),
        (GOOD | {"timeout_s": 0}, "timeout_s"),
        (GOOD | {"retries": 3}, "a task is sent once"),
        ("{", "is no JSON"),
        ("[1]", "must be a JSON object"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, line: object, words: str) -> None:
    said = refusal(
        tmp_path / "t.jsonl", "" if line == "[1]" else line, *([GOOD, line] if line == "[1]" else [])
    )
    assert words in said
    assert "t.jsonl:" in said


@pytest.mark.parametrize(
    "url",
    [
        "http://h:99999/x", "http://h:abc/x", "http://h:0/x", "http://[::1/x", "http:///x", "http://a b/x", "http://h/a b",
        "http://h/\r\nX: y", "http://h/\u65e5", "http://h/?q=\u65e5", "http://user:pass-word@h/x", f"http://{'a' * 300}/x",
    ],
)  # fmt: skip
def test_a_judge_that_no_request_can_be_sent_to_is_refused_before_the_load(tmp_path: Path, url: str) -> None:
    """Law: what would fail after the load, with everything measured, is refused before it; a password is not repeated."""
    judge = {"url": url, "model": "m", "prompt": "{answer}", "pass": "x"}
    said = refusal(tmp_path / "t.jsonl", GOOD | {"criterion": {"judge": judge}})
    assert "t.jsonl:1: criterion.judge.url: " in said
    assert "pass-word" not in said


def test_each_task_has_a_name_of_its_own(tmp_path: Path) -> None:
    assert "t.jsonl:2: has the name of line 1" in refusal(tmp_path / "t.jsonl", GOOD, GOOD)


@pytest.mark.parametrize(
    "criterion",
    [
        {"command": ["true"]},
        {"judge": {"url": "http://h", "model": "m", "prompt": "{answer}", "pass": "x"}},
    ],
)
def test_a_file_runs_nothing_unless_the_user_says_so(tmp_path: Path, criterion: dict[str, Any]) -> None:
    """Law: a file may be somebody else's; what it would have done outside needs a flag."""
    line = GOOD | {"criterion": criterion}
    assert "--task-commands" in refusal(tmp_path / "t.jsonl", line, commands=False)
    assert len(read(tmp_path / "t.jsonl", line)) == 1


_KEYS = st.sampled_from(["exact", "regex", "number", "judge", "x"])
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(_ANYTHING)
@settings(max_examples=60, deadline=None)
def test_any_criterion_is_taken_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    """Law: a damaged criterion is a PlanError with its line, and nothing else."""
    path = tmp_path_factory.mktemp("tasks") / "t.jsonl"
    said = "t.jsonl:1"
    try:
        read(path, GOOD | {"criterion": value})
    except PlanError as cause:
        said = str(cause)
    assert "t.jsonl:1" in said
