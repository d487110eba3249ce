"""Draft 4.5.3, cold start: how long a server takes to be there, and how long its first request waits for its first token.

The draft names both figures and defines neither. Here:

    model load time      from just before the server is started to its first healthy answer
    cold start latency   TTFT of the first request of all after that

A start is: the server stopped, started, one request, one more. Nothing is generated before the first request, neither warm-up
nor a look at what the server takes. The second is of the same length: what it takes less is what the start cost. Each start has
a request of its own, for latency depends on the prompt: the medians are of the workload, and so are their intervals
(measure/median_interval.py). Rows of a file of prompts or tasks are drawn for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from inferometer.documents.campaign import Conditions
from inferometer.documents.note import Note
from inferometer.documents.results import Cell, Column
from inferometer.measure.median_interval import median_interval
from inferometer.plan.schema import Plan
from inferometer.plan.workload import RowsWorkload
from inferometer.procedures.results import Results, Table, Value
from inferometer.procedures.setup import Setup, closed_loop, reseeded, variant, without_warm_up
from inferometer.procedures.step import Performed, Run, Steps, Switch, Switched, is_run, runs
from inferometer.procedures.summary_access import stat

NAME, SECTION = "cold-start", "4.5.3"

FIRST, SECOND = "first", "second"
SEEDS = 7_919
"""Between the seeds of two starts."""


def steps(setup: Setup) -> Steps:
    """Start after start."""
    for number in range(1, setup.tests.cold_start.starts + 1):
        yield Switch("server", "stopped")
        yield Switch("server", "started")
        yield Run(
            _cold(_drawn(setup.plan, number)),
            FIRST,
            Conditions(start=number),
            Note("first_request", {"start": number}),
        )
        yield Run(
            _once(_drawn(setup.plan, number)),
            SECOND,
            Conditions(start=number),
            Note("second_request", {"start": number}),
        )


def planned(setup: Setup) -> Plan:
    """The first run."""
    return _cold(setup.plan)


def results(setup: Setup, done: Sequence[Performed]) -> Results:
    """Each start, and the medians."""
    rows = _rows(done)
    requested = setup.tests.cold_start.starts
    complete = [row for row in rows if None not in row]
    columns = (
        Column("n", "Start"),
        Column("load_s", "Model Load Time", "s"),
        Column("cold_ms", "Cold Start Latency", "ms"),
        Column("warm_ms", "TTFT of the second request", "ms"),
    )
    table = Table("starts", "Cold starts", "4.5.3", columns, tuple(rows))
    return Results(
        values=(
            _load_time(rows, simulated=any(one.outcome.summary.run.simulated for one in runs(done))),
            _median("cold_start_latency", "Cold Start Latency", rows, 2, "ms"),
            _median("second_ttft", "TTFT of the second request", rows, 3, "ms"),
        ),
        tables=(table,),
        notes=(
            Note("cold_start_without_warm_up"),
            Note("cold_start_figures"),
            Note("load_on_first_request"),
        ),
        undecided=()
        if len(complete) == requested
        else (Note("starts_incomplete", {"complete": len(complete), "starts": requested}),),
    )


def _drawn(plan: Plan, number: int) -> Plan:
    """The plan with another request for each start; the first start has the plan's own. Rows of a file are drawn: in the file's
    order each start would have the first."""
    drawn = reseeded(plan, SEEDS * (number - 1))
    if isinstance(plan.workload, RowsWorkload) and plan.workload.order == "file":
        return variant(drawn, workload={"order": "shuffled"})
    return drawn


def _once(plan: Plan) -> Plan:
    return closed_loop(without_warm_up(variant(plan, slos=[])), 1, requests=1)


def _cold(plan: Plan) -> Plan:
    return variant(_once(plan), load={"cold_start": True})


def _rows(done: Sequence[Performed]) -> list[tuple[Cell, ...]]:
    """By start: its number, load time in s, TTFT of the first and of the second request in ms."""
    found: list[list[Cell]] = []
    for one in done:
        if isinstance(one.outcome, Switched) and isinstance(one.step, Switch) and one.step.state == "started":
            found.append([len(found) + 1, one.outcome.seconds, None, None])
        elif is_run(one) and found:
            found[-1][2 if one.step.part == FIRST else 3] = stat(one.outcome.summary, "ttft", "mean")
    return [tuple(row) for row in found]


def _load_time(rows: Sequence[Sequence[Cell]], *, simulated: bool) -> Value:
    """The median. In simulation it is a setting of the engine, alike at each start; where that is not set, nothing."""
    found = _median("load_time", "Model Load Time", rows, 1, "s")
    if not simulated or found.value is None:
        return found
    if not found.value:
        return replace(found, value=None, ci=None, note=Note("load_not_simulated"))
    return replace(found, note=Note("load_is_a_setting"))


def _median(name: str, label: str, rows: Sequence[Sequence[Cell]], column: int, unit: str) -> Value:
    numbers = [float(row[column] or 0) for row in rows if row[column] is not None]
    note = Note("median_of_starts", {"starts": len(numbers)}) if numbers else Note("no_start_measured")
    return Value(name, label, median(numbers) if numbers else None, unit, median_interval(numbers), note)
