"""How a record hangs together by steps.arrow: positions, cycles, and files that contradict themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from session_play import FAN_OUT, Played, Step, play

from inferometer.errors import RecordError
from inferometer.journal.steps import StepRow
from inferometer.measure.session_steps import NONE, session_runs


def test_a_session_has_an_entry_for_each_step_in_every_cycle() -> None:
    """Also for steps that have no row; each cycle by itself, in the order of their starts."""
    played = play([FAN_OUT, (Step(),)])
    later = [one | {"cycle": 1, "t_intended": one["t_intended"] + 5_000.0} for one in played.rows[:2]]
    runs = Played(played.schedule, played.steps, (*played.rows, *later)).runs()
    assert len(runs) == 3
    assert [int(size) for size in runs.offsets] == [0, 5, 6, 11]
    assert runs.sent.tolist() == [True] * 8 + [False] * 3
    assert runs.twice == 0
    assert runs.graph.name(3) == "step 3 (s3) of session 0"


def test_a_step_is_due_by_the_last_end_that_it_waits_for() -> None:
    """One that waits for none by its session's start; of the last one it is not known if one before it has no row."""
    played = play([FAN_OUT])
    runs = played.runs()
    record = runs.record
    assert runs.last_before.tolist() == [NONE, 0, 0, 2, 3]
    assert (runs.due_ns == record.t_intended[runs.row]).all()
    left = tuple(one for one in played.rows if one["turn"] != 3)
    cut = Played(played.schedule, played.steps, left).runs()
    assert cut.due_ns[4] == NONE
    assert not cut.ready[4]


def test_the_start_is_known_without_the_first_step() -> None:
    """By another that waits for none, less its delay."""
    played = play([(Step(), Step(think=30.0), Step((1,), 1))])
    whole = played.runs().start_ns
    left = tuple(one for one in played.rows if one["turn"])
    assert (Played(played.schedule, played.steps, left).runs().start_ns == whole).all()


@pytest.mark.parametrize(
    "change",
    [
        {"index": 99},
        {"step": 3},
        {"after": [4]},
        {"after": [2]},
        {"after": [-1]},
        {"extends": 3},
        {"extends": 77},
    ],
)
def test_steps_that_refer_to_what_is_not_before_them_are_refused(
    change: dict[str, Any], tmp_path: Path
) -> None:
    """A step can wait for no later one, for itself or for one of another session: following them ends."""
    played = play([FAN_OUT])
    steps = list(played.steps)
    steps[2] = dataclasses.replace(steps[2], **change)
    damaged = Played(played.schedule, tuple(steps), played.rows)
    damaged.write(tmp_path)
    with pytest.raises(RecordError, match=r"steps\.arrow"):
        damaged.graph(tmp_path)


def test_a_record_without_sessions_has_no_runs(tmp_path: Path) -> None:
    """Nor has a schedule without steps."""
    played = play([FAN_OUT])
    played.write(tmp_path)
    graph = played.graph(tmp_path)
    assert len(session_runs(graph, play([FAN_OUT], session=None).record())) == 0
    Played((), (), played.rows).write(tmp_path)
    assert len(session_runs(played.graph(tmp_path), played.record())) == 0


@pytest.mark.parametrize(
    "kept",
    [
        lambda rows: (),
        lambda rows: rows[: len(FAN_OUT)],
        lambda rows: tuple(one for one in rows if one.step < len(FAN_OUT) - 1),
        lambda rows: tuple(dataclasses.replace(one, session=one.session + 1) for one in rows),
        lambda rows: tuple(dataclasses.replace(one, step=at) for at, one in enumerate(rows)),
        lambda rows: tuple(dataclasses.replace(one, tool_ns=-1) for one in rows),
        lambda rows: tuple(dataclasses.replace(one, tool_ns=10**12) for one in rows),
    ],
    ids=[
        "none",
        "a session less",
        "shorter sessions",
        "others",
        "one session",
        "negative tools",
        "long tools",
    ],
)
def test_steps_that_are_not_those_of_the_schedule_are_refused(
    tmp_path: Path, kept: Callable[[tuple[StepRow, ...]], tuple[StepRow, ...]]
) -> None:
    """Law: figures are of all sessions that were sent. One that is missing from the steps would fail no check."""
    played = play([FAN_OUT] * 2)
    dataclasses.replace(played, steps=kept(played.steps)).write(tmp_path)
    with pytest.raises(RecordError, match=r"steps\.arrow is damaged"):
        played.graph(tmp_path)
