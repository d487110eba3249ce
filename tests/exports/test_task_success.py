"""Runs of tasks: an export that shows how many requests succeeded shows how many answers did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from simulating import simulated

from inferometer.exports.metric_rows import metric_rows
from inferometer.exports.readings import figures, series_name
from inferometer.exports.tracked import values


@pytest.mark.parametrize("criterion", [{"regex": "391"}, None])
def test_task_success_stands_beside_the_success_of_requests(criterion: object, tmp_path: Path) -> None:
    """Law: every export of figures has the summary's share and interval; a run without tasks has none."""
    flags: dict[str, object] = {"--boundary": "compound", "--rate": "5", "--requests": "60", "--warmup": "0"}
    file = tmp_path / "t.jsonl"
    tasks = [
        {"task": "a", "input": "What is 17 * 23?", "criterion": criterion, "output_tokens": 20},
        {"task": "b", "input": "What is 12 + 30?", "criterion": criterion, "output_tokens": 20},
    ]
    file.write_text("".join(f"{json.dumps(one)}\n" for one in tasks))
    summary = simulated(tmp_path, flags | {"--tasks": str(file)}, system="agent").summary
    assert summary.tasks is not None
    share, interval = summary.tasks.all.success, summary.tasks.all.success_ci95
    assert share == (1.0 if criterion is None else 0.5)
    (reading,) = (one for one in figures(summary) if one.key == "task_success_rate")
    assert (reading.value, reading.interval) == (share, interval)
    assert series_name(reading.key) == "inferometer_task_success_ratio"
    assert values(summary)["task_success_rate"] == share
    (row,) = (one for one in metric_rows(summary).to_pylist() if one["metric"] == "task_success_rate")
    assert share in row.values()
