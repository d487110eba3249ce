"""Which share an assignment of a schedule is: of requests alone, of turns, or of the steps of recorded sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from inferometer.drive.share import Assignment, Share, TurnShare
from inferometer.drive.step_share import StepShare
from inferometer.journal import steps
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import Phase

Shares = Callable[[Schedule, Assignment], Share]
"""From a schedule and an assignment of it to the share."""


def share_of(schedule: Schedule, assignment: Assignment) -> Share:
    """The requests of an assignment. A probe is due at once, whatever the load."""
    if assignment.phase == Phase.PROBE:
        return Share(schedule, replace(assignment, slots=None))
    graph = schedule.path.with_name(steps.FILE)
    if graph.is_file():
        return StepShare(schedule, steps.read(graph), assignment)
    table = schedule.table
    alone = table.column("session").null_count == table.column("user").null_count == len(schedule)
    return (Share if alone else TurnShare)(schedule, assignment)
