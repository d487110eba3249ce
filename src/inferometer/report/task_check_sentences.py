"""What is said of the check of tasks; the form is that of check_sentences.py."""

from __future__ import annotations

from inferometer.report.server_check_sentences import Wording

_NO_TASKS = "No tasks were sent, none ended, or only a simulated engine answered them."
_AGAIN = (
    "See why answers are unjudged (tasks.arrow), then judge them once more: inferometer recover RUN --tasks FILE, with "
    "--task-commands for commands and judges."
)

TASKS: dict[str, Wording] = {
    "task_results": Wording(
        "Judged tasks",
        "share",
        {
            "pass": "With the answers that could not be judged, successes could be up to {value} more: no more than chance or "
            "{limit} makes them.",
            "unsure": "With the answers that could not be judged, successes could be up to {value} more than counted; {limit} "
            "is accepted.",
            "na": _NO_TASKS,
        },
        {"unsure": _AGAIN},
        {("unjudged", "ended"): "Unjudged: {unjudged} of {ended}."},
    ),
    "task_results:none": Wording(
        "Judged tasks",
        "share",
        {"unsure": "The answers were not held to the criteria of their tasks."},
        {
            "unsure": "Judge them: inferometer recover RUN --tasks FILE, with --task-commands for commands and judges."
        },
    ),
}
