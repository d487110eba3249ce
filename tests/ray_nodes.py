"""Ray nodes of a test's own, as `ray start` makes them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

START_S = 120.0
END_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Cluster:
    """Nodes with two CPUs and a small object store each. `python`: of the environment that they run in."""

    python: str = sys.executable
    place: Path = field(
        default_factory=lambda: Path(tempfile.mkdtemp(prefix="ray-"))
    )  # short: sockets lie there
    port: int = field(default_factory=free_port)
    client_port: int = field(default_factory=free_port)
    nodes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    head_address: str = ""

    @property
    def client(self) -> str:
        """The address of Ray Client."""
        return f"ray://{self.head_address}:{self.client_port}"

    def head(self, address: str, before: Sequence[str] = ()) -> None:
        """The first node, started by the words `before` its command."""
        self.head_address = address
        self._start(
            address, before, "--head", "--port", str(self.port), "--ray-client-server-port", str(self.client_port),
            "--include-dashboard", "false", "--temp-dir", str(self.place),
        )  # fmt: skip

    def join(self, address: str, before: Sequence[str] = ()) -> None:
        """Another one."""
        self._start(address, before, "--address", f"{self.head_address}:{self.port}")

    def _start(self, address: str, before: Sequence[str], *options: str) -> None:
        program = [*before, str(Path(self.python).with_name("ray")), "start", "--block", "--num-cpus", "2"]
        program += [
            "--node-ip-address",
            address,
            "--object-store-memory",
            "80000000",
            "--disable-usage-stats",
        ]
        log = self.place / f"{address}.txt"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*program, *options], stdout=output, stderr=output, start_new_session=True
            )
        self.nodes[address] = process
        for _ in range(int(START_S / 0.1)):
            if "Ray runtime started" in log.read_text():
                return
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        raise AssertionError(log.read_text())

    def kill(self, address: str) -> None:
        """End a node as a power cut does, unless it has ended by itself."""
        started = self.nodes.pop(address)
        if started.poll() is not None:
            return
        process = psutil.Process(started.pid)
        family = [process, *process.children(recursive=True)]
        for one in family:
            one.kill()
        psutil.wait_procs(family, timeout=END_S)

    def close(self) -> None:
        """End all."""
        for address in list(self.nodes):
            self.kill(address)
        shutil.rmtree(self.place, ignore_errors=True)
