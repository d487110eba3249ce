"""What a run does about a host that is lost before its load begins, or whose workers die."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commanding import Command, commanding
from driving import HEAD

from inferometer.cluster.admission import ConductorLink
from inferometer.cluster.clock_fit import ClockProbe
from inferometer.cluster.fetched import called
from inferometer.cluster.host_pool import HostPool
from inferometer.cluster.messages import Assign, Begin, HostLog, Probes, WorkerGone
from inferometer.drive.worker_messages import Job
from inferometer.errors import PeerError
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Scheduled, write
from inferometer.journal.schema import Phase

COMPARED = Probes([ClockProbe(1, 0, 1_000)])


def job(worker: int) -> Job:
    return Job(
        api="chat", folder="", worker=worker, workers=2, family=int(socket.AF_INET), address=["127.0.0.1", 1],
        protocol="http/1.1", heads=[HEAD], secrets=[], tls=False, tls_verify=False,
        tls_ca_file=None, server_name="127.0.0.1", reuse=True, open_loop=True, slots=0, prepare=1, timeout_ns=10**10,
        connect_timeout_ns=10**10, drain_ns=10**10,
    )  # fmt: skip


@contextmanager
def pool_of_two(tmp_path: Path) -> Iterator[tuple[Command, HostPool, dict[str, ConductorLink], RunFolder]]:
    """A run of two hosts, which have joined and been told that it begins."""
    folder = RunFolder.create(tmp_path, "run", 0)
    write(folder.schedule, [Scheduled(at, int(Phase.MEASURE), at, b"{}", -1, 0, 1, 1, 1) for at in range(4)])
    with commanding(2) as command:
        links = {name: command.join(name, name)[0] for name in ("east", "west")}
        yield command, HostPool(command.hosts, folder, lambda _: None, "http/1.1", again=False), links, folder


def test_a_host_that_came_back_before_the_load_ends_the_run_in_words(tmp_path: Path) -> None:
    """Law: it has no workers to give orders to. That is the host's doing (exit code 5), and no fault of the program (70)."""
    with pool_of_two(tmp_path) as (command, pool, links, _):
        back, _ = command.join("east", "east")
        for link in (back, links["west"]):
            link.send(COMPARED)
        with pytest.raises(PeerError, match="east was lost before the load began: its connection broke"):
            pool.assign([job(0), job(1)])


def test_a_host_that_is_lost_while_the_others_get_ready_ends_it_too(tmp_path: Path) -> None:
    """Law: the same, when it has been given its orders before, and without a wait for workers that it no longer has."""
    with pool_of_two(tmp_path) as (_, pool, links, _):
        for link in links.values():
            link.send(COMPARED)

        def breaks() -> None:
            while not any(isinstance(one, Assign) for one in links["east"].wait(20.0)):
                pass
            links["west"].close()

        thread = threading.Thread(target=breaks)
        thread.start()
        with pytest.raises(PeerError, match="west was lost before the load began"):
            pool.assign([job(0), job(1)])
        thread.join()


def test_what_is_known_later_of_a_dead_worker_is_kept(tmp_path: Path) -> None:
    """Law: its exit code is known when its process has been waited for; what it said and had sent stands."""
    with pool_of_two(tmp_path) as (_, pool, links, folder):
        west = pool.members[1]
        for gone in (
            WorkerGone(1, 1, 30, None, "the disk is full", "disk"),
            WorkerGone(1, 1, 30, -9, None, None),
            WorkerGone(1, 1, 30, None, None, None),
        ):
            pool._take(west, gone)
        death = pool.outcome.dead[1]
        assert (death.sent, death.exit_code, death.reason, death.shortage) == (
            30, -9, "west: the disk is full", "disk"
        )  # fmt: skip
        pool._take(west, HostLog(called(folder), "first\nsecond"))
        pool._take(west, HostLog("another run", "third"))
        assert folder.log.read_text() == "west: first\nwest: second\n"
        assert any(isinstance(one, Begin) for one in links["west"].wait(20.0))
