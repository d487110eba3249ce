"""Recorded steps that do not fit into the model's context are refused before the load, and no other is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_sessions import written

from inferometer.errors import PlanError
from inferometer.plan.parse import build
from inferometer.plan.session_workload import SessionsWorkload
from inferometer.workload import tokenizers
from inferometer.workload.agent_sessions import step_room
from inferometer.workload.agent_sessions.source import SessionRows, read
from inferometer.workload.context_limit import Room

WORD = " word"
"""A token."""


def session(*words: int, output: int = 10, reply: int | None = None, extra: str = "") -> dict[str, Any]:
    """Steps one after the other, each with so many words more; `reply`: words of the recorded answers."""
    steps = []
    for count in words:
        step: dict[str, Any] = {
            "messages": [{"role": "user", "content": WORD * count + extra}],
            "output_tokens": output,
        }
        if reply is not None:
            step["reply"] = {"role": "assistant", "content": WORD * reply}
        steps.append(step)
    return {"session": f"{words}", "steps": steps}


def source(folder: Path, *sessions: dict[str, Any], **flags: object) -> SessionRows:
    """A plan's sessions as they are read."""
    file = written(folder / "sessions.jsonl", list(sessions))
    plan = build(
        None, {"--sessions": file, "--concurrency": "1"} | {f"--{key}": one for key, one in flags.items()}
    )
    assert isinstance(plan.workload, SessionsWorkload)
    return read(plan, plan.workload)[1]


def checked(found: SessionRows, context: int, *, exact: bool = True) -> str | None:
    """What is refused of them; None: nothing."""
    tokenizer = tokenizers.load(build(None, {}).tokenizer)
    try:
        found.limit(tokenizer, Room(context, exact, tokenizer.name))
    except PlanError as cause:
        return str(cause)
    return None


def test_the_first_step_that_does_not_fit_is_named(tmp_path: Path) -> None:
    """Law: prompt and answer of the longest step fit into that many tokens, and not into one less, which names file, line and
    step; server's replies count as long as requested, recorded ones as they are."""
    for reply, replies, longest in ((None, "recorded", 170), (30, "recorded", 190), (30, "server", 170)):
        found = source(tmp_path, session(5), session(50, 100, reply=reply), replies=replies)
        assert checked(found, longest) is None
        said = checked(found, longest - 1)
        assert said is not None
        assert said.startswith("sessions.jsonl:2: steps[1]: is ")
        assert "and 10 are asked for" in said


def test_a_yardstick_refuses_what_cannot_fit_alone(tmp_path: Path) -> None:
    """Law: under another tokenizer a text has half as many tokens at the least."""
    found = source(tmp_path, session(100))
    assert checked(found, 60, exact=False) is None
    assert checked(found, 59, exact=False) is not None


def test_what_is_no_text_or_never_sent_refuses_nothing(tmp_path: Path) -> None:
    """Law: an image as data is no prompt of its own length; a session behind the last that is sent is not looked at."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 5_000}}
    shown = session(5)
    shown["steps"][0]["messages"][0]["content"] = [{"type": "text", "text": WORD * 5}, image]
    assert checked(source(tmp_path, shown), 100) is None
    both = (session(5), session(500))
    assert checked(source(tmp_path, *both, requests="1", warmup="0"), 100) is None
    assert checked(source(tmp_path, *both, requests="2", warmup="0"), 100) is not None


def test_no_more_is_counted_than_may_be(tmp_path: Path) -> None:
    """Law: the sessions of the largest bounds are counted until so many bytes are; the others are sent as they are."""
    found = source(tmp_path, session(500), session(400))
    tokenizer = tokenizers.load(build(None, {}).tokenizer)
    room = Room(450, True, tokenizer.name)
    step_room.check_room(found._store, range(2), "s", tokenizer, room, most=2_000)
    with pytest.raises(PlanError, match=r"s:1: steps\[0\]"):
        step_room.check_room(found._store, range(2), "s", tokenizer, room, most=3_000)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.sampled_from(["", "é漢字🙂\u0000"]))
def test_a_bound_is_never_smaller_than_what_is_counted(
    tmp_path_factory: Any, words: list[int], extra: str
) -> None:
    """Law: so a session whose bound fits need not be counted."""
    found = source(tmp_path_factory.mktemp("bound"), session(*words, extra=extra))
    tokenizer = tokenizers.load(build(None, {}).tokenizer)
    stored = found._store.session(0)
    assert max(step_room._sent(stored, tokenizer)) + 10 <= found._store.bounds[0]
