"""What is no file where one is read: a folder, a pipe that nobody writes to, a device."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inferometer.errors import InferometerError
from inferometer.plan.schema import Trace
from inferometer.telemetry.metrics import record
from inferometer.workload import prompt_file, workload_file
from inferometer.workload.datasets import pool
from inferometer.workload.traces import survey

READERS: dict[str, Callable[[Path], object]] = {
    "trace": lambda path: survey.survey(Trace(file=str(path))),
    "prompts": lambda path: prompt_file.survey(path, chat=True, needs_output=False),
    "workload": workload_file.opened,
    "dataset": lambda path: pool.load(str(path), "sharegpt"),
    "scrapes": lambda path: list(record.read(path)),
}


@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_file_is_refused_at_once(reader: str, tmp_path: Path) -> None:
    """Law: in words, without waiting for an end that does not come."""
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    for path in (folder, pipe, Path("/dev/zero"), tmp_path / "missing"):
        with pytest.raises(InferometerError):
            READERS[reader](path)
