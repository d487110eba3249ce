"""Steps while a reader puts them together, and the session that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from inferometer.workload.agent_sessions.recorded_lines import refusal
from inferometer.workload.agent_sessions.session import AgentSession, Delay, MessageObject, Step

NO_DELAY = Delay()


@dataclass(slots=True)
class Draft:
    """A Step whose reply and predecessors may still change; see there."""

    after: tuple[int, ...]
    extends: int
    messages: Sequence[MessageObject]
    reply: MessageObject | None = None
    output_tokens: int | None = None
    input_tokens: int | None = None
    delay: Delay = NO_DELAY
    model: str | None = None
    fields: Mapping[str, object] = field(default_factory=dict)
    name: str | None = None
    agent: str | None = None


def finished(path: Path, line: int, name: str, drafts: Sequence[Draft], start_ns: int | None) -> AgentSession:
    """The session of these steps. A step is visible if no step waits for it or goes on with it, and its reply, where one is
    recorded, calls no tools. Raises PlanError if the steps do not hang together."""
    awaited = {before for one in drafts for before in (*one.after, one.extends)}
    steps = tuple(
        Step(
            one.after, one.extends, tuple(one.messages), one.reply, one.output_tokens, one.input_tokens, one.delay,
            one.model, one.fields, one.name, one.agent,
            number not in awaited and not (one.reply or {}).get("tool_calls"),
        )
        for number, one in enumerate(drafts)
    )  # fmt: skip
    session = AgentSession(name, steps, line, start_ns)
    if (fault := session.fault()) is not None:
        raise refusal(path, line, None, fault)
    return session
