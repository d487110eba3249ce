"""A file of recorded sessions as a source of requests: read once, kept encoded, given out in the plan's order."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_sessions import CALL, agent, written

from inferometer.engines.dialect import messages_bytes
from inferometer.errors import PlanError
from inferometer.plan import parse
from inferometer.plan.schema import Plan
from inferometer.workload.agent_sessions.session import NONE, AgentSession, Step
from inferometer.workload.agent_sessions.source import SessionRows
from inferometer.workload.agent_sessions.stored_sessions import MOST_OWN, Encoding, SessionStore, Unsendable
from inferometer.workload.sources import sourced

TEXT = st.text(max_size=20).filter(lambda text: text.isprintable())
CONTENT = TEXT | st.lists(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXT})
    | st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}),
    min_size=1,
    max_size=3,
)
MESSAGE = st.fixed_dictionaries({"role": st.sampled_from(["system", "user"]), "content": CONTENT})


def source(folder: Path, *lines: dict[str, Any], **flags: str) -> tuple[Plan, SessionRows]:
    path = written(folder / "sessions.jsonl", lines)
    given_flags = {f"--{name.replace('_', '-')}": value for name, value in flags.items()}
    plan, rows = sourced(parse.build(None, {"--sessions": str(path), **given_flags}))
    assert isinstance(rows, SessionRows)
    return plan, rows


@given(st.lists(MESSAGE, min_size=1, max_size=3))
def test_own_messages_are_kept_as_they_are_and_the_nonce_goes_before_the_first_text(
    messages: list[dict[str, object]],
) -> None:
    """Law: whatever they hold; where there is no text there is no nonce."""
    stored = Encoding(server=False).stored(AgentSession("s", (Step((), NONE, tuple(messages)),)))
    [step] = stored.steps
    assert json.loads(b"[%b]" % step.own) == messages
    texts = [one for message in messages for one in _texts(message["content"])]
    assert (step.nonce_at >= 0) == bool(texts)
    if texts:
        marked = json.loads(b"[%b123%b]" % (step.own[: step.nonce_at], step.own[step.nonce_at :]))
        found = [one for message in marked for one in _texts(message["content"])]
        assert found == [f"123{texts[0]}", *texts[1:]]


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    assert isinstance(content, list)
    return [part["text"] for part in content if part["type"] == "text"]


@pytest.mark.parametrize("server", [True, False])
def test_the_servers_text_replaces_the_recorded_one_and_tool_calls_stay(server: bool) -> None:
    says = ({"role": "user", "content": "x"},)
    replies: list[dict[str, Any] | None] = [
        {"role": "assistant", "content": "old", "tool_calls": [CALL]},
        {"role": "assistant", "content": "old"},
        None,
    ]
    session = AgentSession("s", tuple(Step((), NONE, says, reply) for reply in replies))
    calls, text, nothing = Encoding(server=server).stored(session).steps
    assert nothing.reply is None
    if server:
        assert text.reply is None
        assert calls.reply is not None
        filled = calls.reply[: calls.hole] + b'"new"' + calls.reply[calls.hole :]
        assert json.loads(filled) == {**(replies[0] or {}), "content": "new"}
    else:
        assert [json.loads(step.reply or b"") for step in (calls, text)] == replies[:2]
        assert (calls.hole, text.hole) == (-1, -1)


def test_plain_messages_are_those_of_any_other_conversation() -> None:
    """Law: an interface without tools is sent what turns are made of."""
    messages = [("system", "a"), ("user", "b")]
    session = AgentSession("s", (Step((), NONE, tuple({"role": r, "content": c} for r, c in messages)),))
    assert Encoding(server=False, plain=True).stored(session).steps[0].own == messages_bytes(messages)
    apart = Encoding(server=False, plain=True, system_apart=True).stored(session).steps[0]
    assert (apart.own, apart.systems) == (messages_bytes(messages[1:]), [("system", "a")])


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"role": "user", "content": [{"type": "text", "text": "x"}]}, "only --api chat takes"),
        ({"role": "tool", "tool_call_id": "c", "content": "x"}, "only --api chat takes"),
        ({"role": "user", "content": "x" * MOST_OWN}, "are longer than"),
    ],
)
def test_what_cannot_be_sent_is_refused(message: dict[str, object], words: str) -> None:
    with pytest.raises(Unsendable, match=words):
        Encoding(server=False, plain=True).stored(AgentSession("s", (Step((), NONE, (message,)),)))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.data())
def test_the_store_gives_back_what_was_put_in_in_any_order(sizes: list[int], data: st.DataObject) -> None:
    store = SessionStore()
    made = [
        Encoding(server=False).stored(
            AgentSession(f"{at}", (Step((), NONE, ({"role": "user", "content": f"{at}"},)),) * size)
        )
        for at, size in enumerate(sizes)
    ]
    for one in made:
        store.add(one)
    assert list(store.steps) == sizes
    for number in data.draw(st.permutations(range(len(sizes)))):
        assert store.session(number) == made[number]


def test_the_file_decides_the_load_where_the_plan_does_not(tmp_path: Path) -> None:
    """Law: all steps once; its hash and format are in the plan from then on, and hold."""
    plan, rows = source(tmp_path, agent("a"), agent("b"))
    assert (plan.load.requests, rows.pool) == (8, 8)
    about = rows.facts().sessions
    assert about is not None
    assert (about.sessions, about.steps, about.branching, about.with_tools, about.without_reply) == (
        2,
        8,
        2,
        2,
        4,
    )
    pinned = plan.workload.model_dump()
    assert pinned["sessions_format"] == "inferometer"
    written(tmp_path / "sessions.jsonl", [agent("c")])
    with pytest.raises(PlanError, match="is another file than the plan's"):
        sourced(plan)
    assert source(tmp_path, agent("a"), requests="3")[0].load.requests == 3


@pytest.mark.parametrize("order", ["file", "shuffled", "sampled"])
def test_sessions_are_taken_in_the_plans_order(order: str, tmp_path: Path) -> None:
    """Law: the same by one seed; and it is known how often each was taken before."""
    _, rows = source(tmp_path, *(agent(str(at)) for at in range(5)), prompts_order=order)
    taken = [(session.line, times) for session, times in islice(rows.sessions(3), 20)]
    assert taken == [(session.line, times) for session, times in islice(rows.sessions(3), 20)]
    assert list(islice(rows.sizes(3), 20)) == [4] * 20
    for at, (line, times) in enumerate(taken):
        assert times == [one for one, _ in taken[:at]].count(line)
    if order == "file":
        assert [line for line, _ in taken[:6]] == [1, 2, 3, 4, 5, 1]
        assert next(rows.sessions(3, 2))[0].line == 3
    if order == "shuffled":
        assert {line for line, _ in taken[:5]} == {1, 2, 3, 4, 5}


def test_what_is_wrong_with_a_step_is_said_with_its_line(tmp_path: Path) -> None:
    bare = {"session": "s", "steps": [{"messages": [{"role": "user", "content": "x"}]}]}
    with pytest.raises(PlanError, match=r"sessions.jsonl:2: steps\[0\].output_tokens: is missing"):
        source(tmp_path, agent("a"), bare)
    assert source(tmp_path, agent("a"), bare, output_tokens="7")[1].pool == 5
    with pytest.raises(PlanError, match=r"sessions.jsonl:1: steps\[0\].tools: are known by --api chat only"):
        source(
            tmp_path,
            agent("a") | {"steps": [agent("a")["steps"][3] | {"after": [], "extends": None}]},
            api="ollama-chat",
        )
