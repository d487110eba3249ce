"""The command as people use it, for tests that start it: real processes, and what they leave on disk."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from inferometer.cli import app
from inferometer.drive.progress_counters import Counters

SMALL = ["--input-tokens", "20", "--output-tokens", "5"]

# What a shell starts in the background ignores SIGINT, the tests as well.
_HEEDING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
COMMAND = [sys.executable, "-c", f"{_HEEDING}; from inferometer.cli.main import main; main()"]


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


def interrupted(process: subprocess.Popen[str], at: str, sent: signal.Signals) -> int:
    """Send a command a signal once it has written `at` to stderr, and end its process group; its exit code."""
    assert process.stderr is not None
    for line in process.stderr:
        if at in line:
            break
    process.send_signal(sent)
    process.wait(timeout=120)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # workers whose parent is gone
    process.communicate(timeout=120)
    return process.returncode


def run(*arguments: str, out: Path, **env: str) -> tuple[int, str, str]:
    """Carry out a command that makes a run folder under `out`: exit code, stdout, stderr."""
    return finish(*arguments, "--out", str(out), **env)


def finish(*arguments: str, **env: str) -> tuple[int, str, str]:
    """Carry out a command in this process: exit code, stdout, stderr, those of the processes it starts included.

    A process for each command would be spent on imports: `run_process` and `start` are for tests of what only one has.
    """
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        stdout, stderr = Path(place, "stdout"), Path(place, "stderr")
        with _redirected("stdout", stdout), _redirected("stderr", stderr):
            code = app.run(arguments)
        shown = stdout.read_text(), stderr.read_text()
    assert "Traceback" not in shown[1]
    return code, *shown


def run_process(*arguments: str) -> tuple[int, str, str]:
    """Carry out a command in a process of its own: exit code, stdout, stderr."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def _redirected(name: str, path: Path) -> Iterator[None]:
    """Write a standard stream to a file, both Python's object and the descriptor that child processes inherit."""
    descriptor = {"stdout": 1, "stderr": 2}[name]
    before = os.dup(descriptor)
    try:
        with path.open("a") as file, pytest.MonkeyPatch.context() as patch:
            os.dup2(file.fileno(), descriptor)
            patch.setattr(sys, name, file)
            yield
    finally:
        os.dup2(before, descriptor)
        os.close(before)


def only(out: Path) -> Path:
    """The one run folder; the index of results lies beside it."""
    (path,) = (one for one in out.iterdir() if one.is_dir())
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


def killed(process: subprocess.Popen[str], folder: Path) -> None:
    """Kill all processes of a run whose folder this is, a second on: that much may be lost."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.0)
    for pid in [*(child.pid for child in psutil.Process(process.pid).children()), process.pid]:
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert not (folder / "summary.json").exists()


def own_child(module: str) -> psutil.Process:
    """The one process that these tests started to run a module. Others of theirs that nobody has waited for yet have no command
    line any more."""
    alive = [one for one in psutil.Process().children() if one.status() != psutil.STATUS_ZOMBIE]
    (found,) = [one for one in alive if module in one.cmdline()]
    return found


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
