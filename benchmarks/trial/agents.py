"""Recorded agent sessions, sent by the product's own client in virtual time, with a defect of that client, of its load or of
its declaration: dropped subagents, ignored delays, other branches' answers, a cold cache called warm, sessions that do not end.

The headlines are those of sessions: how long they last, and when their user sees the first token and the last answer.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from benchmarks.trial.defects import Case, Defect
from benchmarks.trial.records import Headline, bent
from inferometer.documents.summary import Summary
from inferometer.drive.pacer import Ending
from inferometer.drive.progress_counters import Progress
from inferometer.drive.share import Assignment
from inferometer.drive.shares import Shares, share_of
from inferometer.drive.step_graph import StepGraph
from inferometer.drive.step_share import StepShare
from inferometer.journal import steps
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import Phase
from inferometer.plan import saved
from inferometer.plan.parse import build
from inferometer.run.evaluate import evaluate
from inferometer.run.facts import read_facts, write_facts
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

FAMILY = "agent sessions"
SESSIONS, WARM, STEPS = 300, 10, 4
READ, SUBAGENT = 1, 2
FIGURES = {"duration": "duration_ms", "TTFT of the task": "ttft_ms", "last answer": "last_answer_ms"}
LONG_MS = 15_000
"""Of thinking, twice, in a session in 25; the load lasts as long as one of these."""
Session = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Situation:
    """What is sent, and what goes wrong. `flags`: of `inferometer simulate`; `shares`: the client's parts of the load;
    `declared`: of the system, as it is not."""

    sessions: str = "branching"
    flags: Mapping[str, object] = field(default_factory=dict)
    shares: Shares = share_of
    declared: Mapping[str, str] = field(default_factory=dict)


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
        result = simulate(build(None, flags), choose(None, ()), Path(name), Silent(), shares=situation.shares)
        return (
            declared(RunFolder(result.folder), situation.declared) if situation.declared else result.summary
        )


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


class Faulty(StepShare):
    """A client's part of a load of sessions, with a fault; subclasses say which. `steps`: of the run's folder."""

    @classmethod
    def of(cls, schedule: Schedule, assignment: Assignment) -> StepShare:
        """The share of an assignment, as `share_of` makes it."""
        return cls(schedule, steps.read(schedule.path.with_name(steps.FILE)), assignment)


class Dropping(Faulty):
    """Each tenth subagent is never begun, and what waits for it neither."""

    def __init__(self, schedule: Schedule, table: pa.Table, assignment: Assignment) -> None:
        super().__init__(schedule, table, assignment)
        self._graph = _Forgetting(schedule, table)


class _Forgetting(StepGraph):
    def following(self, row: int) -> Sequence[int]:
        """See StepGraph."""
        return [one for one in super().following(row) if one % (10 * STEPS) != SUBAGENT]


class Hurrying(Faulty):
    """Tools take no time."""

    def __init__(self, schedule: Schedule, table: pa.Table, assignment: Assignment) -> None:
        super().__init__(schedule, table, assignment)
        self._graph.delay_ns = np.zeros(len(schedule), np.int64).data


class Mixing(Faulty):
    """What one step in forty answered is repeated as the text of another branch."""

    def ended(self, end: Ending, reply: str) -> None:
        """See Share."""
        super().ended(end, "what the subagent said" if end.row % (10 * STEPS) == READ else reply)


class Elsewhere(Faulty):
    """One step in forty repeats the conversation that was put together before its own."""

    _last = b""

    def _taken(self, row: int, cycle: int) -> bytes:
        before, self._last = self._last, super()._taken(row, cycle)
        return before if row % (10 * STEPS) == READ else self._last


def declared(folder: RunFolder, words: Mapping[str, str]) -> Summary:
    """The run measured and judged once more with its system declared in these words. A simulation declares its own engine,
    whose prefix cache is off."""
    plan = saved.read(folder.plan)
    plan = plan.model_copy(update={"sut": plan.sut.model_copy(update=dict(words))})
    folder.plan.write_bytes(saved.to_json(plan))
    write_facts(folder, replace(read_facts(folder), plan_hash=saved.plan_hash(plan)))
    return evaluate(folder).summary


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
        Situation(flags=send, shares=Dropping.of),
        WHOLE,
        quick=True,
    )
    yield fault("tools take no time", "session_gaps", Situation(flags=send, shares=Hurrying.of), WHOLE)
    yield fault(
        "one reply in forty of another branch",
        "session_context",
        Situation(flags=server, shares=Mixing.of),
        WHOLE,
        SERVER,
    )
    yield fault(
        "one conversation in forty of another step",
        "session_context",
        Situation(flags=send, shares=Elsewhere.of),
        WHOLE,
    )
    warm = Situation(flags=send, declared={"cache_state": "warm"})
    yield fault("a cold cache called warm, within sessions", "session_cache", warm, WHOLE)
    on = Situation(flags=send, declared={"prefix_caching": "enabled"})
    yield fault("a prefix cache that is off called on", "session_cache", on, WHOLE)
    many = ("--rate", "40"), ("--requests", "3600")
    yield fault("the load ends before its long sessions do", "session_ends", Situation("uneven", LATE), *many)
