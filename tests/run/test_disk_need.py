"""What a run is going to write is estimated before it begins, and what does not fit is refused then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulating import simulated, timeless

from inferometer.errors import MachineError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schema import RECORD
from inferometer.journal.seal import read_table
from inferometer.plan.parse import build
from inferometer.plan.schema import Plan
from inferometer.plan.standard import STANDARD
from inferometer.run.disk_need import TOLD_FROM, DiskNeed, Expected, announced, disk_need, expected
from inferometer.run.evaluate import recover
from inferometer.workload.sources import sourced

GIB = 1 << 30


def plan_of(**load: Any) -> Plan:
    """A plan of prompts of 100 tokens and answers of 50."""
    return Plan.model_validate(
        {"load": load, "workload": {"kind": "lengths", "input_tokens": "100", "output_tokens": "50"}}
    )


@pytest.mark.parametrize(
    ("load", "requests"),
    [
        ({"concurrency": 1, "requests": 70, "warmup": 3}, 73),
        ({"concurrency": 4, "requests": 70, "warmup": 0}, 78),  # and eight of the lead-in
        ({"rate": 2.5, "duration_s": 100, "warmup": 0}, 250),
        ({"rate": 2.5, "duration_s": 100, "requests": 20, "warmup": 0}, 20),
        ({"users": 10, "user_rate": 0.5, "duration_s": 100, "warmup": 0}, 500),
        ({"concurrency": 1, "duration_s": 100}, None),
    ],
)
def test_requests_are_counted_where_the_plan_fixes_them(load: dict[str, Any], requests: int | None) -> None:
    """By their number, or by rate and time; how many a closed loop gets through in a time nobody knows."""
    plan, source = sourced(plan_of(**load))
    found = expected(plan, source)
    assert found == (None if requests is None else Expected(requests, 100.0, 50.0))


@pytest.mark.parametrize("name", sorted(STANDARD))
def test_every_standard_workload_has_an_estimate(name: str) -> None:
    """Also where only the texts drawn know their lengths: what is no number would be compared with the disk in vain."""
    plan, source = sourced(
        Plan.model_validate({"load": {"rate": 1.0, "requests": 10}, "workload": {"name": name}})
    )
    found = expected(plan, source)
    assert found is not None
    assert 0 < disk_need(found, "all", streamed=True).total < GIB


@given(st.integers(1, 10**7), st.floats(1, 10**5), st.floats(1, 10**5), st.booleans())
def test_less_text_needs_no_more_disk(requests: int, prompt: float, answer: float, streamed: bool) -> None:
    """Law: what is kept of the text is in the record alone; a need grows with the requests."""
    run = Expected(requests, prompt, answer)
    none, errors, whole = (disk_need(run, keep, streamed=streamed) for keep in ("none", "errors", "all"))
    assert none == errors
    assert none.record < whole.record
    assert (none.requests, none.journal) == (whole.requests, whole.journal)
    twice = disk_need(Expected(2 * requests, prompt, answer), "all", streamed=streamed)
    assert twice.total == pytest.approx(2 * whole.total)


def test_a_need_is_refused_announced_or_passed_over() -> None:
    """By the space that is free: the message has the sizes and what may help."""
    need = DiskNeed(1.0 * GIB, 2.0 * GIB, 3.0 * GIB)
    line = announced(need, 6 * GIB, "runs")
    assert line is not None
    assert "about 6 GiB" in line
    with pytest.raises(MachineError, match=r"about 6 GiB .* runs has 5\.99 GiB free.*--keep-text none"):
        announced(need, int(5.99 * GIB), "runs")
    assert announced(DiskNeed(0.0, TOLD_FROM - 1.0, 0.0), 6 * GIB, "runs") is None


def test_an_estimate_is_about_what_is_written(tmp_path: Path) -> None:
    """Of a simulated run: the planned requests and the journal within a factor of two. Of the record no less than is written:
    virtual times are packed far smaller than real ones."""
    flags: dict[str, object] = {"--requests": "500", "--warmup": "0", "--output-tokens": "50"}
    folder = RunFolder(simulated(tmp_path, flags).folder)
    plan, source = sourced(build(None, flags))
    run = expected(plan, source)
    assert run is not None
    need = disk_need(run, "all", streamed=True)
    sizes = [
        sum(path.stat().st_size for path in paths)
        for paths in ([folder.schedule], folder.journal.glob("worker-*.arrows"), [folder.record])
    ]
    for estimate, size in zip((need.requests, need.journal), sizes[:2], strict=True):
        assert 0.5 < estimate / size < 2.0
    assert need.record > sizes[2]


@pytest.mark.parametrize("keep", ["none", "errors"])
def test_text_that_is_not_kept_changes_no_figure(keep: str, tmp_path: Path) -> None:
    """The summary is the same but for the plan; the journal, which has the text, is gone; recover takes the sealed record."""
    flags: dict[str, object] = {"--requests": "40", "--tokenizer": "cl100k_base"}
    whole = simulated(tmp_path / "all", flags)
    less = simulated(tmp_path / keep, {**flags, "--keep-text": keep})
    summaries = [timeless(one.summary) for one in (whole, less)]
    for summary in summaries:
        summary["plan"]["instrument"].pop("keep_text")
        summary["run"].pop("plan_hash")
    assert summaries[0] == summaries[1]
    folder = RunFolder(less.folder)
    assert not list(folder.journal.glob("worker-*"))
    kept = [row for row in read_table(folder.record, RECORD).to_pylist() if row["text"] is not None]
    assert all(keep == "errors" and row["outcome"] != "ok" for row in kept)
    again = timeless(recover(folder).summary)
    again["plan"]["instrument"].pop("keep_text")
    again["run"].pop("plan_hash")
    assert again == summaries[1]


def test_a_run_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    """It ends before its requests are generated, with the exit code of a machine that ran out of disk."""
    flags: dict[str, object] = {"--requests": "10000000", "--input-tokens": "1000000", "--concurrency": "1"}
    with pytest.raises(MachineError, match="disk"):
        simulated(tmp_path, flags)
    assert not list(tmp_path.iterdir())
