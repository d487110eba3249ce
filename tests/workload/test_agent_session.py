"""Laws of recorded agent sessions: who may wait for whom."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.workload.agent_sessions.session import NONE, AgentSession, Step, waited_for

SAYS = ({"role": "user", "content": "words"},)


@st.composite
def sound(draw: st.DrawFn) -> tuple[Step, ...]:
    """Steps that hang together in any way that is allowed."""
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 8))):
        after = tuple(draw(st.sets(st.integers(0, number - 1), max_size=3))) if number else ()
        awaited = waited_for((*steps, Step(after, NONE, SAYS)), number)
        extends = draw(st.sampled_from([NONE, *awaited]))
        steps.append(Step(after, extends, SAYS))
    return tuple(steps)


@given(sound())
def test_sound_sessions_have_no_fault_and_can_be_sent_in_their_order(steps: tuple[Step, ...]) -> None:
    assert AgentSession("s", steps).fault() is None
    for number in range(len(steps)):
        awaited = waited_for(steps, number)
        assert all(before < number for before in awaited)
        assert all(waited_for(steps, before) <= awaited for before in awaited), "waiting is transitive"


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (Step((1,), NONE, SAYS), "step 1 waits for a step that does not stand before it"),
        (Step((-1,), NONE, SAYS), "step 1 waits for a step that does not stand before it"),
        (Step((0,), 1, SAYS, name="b"), "step 'b' goes on with a step that does not stand before it"),
        (Step((), 0, SAYS), "step 1 goes on with a step that it does not wait for"),
        (Step((0,), 0, ()), "step 1 has no messages of its own"),
    ],
)
def test_what_cannot_be_sent_is_named(step: Step, fault: str) -> None:
    assert AgentSession("s", (Step((), NONE, SAYS), step)).fault() == fault


def test_a_session_without_steps_is_none() -> None:
    assert AgentSession("s", ()).fault() == "has no steps"
