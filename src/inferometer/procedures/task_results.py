"""What became of the tasks of a compound system's test (draft 4.1.3): a table of its runs, beside what the test is about.

A compound system is measured by the completion of tasks, so a test of it shows at each of its loads how many succeeded: an
answer that comes quickly and is wrong is no result. Warm-ups are left out, as they are everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from inferometer.documents.note import Note
from inferometer.documents.results import Cell, Column
from inferometer.measure.tasks import TasksAccount
from inferometer.metrics.catalogue import TASK_SHARE
from inferometer.procedures.results import Results, Table, Value, joined
from inferometer.procedures.setup import WARMUP_PART, Setup
from inferometer.procedures.step import Performed, PerformedRun, is_run

NAME = "tasks"

Reckoned = Callable[[Setup, Sequence[Performed]], Results]


def with_tasks(results: Reckoned) -> Reckoned:
    """The results of a test, with its tasks where it has some."""

    def reckoned(setup: Setup, done: Sequence[Performed]) -> Results:
        return joined([results(setup, done), of_tasks(done)])

    return reckoned


def of_tasks(done: Sequence[Performed]) -> Results:
    """The table, and that success is completion (draft 3); nothing without tasks."""
    made = list(_with_accounts(done))
    if not made:
        return Results()
    judged = [one for _, account in made if account.judged and (one := account.all).succeeded is not None]
    totals = {
        "ended": sum(one.ended for one in judged),
        "succeeded": sum(one.succeeded or 0 for one in judged),
        "unjudged": sum(one.unjudged or 0 for one in judged),
    }
    notes = [Note("tasks_succeeded", totals, capacity=True)] if judged else []
    if len(judged) < len(made):
        notes.append(Note("tasks_not_judged", {"runs": len(made) - len(judged)}))
    values = (_share(totals),) if len(judged) == len(made) and totals["ended"] > totals["unjudged"] else ()
    return Results(values, (_table(made),), notes=(*notes, Note("completion_is_no_quality")))


def _share(totals: dict[str, int]) -> Value:
    """What `compare` and `history` look at: a system that answers as fast, and more often wrongly, is another one."""
    share = totals["succeeded"] / (totals["ended"] - totals["unjudged"])
    left_out = Note("tasks_succeeded", totals, capacity=True) if totals["unjudged"] else None
    return Value(TASK_SHARE, "Tasks that succeeded", 100 * share, "%", note=left_out)


def _with_accounts(done: Sequence[Performed]) -> Iterator[tuple[PerformedRun, TasksAccount]]:
    for one in done:
        if is_run(one) and one.step.part != WARMUP_PART:
            account = one.outcome.summary.tasks
            if account is not None:
                yield one, account


def _table(made: Sequence[tuple[PerformedRun, TasksAccount]]) -> Table:
    columns = (
        Column("part", "Part"),
        Column("of", "Of"),
        Column("percent", "Load level", "%"),
        Column("rate", "Offered", "tasks/s", capacity=True),
        Column("concurrency", "In flight", capacity=True),
        Column("ended", "Ended", capacity=True),
        Column("completed", "Completed", capacity=True),
        Column("succeeded", "Succeeded", capacity=True),
        Column("unjudged", "Unjudged", capacity=True),
        Column("success", "Success", "%"),
        Column("low", "95 % from", "%"),
        Column("high", "to", "%"),
        Column("latency_p50", "Latency of successes P50", "ms", capacity=True),
    )
    rows = tuple(_row(one, account) for one, account in made)
    return Table(NAME, "Tasks by run", "4.1.3", columns, rows)


def _row(one: PerformedRun, account: TasksAccount) -> tuple[Cell, ...]:
    at, every = one.step.at, account.all
    bounds = every.success_ci95 or (None, None)
    return (
        one.step.part,
        at.configuration or ("" if at.start is None else f"start {at.start}"),
        *("" if value is None else value for value in (at.percent, at.rate, at.concurrency)),
        every.ended,
        every.completed,
        every.succeeded,
        every.unjudged,
        _percent(every.success),
        *map(_percent, bounds),
        None if every.success_ms is None else every.success_ms.p50,
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
