"""Recorded agent sessions, sent by the product's own client in virtual time, with a defect of that client, of its load or of
its declaration: dropped subagents, ignored delays, other branches' answers, a cold cache called warm, sessions that do not end.

The headlines are those of sessions: how long they last, and when their user sees the first token and the last answer.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.trial.defects import Case, Defect
from benchmarks.trial.records import Headline, bent
from inferometer.documents.summary import Summary
from inferometer.drive.pacer import Ending
from inferometer.drive.progress_counters import Progress
from inferometer.drive.step_pacer import StepPacer
from inferometer.drive.step_share import StepShare
from inferometer.journal.schema import Phase
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan
from inferometer.run import simulate as simulation
from inferometer.run import simulated_server
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import Chosen, choose

FAMILY = "agent sessions"
SESSIONS, WARM, STEPS = 300, 10, 4
READ, SUBAGENT = 1, 2
FIGURES = {"duration": "duration_ms", "TTFT of the task": "ttft_ms", "last answer": "last_answer_ms"}
LONG_MS = 15_000
"""Of thinking, twice, in a session in 25; the load lasts as long as one of these."""
Session = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Situation:
    """What is sent, and what goes wrong. `flags`: of `inferometer simulate`."""

    sessions: str = "branching"
    flags: Mapping[str, object] = field(default_factory=dict)
    fault: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext


class Silent:
    """A Ui that says nothing."""

    def note(self, text: str) -> None:
        """See Ui."""

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None:
        """See Ui."""


def branching() -> Iterator[Session]:
    """A plan; a tool's result and a subagent side by side; an answer that waits for both."""
    for at in range(SESSIONS + WARM):
        plan = {"name": "plan", "messages": [_user(f"Question {at}")], "output_tokens": 20}
        read = {"name": "read", "tool_ms": 400, "messages": [_user(f"Result {at}")], "output_tokens": 10}
        sub = {"name": "sub", "agent": "sub", "after": ["plan"], "extends": None, "think_ms": 5} | {
            "messages": [_user(f"Look up {at}")],
            "output_tokens": 40,
        }
        answer = {
            "after": ["read", "sub"],
            "extends": "read",
            "messages": [_user("And?")],
            "output_tokens": 30,
        }
        yield {"session": f"s{at}", "steps": [plan, read, sub, answer]}


def uneven() -> Iterator[Session]:
    """Three steps; one session in 25 thinks for LONG_MS between them, the others for 50 ms."""
    for at in range(1_300):
        think = LONG_MS if at % 25 == 7 else 50
        steps = [{"messages": [_user(f"{at} {step}")], "output_tokens": 4} for step in range(3)]
        yield {"session": f"s{at}", "steps": [steps[0], *(step | {"think_ms": think} for step in steps[1:])]}


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": f"{text} {'of the river and the sea ' * 20}"}


KINDS: Mapping[str, Callable[[], Iterator[Session]]] = {"branching": branching, "uneven": uneven}


def carried_out(situation: Situation) -> Summary:
    """The simulation of a situation."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "sessions.jsonl"
        file.write_text("".join(json.dumps(one) + "\n" for one in KINDS[situation.sessions]()))
        flags = {"--sessions": str(file), "--rate": "20", "--warmup": str(WARM * STEPS), **situation.flags}
        with situation.fault():
            return simulate(build(None, flags), choose(None, ()), Path(name), Silent()).summary


def headlines(summary: Summary) -> dict[str, Headline]:
    """Of sessions."""
    found: dict[str, Headline] = {}
    for name, key in FIGURES.items():
        stats = getattr(summary.agent_sessions, key)
        if stats is not None:
            for point in ("mean", "p50", "p99"):
                words = f"{name} {point.upper() if point != 'mean' else point}"
                found[words] = Headline(getattr(stats, point), None)
    return found


@lru_cache(maxsize=8)
def _truth(sessions: str, *flags: tuple[str, str]) -> Mapping[str, Headline]:
    return headlines(carried_out(Situation(sessions, dict(flags))))


@contextlib.contextmanager
def dropped() -> Iterator[None]:
    """Each tenth subagent is left out, as if it had come too late."""
    await_step = StepPacer._await

    def dropping(self: StepPacer, row: int, cycle: int, since: int, **more: Any) -> None:
        if row % (10 * STEPS) == SUBAGENT:
            self._leave_out([row], cycle, since)
        else:
            await_step(self, row, cycle, since, **more)

    with mock.patch.object(StepPacer, "_await", dropping):
        yield


@contextlib.contextmanager
def undelayed() -> Iterator[None]:
    """Tools take no time."""
    await_step = StepPacer._await

    def hurrying(self: StepPacer, row: int, cycle: int, since: int, **more: Any) -> None:
        await_step(self, row, cycle, since - self._graph.delay_ns[row], **more)

    with mock.patch.object(StepPacer, "_await", hurrying):
        yield


@contextlib.contextmanager
def mixed() -> Iterator[None]:
    """What one step in forty answered is repeated as the text of another branch."""
    ended = StepShare.ended

    def mixing(self: StepShare, end: Ending, reply: str) -> None:
        ended(self, end, "what the subagent said" if end.row % (10 * STEPS) == READ else reply)

    with mock.patch.object(StepShare, "ended", mixing):
        yield


@contextlib.contextmanager
def elsewhere() -> Iterator[None]:
    """One step in forty repeats the conversation that was put together before its own."""
    taken, last = StepShare._taken, [b""]

    def mixing(self: StepShare, row: int, cycle: int) -> bytes:
        before, last[0] = last[0], taken(self, row, cycle)
        return before if row % (10 * STEPS) == READ else last[0]

    with mock.patch.object(StepShare, "_taken", mixing):
        yield


@contextlib.contextmanager
def declared(**words: str) -> Iterator[None]:
    """The system is declared in these words, where a simulation would declare its own engine, whose prefix cache is off."""
    own = simulated_server.without_server

    def declaring(plan: Plan, engine: Chosen) -> Plan:
        made = own(plan, engine)
        return made.model_copy(update={"sut": made.sut.model_copy(update=words)})

    with mock.patch.object(simulation, "without_server", declaring):
        yield


WHOLE = ("--requests", str(SESSIONS * STEPS))
SERVER = ("--replies", "server")
LATE = {"--rate": "40", "--duration": str(2 * LONG_MS // 1_000)}


def clean() -> Iterator[tuple[str, Callable[[], tuple[str, tuple[str, ...]]]]]:
    """Names and verdicts of runs in which nothing is wrong."""
    situations = {
        "recorded replies": Situation(flags=dict([WHOLE])),
        "the server's replies": Situation(flags=dict([WHOLE, SERVER])),
        "until an instant": Situation(flags={"--duration": "15"}),
        "closed loop": Situation(flags={"--rate": None, "--concurrency": "8", "--duration": "40"}),
    }
    for name, situation in situations.items():
        yield f"{FAMILY}, {name}", partial(_said, situation)


def _said(situation: Situation) -> tuple[str, tuple[str, ...]]:
    verdict = carried_out(situation).verdict
    return verdict.status, tuple(dict.fromkeys(reason.code for reason in verdict.reasons))


def defects() -> Iterator[Defect]:
    """All of this file."""
    send, server = dict([WHOLE]), dict([WHOLE, SERVER])

    def fault(
        name: str, check: str, situation: Situation, *true: tuple[str, str], quick: bool = False
    ) -> Defect:
        def carry_out() -> Case:
            said = carried_out(situation)
            codes = tuple(dict.fromkeys(reason.code for reason in said.verdict.reasons))
            truth = partial(_truth, situation.sessions, *true)
            return Case(said.verdict.status, codes, lambda: bent(headlines(said), truth()))

        return Defect(name, FAMILY, (check,), carry_out, quick)

    yield fault(
        "one subagent in ten dropped",
        "session_steps",
        Situation(flags=send, fault=dropped),
        WHOLE,
        quick=True,
    )
    yield fault("tools take no time", "session_gaps", Situation(flags=send, fault=undelayed), WHOLE)
    yield fault(
        "one reply in forty of another branch",
        "session_context",
        Situation(flags=server, fault=mixed),
        WHOLE,
        SERVER,
    )
    yield fault(
        "one conversation in forty of another step",
        "session_context",
        Situation(flags=send, fault=elsewhere),
        WHOLE,
    )
    warm = Situation(flags=send, fault=partial(declared, cache_state="warm"))
    yield fault("a cold cache called warm, within sessions", "session_cache", warm, WHOLE)
    on = Situation(flags=send, fault=partial(declared, prefix_caching="enabled"))
    yield fault("a prefix cache that is off called on", "session_cache", on, WHOLE)
    many = ("--rate", "40"), ("--requests", "3600")
    yield fault("the load ends before its long sessions do", "session_ends", Situation("uneven", LATE), *many)
