"""The embedded server and signals: those to a whole group of processes are the command's to interpret, and a kill has words."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from commands import own_child

from inferometer.errors import MachineError
from inferometer.server.embedded import Embedded


def pid_of() -> int:
    """The one server that this process started."""
    return own_child("inferometer.server").pid


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_all_processes_of_a_run_does_not_end_its_server(number: int, tmp_path: Path) -> None:
    """Law: answers under way come to their end; the server ends when its parent says so, without a word."""
    log = tmp_path / "log.txt"
    with Embedded(log) as server:
        server.url()
        os.kill(pid_of(), number)
        assert server.truth() == b""
    assert log.read_bytes() == b""


def test_a_server_that_is_killed_is_no_bug_and_has_words(tmp_path: Path) -> None:
    """Law: whether it had begun to listen or not, the words name the signal, and the code is the machine's."""
    with Embedded(tmp_path / "log.txt") as server:
        os.kill(pid_of(), signal.SIGKILL)
        with pytest.raises(MachineError, match=r"the embedded server was killed \(SIGKILL\)"):
            server.url()
    with Embedded(tmp_path / "log.txt") as server:
        server.url()
        process = psutil.Process(pid_of())
        process.kill()
        with pytest.raises(MachineError, match=r"the embedded server was killed \(SIGKILL\)"):
            while True:  # until its end is there to be seen
                server.truth()
