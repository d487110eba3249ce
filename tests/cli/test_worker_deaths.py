"""kill -9 of drive workers: the run ends, says whose share was lost, and keeps what was written down."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from commands import SMALL, start, wait_for_answers, workers_of
from shipped_schemas import shipped

from inferometer.drive.pacer import deal, slots_of
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import OUTCOME, RECORD, Phase
from inferometer.journal.seal import read_stream, read_table

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="tells workers apart by the files they hold open"
)
SLOTS = 5
CLOSED = ["--concurrency", str(SLOTS)]
OPEN = ["--rate", "120"]
LOADS = {
    "closed by requests": [*CLOSED, "--requests", "450"],
    "closed by time": [*CLOSED, "--duration", "2s"],
    "open by requests": [*OPEN, "--requests", "240"],
    "open by time": [*OPEN, "--duration", "2s"],
}


def begin(out: Path, *arguments: str) -> tuple[subprocess.Popen[str], Path]:
    """A run with two workers, once answers have come."""
    process = start("run", *arguments, "--workers", "2", *SMALL, out=out)
    return process, wait_for_answers(process, out, 3, workers=2)


def wait_for_rows(process: subprocess.Popen[str], folder: Path, worker: int) -> int:
    """Wait, within bounds, until a worker has handed over rows; how many."""
    for _ in range(1200):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
        rows = int(read_stream(folder / "journal" / f"worker-{worker}.arrows", OUTCOME).num_rows)
        if rows:
            return rows
    raise AssertionError("the worker never wrote a row")


def kill(process: subprocess.Popen[str], *workers: int) -> None:
    pids = workers_of(process)
    assert set(pids) == {0, 1}
    for worker in workers:
        os.kill(pids[worker], signal.SIGKILL)


def end(process: subprocess.Popen[str], folder: Path) -> tuple[dict[str, Any], Counter[tuple[int, int]]]:
    """The summary, which is INVALID and keeps its schema, and the rows on record by (phase, worker)."""
    _, stderr = process.communicate(timeout=90)
    assert "Traceback" not in stderr
    assert "has died" in stderr  # told at once, not only in the report
    assert process.returncode == 3
    summary = json.loads((folder / "summary.json").read_text())
    jsonschema.validate(summary, shipped("summary"))
    assert summary["verdict"]["status"] == "INVALID"
    rows = read_table(RunFolder.open(folder).record, RECORD)
    return summary, Counter(zip(rows["phase"].to_pylist(), rows["worker"].to_pylist(), strict=True))


def measured(folder: Path) -> int:
    """Requests of the measurement that were to be sent."""
    phases: list[int] = Schedule(folder / "requests.arrow").table["phase"].to_pylist()
    return phases.count(Phase.MEASURE)


def message(summary: dict[str, Any]) -> str:
    (reason,) = (one for one in summary["verdict"]["reasons"] if one["code"] == "workers_alive")
    said: str = reason["message"]
    return said


@pytest.mark.parametrize("load", LOADS)
def test_a_dead_worker_is_named_with_its_share_and_what_was_written_is_kept(
    load: str, tmp_path: Path
) -> None:
    """Law: its requests = on record + lost, by the schedule where that fixes them; the other worker's are all on record."""
    killed = 1
    process, folder = begin(tmp_path, *LOADS[load], "--warmup", "0")
    written = wait_for_rows(process, folder, killed)
    kill(process, killed)
    summary, rows = end(process, folder)
    (dead,) = summary["instrument"]["dead_workers"]
    assert (dead["worker"], dead["phase"], dead["exit_code"]) == (killed, Phase.MEASURE, -signal.SIGKILL)
    assert dead["kept"] == rows[Phase.MEASURE, killed] >= written - rows[Phase.LEAD, killed]
    slots = SLOTS if "closed" in load else None
    assert dead["load_share"] == (slots_of(killed, 2, SLOTS) / SLOTS if slots else 0.5)
    said = message(summary)
    assert f"Died: number {killed} of 2 workers" in said
    if load == "closed by time":
        assert dead["requests"] is None
        assert dead["lost"] == max(0, dead["sent"] - dead["kept"] - rows[Phase.LEAD, killed])
        assert f"{dead['lost']} or more are lost" in said
    else:
        count = measured(folder)
        assert dead["requests"] == len(deal(count, killed, 2, slots)) == dead["kept"] + dead["lost"]
        assert rows[Phase.MEASURE, 1 - killed] == len(deal(count, 1 - killed, 2, slots))
        assert f"{dead['requests']} of {count} requests" in said
        assert f"{dead['lost']} are lost" in said


@pytest.mark.parametrize("load", ["closed by requests", "open by time"])
def test_a_run_whose_workers_all_die_ends_and_reports_what_they_wrote(load: str, tmp_path: Path) -> None:
    """Law: nobody is waited for who cannot come; both shares are named, and together they are the load."""
    process, folder = begin(tmp_path, *LOADS[load], "--warmup", "0")
    written = [wait_for_rows(process, folder, worker) for worker in (0, 1)]
    kill(process, 0, 1)
    summary, rows = end(process, folder)
    dead = sorted(summary["instrument"]["dead_workers"], key=lambda one: one["worker"])
    assert [one["worker"] for one in dead] == [0, 1]
    assert sum(one["load_share"] for one in dead) == pytest.approx(1)
    assert sum(one["requests"] for one in dead) == measured(folder)
    assert all(rows[Phase.MEASURE, worker] + rows[Phase.LEAD, worker] >= written[worker] for worker in (0, 1))
    assert "number 0, 1 of 2 workers" in message(summary) or "number 1, 0 of 2 workers" in message(summary)
    assert summary["instrument"]["timestamp_source"] == "kernel"


@pytest.mark.parametrize("killed", [(0,), (0, 1)])
def test_a_worker_that_dies_in_the_warm_up_loses_its_share_of_the_measurement(
    killed: tuple[int, ...], tmp_path: Path
) -> None:
    """Law: its measured requests are lost, every one of them; the others' are measured all the same."""
    process, folder = begin(tmp_path, *CLOSED, "--warmup", "600", "--requests", "41")
    kill(process, *killed)
    summary, rows = end(process, folder)
    dead = {one["worker"]: one for one in summary["instrument"]["dead_workers"]}
    assert set(dead) == set(killed)
    for worker, one in dead.items():
        its = len(deal(41, worker, 2, SLOTS))
        assert (one["phase"], one["kept"], one["lost"], one["requests"]) == (Phase.WARMUP, 0, its, its)
    assert summary["requests"]["sent"] == 41 - sum(one["lost"] for one in dead.values())
    assert rows[Phase.MEASURE, 1] == (0 if 1 in killed else len(deal(41, 1, 2, SLOTS)))
