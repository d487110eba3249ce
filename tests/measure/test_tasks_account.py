"""How much repeated tasks tell: the interval of the share that succeeded takes the task as its unit. And what spans may say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure.conftest import pulses, row

from inferometer.journal.schema import RECORD, EventClass
from inferometer.journal.tasks import STEP_KINDS, TASKS, TaskRow, TaskSteps, read, write
from inferometer.measure.measurement import samples_of
from inferometer.measure.record import Record
from inferometer.measure.stats import share_interval
from inferometer.measure.tasks import effective, tasks_account
from inferometer.plan.schema import Plan


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_different_tasks_are_as_many_trials(hits: list[bool]) -> None:
    """Law: without repetition nothing is taken off."""
    assert effective(np.array(hits), range(len(hits))) == len(hits)


@given(st.lists(st.booleans(), min_size=2, max_size=20), st.integers(2, 6))
def test_repeating_what_always_ends_alike_tells_nothing_new(hits: list[bool], times: int) -> None:
    """Law: n passes of m tasks whose outcome is the task's alone tell no more than the m."""
    units = [unit for unit in range(len(hits)) for _ in range(times)]
    found = effective(np.repeat(np.array(hits), times), units)
    assert found == pytest.approx(len(hits) if all(hits) or not any(hits) else len(hits) - 1)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_repeating_what_chance_alone_decides_tells_nearly_as_much(seed: int) -> None:
    """Law: where tasks do not differ, passes count; never more than there are."""
    rng = np.random.default_rng(seed)
    units = np.repeat(np.arange(200), 5)
    found = effective(rng.random(1000) < 0.5, units.tolist())
    assert 500 < found <= 1000


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), min_size=1, max_size=30))
def test_it_lies_between_one_and_all(pairs: list[tuple[bool, int]]) -> None:
    hits, units = np.array([hit for hit, _ in pairs]), [unit for _, unit in pairs]
    assert 0 < effective(hits, units) <= len(pairs)


@pytest.mark.parametrize(
    ("ran_ms", "end_ms", "share"),
    [(20.0, 30.0, 0.5), (40.0, 40.0, 1.0), (4_000.0, 4_000.0, None), (20.0, 60.0, None)],
)
def test_steps_that_ran_behind_their_request_are_no_share_of_it(
    ran_ms: float, end_ms: float, share: float | None
) -> None:
    """Law: a share of the latency is at most all of it; a clock that runs wrong, or steps behind the answer, have none."""
    events = [(10.0, EventClass.CONTENT), (40.0, EventClass.CONTENT)]
    rows = [row(index=at, t_intended=0.0, t_submit=0.0, t_end=40.0, events=events) for at in range(3)]
    record = Record.from_tables(
        pa.Table.from_pylist(rows, schema=RECORD), pulses(*({"t_ms": at} for at in (0.0, 50.0)))
    )
    samples = samples_of(Plan.model_validate({"tokenizer": {"name": "cl100k_base"}}), record)
    columns: dict[str, list[object]] = {name: [None] * 3 for name in TASKS.names}
    columns |= {
        "index": [0, 1, 2],
        "cycle": [0] * 3,
        "task": ["a", "b", "c"],
        "state": ["passed"] * 3,
        "steps_from": ["spans"] * 3,
        "spans": [1] * 3,
    }
    for kind in STEP_KINDS:
        columns |= {f"{kind}_steps": [1] * 3, f"{kind}_ns": [round(ran_ms * 1e6)] * 3}
        columns[f"{kind}_end_ns"] = [round(end_ms * 1e6)] * 3
    found = tasks_account(record, samples, pa.table(columns)).traced
    assert found is not None
    assert [one.share for one in found.kinds] == [share] * len(STEP_KINDS)


@given(st.lists(st.sampled_from(["passed", "failed", "unjudged"]), min_size=1, max_size=60))
@settings(max_examples=40)
def test_the_interval_holds_the_share_however_the_unjudged_would_have_ended(states: list[str]) -> None:
    """Law: a judge that refuses what is wrong narrows nothing. The interval holds every share that there may be, and is that of
    chance alone where all were judged."""
    ended = len(states)
    good, open_ = states.count("passed"), states.count("unjudged")
    rows = [
        row(index=at, t_intended=0.0, t_submit=0.0, events=[(10.0, EventClass.CONTENT)])
        for at in range(ended)
    ]
    record = Record.from_tables(
        pa.Table.from_pylist(rows, schema=RECORD), pulses(*({"t_ms": at} for at in (0.0, 50.0)))
    )
    samples = samples_of(Plan.model_validate({"tokenizer": {"name": "cl100k_base"}}), record)
    columns: dict[str, list[object]] = {name: [None] * ended for name in TASKS.names}
    columns |= {
        "index": list(range(ended)),
        "cycle": [0] * ended,
        "task": [f"t{at}" for at in range(ended)],
        "state": list(states),
    }
    found = tasks_account(record, samples, pa.table(columns)).all
    if open_ == ended:
        assert (found.success, found.success_ci95) == (None, None)
        return
    assert found.success_ci95 is not None
    low, high = found.success_ci95
    assert low <= good / ended <= (found.success or 0.0) <= (good + open_) / ended <= high
    if not open_:
        assert found.success_ci95 == share_interval(good, ended, None)


def test_results_of_the_version_before_are_read(tmp_path: Path) -> None:
    """Law: what a new version adds is null in what an earlier one wrote, and nothing else changes."""
    steps = TaskSteps(1, {"model": 1}, {"model": 5}, end_ns={"model": 7})
    write(tmp_path / "new", [TaskRow(0, 0, "a", None, "passed", steps=steps)], "run")
    new = read(tmp_path / "new", "run")
    ends = [f"{kind}_end_ns" for kind in STEP_KINDS]
    old = new.drop_columns(ends).replace_schema_metadata({"inferometer": "tasks/3"})
    with pa.OSFile(str(tmp_path / "old"), "wb") as sink, pa.ipc.new_file(sink, old.schema) as writer:
        writer.write_table(old)
    found = read(tmp_path / "old", "run")
    assert found.drop_columns(ends).equals(new.drop_columns(ends))
    assert found.schema == TASKS
    assert {found.column(name).null_count for name in ends} == {1}
