"""The process that drives Ray: places one load host on each of N nodes, and says how each ends. It is started by ray_hosts.py.

| step       | what happens                                                                                       |
| ---------- | -------------------------------------------------------------------------------------------------- |
| connect    | to the cluster; Ray wants the same versions of itself and of Python on both sides                  |
| place      | a placement group STRICT_SPREAD, one bundle a host: each host on another node                      |
| look       | an actor in each bundle says which version of inferometer its node has                             |
| install    | where one has another, or a wheel was given: connect anew, with a runtime environment that has it  |
| run        | each actor runs the script of guard.py with the load host in it, and returns its exit code         |
| end        | with this process's input: the scripts' inputs end, then the actors do, then the group             |

The token is an argument of a call from this process to an actor, and then the first line of the script's input. It is in no
runtime environment, name or constructor: those are kept by Ray's control service, shown in its dashboard and written to logs.

Ray sends the class `LoadHost` by value, since this module is the main one here: its nodes need not have this package.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from inferometer.cluster.launch import wheel
from inferometer.cluster.launch.guard import END_S
from inferometer.cluster.launch.interface import host_name, last_line
from inferometer.cluster.launch.ray_messages import AUTO, HostEnded, Order, Refused, Report, Stage, Started
from inferometer.errors import in_words
from inferometer.isolation import undisturbed

REACH_S = 10.0
CONNECT_S = 180.0
"""Ray's own attempts take about a minute."""
INSTALL_S = 900.0
"""To connect with a runtime environment: each node may download all that the wheel depends on."""
ACTORS_S = 120.0
BEAT_S = 0.5
MOST = 8192
"""Bytes of a host's output that come back."""
SAID = 700
"""Characters of what Ray says."""


class LoadHost:
    """On a node: runs one load host. It must not refer to anything of this package, nor of this module: see the head."""

    def __init__(self) -> None:
        self._script: subprocess.Popen[bytes] | None = None

    def version(self) -> str | None:
        """The version of inferometer that the node has."""
        try:
            return importlib.metadata.version("inferometer")
        except importlib.metadata.PackageNotFoundError:
            return None

    def run(self, command: list[str], token: str, most: int) -> tuple[int, bytes]:
        """Run the script to its end; its exit code, and the last of its output."""
        python = [sys.executable if word == "{python}" else word for word in command]
        script = subprocess.Popen(  # noqa: S603 - the launcher's command
            python, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._script = script
        assert script.stdin is not None
        assert script.stdout is not None
        with contextlib.suppress(OSError):
            script.stdin.write(token.encode() + b"\n")
            script.stdin.flush()
        kept = b""
        while data := os.read(script.stdout.fileno(), 65_536):
            kept = (kept + data)[-most:]
        return script.wait(), kept

    def end(self) -> None:
        """End the script's input, and so the load host."""
        if self._script is not None and self._script.stdin is not None:
            with contextlib.suppress(OSError):
                self._script.stdin.close()


class _Refusal(Exception):
    """Why there will be no hosts."""


class _Hosts:
    """The hosts of one order on a cluster that this process is connected to."""

    def __init__(self, order: Order, tell: Callable[[Report], None]) -> None:
        import ray

        self._ray, self._order, self._tell = ray, order, tell
        self._group: Any = None
        self._actors: dict[str, Any] = {}

    def place(self) -> None:
        """A node for each. Raises _Refusal where there are too few."""
        from ray.util.placement_group import placement_group

        order = self._order
        self._tell(
            Stage(f"waiting for {order.hosts} nodes with {order.cpus} free CPUs each", order.patience_s)
        )
        self._group = placement_group([{"CPU": order.cpus}] * order.hosts, strategy="STRICT_SPREAD")
        if not any(
            self._group.wait(1) for _ in range(max(1, round(order.patience_s)))
        ):  # Ray takes whole seconds
            raise _Refusal(self._too_few())

    def _too_few(self) -> str:
        order = self._order
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        able = [node for node in alive if node["Resources"].get("CPU", 0) >= order.cpus]
        if len(able) < order.hosts:
            words = f"{len(able)} of its {len(alive)} nodes have {order.cpus} CPUs, and {order.hosts} hosts need as many"
            return f"{words} nodes: add nodes, or take fewer hosts or workers per host"
        words = f"other work left no {order.hosts} nodes with {order.cpus} free CPUs each within {order.patience_s:g} s"
        return f"{words}: end it (ray list actors), or take fewer hosts"

    def occupy(self) -> None:
        """An actor on each node."""
        from ray.util.placement_group import placement_group_table
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        self._tell(Stage("starting actors", ACTORS_S))
        nodes = {node["NodeID"]: node["NodeManagerAddress"] for node in self._ray.nodes()}
        placed = placement_group_table(self._group)["bundles_to_node_id"]
        remote = self._ray.remote(LoadHost)
        for index in range(self._order.hosts):
            name = host_name(f"ray{index + 1}-{nodes.get(placed[index], 'unknown')}")
            self._actors[name] = remote.options(
                num_cpus=self._order.cpus,
                max_restarts=0,
                max_concurrency=2,  # `end` while `run` runs
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._group, index),
            ).remote()

    def versions(self) -> dict[str, str | None]:
        """What each node has of this package, by host. Raises _Refusal for one that does not say."""
        asked = {actor.version.remote(): name for name, actor in self._actors.items()}
        done, _ = self._ray.wait(list(asked), num_returns=len(asked), timeout=ACTORS_S)
        if silent := [name for call, name in asked.items() if call not in done]:
            raise _Refusal(f"no process could be started on {', '.join(silent)} within {ACTORS_S:g} s")
        found: dict[str, str | None] = {}
        for call in done:
            try:
                found[asked[call]] = self._ray.get(call)
            except Exception as wrong:
                raise _Refusal(f"{asked[call]}: {said(wrong)}") from None
        return found

    def run(self) -> None:
        """Start all, and report each that ends, until this process's input does."""
        running = {
            actor.run.remote(self._command(name), self._order.token, MOST): name
            for name, actor in self._actors.items()
        }
        self._tell(Started(list(self._actors)))
        while not _input_has_ended(BEAT_S if running else None):
            self._collect(running, 0.0)
        for name in running.values():
            self._actors[name].end.remote()
        while running and self._collect(running, END_S):
            pass

    def _command(self, name: str) -> list[str]:
        return [word.replace("{name}", name) for word in self._order.command]

    def _collect(self, running: dict[Any, str], patience_s: float) -> bool:
        """Report those that end within this time; whether there was one."""
        if not running:
            return False
        done, _ = self._ray.wait(list(running), num_returns=1, timeout=patience_s)
        for call in done:
            name = running.pop(call)
            try:
                code, output = self._ray.get(call)
                self._tell(HostEnded(name, code, last_line(output, self._order.token)))
            except (
                Exception
            ) as wrong:  # Ray's, of many classes: the node, the actor or the connection is gone
                self._tell(HostEnded(name, None, f"Ray lost it: {said(wrong)}"))
        return bool(done)

    def leave(self) -> None:
        """Give the nodes back."""
        from ray.util.placement_group import remove_placement_group

        with contextlib.suppress(Exception):  # of a cluster that is gone: nothing is left to give back
            for actor in self._actors.values():
                self._ray.kill(actor)
            if self._group is not None:
                remove_placement_group(self._group)


def main() -> None:
    """Carry out one order."""
    undisturbed()
    reports = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what Ray prints is no report
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)

    def tell(report: Report) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more: the input has ended too
            reports.write(msgspec.json.encode(report) + b"\n")

    try:
        import ray
    except ImportError as wrong:
        tell(Refused(f"Ray cannot be imported: {said(wrong)}", "plan"))
        return
    try:
        if order.wheel is not None or not _carried_out(ray, order, tell, None):
            with _environment(order) as environment:
                _carried_out(ray, order, tell, environment)
    except _Refusal as wrong:
        tell(Refused(str(wrong)))
    except Exception as wrong:  # of whatever class: what fails over there is raised here
        tell(Refused(f"{type(wrong).__name__}: {said(wrong)}"))


def _carried_out(
    ray: Any, order: Order, tell: Callable[[Report], None], environment: dict[str, Any] | None
) -> bool:
    """Whether all nodes have the version that is needed; if so, the hosts have run. Raises _Refusal."""
    doing = "connecting" if environment is None else "connecting and installing the wheel"
    tell(Stage(doing, CONNECT_S if environment is None else CONNECT_S + INSTALL_S))
    _check_reachable(order.address)
    try:
        _connect(ray, order.address, environment)
    except Exception as wrong:  # whatever class: of the network, of versions, of the environment
        raise _Refusal(said(wrong)) from None
    undisturbed()  # Ray has put handlers of its own
    hosts = _Hosts(order, tell)
    try:
        hosts.place()
        hosts.occupy()
        found = hosts.versions()
        if others := {name: one for name, one in found.items() if one != order.version}:
            if environment is None:
                return False
            listed = ", ".join(f"{name} has {one or 'none'}" for name, one in others.items())
            raise _Refusal(f"inferometer {order.version} is needed on every node, and {listed}")
        hosts.run()
        return True
    finally:
        hosts.leave()
        ray.shutdown()


def _connect(ray: Any, address: str, environment: dict[str, Any] | None) -> None:
    options = {"runtime_env": environment, "logging_level": "ERROR", "log_to_driver": False}
    try:
        ray.init(address, **options)
    except ConnectionAbortedError:
        # Ray's server is there, and could not start a process for this client in 30 s: a cold machine, or the environment.
        if environment is not None:
            raise
        ray.init(address, **options)


def _check_reachable(address: str) -> None:
    """Raise _Refusal at once for an address where nothing listens, which Ray would try for minutes."""
    place = os.environ.get("RAY_ADDRESS", "") if address == AUTO else address
    host, _, port = place.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():
        return  # Ray looks for a cluster on this machine
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
    except OSError as wrong:
        raise _Refusal(f"{place} cannot be reached: {in_words(wrong)}") from None


@contextlib.contextmanager
def _environment(order: Order) -> Iterator[dict[str, Any]]:
    """A runtime environment that installs the wheel, and what it depends on where nodes lack that. Raises _Refusal."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            if order.wheel is None:
                made = wheel.packed(Path(folder))
            else:
                made = Path(folder, Path(order.wheel).name)
                made.write_bytes(Path(order.wheel).read_bytes())
        except (OSError, importlib.metadata.PackageNotFoundError) as wrong:
            raise _Refusal(f"no wheel of inferometer can be made for its nodes: {said(wrong)}") from None
        place = "${RAY_RUNTIME_ENV_CREATE_WORKING_DIR}"  # Ray's name for the folder once it is on the node
        yield {"working_dir": folder, "pip": [f"{place}/{made.name}"]}


def _input_has_ended(patience_s: float | None) -> bool:
    """Whether it has, or does within this time; None: wait for it."""
    return bool(select.select([sys.stdin], [], [], patience_s)[0])  # nothing follows the order


def said(wrong: BaseException) -> str:
    """An error of Ray's on one line: its beginning, and its end, where logs have the reason."""
    text = " ".join(str(wrong).split()) or type(wrong).__name__
    return text if len(text) <= SAID else f"{text[: SAID // 2]} ... {text[-SAID // 2 :]}"


if __name__ == "__main__":
    main()
