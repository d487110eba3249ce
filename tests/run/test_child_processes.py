"""The processes a run starts: what is left of them once they have ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from inferometer.drive.worker_pool import WorkerPool
from inferometer.server.embedded import Embedded
from inferometer.telemetry.metrics.scraper_process import Scraping

Child = Embedded | Scraping | WorkerPool


def open_files() -> set[str]:
    """The numbers of this process's open files."""
    return set(os.listdir("/dev/fd"))


@pytest.mark.parametrize(
    "start",
    [Embedded, Scraping, lambda log: WorkerPool(2, log)],
    ids=["reference server", "scraper", "workers"],
)
def test_an_ended_child_process_leaves_no_file_open(
    start: Callable[[Path], AbstractContextManager[Child]], tmp_path: Path
) -> None:
    """A campaign runs many children from one process, so each closes both ends of its pipes when it ends."""
    before = open_files()
    with start(tmp_path / "log.txt") as child:
        assert open_files() - before
    assert open_files() <= before, child
