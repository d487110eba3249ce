"""Recorded agent sessions played in virtual time: their schedule, their steps and the record of a client that sent them, with
or without a fault of that client planted in it."""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from measure.conftest import pulses, row

from inferometer.engines.dialect import GenerationRequest, messages_bytes
from inferometer.engines.openai import CHAT
from inferometer.journal import steps as step_rows
from inferometer.journal.schedule import Schedule, Scheduled, asked, write
from inferometer.journal.schema import RECORD, EventClass, Outcome, Phase
from inferometer.journal.steps import StepRow
from inferometer.measure.record import Record
from inferometer.measure.sent_bodies import COLUMNS, SentBodies, sent_bodies
from inferometer.measure.session_steps import ASKED, NONE, SessionRuns, StepGraph, session_runs

MS = 1_000_000
LATE_MS = 0.02
TTFT_MS, GAP_MS, CLOSE_MS = 40.0, 10.0, 0.5
TOKENS = 4
"""Of each answer."""

At = tuple[int, int]
"""A session and a step of it."""


@dataclass(frozen=True)
class Step:
    """One step. Times in ms. `reply`: recorded, as JSON (with a zero byte where the server's text goes); None: the server's."""

    after: tuple[int, ...] = ()
    extends: int | None = None
    think: float = 0.0
    tool: float = 0.0
    reply: bytes | None = None
    visible: bool = False
    agent: str | None = None
    own_tokens: int = 100
    slow: float = 0.0
    ok: bool = True


FAN_OUT = (
    Step(agent="main", own_tokens=400),
    Step((0,), 0, tool=120.0, agent="main"),
    Step((0,), None, tool=20.0, agent="search", own_tokens=300),
    Step((2,), 2, think=5.0, tool=50.0, agent="search"),
    Step((1, 3), 1, think=30.0, tool=10.0, visible=True, agent="main"),
)
"""A plan, a branch of the main agent's own, a subagent of two steps, and an answer that waits for both."""


@dataclass(frozen=True)
class Faults:
    """Of the client: steps that it did not send; whose delay it ignored; that it sent so many ms before they were due; and that
    repeat the conversation of another step of their session."""

    dropped: Collection[At] = ()
    undelayed: Collection[At] = ()
    early: Mapping[At, float] = field(default_factory=dict)
    wrong_branch: Mapping[At, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Played:
    """What a run folder would hold."""

    schedule: tuple[Scheduled, ...]
    steps: tuple[StepRow, ...]
    rows: tuple[dict[str, Any], ...]

    def record(self, table: pa.Table | None = None, **more: Any) -> Record:
        """As it is measured; `table`: another record of it."""
        health = [{"t_ns": 0, "t_ms": at, "reads": 1} for at in (0.0, 1e6)]
        return Record.from_tables(self.table() if table is None else table, pulses(*health), **more)

    def table(self) -> pa.Table:
        """The record in its order."""
        made = sorted((row(**dict(one)) for one in self.rows), key=lambda one: int(one["t_intended"]))
        return pa.Table.from_pylist(made, schema=RECORD)

    def runs(self, *, server_replies: bool = False, **more: Any) -> SessionRuns:
        """The sessions of the record."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder))
            graph = self.graph(Path(folder), server_replies=server_replies)
        return session_runs(graph, self.record(**more))

    def write(self, folder: Path) -> None:
        """The schedule and the steps as files."""
        write(folder / "requests.arrow", self.schedule)
        step_rows.write(folder / "steps.arrow", self.steps)

    def graph(self, folder: Path, *, server_replies: bool = False) -> StepGraph:
        """Of the files in a folder."""
        return StepGraph.from_tables(
            step_rows.read(folder / "steps.arrow"),
            asked(folder / "requests.arrow", ASKED),
            server_replies=server_replies,
        )

    def bodies(self, table: pa.Table | None = None, *, streamed: bool = True) -> SentBodies:
        """What the record says was sent, against what schedule and texts give."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.write(folder)
            graph = self.graph(folder)
            extends = {
                int(graph.index[at]): int(graph.index[graph.extends[at]])
                for at in range(len(graph))
                if graph.extends[at] != NONE
            }
            parts = [(self.table() if table is None else table).select(COLUMNS)]
            return sent_bodies(Schedule(folder / "requests.arrow"), extends, parts, streamed=streamed)


def reply_of(recorded: bytes | None, text: str) -> bytes:
    """What is repeated of an answer."""
    if recorded is None:
        return messages_bytes([("assistant", text)])
    return recorded.replace(b"\0", json.dumps(text, ensure_ascii=False).encode())


def play(
    sessions: Sequence[Sequence[Step]],
    faults: Faults = Faults(),
    *,
    every_ms: float = 100.0,
    cached: float = 1.0,
    **every_row: Any,
) -> Played:
    """Sessions that begin so far apart. `cached`: of what a step repeats, the share that the server says it found."""
    schedule: list[Scheduled] = []
    steps: list[StepRow] = []
    rows: list[dict[str, Any]] = []
    for session, plan in enumerate(sessions):
        one = _Session(session, plan, len(schedule), session * every_ms, faults, cached)
        schedule += one.schedule
        steps += one.steps
        rows += [made | every_row for made in one.rows]
    return Played(tuple(schedule), tuple(steps), tuple(rows))


class _Session:
    def __init__(
        self, number: int, plan: Sequence[Step], first: int, start: float, faults: Faults, cached: float
    ) -> None:
        self.number, self.plan, self.first, self.start = number, plan, first, start
        self.faults, self.cached = faults, cached
        self.schedule = [self._scheduled(at) for at in range(len(plan))]
        self.steps = [self._step(at) for at in range(len(plan))]
        self.rows: list[dict[str, Any]] = []
        self._ends: dict[int, float] = {}
        self._said: dict[int, bytes] = {}
        self._prompts: dict[int, int] = {}
        for at in range(len(plan)):
            self._send(at)

    def _own(self, at: int) -> bytes:
        return messages_bytes([("user", f"{self.number}.{at}: what of \u00e9?")])

    def _scheduled(self, at: int) -> Scheduled:
        step, own = self.plan[at], self._own(at)
        body = CHAT.body(GenerationRequest("m", json.loads(own)["content"], TOKENS))
        return Scheduled(
            self.first + at, int(Phase.MEASURE), round(self.start * MS) if at == 0 else None, body, -1, 0,
            step.own_tokens, step.own_tokens, TOKENS, session=self.number, turn=at, turns=len(self.plan),
            think_ns=round((step.think + step.tool) * MS), own_at=body.index(own), own_len=len(own), reply=step.reply,
        )  # fmt: skip

    def _step(self, at: int) -> StepRow:
        step = self.plan[at]
        extends = None if step.extends is None else self.first + step.extends
        return StepRow(
            self.first + at, self.number, at, [self.first + one for one in step.after], extends,
            round(step.tool * MS), step.visible, f"s{at}", step.agent,
        )  # fmt: skip

    def _send(self, at: int) -> None:
        step, key = self.plan[at], (self.number, at)
        if key in self.faults.dropped or any(one not in self._ends for one in step.after):
            return
        begin = max((self._ends[one] for one in step.after), default=self.start)
        intended = begin + (0.0 if key in self.faults.undelayed else step.think + step.tool)
        submit = intended + LATE_MS - self.faults.early.get(key, 0.0)
        first = submit + TTFT_MS + step.slow
        events = [(first + GAP_MS * n, EventClass.CONTENT) for n in range(TOKENS)] if step.ok else []
        end = (events[-1][0] if events else first) + CLOSE_MS
        text = f"answer {self.number}.{at} \u2713"
        before = self.faults.wrong_branch.get(key, step.extends)
        history = b"" if before is None else self._said[before]
        body, place = self.schedule[at].body, self.schedule[at].own_at
        sent = body[:place] + history + body[place:]
        repeated = 0 if step.extends is None else self._prompts[step.extends] + TOKENS
        self._prompts[at] = repeated + step.own_tokens
        if step.ok:
            self._ends[at] = end
            self._said[at] = history + self._own(at) + b"," + reply_of(step.reply, text) + b","
        self.rows.append(
            {
                "index": self.first + at,
                "t_intended": intended,
                "t_taken": min(intended, submit),
                "t_send": submit,
                "t_submit": submit,
                "t_end": end,
                "events": events,
                "outcome": Outcome.OK if step.ok else Outcome.TIMEOUT,
                "text": text if step.ok else None,
                "session": self.number,
                "turn": at,
                "turns": len(self.plan),
                "due_ns": self.schedule[at].due_ns,
                "usage_input": self._prompts[at] if step.ok else None,
                "usage_output": TOKENS if step.ok else None,
                "usage_cached": round(self.cached * repeated) if step.ok else None,
                "input_tokens_sent": step.own_tokens,
                "body_crc": zlib.crc32(sent),
            }
        )
