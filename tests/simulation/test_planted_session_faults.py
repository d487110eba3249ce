"""Faults planted in the client that sends recorded sessions, in virtual time: each makes its run INVALID by its own check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_sessions import agent, written
from simulating import simulated

from inferometer.documents.summary import Summary
from inferometer.drive.pacer import Ending
from inferometer.drive.step_pacer import StepPacer
from inferometer.drive.step_share import StepShare

ROW = 42
"""Of a subagent's step, in the schedule of the warm-up's session and those measured behind it."""
OF_SESSIONS = {"session_steps", "session_gaps", "session_context", "session_cache"}


def failed(out: Path, **flags: object) -> set[str]:
    """The checks of sessions by which a run of forty sessions is INVALID."""
    return {reason.code for reason in played(out, **flags).verdict.reasons} & OF_SESSIONS


def played(out: Path, **flags: object) -> Summary:
    """A simulation of forty sessions."""
    file = written(out / "sessions.jsonl", [agent(str(at)) for at in range(40)])
    given = {"--sessions": str(file), "--rate": "20", "--warmup": "4", "--output-tokens": "8"}
    made = simulated(out, given | {f"--{name}": value for name, value in flags.items()})
    steps = made.summary.agent_sessions
    assert steps is not None
    assert steps.begun == 40
    return made.summary


@pytest.mark.parametrize("replies", ["recorded", "server"])
def test_a_client_without_a_fault_passes(replies: str, tmp_path: Path) -> None:
    """All four checks of sessions; what it sent was compared, request by request."""
    made = played(tmp_path, replies=replies)
    checks = {check.code: check for check in made.verdict.checks}
    assert {checks[code].status for code in OF_SESSIONS} == {"pass"}
    assert checks["session_context"].facts["continued"] >= 80


def test_a_subagent_that_is_dropped_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a pacer that leaves one step out as if it had come too late."""
    await_step = StepPacer._await

    def dropping(self: StepPacer, row: int, cycle: int, since: int, **more: Any) -> None:
        if row == ROW:
            self._leave_out([row], cycle, since)
        else:
            await_step(self, row, cycle, since, **more)

    monkeypatch.setattr(StepPacer, "_await", dropping)
    assert failed(tmp_path) == {"session_steps"}


def test_a_delay_that_is_ignored_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a pacer that takes a tool's time off the instant of one step."""
    await_step = StepPacer._await

    def hurrying(self: StepPacer, row: int, cycle: int, since: int, **more: Any) -> None:
        await_step(self, row, cycle, since - self._graph.delay_ns[row] * (row == ROW - 1), **more)

    monkeypatch.setattr(StepPacer, "_await", hurrying)
    assert failed(tmp_path) == {"session_gaps"}


def test_a_reply_of_another_branch_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a share that takes the subagent's answer for that to the step beside it."""
    ended = StepShare.ended

    def mixing(self: StepShare, end: Ending, reply: str) -> None:
        ended(self, end, "what the subagent said" if end.row == ROW - 2 else reply)

    monkeypatch.setattr(StepShare, "ended", mixing)
    assert failed(tmp_path, replies="server") == {"session_context"}
    assert failed(tmp_path, replies="recorded") == set()


def test_a_conversation_of_another_session_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a share that repeats for one step what was asked for last."""
    taken, last = StepShare._taken, [b""]

    def mixing(self: StepShare, row: int, cycle: int) -> bytes:
        before, last[0] = last[0], taken(self, row, cycle)
        return before if row == 2 * ROW - 4 else last[0]

    monkeypatch.setattr(StepShare, "_taken", mixing)
    assert failed(tmp_path) == {"session_context"}


def test_the_share_of_time_is_in_the_summary(tmp_path: Path) -> None:
    """To one, on the critical path; the file of the run holds the same."""
    made = played(tmp_path).agent_sessions
    assert made is not None
    assert made.time is not None
    parts = (made.time.model, made.time.tools, made.time.thinking, made.time.waiting)
    assert sum(part.value for part in parts) == pytest.approx(1.0)
    (file,) = tmp_path.glob("*/summary.json")
    assert json.loads(file.read_bytes())["agent_sessions"]["begun"] == 40
