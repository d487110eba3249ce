"""The words for what a test notes of the tasks of a compound system: a part of notes.py."""

from __future__ import annotations

from inferometer.report.fact_words import Words
from inferometer.report.run.tasks import SCOPE


def _tasks_succeeded(ended: int, succeeded: int, unjudged: int) -> str:
    left = f"; {unjudged:,} could not be judged" if unjudged else ""
    return f"Of {ended:,} tasks that ended in all runs of the test, warm-ups left out, {succeeded:,} succeeded{left}."


TASKS: dict[str, Words] = {
    "tasks_succeeded": _tasks_succeeded,
    "tasks_not_judged": lambda runs: (
        f"The answers of {runs} run{'' if runs == 1 else 's'} were not held to their tasks' criteria."
    ),
    "completion_is_no_quality": SCOPE,
}
