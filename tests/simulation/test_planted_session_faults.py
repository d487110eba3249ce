"""Faults planted in the client that sends recorded sessions, in virtual time: each makes its run INVALID by its own check."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from recorded_sessions import agent, written
from simulating import simulated

from inferometer.documents.summary import Summary
from inferometer.drive.pacer import Ending
from inferometer.drive.share import Assignment
from inferometer.drive.shares import Shares, share_of
from inferometer.drive.step_graph import StepGraph
from inferometer.drive.step_share import StepShare
from inferometer.journal import steps
from inferometer.journal.schedule import Schedule

ROW = 42
"""Of a subagent's step, in the schedule of the warm-up's session and those measured behind it."""
OF_SESSIONS = {"session_steps", "session_gaps", "session_context", "session_cache"}


def failed(out: Path, shares: Shares, **flags: object) -> set[str]:
    """The checks of sessions by which a run of forty sessions is INVALID."""
    return {reason.code for reason in played(out, shares, **flags).verdict.reasons} & OF_SESSIONS


def played(out: Path, shares: Shares = share_of, **flags: object) -> Summary:
    """A simulation of forty sessions."""
    file = written(out / "sessions.jsonl", [agent(str(at)) for at in range(40)])
    given = {"--sessions": str(file), "--rate": "20", "--warmup": "4", "--output-tokens": "8"}
    made = simulated(out, given | {f"--{name}": value for name, value in flags.items()}, shares=shares)
    sessions = made.summary.agent_sessions
    assert sessions is not None
    assert sessions.begun == 40
    return made.summary


@pytest.mark.parametrize("replies", ["recorded", "server"])
def test_a_client_without_a_fault_passes(replies: str, tmp_path: Path) -> None:
    """All four checks of sessions; what it sent was compared, request by request."""
    made = played(tmp_path, replies=replies)
    checks = {check.code: check for check in made.verdict.checks}
    assert {checks[code].status for code in OF_SESSIONS} == {"pass"}
    assert checks["session_context"].facts["continued"] >= 80


class Faulty(StepShare):
    """A client's part of a load of sessions, with a fault; subclasses say which."""

    @classmethod
    def of(cls, schedule: Schedule, assignment: Assignment) -> StepShare:
        """See Shares."""
        return cls(schedule, steps.read(schedule.path.with_name(steps.FILE)), assignment)


class Forgetful(StepGraph):
    """One step is never begun."""

    def following(self, row: int) -> Sequence[int]:
        """See StepGraph."""
        return [one for one in super().following(row) if one != ROW]


class Dropping(Faulty):
    """By that graph."""

    def __init__(self, schedule: Schedule, table: pa.Table, assignment: Assignment) -> None:
        super().__init__(schedule, table, assignment)
        self._graph = Forgetful(schedule, table)


class Hurrying(Faulty):
    """A tool's time is taken off the instant of one step."""

    def __init__(self, schedule: Schedule, table: pa.Table, assignment: Assignment) -> None:
        super().__init__(schedule, table, assignment)
        delays = np.array(self._graph.delay_ns)
        delays[ROW - 1] = 0
        self._graph.delay_ns = delays.data


class Mixing(Faulty):
    """The subagent's answer is taken for that to the step beside it."""

    def ended(self, end: Ending, reply: str) -> None:
        """See Share."""
        super().ended(end, "what the subagent said" if end.row == ROW - 2 else reply)


class Elsewhere(Faulty):
    """One step repeats what was asked for last."""

    _last = b""

    def _taken(self, row: int, cycle: int) -> bytes:
        before, self._last = self._last, super()._taken(row, cycle)
        return before if row == 2 * ROW - 4 else self._last


@pytest.mark.parametrize(
    ("fault", "replies", "found"),
    [
        (Dropping, "recorded", {"session_steps"}),
        (Hurrying, "recorded", {"session_gaps"}),
        (Mixing, "server", {"session_context"}),
        (Mixing, "recorded", set()),
        (Elsewhere, "recorded", {"session_context"}),
    ],
)
def test_a_client_with_a_fault_is_found(
    fault: type[Faulty], replies: str, found: set[str], tmp_path: Path
) -> None:
    """Law: a run in which one step was dropped, hurried, or sent with another's words is INVALID by the check whose matter it
    is alone; where recorded answers are repeated, it is no matter what the server's were taken for."""
    assert failed(tmp_path, fault.of, replies=replies) == found


def test_the_share_of_time_is_in_the_summary(tmp_path: Path) -> None:
    """To one, on the critical path; the file of the run holds the same."""
    made = played(tmp_path).agent_sessions
    assert made is not None
    assert made.time is not None
    parts = (made.time.model, made.time.tools, made.time.thinking, made.time.waiting)
    assert sum(part.value for part in parts) == pytest.approx(1.0)
    (file,) = tmp_path.glob("*/summary.json")
    assert json.loads(file.read_bytes())["agent_sessions"]["begun"] == 40
