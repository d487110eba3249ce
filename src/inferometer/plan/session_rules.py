"""What recorded sessions need, and what says which session a request is of."""

from __future__ import annotations

from collections.abc import Iterator

from inferometer.engines.interface import takers
from inferometer.plan.fault import Fault
from inferometer.plan.lengths import Empirical
from inferometer.plan.schema import Plan
from inferometer.plan.session_workload import SessionsWorkload


def session_faults(plan: Plan) -> Iterator[Fault]:
    """Every rule about sessions that the plan breaks."""
    if isinstance(plan.workload, SessionsWorkload):
        yield from _sessions(plan, plan.workload)
    yield from _header(plan)


def _sessions(plan: Plan, workload: SessionsWorkload) -> Iterator[Fault]:
    if not plan.target.interface.takes_messages:
        yield Fault(
            ("workload.sessions", "target.api"),
            f"a step is a list of messages, which {plan.target.api} does not take: "
            f"leave {{target.api}} out, or set it to {takers(messages=True)}",
        )
    if "messages" in plan.target.extra_body:
        yield Fault(
            ("workload.sessions", "target.extra_body"),
            "{target.extra_body} must not hold the messages of a session",
        )
    for key in ("tool_ms", "think_ms", "output_tokens"):
        if isinstance(getattr(workload, key), Empirical):
            yield Fault(
                (f"workload.{key}",),
                f"{{workload.{key}}} is drawn, and cannot be empirical: leave it out for what was recorded",
            )


def _header(plan: Plan) -> Iterator[Fault]:
    name, workload = plan.target.session_header, plan.workload
    if name is None:
        return
    of_sessions = isinstance(workload, SessionsWorkload) or workload.turns is not None
    if not of_sessions and workload.file is None:  # a workload file may hold conversations
        yield Fault(
            ("target.session_header", "workload.turns", "workload.sessions"),
            "is about sessions and conversations: set {workload.sessions} or {workload.turns}",
        )
    if plan.target.interface.over_websocket:
        yield Fault(
            ("target.session_header", "target.api"),
            "a WebSocket's header lines are those of its connection, which requests of all sessions share: "
            "leave {target.session_header} out",
        )
    given = [*plan.target.headers, *(key for one in workload.classes for key in one.headers)]
    if name.lower() in (key.lower() for key in given):
        yield Fault(
            ("target.session_header", "target.headers", "workload.classes"),
            f"another header line is named {name} as well: give it in one place",
        )
