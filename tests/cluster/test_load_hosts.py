"""A load that several hosts send is the load of one machine: the same bytes, each once, at the instants planned, and one
record."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import COMMAND, only
from recorded_sessions import agent, written

from inferometer.cluster.join_token import TOKEN_VARIABLE
from inferometer.journal import steps
from inferometer.journal.folder import RunFolder
from inferometer.journal.schedule import Schedule
from inferometer.journal.schema import RECORD, Outcome, Phase
from inferometer.journal.seal import read_table

SMALL = ("--input-tokens", "20", "--output-tokens", "5", "--warmup", "20")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The reference server as a process of its own."""
    flags = (
        "--set",
        "prefill_base=1ms",
        "--set",
        "prefill_per_token=0us",
        "--set",
        "step_base=10ms",
        "--set",
        "jitter=0",
    )
    command = [sys.executable, "-m", "inferometer.server", "--until-stdin-closes", *flags]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1]
        process.communicate(timeout=30)


class Conducted:
    """A run with load hosts that the test starts itself. `said`: the lines on stderr so far."""

    def __init__(self, server: str, out: Path, hosts: int, *flags: str) -> None:
        self.out = out
        words = () if "--sessions" in flags else SMALL
        self.process = subprocess.Popen(
            [*COMMAND, "run", "--url", server, *words, *flags, "--hosts", str(hosts), "--listen", "127.0.0.1:0", "--out",
            str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.said: list[str] = []
        self.hosts: list[subprocess.Popen[str]] = []
        threading.Thread(target=self._read, daemon=True).start()
        found = self.awaited(rf"{TOKEN_VARIABLE}=(\S+) inferometer worker --join (\S+)")
        self.token, self.address = found[1], found[2]

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)

    def awaited(self, pattern: str, patience_s: float = 60.0) -> re.Match[str]:
        """What is said and fits, once it is."""
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if found := re.search(pattern, "".join(self.said)):
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"{pattern} is not in: {''.join(self.said)}")

    def host(self, folder: Path, name: str) -> subprocess.Popen[str]:
        """Start a load host."""
        started = subprocess.Popen(
            [*COMMAND, "worker", "--join", self.address, "--name", name, "--folder", str(folder / name)],
            env={**os.environ, TOKEN_VARIABLE: self.token},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self.hosts.append(started)
        return started

    def end(self) -> tuple[int, dict[str, Any]]:
        """Its exit code and its summary."""
        code = self.process.wait(timeout=180)
        summary = only(self.out) / "summary.json"
        return code, json.loads(summary.read_text()) if summary.is_file() else {}

    def kill(self) -> None:
        """Leave no process."""
        for one in (self.process, *self.hosts):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.communicate(timeout=30)


@contextlib.contextmanager
def conducted(server: str, tmp_path: Path, hosts: int, *flags: str) -> Iterator[Conducted]:
    run = Conducted(server, tmp_path / "runs", hosts, *flags)
    try:
        yield run
    finally:
        run.kill()


LOADS = {
    "open": ("--rate", "100", "--requests", "300"),
    "closed": ("--concurrency", "8", "--requests", "200"),
    "timed": ("--concurrency", "6", "--duration", "3s"),
    "turns": ("--rate", "20", "--requests", "80", "--turns", "2"),
}


@pytest.mark.parametrize("flags", LOADS.values(), ids=LOADS.keys())
def test_two_hosts_send_the_load_of_one(server: str, tmp_path: Path, flags: Sequence[str]) -> None:
    with conducted(server, tmp_path, 2, *flags, "--workers-per-host", "2") as run:
        ends = [run.host(tmp_path, name) for name in ("east", "west")]
        code, summary = run.end()
        assert [one.wait(timeout=30) for one in ends] == [0, 0], [
            one.stderr.read() for one in ends if one.stderr
        ]
    assert code in (0, 3, 4), run.said  # a busy machine may be late; what must hold is below
    folder = RunFolder.open(only(run.out))
    record, schedule = read_table(folder.record, RECORD), Schedule(folder.schedule)
    measured = [one for one in record.to_pylist() if one["phase"] == Phase.MEASURE]
    keys = [(one["index"], one["cycle"]) for one in measured]
    assert len(keys) == len(set(keys))
    if "--requests" in flags:
        phases = schedule.table.column("phase").to_pylist()
        assert sorted(index for index, _ in keys) == [
            row for row, phase in enumerate(phases) if phase == Phase.MEASURE
        ]
    assert {one["worker"] for one in measured} == {0, 1, 2, 3}
    hosts = summary["instrument"]["hosts"]
    assert [(one["name"], one["first"], one["workers"]) for one in hosts] == [
        ("east", 0, 2),
        ("west", 2, 2),
    ] or [(one["name"], one["first"], one["workers"]) for one in hosts] == [("west", 0, 2), ("east", 2, 2)]
    assert all(one["clock"]["probes"] > 0 and not one["clock"]["stepped"] for one in hosts)
    assert not (folder.journal / "fetched").exists()
    assert not list(tmp_path.glob("*/[0-9]*/*/journal/*.arrows")), "a host forgets what the conductor has"
    assert summary["instrument"]["dead_workers"] == []


@pytest.mark.parametrize(
    "load", [("--rate", "40"), ("--concurrency", "6"), ("--users", "4", "--user-rate", "20")]
)
def test_a_recorded_session_is_one_hosts_and_each_step_is_sent_once(
    server: str, tmp_path: Path, load: Sequence[str]
) -> None:
    file = written(tmp_path / "s.jsonl", [agent(str(at)) for at in range(24)])
    with conducted(server, tmp_path, 2, "--sessions", str(file), "--warmup", "4", *load) as run:
        ends = [run.host(tmp_path, name) for name in ("east", "west")]
        code, summary = run.end()
        assert [one.wait(timeout=30) for one in ends] == [0, 0]
    assert code in (0, 3, 4), run.said  # a busy machine may be late; what must hold is below
    folder = RunFolder.open(only(run.out))
    rows = read_table(folder.record, RECORD).to_pylist()
    session = {one["index"]: one["session"] for one in steps.read(folder.steps).to_pylist()}
    measured = [one for one in rows if one["phase"] == Phase.MEASURE]
    assert len({one["index"] for one in measured}) == len(measured) == 24 * 4
    workers: dict[int, set[int]] = {}
    for one in measured:
        workers.setdefault(session[one["index"]], set()).add(one["worker"])
    assert {len(one) for one in workers.values()} == {1}
    assert set.union(*workers.values()) == {0, 1}
    checks = {one["code"]: one["status"] for one in summary["verdict"]["checks"]}
    assert {checks[f"session_{one}"] for one in ("steps", "gaps", "context")} == {"pass"}


def test_a_lost_host_is_named_and_the_others_go_on(server: str, tmp_path: Path) -> None:
    with conducted(server, tmp_path, 2, "--rate", "60", "--requests", "400") as run:
        run.host(tmp_path, "stays")
        gone = run.host(tmp_path, "goes")
        run.awaited("goes has joined")
        run.awaited("stays has joined")
        folder = tmp_path / "goes"
        until = time.monotonic() + 60
        while time.monotonic() < until and not any(
            path.stat().st_size > 20_000 for path in folder.glob("*/*/journal/worker-*.arrows")
        ):
            time.sleep(0.05)
        os.killpg(gone.pid, signal.SIGKILL)
        code, summary = run.end()
    assert code == 3
    dead = summary["instrument"]["dead_workers"]
    assert len(dead) == 1
    lost = [one for one in summary["instrument"]["hosts"] if one["lost"]]
    assert [one["name"] for one in lost] == ["goes"]
    assert "workers_alive" in summary["verdict"]["reasons"] or any(
        one["code"] == "workers_alive" and one["status"] == "fail" for one in summary["verdict"]["checks"]
    )
    assert any("goes" in line for line in run.said)


def test_hosts_that_lose_their_conductor_stop_and_hand_over_to_recover(server: str, tmp_path: Path) -> None:
    with conducted(server, tmp_path, 2, "--rate", "60", "--requests", "2000") as run:
        hosts = [run.host(tmp_path, name) for name in ("east", "west")]
        run.awaited("west has joined")
        run.awaited("east has joined")
        until = time.monotonic() + 60
        while time.monotonic() < until and not all(
            any(
                path.stat().st_size > 20_000 for path in (tmp_path / name).glob("*/*/journal/worker-*.arrows")
            )
            for name in ("east", "west")
        ):
            time.sleep(0.05)
        os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait(timeout=30)
        folder = only(run.out)
        here = [*COMMAND, "recover", str(folder)]
        alone = subprocess.run(here, capture_output=True, text=True, timeout=120, check=False)
        assert "--listen" in alone.stderr + alone.stdout, "what the hosts hold can still be fetched after it"
        again = subprocess.Popen(
            [*COMMAND, "recover", str(folder), "--listen", run.address],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, TOKEN_VARIABLE: run.token},
        )  # fmt: skip
        assert again.wait(timeout=120) in (3, 4, 130), again.communicate()
        assert [one.wait(timeout=60) for one in hosts] == [0, 0]
    summary = json.loads((folder / "summary.json").read_text())
    record = read_table(RunFolder.open(folder).record, RECORD)
    assert set(record.column("worker").to_pylist()) == {0, 1}
    assert summary["verdict"]["status"] != "VALID"


class Cut:
    """A way for TCP to a conductor, which can be cut: what goes over it is lost, and who joins again comes through."""

    def __init__(self, to: str) -> None:
        host, port = to.rsplit(":", 1)
        self._to = host, int(port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here = self._listener.accept()[0]
                there = socket.create_connection(self._to)
                self._open += [here, there]
                for one, other in ((here, there), (there, here)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    @staticmethod
    def _carry(one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Break what goes over it now."""
        broken, self._open = self._open, []
        for one in broken:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let nobody through any more."""
        self._listener.close()
        self.cut()


@pytest.mark.parametrize("flags", [LOADS["open"], LOADS["closed"]], ids=["open", "closed"])
def test_a_host_that_comes_back_hands_over_and_sends_no_more(
    server: str, tmp_path: Path, flags: Sequence[str]
) -> None:
    """Its connection breaks while the load runs, and it joins again at once."""
    with conducted(server, tmp_path, 2, *flags, "--output-tokens", "40") as run:
        run.host(tmp_path, "stays")
        direct, cut = run.address, Cut(run.address)
        run.address = cut.address
        goes = run.host(tmp_path, "goes")
        run.awaited("goes has joined")
        run.awaited("stays has joined")
        until = time.monotonic() + 60
        streams = (tmp_path / "goes").glob
        while time.monotonic() < until and not any(
            path.stat().st_size > 20_000 for path in streams("*/*/journal/worker-*.arrows")
        ):
            time.sleep(0.05)
        cut.cut()
        code, summary = run.end()
        run.address = direct
        assert goes.wait(timeout=60) == 0, goes.stderr and goes.stderr.read()
        cut.close()
    assert code == 3
    (lost,) = [one for one in summary["instrument"]["hosts"] if one["lost"]]
    assert lost["name"] == "goes"
    folder = RunFolder.open(only(run.out))
    record = read_table(folder.record, RECORD).to_pylist()
    mine = [one for one in record if one["worker"] == lost["first"] and one["outcome"] == Outcome.OK]
    assert mine, "what it measured is in the record"
    assert not folder.fetched.exists()
