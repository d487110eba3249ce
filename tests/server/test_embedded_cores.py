"""The embedded server and the workers that measure it do not share a core where there are enough."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inferometer.server.embedded import Embedded, beside, on_cores

PINNING = hasattr(os, "sched_setaffinity")
CORES = sorted(os.sched_getaffinity(0)) if PINNING else []


def kept_to(process: subprocess.Popen[bytes]) -> list[int]:
    """The cores of a process of ours."""
    return sorted(os.sched_getaffinity(process.pid))


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores to keep processes apart")
def test_the_engine_has_the_first_core_and_its_workers_the_others(tmp_path: Path) -> None:
    """Law: the engine keeps to the first core, as many workers as there are other cores to these; who starts them has all."""
    with Embedded(tmp_path / "log.txt") as engine:
        engine.url()
        assert kept_to(engine._process.process) == CORES[:1]
        assert beside(engine, len(CORES) - 1) == CORES[1:]
        assert beside(engine, len(CORES)) == beside(None, 1) == []
        with on_cores(beside(engine, 1)):
            command = [sys.executable, "-c", "input()"]
            worker = subprocess.Popen(command, stdin=subprocess.PIPE)
        with worker:
            assert kept_to(worker) == CORES[1:]
        assert sorted(os.sched_getaffinity(0)) == CORES


@pytest.mark.skipif(not PINNING, reason="needs Linux")
def test_on_one_core_everything_shares_it(tmp_path: Path) -> None:
    """Law: with one core nothing is kept apart, and nothing fails."""
    with on_cores(CORES[:1]), Embedded(tmp_path / "log.txt") as engine:
        engine.url()
        assert beside(engine, 1) == []
        assert kept_to(engine._process.process) == CORES[:1]
    assert sorted(os.sched_getaffinity(0)) == CORES
