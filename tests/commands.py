"""The command as people use it, for tests that start it: real processes, and what they leave on disk."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil

from inferometer.drive.progress_counters import Counters

SMALL = ["--input-tokens", "20", "--output-tokens", "5"]

COMMAND = [sys.executable, "-c", "from inferometer.cli.main import main; main()"]


def start(*arguments: str, out: Path, **env: str) -> subprocess.Popen[str]:
    """Start a command that makes a run folder under `out`, in a process group of its own."""
    return subprocess.Popen(
        [*COMMAND, *arguments, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
        start_new_session=True,
    )


def run(*arguments: str, out: Path, **env: str) -> tuple[int, str, str]:
    """Run the command to its end: exit code, stdout, stderr."""
    process = start(*arguments, out=out, **env)
    stdout, stderr = process.communicate(timeout=120)
    assert "Traceback" not in stderr
    return process.returncode, stdout, stderr


def finish(*arguments: str) -> tuple[int, str, str]:
    """Run a command that makes no run folder."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def only(out: Path) -> Path:
    """The one run folder."""
    (path,) = out.iterdir()
    return path


def wait_for_answers(process: subprocess.Popen[str], out: Path, more_than: int, workers: int = 1) -> Path:
    """Wait, within bounds, until a run under way has had answers; gives its folder."""
    for _ in range(1200):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
        for live in out.glob("*/journal/live"):
            with contextlib.suppress(OSError, ValueError):
                if Counters.attach(live.parent.parent, 0, workers).progress().ok > more_than:
                    return live.parent.parent
    raise AssertionError("the run never got going")


def workers_of(process: subprocess.Popen[str]) -> dict[int, int]:
    """The worker processes of a run under way: pid by number, which each shows in the journal it holds open."""
    found: dict[int, int] = {}
    for child in psutil.Process(process.pid).children():
        if "inferometer.drive.worker" in child.cmdline():
            for file in child.open_files():
                name = Path(file.path).name
                if name.startswith("worker-"):
                    found[int(name.removeprefix("worker-").removesuffix(".arrows"))] = child.pid
    return found
