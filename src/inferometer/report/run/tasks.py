"""The tasks of a run as reports show them (draft 4.1.3): how many succeeded, how long they took, and what their system did."""

from __future__ import annotations

from inferometer.documents.summary import Summary
from inferometer.measure.tasks import TaskGroup, TasksAccount, Traced
from inferometer.report.figures import ABSENT, clean, figure, interval, share, with_mark

TITLE = "Tasks"
SCOPE = (
    "Success is that an answer met the task's own criterion of completion. It is no statement about the quality or accuracy of "
    "a model, which section 3 of the draft leaves out."
)
SIMULATED = "answers of a simulated engine are filler, which no criterion is about"
NOT_JUDGED = "the answers were not held to their criteria"
GROUP_HEAD = (
    "Tasks", "Ended", "Completed", "Succeeded", "Unjudged", "Timed out", "Success", "95 % interval", "Latency P50", "P99",
    "of successes P50", "P99", "First answer P50",
)  # fmt: skip
CRITERION_HEAD = ("Criterion", "Passed", "Failed", "Unjudged")
STEP_HEAD = ("Step", "A task, mean", "Max", "Time P50", "P99", "Share of latency")
_STEPS = {
    "model": "Model call",
    "tool": "Tool",
    "retrieval": "Retrieval",
    "rerank": "Reranking",
    "guardrail": "Guardrail",
}


_BY_USAGE = "The steps that the system's usage lists, without their times,"


def line(summary: Summary) -> str | None:
    """All tasks in a sentence; None: the run has none."""
    account = summary.tasks
    if account is None:
        return None
    of = account.all
    counted = f"{figure(of.ended)} task{'' if of.ended == 1 else 's'} ended, {figure(of.completed)} completed"
    if of.different is not None and of.different < of.ended:
        counted = f"{figure(of.ended)} requests of {figure(of.different)} tasks ended, {figure(of.completed)} completed"
    if not account.judged:
        return f"{counted}; {SIMULATED if summary.run.simulated else NOT_JUDGED}."
    said = f"{counted}, {figure(of.succeeded)} succeeded"
    if of.success is not None:
        said += f": {share(of.success)} (95 % interval {_shares(of)})"
    if of.unjudged:
        said += f"; {figure(of.unjudged)} could not be judged and are left out of the share"
    if of.timed_out:
        said += f"; {figure(of.timed_out)} took longer than allowed"
    if account.retried:
        said += f"; {figure(account.retried)} were sent again, on another connection"
    rate = account.succeeded_s
    return said + (f"; {figure(rate)} successes/s." if rate is not None else ".")


def group_rows(account: TasksAccount) -> list[list[str]]:
    """A row for all tasks and one for each class: counts, and latencies in ms."""
    return [_group(one) for one in (account.all, *account.by_class)]


def _group(one: TaskGroup) -> list[str]:
    return [
        "all" if one.name is None else clean(one.name),
        figure(one.ended),
        figure(one.completed),
        figure(one.succeeded),
        figure(one.unjudged),
        figure(one.timed_out),
        share(one.success),
        _shares(one),
        *(with_mark(one.latency_ms, key) for key in ("p50", "p99")),
        *(with_mark(one.success_ms, key) for key in ("p50", "p99")),
        with_mark(one.first_answer_ms, "p50"),
    ]


def _shares(one: TaskGroup) -> str:
    bounds = one.success_ci95
    return ABSENT if bounds is None else interval(tuple(round(end, 4) for end in bounds))


def criterion_rows(account: TasksAccount) -> list[list[str]]:
    """A row for each kind of criterion."""
    return [
        [
            one.criterion or "none: to be complete",
            figure(one.passed),
            figure(one.failed),
            figure(one.unjudged),
        ]
        for one in account.by_criterion
    ]


def traced_line(traced: Traced, account: TasksAccount) -> str:
    """How much of the run the system's own spans tell about, and how many tokens its model calls took."""
    spans = traced.tasks - traced.by_usage
    told = [
        f"{words} of {figure(count)} of {figure(account.all.ended)} tasks"
        for words, count in (("The system's own spans (OpenTelemetry)", spans), (_BY_USAGE, traced.by_usage))
        if count
    ]
    said = "; ".join(told)
    tokens = [
        f"{words} {figure(stats.mean)}"
        for words, stats in (("input", traced.model_input_tokens), ("output", traced.model_output_tokens))
        if stats is not None
    ]
    if tokens:
        said += f"; mean tokens of all model calls of a task: {', '.join(tokens)}"
    if traced.failed_steps is not None and traced.failed_steps.max:
        said += (
            f"; {figure(traced.failed_steps.mean)} steps of a task failed on average, and "
            f"{figure(traced.completed_after_failure)} tasks were completed all the same"
        )
    if traced.resends is not None and traced.resends.max:
        said += f"; the system sent {figure(traced.resends.mean)} requests of a task once more on average"
    return said + "."


def step_rows(traced: Traced) -> list[list[str]]:
    """A row for each kind of step that occurs: how often in a task, and how long, in ms."""
    return [
        [
            _STEPS.get(one.kind, clean(one.kind)),
            figure(one.steps.mean),
            figure(one.steps.max),
            with_mark(one.ms, "p50"),
            with_mark(one.ms, "p99"),
            share(one.share),
        ]
        for one in traced.kinds
        if one.steps is not None and one.steps.max
    ]
