"""Every procedure's results after every step, so that a test that ends early still has what it learned."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from procedures.driving import Silent

from inferometer.documents.note import Note
from inferometer.documents.part import to_data
from inferometer.plan.procedure_parameters import Tests, quickened
from inferometer.plan.schema import Plan
from inferometer.procedures.registry import PROCEDURES
from inferometer.procedures.results import Results
from inferometer.procedures.setup import Setup
from inferometer.procedures.step import Measured, Performed, PerformedRun, Run, Step, Switched
from inferometer.report.campaign.notes import worded
from inferometer.server.engine.settings import Settings
from inferometer.simulation.engine import Chosen
from inferometer.studies.stand import Virtual

ENGINE = Settings(max_batch=8, step_base_ns=20_000_000, input_check_ns=5_000_000, output_check_tokens=16)
PLAN = Plan.model_validate(
    {
        "target": {"api": "completions"},  # prompts as ids: no time goes into words
        "workload": {"name": "custom", "input_tokens": "64", "output_tokens": "50"},
        "slos": ["ttft_p99<1s"],
    }
)
SMALL: dict[str, Any] = {
    "search": {
        "least_requests": 20,
        "level_s": 3,
        "longer": 0,
        "resolution": 0.5,
        "pilot_requests": 16,
        "pilot_concurrency": 8,
    },
    "ttft": {"requests": 20, "percent": [50], "concurrencies": [2]},
    "fairness": {
        "classes": [
            {"name": "short", "input_tokens": [64, 256], "output_tokens": [32, 128], "share": 0.5},
            {"name": "long", "input_tokens": [256, 512], "output_tokens": [128, 256], "share": 0.5},
        ],
        "duration_s": 3,
    },
    "prefix-cache": {"requests": 20, "throughput_s": 3},
    "guardrail": {"configurations": ["baseline", "full"], "throughput_s": 3, "duration_s": 2},
    "memory-pressure": {"input_tokens": "128", "output_tokens": "50", "maximum": 4, "duration_s": 3},
}


def gone_through(name: str, folder: Path) -> Iterator[tuple[Setup, list[Performed]]]:
    """A quick test in virtual time: what was done, before its first step and after each."""
    procedure, stand = PROCEDURES[name], Virtual(Chosen("tiny-cpu", ENGINE), Silent())
    setup = Setup(PLAN, Tests.model_validate(quickened(SMALL)))
    steps, done = procedure.steps(setup), list[Performed]()
    came: Measured | Switched | None = None
    while True:
        yield setup, list(done)
        try:
            step = steps.send(came)
        except StopIteration:
            return
        came = _carried_out(step, stand, folder)
        done.append(
            PerformedRun(step, came)
            if isinstance(step, Run) and isinstance(came, Measured)
            else Performed(step, came)
        )


def _carried_out(step: Step, stand: Virtual, folder: Path) -> Measured | Switched:
    if isinstance(step, Run):
        finding = stand.measure(step.plan, folder)
        return Measured(finding.folder.name, finding.summary)
    return stand.switch(step.what, step.state)


def notes_of(found: Results) -> list[Note]:
    """Every note of some results, wherever it stands."""
    of_values = [value.note for value in found.values if value.note is not None]
    return [
        *found.notes,
        *found.undecided,
        *of_values,
        *(note for table in found.tables for note in table.notes),
    ]


LOADS = ("req/s", "tok/s", "tok/s/GPU", "in flight")


def unmarked(found: Results) -> list[str]:
    """What is a load by its unit and is not marked as telling the capacity."""
    values = [value.name for value in found.values if value.unit in LOADS and not value.capacity]
    columns = [
        f"{table.name}.{column.name}"
        for table in found.tables
        for column in table.columns
        if column.unit in LOADS and not (table.capacity or column.capacity)
    ]
    axes = [
        figure.name
        for figure in found.figures
        for axis in (figure.x, figure.y)
        if axis.unit in LOADS and not (figure.capacity or axis.capacity)
    ]
    return values + columns + axes


@pytest.mark.parametrize("name", list(PROCEDURES))
def test_results_of_any_part_of_a_test_are_whole(name: str, tmp_path: Path) -> None:
    """After each step: each row has its cells, each note its words, and each load is marked as one."""
    last = Results()
    for setup, done in gone_through(name, tmp_path):
        last = PROCEDURES[name].results(setup, done)
        json.dumps(to_data(last), allow_nan=False)
        assert not unmarked(last)
        for note in notes_of(last):
            assert worded(note)
        for table in last.tables:
            assert all(len(row) == len(table.columns) for row in table.rows), table.name
        for figure in last.figures:
            assert all(len(series.x) == len(series.y) for series in figure.series), figure.name
    assert last.values
    assert last.tables
