"""A recorded session of an agent: steps, each of which is one request, and what each waits for.

    plan ──► search ─┐
       └───► read ───┴─► answer          `answer` is due when both have ended and its tool's delay has passed

A step names the steps before it that it waits for (`after`), and the one whose conversation it goes on with (`extends`): the
request repeats all of that conversation and its reply, and adds the step's own messages. A subagent's first step extends none.
Steps are numbered from 0, and only earlier ones can be named, so that no session waits for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

NONE = -1
"""Of `extends`: a conversation of its own."""
MOST_STEPS = 2**15 - 1
"""Of one session: what the columns of a schedule hold (journal/schema.py)."""

MessageObject = Mapping[str, object]
"""A message as OpenAI's chat has it: role, content (text or parts), tool_calls, tool_call_id, name."""


class Delay(msgspec.Struct, frozen=True, gc=False):
    """From the end of the last step that was waited for until this one is due, in ns. `tool_ns`: while tools ran, by the
    recording; `think_ns`: the rest, a person's thinking or the agent's own work. None: not recorded."""

    tool_ns: int | None = None
    think_ns: int | None = None

    @property
    def total_ns(self) -> int:
        """What is known of it."""
        return (self.tool_ns or 0) + (self.think_ns or 0)


class Step(
    msgspec.Struct, gc=False
):  # a file has hundreds of thousands, and a data class takes four times as long to make
    """One request of a session.

    `messages` are its own, behind those that it repeats; `reply` is the assistant's recorded message, with its tool calls;
    None: not recorded. `output_tokens`, `input_tokens`: as recorded; the latter of the whole prompt, and never more than a
    remark. `model`: another than the plan's, or an adapter. `fields`: of the body, such as `tools`. `name`: what the recording
    calls the step; `agent`: whose step it is, where there are several. `visible`: its answer goes to the user.
    """

    after: tuple[int, ...]
    extends: int
    messages: tuple[MessageObject, ...]
    reply: MessageObject | None = None
    output_tokens: int | None = None
    input_tokens: int | None = None
    delay: Delay = Delay()
    model: str | None = None
    fields: Mapping[str, object] = {}
    name: str | None = None
    agent: str | None = None
    visible: bool = False


@dataclass(frozen=True, slots=True)
class AgentSession:
    """A session: at least one step, in an order in which they can be sent. `line`: where it stands in its file, from 1.
    `start_ns`: from the recording's first session to this one; None: not recorded."""

    name: str
    steps: tuple[Step, ...]
    line: int = 1
    start_ns: int | None = None

    def fault(self) -> str | None:
        """What is wrong with how its steps hang together, in words that name the step; None: nothing."""
        if not self.steps:
            return "has no steps"
        if len(self.steps) > MOST_STEPS:
            return f"has {len(self.steps):,} steps: at most {MOST_STEPS:,}"
        for number, step in enumerate(self.steps):
            label = f"step {number}" if step.name is None else f"step {step.name!r}"
            if any(not 0 <= before < number for before in step.after):
                return f"{label} waits for a step that does not stand before it"
            if step.extends != NONE and not 0 <= step.extends < number:
                return f"{label} goes on with a step that does not stand before it"
            waited = step.extends in (NONE, *step.after) or step.extends in waited_for(self.steps, number)
            if not waited:
                return f"{label} goes on with a step that it does not wait for"
            if not step.messages:
                return f"{label} has no messages of its own"
        return None


def waited_for(steps: tuple[Step, ...], number: int) -> set[int]:
    """The steps that have ended by the time this one is due."""
    found: set[int] = set()
    waiting = list(steps[number].after)
    while waiting:
        before = waiting.pop()
        if before not in found:
            found.add(before)
            waiting += steps[before].after
    return found
