"""Runs to export: a simulated one on disk, in which a server answered one request with an error that is a formula; and the
summaries of sample_runs.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_runs import empty_summary, inconclusive_summary, invalid_summary, valid_summary

from inferometer.documents.summary import Summary
from inferometer.drive.progress_counters import Progress
from inferometer.exports.exported_run import ExportedRun, read
from inferometer.journal.schema import Phase
from inferometer.plan.parse import build
from inferometer.run.simulate import simulate
from inferometer.simulation.engine import choose

FORMULA = '=HYPERLINK("http://x","y")\x1b[31m\u202e'
"""A server's message: a formula to a spreadsheet, an escape sequence to a terminal, and a turn of the text's direction."""
SAMPLES: dict[str, Callable[[], Summary]] = {
    "valid": valid_summary,
    "invalid": invalid_summary,
    "inconclusive": inconclusive_summary,
    "empty": empty_summary,
}


class _Silent:
    def note(self, text: str) -> None: ...

    def watch(self, phase: Phase, progress: Progress, total: int | None) -> None: ...


@pytest.fixture(params=list(SAMPLES))
def summary(request: pytest.FixtureRequest) -> Summary:
    """Each sample in turn."""
    return SAMPLES[request.param]()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a simulated run of 40 requests after 4 of warm-up, whose last measured one failed."""
    plan = build(None, {"--requests": "40", "--warmup": "4", "--rate": "20", "--slo": ["ttft_p90 < 1s"]})
    place = simulate(plan, choose("tiny-cpu"), tmp_path_factory.mktemp("exported"), _Silent()).folder
    table = pq.read_table(place / "requests.parquet")
    rows = table.to_pylist()
    measured = [at for at, row in enumerate(rows) if row["phase"] == Phase.MEASURE]
    rows[measured[-1]] |= {"outcome": "http_5xx", "detail": FORMULA, "status": 500, "finish_reason": "-1+1"}
    pq.write_table(pa.Table.from_pylist(rows, table.schema), place / "requests.parquet")
    return place


@pytest.fixture(scope="session")
def run(folder: Path) -> ExportedRun:
    """That run, judged."""
    return read(folder)
