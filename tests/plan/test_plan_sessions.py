"""Plans of recorded sessions: which keys they have, and what goes with them."""

from __future__ import annotations

import pytest

from inferometer.errors import PlanError
from inferometer.plan import parse
from inferometer.plan.schema import Plan
from inferometer.plan.session_workload import SessionsWorkload


def planned(**flags: object) -> Plan:
    return parse.build(None, {f"--{name.replace('_', '-')}": value for name, value in flags.items()})


def test_a_file_of_sessions_is_a_workload_of_its_own_with_everything_as_recorded() -> None:
    workload = planned(sessions="s.jsonl").workload
    assert isinstance(workload, SessionsWorkload)
    assert (workload.replies, workload.tool_ms, workload.think_ms) == ("recorded", None, None)
    assert workload.shares
    assert workload.text_only


@pytest.mark.parametrize("flag", ["tool_ms", "think_ms"])
def test_delays_are_as_recorded_or_drawn(flag: str) -> None:
    assert getattr(planned(sessions="s", **{flag: "recorded"}).workload, flag) is None
    assert str(getattr(planned(sessions="s", **{flag: "uniform(5,9)"}).workload, flag)) == "uniform(5,9)"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"sessions": "s", "turns": "3"}, "--turns: the file of sessions determines what is sent"),
        ({"sessions": "s", "prompts": "p"}, "choose|leave --sessions out|leave --prompts out"),
        ({"sessions": "s", "api": "completions"}, "a step is a list of messages"),
        ({"sessions": "s", "extra_body": '{"messages": []}'}, "messages"),
        ({"sessions": "s", "tool_ms": "empirical"}, "cannot be empirical"),
        ({"tool_ms": "5"}, "--tool-ms: is about a file of sessions: set --sessions"),
        ({"session_header": "X-Session-ID"}, "set --sessions or --turns"),
        ({"session_header": "Content-Length", "turns": "2"}, "frames the request"),
        (
            {"session_header": "X-Id", "turns": "2", "header": ["x-id: 1"]},
            "another header line is named X-Id",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_in_words(flags: dict[str, object], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        planned(**flags)


def test_a_session_header_goes_with_conversations_too() -> None:
    assert planned(turns="3", session_header="X-Session-ID").target.session_header == "X-Session-ID"
