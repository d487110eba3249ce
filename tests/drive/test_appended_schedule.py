"""Worker processes on a schedule that is written while they send: all of it is sent, and what comes late keeps its instant."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from driving import HEAD
from peers import Script, Seen, chunked, scripted, tokens

from inferometer.drive.clock import monotonic_ns
from inferometer.drive.worker_messages import Job
from inferometer.drive.worker_pool import Interrupt, WorkerPool
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import PIECE, Appender, Scheduled, write
from inferometer.journal.schema import OUTCOME, Phase
from inferometer.journal.seal import streams
from inferometer.units import NS_PER_MS

ROWS = 2 * PIECE + 40
GAP_NS = NS_PER_MS
LATE_NS = 20 * NS_PER_MS


def answer(_: Seen) -> Script:
    return Script(chunked(*tokens(" word")))


def job(folder: RunFolder, port: int, worker: int, workers: int) -> Job:
    return Job(
        api="chat",
        folder=str(folder.path), worker=worker, workers=workers, family=int(socket.AF_INET), address=["127.0.0.1", port],
        protocol="http/1.1", heads=[HEAD], secrets=[], tls=False,
        tls_verify=False, tls_ca_file=None, server_name="127.0.0.1", reuse=True, open_loop=True, slots=0, prepare=2,
        timeout_ns=10**10, connect_timeout_ns=10**10, drain_ns=10**10,
    )  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_appended_while_workers_send_is_sent_too(workers: int, tmp_path: Path) -> None:
    """One piece before the start, the others after they were due: every request is sent once, by the worker whose it is, and
    is recorded with the instant at which it was due."""
    folder = RunFolder.create(tmp_path, "t", 0)
    write(folder.schedule, ())
    rows = [Scheduled(at, int(Phase.MEASURE), at * GAP_NS, b"{}", -1, 0, 1, 1, 1) for at in range(ROWS)]
    pieces = [rows[at : at + PIECE] for at in range(0, ROWS, PIECE)]
    appender = Appender(folder.schedule)
    with scripted(answer, limit=ROWS + 5) as peer, WorkerPool(workers, folder.log) as pool:
        pool.assign([job(folder, peer.port, worker, workers) for worker in range(workers)])
        appender.append(pieces.pop(0))
        pool.announce(appender.size, final=False)
        start = pool.begin(Phase.MEASURE, PIECE, appended=0)
        appended: list[int] = []

        def work() -> bool:
            """Each piece when its first request has been due for a while."""
            if pieces and monotonic_ns() > start + pieces[0][0].index * GAP_NS + LATE_NS:
                appended.append(monotonic_ns())
                appender.append(pieces.pop(0))
                pool.announce(appender.size, final=not pieces)
            return False

        pool.finish(Phase.MEASURE, lambda *_: None, Interrupt(0), work)
    appender.close()
    found = streams(folder, "worker", OUTCOME).sort_by("index").to_pydict()
    assert found["index"] == list(range(ROWS))
    assert found["t_intended"] == [start + at * GAP_NS for at in range(ROWS)]
    assert found["worker"] == [at % workers for at in range(ROWS)]
    assert set(found["outcome"]) == {"ok"}
    for piece, at in enumerate(appended, 1):
        assert found["t_intended"][piece * PIECE] < at < found["t_taken"][piece * PIECE]
