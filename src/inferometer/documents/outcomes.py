"""Figures of a run that no single request has: the share of tasks that succeeded, and recorded sessions as wholes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inferometer.documents.summary import Summary
from inferometer.metrics.catalogue import SESSION_METRICS, SESSION_RATES, TASK_SUCCESS, Better, SessionEntry
from inferometer.metrics.statistics import Interval, Stats

_TASKS = "Tasks whose answer met its criterion in time, among those that ended and were judged."


@dataclass(frozen=True, slots=True)
class Outcome:
    """A rate or a share, `unit` 1, with its 95 % interval if it has one. `better`: which direction is."""

    key: str
    title: str
    means: str
    unit: str
    better: Better
    value: float
    ci95: Interval | None


def outcomes(summary: Summary) -> Iterator[Outcome]:
    """Those that the run has."""
    for key, entry in SESSION_RATES.items():
        rate = getattr(summary.agent_sessions, entry.of, None)
        if rate is not None:
            yield Outcome(key, entry.title, entry.means, entry.unit, entry.better, rate.value, rate.ci95)
    tasks = None if summary.tasks is None else summary.tasks.all
    if tasks is not None and tasks.success is not None:
        yield Outcome(TASK_SUCCESS, "Task Success", _TASKS, "1", "more", tasks.success, tasks.success_ci95)


def distributions(summary: Summary) -> Iterator[tuple[str, SessionEntry, Stats]]:
    """Those that the run has."""
    for key, entry in SESSION_METRICS.items():
        stats: Stats | None = getattr(summary.agent_sessions, entry.of, None)
        if stats is not None:
            yield key, entry, stats
