"""Worker processes that hang without dying, and servers that do: nobody waits for ever."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from peers import Script, Seen, chunked, scripted, tokens
from test_appended_schedule import job

from inferometer.drive.progress_counters import Progress
from inferometer.drive.worker_messages import More, Quit
from inferometer.drive.worker_pool import Interrupt, WorkerPool
from inferometer.errors import MachineError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Scheduled, write
from inferometer.journal.schema import OUTCOME, Phase
from inferometer.journal.seal import streams

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="stops processes by a signal")
HANG_S = 1.0
ROWS = 40


def schedule(folder: RunFolder) -> None:
    """Requests that fall due over 2 s, in turns for two workers."""
    rows = (Scheduled(at, int(Phase.MEASURE), at * 50_000_000, b"{}", -1, 0, 1, 1, 1) for at in range(ROWS))
    write(folder.schedule, rows)


def answer(_: Seen) -> Script:
    return Script(chunked(*tokens(" word")))


def test_a_worker_that_hangs_is_ended_and_told_and_the_others_go_on(tmp_path: Path) -> None:
    """It was stopped while a phase ran: the other's requests are all there, and the log says why."""
    folder = RunFolder.create(tmp_path, "t", 0)
    schedule(folder)
    with scripted(answer) as peer, WorkerPool(2, folder.log, HANG_S) as pool:
        pool.assign([job(folder, peer.port, worker, 2) for worker in range(2)])
        stopped: list[int] = []

        def watch(_: int, progress: Progress) -> None:
            if progress.ok > 4 and not stopped:
                stopped.append(pool.pids[0])
                os.kill(stopped[0], signal.SIGSTOP)

        pool.begin(Phase.MEASURE, ROWS)
        pool.finish(Phase.MEASURE, watch, Interrupt(0))
    death = pool.outcome.dead[0]
    assert (set(pool.outcome.dead), death.exit_code) == ({0}, -signal.SIGKILL)
    assert death.reason == "it hung, and was ended"
    assert "worker 0 hung" in folder.log.read_text()
    found = streams(folder, "worker", OUTCOME).to_pydict()
    by_worker = [index for index, worker in zip(found["index"], found["worker"], strict=True) if worker == 1]
    assert sorted(by_worker) == list(range(1, ROWS, 2))


def test_a_worker_that_takes_no_orders_is_ended(tmp_path: Path) -> None:
    """Its pipe fills up, and whoever writes there would wait for it."""
    folder = RunFolder.create(tmp_path, "t", 0)
    with WorkerPool(1, folder.log, HANG_S) as pool:
        os.kill(pool.pids[0], signal.SIGSTOP)
        orders = 0
        while pool.pids and orders < 100_000:
            pool.order(More(size=1, final=False))
            orders += 1
    assert 0 < orders < 100_000
    death = pool.outcome.dead[0]
    assert (death.reason, death.exit_code) == ("it hung, and was ended", -signal.SIGKILL)


def test_a_phase_against_a_server_that_hangs_can_be_stopped(tmp_path: Path) -> None:
    """What is in flight is cancelled, and the phase ends; its workers live, for the next one."""
    folder = RunFolder.create(tmp_path, "t", 0)
    schedule(folder)
    with scripted(lambda _: Script([], "hang")) as peer, WorkerPool(2, folder.log) as pool:
        pool.assign([job(folder, peer.port, worker, 2) for worker in range(2)])
        pool.begin(Phase.MEASURE, ROWS)
        pool.finish(
            Phase.MEASURE, lambda _, progress: pool.stop(0) if progress.in_flight else None, Interrupt(0)
        )
        assert len(pool.pids) == 2
    assert pool.outcome.dead == {}
    assert set(streams(folder, "worker", OUTCOME)["outcome"].to_pylist()) == {"cancelled"}


def test_workers_whose_connections_hang_can_be_called_off(tmp_path: Path) -> None:
    """Law: one that waits for a server which accepts connections and never shakes hands leaves when it is told to, and not an
    hour later, when no connection has come about in time."""
    folder = RunFolder.create(tmp_path, "t", 0)
    schedule(folder)
    with socket.create_server(("127.0.0.1", 0)) as silent, WorkerPool(1, folder.log) as pool:
        one = job(folder, silent.getsockname()[1], 0, 1)
        hanging = msgspec.structs.replace(
            one, api="websocket", protocol="ws", connect_timeout_ns=3600 * 10**9
        )
        leave = threading.Timer(0.5, lambda: pool.order(Quit()))  # type: ignore[arg-type]  # what a pool says at its end
        leave.start()
        pool.assign([hanging])
        leave.join()


def test_a_worker_killed_before_it_is_ready_leaves_the_run_to_the_others(tmp_path: Path) -> None:
    """Law: it has died as one that is killed later has; the others' requests are all there."""
    folder = RunFolder.create(tmp_path, "t", 0)
    schedule(folder)
    with scripted(answer) as peer, WorkerPool(2, folder.log) as pool:
        os.kill(pool.pids[0], signal.SIGKILL)
        pool.assign([job(folder, peer.port, worker, 2) for worker in range(2)])
        pool.begin(Phase.MEASURE, ROWS)
        pool.finish(Phase.MEASURE, lambda *_: None, Interrupt(0))
    death = pool.outcome.dead[0]
    assert set(pool.outcome.dead) == {0}
    assert (death.sent, death.exit_code) == (0, -signal.SIGKILL)
    assert sorted(streams(folder, "worker", OUTCOME)["index"].to_pylist()) == list(range(1, ROWS, 2))


def test_workers_that_are_all_killed_before_they_are_ready_are_no_bug(tmp_path: Path) -> None:
    """Law: nothing is left to measure with, the words name the signal, and the code is that of the machine."""
    folder = RunFolder.create(tmp_path, "t", 0)
    schedule(folder)
    with scripted(answer) as peer, WorkerPool(2, folder.log) as pool:
        for pid in pool.pids:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(
            MachineError, match=r"worker 0 was killed \(SIGKILL\) before it was ready"
        ) as caught:
            pool.assign([job(folder, peer.port, worker, 2) for worker in range(2)])
    assert caught.value.exit_code == 71
