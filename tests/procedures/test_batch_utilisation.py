"""Draft 5.2.4.2: the share of the largest batch in use."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_runs
from procedures.summaries import summary

from inferometer.measure.server import Level
from inferometer.plan.procedure_parameters import Tests
from inferometer.plan.schema import Plan
from inferometer.procedures.batch_utilisation import batch_utilisation
from inferometer.procedures.setup import Setup

RUNNING = Level(24.0, 32.0, 3.0)


@pytest.mark.parametrize(
    ("declared", "known", "running", "share", "code"),
    [
        (32, None, RUNNING, 75.0, "running_of_batch"),
        (None, 48, RUNNING, 50.0, "running_of_batch"),
        (64, 48, RUNNING, 37.5, "running_of_batch"),
        (16, None, RUNNING, None, "running_above_batch"),
        (32, None, None, None, "running_not_scraped"),
        (None, None, RUNNING, None, "batch_size_unknown"),
    ],
)
def test_the_share_is_of_a_batch_that_is_declared_or_known(
    declared: int | None, known: int | None, running: Level | None, share: float | None, code: str
) -> None:
    """A declaration goes first, one that the gauge contradicts gives no share, and without either there is none."""
    setup = Setup(Plan(), Tests.model_validate({"throughput": {"max_batch": declared}}), max_batch=known)
    found = batch_utilisation(setup, summary(server=replace(sample_runs.server_metrics(), running=running)))
    assert (found.value, found.note and found.note.code) == (share, code)


def test_tasks_at_a_compound_system_are_no_batch() -> None:
    """Whatever was declared: its batches are inside its boundary (draft 4.1.3)."""
    plan = Plan.model_validate({"sut": {"boundary": "compound"}})
    setup = Setup(plan, Tests.model_validate({"throughput": {"max_batch": 32}}))
    found = batch_utilisation(setup, summary(server=replace(sample_runs.server_metrics(), running=RUNNING)))
    assert (found.value, found.note and found.note.code) == (None, "batches_inside_a_compound")


def test_without_a_run_or_its_metrics_there_is_no_share() -> None:
    """Nothing was scraped, or nothing was sustained."""
    setup = Setup(Plan(), Tests(), max_batch=8)
    assert batch_utilisation(setup, None).value is None
    assert batch_utilisation(setup, summary(server=None)).value is None
